"""Programs of others over our libibverbs.so.1, against what the same machine gives UCX without it."""

from harness.case import Case, Group, at_least, at_most
from harness.peers import half_a_nap, perftest_bandwidth, perftest_latency, ucx_bandwidth, ucx_latency

BANDWIDTHS = {64: 200000, 4096: 100000, 65536: 20000, 1 << 20: 1500}  # size: messages of UCX
LATENCIES = {64: 20000, 4096: 20000, 65536: 5000, 1 << 20: 300}       # size: messages of each program
TARGET_OF_BANDWIDTH, TARGET_OF_LATENCY = 65536, 64


def named(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} bytes"


def bandwidth_case(size):
    ucx = ucx_bandwidth("tag_bw", size, BANDWIDTHS[size])
    return Case(f"ib_write_bw, {named(size)}", perftest_bandwidth("ib_write_bw", size, "memif"),
                (perftest_bandwidth("ib_write_bw", size, "switch"), ucx),
                (at_least(5, ucx.name),) if size == TARGET_OF_BANDWIDTH else ())


def latency_case(program, size):
    ucx = ucx_latency("tag_lat", size, LATENCIES[size])
    limit = (half_a_nap(),) if program == "ib_write_lat" and size == TARGET_OF_LATENCY else ()
    return Case(f"{program}, {named(size)}", perftest_latency(program, size, LATENCIES[size], "memif"),
                (perftest_latency(program, size, LATENCIES[size], "switch"), ucx, *limit),
                (at_most(0.25, ucx.name),) if size == TARGET_OF_LATENCY else ())


GROUP = Group(
    name="programs",
    target="",
    what="unmodified perftest over our libibverbs.so.1, against UCX over TCP",
    cases=(*(bandwidth_case(size) for size in BANDWIDTHS),
           *(latency_case(program, size) for program in ("ib_write_lat", "ib_send_lat") for size in LATENCIES)),
    notes="Each program has a core of its own. \"through the switch\" is what `roci-run PROGRAM` gives: a third process, the switch, "
          "shares the two cores with them. Latencies are half round trips: medians. ib_write_lat waits for memory to change and calls "
          "nobody: \"half the time between naps\" is how long a thread beside it needs at least to see a message.",
)
