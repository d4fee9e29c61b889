"""Per-packet cost breakdown: samples of both threads, summed by stage."""

from harness.case import Case, Figure, Group, LESS
from harness.programs import command, stage_row
from stage_table import STAGES
from stages import REQUESTER, RESPONDER, TOTAL

WORKLOADS = {
    "64 B WRITE": "write bw -s 64 -m 4096 -l 16 -t 256",
    "64 KiB WRITE": "write bw -s 65536 -m 4096",
    "64 B SEND": "send bw -s 64 -m 4096 -l 16 -t 256",
}


def sampled(test):
    return command(f"python3 {{bench}}/stages.py --program {{bin}}/roci-perf {test} -D {{seconds}} --loopback --direct "
                   "--cores {core0},{core1} --json", limit=90)


def stage(run, thread, name, figure=""):
    return Figure(figure or name, run, stage_row(thread, name), "ns", LESS)


def workload(name, run):
    for thread in (REQUESTER, RESPONDER):
        yield Case(f"{name}: {thread}", stage(run, thread, TOTAL, "CPU time of a packet"),
                   parts=tuple(stage(run, thread, part) for part in STAGES))


GROUP = Group(
    name="stages",
    what="per-packet cost breakdown by sampling, per thread and stage",
    cases=tuple(case for name, test in WORKLOADS.items() for case in workload(name, sampled(test))),
    notes="Both threads poll continuously. The thread with less in 'waiting' and 'clock' is the busy one: it sets the rate, and its\n"
          "stages are the cost of a packet. Empty polls of the other thread are mostly in 'waiting' and 'clock', and partly in 'port',\n"
          "'completions', 'engine' and 'kernel', because a sample does not show whether its poll found work.",
)
