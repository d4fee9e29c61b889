"""The connection manager: many connections between two processes, and RC goodput during a flood of REQs."""

from harness.case import Case, Figure, Group, LESS, MORE, at_least
from harness.peers import search
from harness.programs import command, matched

CONNECTIONS = 10000
NUMBER = r"([0-9.]+)"


def both(program, *to_server):
    """Runs a program as server and as client."""
    return command(f"python3 {{bench}}/connections/both.py {{bin}}/roci-run {' '.join(to_server)} -- {program}", limit=120)


MANY = both(f"{{bin}}/many-connections -c {CONNECTIONS} -r 2", "10.77.0.1")
CMTIME = both(f"cmtime -c {CONNECTIONS}", "-s", "10.77.0.1")


def figure(side, round_number, what, unit, better=MORE):
    """A figure of many-connections. Round 2 runs in the same processes after round 1."""
    return Figure(f"many-connections, {side}", MANY,
                  matched(rf"^{side}: round {round_number}: .*?{NUMBER} {what}", f"round {round_number} with its {what}"), unit, better)


def step(name):
    """Parses a step of cmtime's table: connections per second, from the total time in ms."""
    return lambda output: CONNECTIONS / search(rf"^client: {name} +: +{NUMBER}", output.text, f"cmtime's step {name}") * 1e3


def flood(name, options):
    """Fraction of the goodput that remains during a flood of REQs. The program alternates short turns itself."""
    return Figure(name, command(f"{{bin}}/roci-request-flood --pairs 20 {options}", limit=60),
                  matched(rf"^ratio {NUMBER} .* without$", "ratio"), "of the goodput without")


GROUP = Group(
    name="connections",
    target="",
    what=f"{CONNECTIONS:,} connections of two processes through librdmacm; RC during a flood of REQs",
    cases=(
        Case("connects", figure("client", 2, "connects/s", "/s"),
             (Figure("cmtime, its step connect", CMTIME, step("connect"), "/s"),)),
        Case("disconnects", figure("client", 2, "disconnects/s", "/s"),
             (Figure("cmtime, its step disconnect", CMTIME, step("disconnect"), "/s"),)),
        *(Case(f"CPU time per connection, {side}", figure(side, 2, "us of processor time", "us", LESS), ())
          for side in ("client", "server")),
        *(Case(f"memory per connection, {side}", figure(side, 1, "bytes each", "B", LESS), ())
          for side in ("client", "server")),
        *(Case(name, flood("RC with the flood", options), (), (at_least(0.9),))
          for name, options in (
              ("REQ flood of 10 Gb/s in, RC of 10 Gb/s out", "--rate 10Gbps --accept"),
              ("the same, REQs not accepted", "--rate 10Gbps"),
              ("REQ flood and RC in, half of 10 Gb/s each", "--rate 10Gbps --accept --in"),
          )),
    ),
    notes="many-connections creates a queue pair per connection, sends one message and disconnects, in two rounds. Its connects are "
          "from rdma_resolve_addr() to ESTABLISHED, with 4,096 outstanding; those of cmtime are its step connect alone, all at once. "
          "Both sides share the two cores. Memory is of the first round and includes the completion "
          "queue and the first use of buffers; other figures are of the second round.",
)
