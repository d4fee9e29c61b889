"""Goodput with frame loss."""

from harness.case import Case, Group, at_least
from harness.programs import large_writes


def perf(recovery, loss, more=""):
    options = f"--extensions on --recovery {recovery}" + (f" --loss {loss}" if loss else "") + more
    return large_writes(f"{recovery}, {loss or 'no'} loss{',' if more else ''}{more}", options)


LOSSLESS = perf("selective", "")
LOSSLESS_GO_BACK = perf("go-back-n", "")

GROUP = Group(
    name="loss",
    target="6",
    what="64 KiB WRITEs at a path MTU of 4096 with random frame loss in both directions",
    cases=(
        Case("selective repeat, 0.1 %", perf("selective", "0.1%"), (LOSSLESS,), (at_least(0.9, LOSSLESS.name),)),
        Case("selective repeat, 1 %", perf("selective", "1%"), (LOSSLESS,), (at_least(0.6, LOSSLESS.name),)),
        Case("the same, time-out 1 ms", perf("selective", "1%", " -u 8"), (LOSSLESS,)),
        Case("go-back-n, 0.1 %", perf("go-back-n", "0.1%"), (LOSSLESS_GO_BACK, LOSSLESS)),
        Case("go-back-n, 1 %", perf("go-back-n", "1%"), (LOSSLESS_GO_BACK, LOSSLESS)),
        Case("go-back-n, 1 %, time-out 1 ms", perf("go-back-n", "1%", " -u 8"), (LOSSLESS_GO_BACK, LOSSLESS)),
    ),
    notes="A lost retransmission waits for the time-out of the queue pair: 67 ms, or the value of -u.",
)
