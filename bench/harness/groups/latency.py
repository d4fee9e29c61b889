"""One small message at a time, within one process."""

from harness.case import Case, Figure, Group, LESS, at_most
from harness.programs import core_round_trip, in_loopback, median_latency, p99_over_median, perf_result

WRITE = in_loopback("write lat -s 64 -D {seconds}")

GROUP = Group(
    name="latency",
    target="3",
    what="WRITE ping-pong of 64 bytes, both sides poll, one core per host; half round trip",
    cases=(
        Case("median", median_latency("roci-perf write lat", WRITE), (), (at_most(700),)),
        Case("99 % over median", Figure("roci-perf write lat, 99 % over median", WRITE, p99_over_median, "x", LESS), (),
             (at_most(2),)),
        Case("99 %", Figure("roci-perf write lat, 99 %", WRITE, perf_result("p99_us", 1000), "ns", LESS)),
        Case("distance of the cores", core_round_trip()),
        Case("99.9 %", Figure("roci-perf write lat, 99.9 %", WRITE, perf_result("p99.9_us", 1000), "ns", LESS)),
    ),
)
