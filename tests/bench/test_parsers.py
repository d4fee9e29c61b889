"""Tests of the parsers of program output: captured outputs give their values, any other text is rejected."""

import json
import pathlib
import unittest

from harness import google_benchmark, peers, programs, switches
from harness.case import Output, Unreadable
from harness.groups import connections

SAMPLES = pathlib.Path(__file__).parent / "samples"


def sample(name):
    return (SAMPLES / name).read_text()


def output(name):
    return Output(sample(name))


# Every parser, a sample, and the expected value from the text of the sample (None: any above 0).
PARSERS = {
    "ucx bandwidth": (peers.ucx_final(4, 8 * 2**20 / 1e9), output("ucx_tag_bw.txt"), 515.64 * 8 * 2**20 / 1e9),
    "ucx latency": (peers.ucx_final(0, 1000), output("ucx_tag_lat.txt"), None),
    "perftest bandwidth": (peers.perftest_column(4096, 1, 1), output("perftest_bw.txt"), 0.43),
    "perftest latency": (peers.perftest_column(64, 2, 1000), output("perftest_lat.txt"), 44610),
    "perftest average": (peers.perftest_average(8), output("perftest_lat_duration.txt"), 21020),
    "fabric bandwidth": (peers.fabric_column(1, 8e-3), output("fi_pingpong.txt"), 680.07 * 8e-3),
    "fabric latency": (peers.fabric_column(2, 1000), output("fi_pingpong.txt"), 96370),
    "kernel TCP": (peers.iperf_received, output("iperf3_tcp.json"), None),
    "kernel UDP": (peers.iperf_received, output("iperf3_udp.json"), 7.8156434889718924),
    "sockperf": (peers.sockperf_median, output("sockperf_udp.txt"), None),
    "testpmd": (peers.testpmd_received, output("testpmd_rings.txt"), None),
    "testpmd server": (peers.testpmd_received, Output("", sample("testpmd_memif_server.txt")), None),
    "forwarding": (switches.forwarded(64), output("forwarding_load.txt"), 10.416683),
    "forwarding limit": (switches.rate(1024), output("forwarding_load.txt"), 7.090412),
    "roci-perf bandwidth": (programs.perf_result("average_gbps"), output("roci_perf_bw.json"), None),
    "roci-perf latency": (programs.perf_result("p50_us", 1000), output("roci_perf_lat.json"), None),
    "roci-perf tail": (programs.p99_over_median, output("roci_perf_lat.json"), None),
    "benchmark": (programs.benchmark_counter("bytes_per_second"), output("google_benchmark.json"), None),
    "footprint": (programs.line("resident_host_mib"), output("footprint_memory.txt"), 58.2),
    "stages": (programs.stage_row("responder", "memory checks"), output("stages.txt"), None),
    "connections": (connections.figure("client", 2, "connects/s", "/s").take, output("many_connections.txt"), 2601),
    "cmtime": (connections.step("disconnect"), output("cmtime.txt"), 10000 / 0.45189),
    "flood": (connections.flood("RC", "").take, output("request_flood.txt"), 0.958),
    "budget": (programs.budget_row("write_64KiB_mtu4096"), output("budget.txt"), 99480),
}


class Parsers(unittest.TestCase):
    def test_return_expected_values_of_samples(self):
        for name, (take, out, expected) in PARSERS.items():
            with self.subTest(name):
                value = take(out)
                self.assertGreater(value, 0)
                if expected is not None:
                    self.assertAlmostEqual(value, expected, places=6)

    # A value of 0 from unknown output would be misleading.
    def test_reject_unknown_output(self):
        for name, (take, out, _) in PARSERS.items():
            text = out.server or out.text
            for wrong in ("", "\n", "{}", "[]", "null", "no such thing\n", text[:len(text) // 10], '{"results": [{}]}',
                          '{"benchmarks": []}', '{"end": {}}'):
                with self.subTest(name, wrong=wrong[:20]):
                    with self.assertRaises(Unreadable):
                        take(Output(wrong, wrong if out.server else ""))

    def test_reject_output_of_other_programs(self):
        for name, (take, _, _) in PARSERS.items():
            for other, (_, out, _) in PARSERS.items():
                if name.split()[0] == other.split()[0] or {name.split()[0], other.split()[0]} <= {"kernel"}:
                    continue
                with self.subTest(name, other=other):
                    with self.assertRaises(Unreadable):
                        take(out)

    # Without -f, ucx_perftest prints lines of the same format while it runs.
    def test_ucx_parser_rejects_two_final_lines(self):
        row = sample("ucx_tag_bw.txt").splitlines()[-1]
        with self.assertRaises(Unreadable):
            peers.ucx_final(4, 1)(Output(row + "\n" + row))

    # With -n the first column is the minimum.
    def test_perftest_average_rejects_run_of_a_number_of_messages(self):
        with self.assertRaises(Unreadable):
            peers.perftest_average(64)(output("perftest_lat.txt"))

    def test_testpmd_parser_rejects_port_without_received_packets(self):
        text = "NIC statistics for port 0 ####\n  Rx-pps:    0   Rx-bps:  0\n"
        with self.assertRaisesRegex(Unreadable, "nothing"):
            peers.testpmd_received(Output(text))

    # The load generator must be faster than the switch that it measures.
    def test_forwarding_parser_rejects_run_limited_by_load_generator(self):
        with self.assertRaisesRegex(Unreadable, "at only 49.9 % of its looks"):
            switches.forwarded(1024)(output("forwarding_load.txt"))

    def test_forwarding_parser_rejects_switch_without_output(self):
        text = "64_frames_per_second 0\n64_waiting_percent 100.0\n"
        with self.assertRaisesRegex(Unreadable, "the switch forwarded no frames"):
            switches.forwarded(64)(Output(text))

    # The first second includes the start and shows 0.
    def test_testpmd_parser_ignores_seconds_without_packets(self):
        block = "NIC statistics for port 0 ####\n  Rx-pps:    {}   Rx-bps:  0\nNIC statistics for port 1 ##\n  Rx-pps: 7\n"
        text = "".join(block.format(rate) for rate in (0, 300, 100, 200))
        self.assertEqual(peers.testpmd_received(Output(text)), 200)

    def test_iperf_parser_subtracts_lost_datagrams(self):
        end = {"sum": {"bits_per_second": 10e9, "lost_percent": 25}}
        self.assertAlmostEqual(peers.iperf_received(Output(json.dumps({"end": end}))), 7.5)

    def test_benchmark_parser_rejects_failed_benchmark(self):
        document = {"benchmarks": [{"name": "write/64", "error_occurred": True, "error_message": "no buffers",
                                    "bytes_per_second": 5}]}
        with self.assertRaisesRegex(Unreadable, "no buffers"):
            programs.benchmark_counter("bytes_per_second")(Output(json.dumps(document)))


class GoogleBenchmark(unittest.TestCase):
    def setUp(self):
        self.found = google_benchmark.read(sample("google_benchmark_repeated.json"))

    def test_groups_repetitions_by_name(self):
        self.assertEqual(sorted(self.found), ["limit_ring/64", "write/64/ack_each", "write/64/direct"])
        self.assertEqual({len(one.runs) for one in self.found.values()}, {3})

    def test_divides_own_rate_by_other_rate_per_repetition(self):
        own, other = self.found["write/64/ack_each"], self.found["write/64/direct"]
        self.assertEqual(own.against(), ["write/64/direct"])
        expected = [a / b for a, b in zip(own.of("packets_per_second"), other.of("packets_per_second"))]
        self.assertEqual(own.ratio(other).rounds, expected)

    # limit_copy_crc/64 was filtered out of the sample.
    def test_omits_ratios_of_filtered_benchmarks(self):
        names = [name for name, _ in google_benchmark.ratios(self.found, self.found["write/64/direct"])]
        self.assertEqual(names, ["limit_ring/64"])

    def test_compares_inverse_times_without_rates(self):
        def timed(name, times):
            one = google_benchmark.Benchmark(name)
            for time in times:
                one.add({"cpu_time": time, "real_time": 1, "time_unit": "us"})
            return one
        self.assertEqual(timed("quick", [1, 2]).ratio(timed("slow", [4, 4])).rounds, [4, 2])
        self.assertEqual(timed("waits/real_time", [5]).nanoseconds(), [1000])
        self.assertEqual(timed("forward/64/manual_time", [5]).nanoseconds(), [1000])

    def test_table_and_json_report_failed_benchmark(self):
        run = {"run_type": "iteration", "run_name": "x", "error_occurred": True, "error_message": "no buffers"}
        found = google_benchmark.read(json.dumps({"benchmarks": [run]}))
        self.assertEqual(list(google_benchmark.rows(found)), [("x", "failed", "", "no buffers", "")])
        self.assertEqual(google_benchmark.document(found)[0]["error"], "no buffers")

    def test_rejects_other_text(self):
        for text in ("", "{}", '{"benchmarks": []}', '{"benchmarks": [{"run_type": "iteration"}]}', "write/64 3 ns"):
            with self.subTest(text):
                with self.assertRaises(Unreadable):
                    google_benchmark.read(text)


if __name__ == "__main__":
    unittest.main()
