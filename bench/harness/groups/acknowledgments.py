"""Cost of one acknowledgment per packet, and of the extensions."""

from harness.case import Case, Group, at_least
from harness.programs import large_writes

PLAIN = large_writes("one per batch, no extensions", "--extensions off --packets-per-ack 64")
EACH = large_writes("one per packet, no extensions", "--extensions off --packets-per-ack 1")
EXTENDED = large_writes("one per batch, extensions", "--extensions on --packets-per-ack 64")
EXTENDED_EACH = large_writes("one per packet, extensions", "--extensions on --packets-per-ack 1")

GROUP = Group(
    name="acknowledgments",
    target="5",
    what="64 KiB WRITEs at a path MTU of 4096: an acknowledgment per packet, and extensions",
    cases=(
        Case("per packet", EACH, (PLAIN,), (at_least(0.9, PLAIN.name),)),
        Case("extensions", EXTENDED, (PLAIN,), (at_least(0.9, PLAIN.name),)),
        Case("per packet, extensions", EXTENDED_EACH, (EXTENDED, PLAIN), (at_least(0.9, EXTENDED.name),)),
    ),
    notes="A ratio of 0.93 is a cost of 7 %.",
)
