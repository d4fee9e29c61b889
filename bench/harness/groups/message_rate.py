"""Small messages on one queue pair, and distributed over many."""

from harness.case import Case, Figure, Group, at_least
from harness.peers import testpmd_rate, testpmd_rings
from harness.programs import benchmark, benchmark_counter, core_round_trip, in_loopback, message_rate

SMALL = "write bw -s 64 -m 4096 -l 16 -D {seconds}"
FRAME = 14 + 20 + 8 + 12 + 16 + 64 + 4  # Ethernet, IPv4, UDP, BTH, RETH, payload, ICRC

ONE = message_rate("one queue pair", in_loopback(f"{SMALL} -t 256"))
SOME = message_rate("256 queue pairs", in_loopback(f"{SMALL} -q 256 -t 16"))
# Each queue pair is served about ten times per second; its time-out must be longer.
MANY = message_rate("100,000 queue pairs", in_loopback(f"{SMALL} -q 100000 -t 16 -u 20", limit=120))
LIMIT = Figure("limit: ring, copy and CRC", benchmark("loopback", "limit_two_cores/64/.*/real_time"),
               benchmark_counter("packets_per_second", 1e-6), "M/s")
RING = Figure("limit: ring alone", benchmark("loopback", "limit_two_cores_ring/64/.*/real_time"),
              benchmark_counter("packets_per_second", 1e-6), "M/s")
PORT = testpmd_rate(testpmd_rings(FRAME))

GROUP = Group(
    name="message-rate",
    target="2",
    what="WRITEs of 64 bytes posted 16 at a time, back to back, one core per host",
    cases=(
        Case("one queue pair", ONE, (LIMIT, RING, PORT), (at_least(8),)),
        Case("256 queue pairs", SOME, (ONE, LIMIT), (at_least(8),)),
        Case("100,000 queue pairs", MANY, (SOME, ONE), (at_least(0.6, SOME.name),)),
        Case("distance of the cores", core_round_trip()),
    ),
)
