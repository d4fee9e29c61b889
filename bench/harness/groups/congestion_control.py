"""Cost of congestion control for a queue pair that it does not limit."""

from harness.case import Case, Group, at_least
from harness.programs import large_writes


def perf(name, options=""):
    return large_writes(name, f"--extensions auto {options}".strip())


LINE = "--cc-line-rate 400Gbps"  # high, so that no algorithm is limited by the line rate

OFF = perf("none")

GROUP = Group(
    name="control",
    target="",
    what="64 KiB WRITEs at a path MTU of 4096 with and without a congestion control algorithm",
    cases=tuple(
        Case(name, perf(name, options), (OFF,), (at_least(0.95, OFF.name),))
        for name, options in (
            ("static_rate", f"--cc static_rate {LINE}"),
            ("dcqcn", f"--cc dcqcn {LINE}"),
            ("ldcp", f"--cc ldcp --cc-base-rtt 50us {LINE}"),
            ("dctcp", f"--cc dctcp --cc-base-rtt 50us {LINE}"),
            ("dcqcn on a dedicated core", f"--cc dcqcn --cc-cores 1 {LINE}"),
        )
    ),
    notes="Nothing is marked or lost, so the algorithms stay at the line rate (400 Gb/s, more than the loopback carries) or at their full "
    "window. The remaining cost is that of events, gates and timers. A dedicated core needs a third CPU.",
)
