"""Large messages on one queue pair, one core per host."""

from harness.case import Case, Figure, Group, at_least
from harness.peers import testpmd_bandwidth, testpmd_rings
from harness.programs import bandwidth, benchmark, benchmark_counter, core_round_trip, in_loopback

SIZE = "-s 65536 -m 4096 -D {seconds}"
FRAME = 14 + 20 + 8 + 12 + 4096 + 4  # Ethernet, IPv4, UDP, BTH, payload, ICRC


def verb(name):
    return bandwidth(f"roci-perf {name} bw", in_loopback(f"{name} bw {SIZE}"))


def limit(name, benchmark_name, program="loopback"):
    return Figure(name, benchmark(program, benchmark_name), benchmark_counter("Gb_per_second"), "Gb/s")


WRITE = verb("write")
ONE_PASS = limit("limit: ring, copy and CRC in one pass", "limit_two_cores_one_pass/4096/.*/real_time")
TWO_PASSES = limit("limit: ring, copy, then CRC", "limit_two_cores/4096/.*/real_time")
MEMORY = Figure("memory: copy and CRC twice, one core", benchmark("loopback", "limit_copy_crc/4096"),
                benchmark_counter("bytes_per_second", 8e-9), "Gb/s")
COPY = Figure("memory: memcpy, first-level cache", benchmark("wire", "limit_memcpy/4096"),
              benchmark_counter("bytes_per_second", 8e-9), "Gb/s")
PORT = testpmd_bandwidth(testpmd_rings(FRAME), 4096)

GROUP = Group(
    name="bandwidth",
    target="1",
    what="64 KiB messages on one queue pair, path MTU 4096, back to back, one core per host",
    cases=(
        Case("WRITE", WRITE, (ONE_PASS, TWO_PASSES, PORT, MEMORY, COPY), (at_least(100), at_least(0.6, ONE_PASS.name))),
        Case("READ", verb("read"), (WRITE, ONE_PASS), (at_least(0.8, WRITE.name),)),
        Case("SEND", verb("send"), (WRITE, ONE_PASS), (at_least(0.8, WRITE.name),)),
        Case("distance of the cores", core_round_trip()),
    ),
    notes="Limits: one core copies, computes the CRC and sends packets; the other receives, computes the CRC and copies out, "
          "over the rings of the hosts. The slower side sets the rate.",
)
