"""What acknowledging each packet costs, and what the extensions cost."""

from harness.case import Case, Group, at_least
from harness.programs import large_writes

PLAIN = large_writes("one for what came together, no extensions", "--extensions off --packets-per-ack 64")
EACH = large_writes("one for each packet, no extensions", "--extensions off --packets-per-ack 1")
EXTENDED = large_writes("one for what came together, extensions", "--extensions on --packets-per-ack 64")
EXTENDED_EACH = large_writes("one for each packet, extensions", "--extensions on --packets-per-ack 1")

GROUP = Group(
    name="acknowledgements",
    target="5",
    what="64 KiB WRITEs at a path MTU of 4096: acknowledgements for each packet, extensions on",
    cases=(
        Case("each packet", EACH, (PLAIN,), (at_least(0.9, PLAIN.name),)),
        Case("extensions", EXTENDED, (PLAIN,), (at_least(0.9, PLAIN.name),)),
        Case("each packet, extensions", EXTENDED_EACH, (EXTENDED, PLAIN), (at_least(0.9, EXTENDED.name),)),
    ),
    notes="A ratio of 0.93 is a cost of 7 %.",
)
