"""Forwarding rate of one core of the switch, compared with other software switches on the same ports."""

from harness.case import Case, Group, at_least
from harness.switches import figure, load_alone, open_vswitch, roci, SIZES, testpmd

MAC, OUTPUT, NORMAL = "dpdk-testpmd, mac forwarding", "Open vSwitch, port to port", "Open vSwitch, learning bridge"
INT_BYTES = 32  # shim, header and one hop
FEATURES = {
    "bridge": roci("bridge"),
    "WRED and ECN": roci("marking", "--marked"),
    "INT": roci("telemetry", f"--longer {INT_BYTES}"),
    "all features": roci("everything", f"--marked --longer {INT_BYTES}"),
}


def peers(size):
    yield figure("dpdk-testpmd, io forwarding", testpmd("io"), size)
    yield figure(MAC, testpmd("mac"), size)
    yield figure(OUTPUT, open_vswitch("output"), size)
    yield figure(NORMAL, open_vswitch("normal"), size)


def cases(size):
    for name, run in FEATURES.items():
        targets = (at_least(0.5, MAC), at_least(1, OUTPUT), at_least(1, NORMAL)) if name == "WRED and ECN" else ()
        limits = (load_alone(size),) if name == "bridge" else ()
        yield Case(f"{size} bytes, {name}", figure("roci-switch", run, size), (*peers(size), *limits), targets)


GROUP = Group(
    name="forwarding",
    what="frames per second of one core between memif ports, with an increasing set of switch features",
    cases=tuple(case for size in SIZES for case in cases(size)),
    notes="A load generator on the other core sends RoCEv2 frames of 64 flows, of at most the given size without FCS, and counts\n"
          "without touching them. A run in which it did not wait for the switch most of the time is rejected.",
)
