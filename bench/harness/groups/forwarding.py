"""What the switch forwards on one core."""

from harness.case import Case, Figure, Group, at_least
from harness.peers import testpmd_forwarded, testpmd_forwarding
from harness.programs import benchmark, benchmark_counter


def ours(name, features, size):
    return Figure(name, benchmark("switch", f"forward_{features}/{size}/manual_time"),
                  benchmark_counter("packets_per_second", 1e-6), "M/s")


def peer(size, mode):
    return Figure(f"dpdk-testpmd, {mode} forwarding", testpmd_forwarding(size, mode), testpmd_forwarded, "M/s")


def cases(size):
    peers = tuple(peer(size, mode) for mode in ("io", "mac"))
    target = (at_least(0.5, "dpdk-testpmd, mac forwarding"),)
    yield Case(f"{size} bytes, a bridge", ours("learn, look up, queue", "plain", size), peers)
    yield Case(f"{size} bytes, WRED and ECN", ours("the same, curves asked", "aqm", size), peers, target)
    yield Case(f"{size} bytes, INT", ours("the same, telemetry begun and a hop", "telemetry", size), peers)
    yield Case(f"{size} bytes, everything", ours("both, PFC, shares, a shared buffer", "everything", size), peers)


GROUP = Group(
    name="forwarding",
    what="frames that one core forwards between two rings, with more and more of what a switch does",
    cases=(*cases(64), *cases(1024)),
    notes="Ours is the time of the switch's polls alone; testpmd's core does nothing but forward.",
)
