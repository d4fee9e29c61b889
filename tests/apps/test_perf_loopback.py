"""Test of roci-perf --loopback: client and server in one process."""

import json
import os
import time

import perf_harness
from perf_harness import PerfTest


class LoopbackTest(PerfTest):
    def run_json(self, *arguments, **options):
        done = self.run_perf(*arguments, "--loopback", "--json", **options)
        self.assertEqual((done.returncode, done.err), (0, ""), done.out)
        return json.loads(done.out)  # Fails unless the output is exactly one object.


class Operations(LoopbackTest):
    def test_write_read_and_send_complete_with_and_without_switch(self):
        for verb in ("write", "read", "send"):
            for way in ([], ["--direct"]):
                with self.subTest(f"{verb} {way}"):
                    result = self.run_json(verb, "bw", "-n", "100", "--verify", *way)
                    self.assert_bandwidth(result)
                    self.assertEqual(result["verified"], {"messages": 100, "bytes": 100 * 65536})
                    result = self.run_json(verb, "lat", "-n", "100", "--verify", *way)
                    self.assert_latency(result)
                    # Includes 100 warm-up messages. Both sides verify, except for READ, where only the requester can.
                    self.assertEqual(result["verified"]["messages"], 200 if verb == "read" else 400)


class TransferParameters(LoopbackTest):
    def test_verifies_message_sizes_around_path_mtu(self):
        for size in (1, 1024, 1025, 100_001):
            for verb in ("write", "read", "send"):
                with self.subTest(f"{verb} {size}"):
                    result = self.run_json(verb, "bw", "-m", "1024", "-s", str(size), "-n", "50", "--verify")
                    self.assertEqual(result["verified"], {"messages": 50, "bytes": 50 * size})

    def test_verifies_data_for_each_queue_and_completion_option(self):
        for more in (["-q", "16"], ["-l", "16"], ["-Q", "1"], ["-t", "1"], ["-t", "100", "-Q", "100"], ["-I", "64"]):
            with self.subTest(" ".join(more)):
                result = self.run_json("write", "bw", "-s", "64", "-n", "203", "--verify", *more)
                self.assertEqual(result["verified"]["messages"], 203 * (16 if "-q" in more else 1))


    # Completions of --cq-mod messages arrive together, also around the end of the warm-up.
    def test_measures_exactly_the_messages_after_the_warm_up(self):
        for iterations, warm_up in ((10, 10), (20, 20), (100, 1)):
            for more in ([], ["-q", "3"], ["--verify"]):
                with self.subTest(f"-n {iterations} -w {warm_up} {more}"):
                    [row] = self.run_json("write", "bw", "--direct", "-n", str(iterations), "-w", str(warm_up),
                                          *more)["results"]
                    self.assertEqual(row["iterations"], iterations * (3 if "-q" in more else 1))
                    self.assertGreater(row["average_gbps"], 0)


class ExecutionModes(LoopbackTest):
    def test_timed_run_ends_after_duration(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb):
                began = time.monotonic()
                result = self.run_json(verb, "bw", "-D", "0.5", "--verify")
                self.assertGreaterEqual(time.monotonic() - began, 0.5)
                self.assert_bandwidth(result)
                self.assertLess(result["results"][0]["seconds"], 0.6)  # the duration without the margins
        self.assert_latency(self.run_json("send", "lat", "-D", "0.3"))

    # Two threads on one core must still make progress.
    def test_completes_on_one_core(self):
        core = {min(os.sched_getaffinity(0))}
        result = self.run_json("write", "bw", "-n", "100", "--verify", preexec_fn=lambda: os.sched_setaffinity(0, core))
        self.assert_bandwidth(result)
        self.assert_latency(self.run_json("write", "lat", preexec_fn=lambda: os.sched_setaffinity(0, core)))

    def test_prints_bandwidth_and_latency_tables(self):
        done = self.run_perf("write", "bw", "--loopback", "-n", "20", "--verify", "--report-gbits")
        self.assertEqual((done.returncode, done.err), (0, ""))
        for part in ("RDMA_Write BW Test", "QPN 0x", "#bytes     #iterations    BW peak[Gb/sec]", "MsgRate[Mpps]",
                     "verified: 20 messages, 1310720 bytes, no errors"):
            self.assertIn(part, done.out)
        done = self.run_perf("send", "lat", "--loopback", "-n", "20", "-H", "-U")
        self.assertEqual((done.returncode, done.err), (0, ""))
        for part in ("Send Latency Test", "t_typical[usec]", "p99.99[usec]", "from [usec]", "#, usec"):
            self.assertIn(part, done.out)
        for line in done.out.splitlines():
            self.assertLessEqual(len(line), 100)

    # roci-run --cc sets the variable; the option of the program has precedence.
    def test_option_cc_overrides_environment(self):
        for value, more, profile in (("dcqcn", ["--cc", "timely"], "timely"), ("dcqcn", [], "dcqcn")):
            self.environment["ROCI_CC"] = value
            result = self.run_json("write", "bw", "--direct", "-n", "100", "--extensions", "auto", "--cc-report", *more)
            self.assertEqual({flow["profile"] for flow in result["congestion_control"]["client"]}, {profile})
        self.environment["ROCI_CC"] = "nonsense"
        done = self.run_perf("write", "bw", "--loopback")
        self.assert_refused(done, 2, "ROCI_CC: ")

    def test_json_reports_seed_only_if_given(self):
        for more, seed in (([], None), (["--seed", "1"], 1)):
            result = self.run_json("write", "bw", "--direct", "-n", "10", *more)
            self.assertEqual(result["test"]["seed"], seed)

    def test_writes_pcapng_capture(self):
        path = self.folder / "c.pcapng"
        self.run_json("write", "bw", "-n", "20", "--capture", path, "--capture-packets", "50")
        data = path.read_bytes()
        self.assertEqual(data[:4], b"\x0a\x0d\x0d\x0a")  # Section Header Block of pcapng.
        self.assertGreater(len(data), 50 * 64)


if __name__ == "__main__":
    perf_harness.main("roci-perf")
