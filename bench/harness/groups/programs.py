"""Unmodified perftest with Rocinante's libibverbs.so.1, compared with UCX over TCP on the same machine."""

from harness.case import Case, Group, at_least, at_most
from harness.peers import perftest_bandwidth, perftest_latency, ucx_bandwidth, ucx_latency

BANDWIDTHS = {64: 200000, 4096: 100000, 65536: 20000, 1 << 20: 1500}  # size: messages of UCX
LATENCIES = {64: 20000, 4096: 20000, 65536: 5000, 1 << 20: 300}  # size: messages of each program
# Keys: size, or program and size. Values: required ratio to UCX over TCP.
TARGETS_OF_BANDWIDTH = {65536: 6, 1 << 20: 2}
TARGETS_OF_LATENCY = {("ib_send_lat", 64): 0.15, ("ib_write_lat", 64): 1.0}


def named(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} bytes"


def bandwidth_case(size):
    ucx = ucx_bandwidth("tag_bw", size, BANDWIDTHS[size])
    return Case(f"ib_write_bw, {named(size)}", perftest_bandwidth("ib_write_bw", size, "network"),
                (perftest_bandwidth("ib_write_bw", size, "memif"), ucx),
                (at_least(TARGETS_OF_BANDWIDTH[size], ucx.name),) if size in TARGETS_OF_BANDWIDTH else ())


def latency_case(program, size):
    ucx = ucx_latency("ucp_put_lat" if program == "ib_write_lat" else "tag_lat", size, LATENCIES[size])
    target = TARGETS_OF_LATENCY.get((program, size))
    return Case(f"{program}, {named(size)}", perftest_latency(program, size, LATENCIES[size], "network"),
                (perftest_latency(program, size, LATENCIES[size], "memif"), ucx),
                (at_most(target, ucx.name),) if target else ())


GROUP = Group(
    name="programs",
    target="",
    what="unmodified perftest with Rocinante's libibverbs.so.1, compared with UCX over TCP",
    cases=(*(bandwidth_case(size) for size in BANDWIDTHS),
           *(latency_case(program, size) for program in ("ib_write_lat", "ib_send_lat") for size in LATENCIES)),
    notes="Each program has its own core, in a network of `roci-run` without a switch. Latencies are half round trips: medians. "
          "ib_write_lat polls memory and makes no call, so a thread of the library shares its core with it.",
)
