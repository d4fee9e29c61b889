"""What congestion control costs a queue pair that nothing holds back."""

from harness.case import Case, Group, at_least
from harness.programs import large_writes


def perf(name, options=""):
    return large_writes(name, f"--extensions auto {options}".strip())


OFF = perf("none")

GROUP = Group(
    name="control",
    target="",
    what="64 KiB WRITEs at a path MTU of 4096 with an algorithm at work and without",
    cases=tuple(
        Case(name, perf(name, options), (OFF,), (at_least(0.95, OFF.name),))
        for name, options in (
            ("static_rate", "--cc static_rate"),
            ("dcqcn", "--cc dcqcn"),
            ("ldcp", "--cc ldcp --cc-base-rtt 50us"),
            ("dctcp", "--cc dctcp --cc-base-rtt 50us"),
            ("dcqcn on a core of its own", "--cc dcqcn --cc-cores 1"),
        )
    ),
    notes="Nothing is marked or lost, so the algorithms stay at the rate of the line (100 Gb/s) or at their full window; what "
    "is left is the cost of events, gates and timers. A core of its own wants a third CPU.",
)
