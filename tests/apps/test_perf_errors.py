"""Every error is one sentence: exit code 2 for options and configuration, 1 for errors at run time."""

import json
import resource
import signal
import socket
import subprocess
import time

import perf_harness
from perf_harness import PerfTest, read_line


# The test that a client of the test requests: one WRITE.
ONE_WRITE = {"operation": "write", "mode": "bw", "sizes": [4096], "iterations": 1, "iterations_given": True,
             "duration": 0, "queue_pairs": 1, "mtu": 1024, "tx_depth": 8, "rx_depth": 8, "warm_up": 0, "seed": 1}


class InvalidOptions(PerfTest):
    def refuse(self, arguments, *parts):
        with self.subTest(" ".join(arguments)):
            self.assert_refused(self.run_perf(*arguments), 2, *parts)

    def test_rejects_invalid_options(self):
        self.refuse(["write", "bw", "--loopback", "-s", "0"], "--size is \"0\"", "from 1 to 1G")
        self.refuse(["write", "bw", "--loopback", "-s", "big"], "--size is \"big\"")
        self.refuse(["write", "bw", "--loopback", "-m", "1500"], "256, 512, 1024, 2048 or 4096")
        self.refuse(["write", "bw", "--loopback", "-q", "0"], "--qp is \"0\"", "from 1 to 100000")
        self.refuse(["write", "bw", "--loopback", "localhost"], "--loopback", "HOST")
        self.refuse(["write", "bw"], "--loopback", "--config FILE")
        self.refuse(["write", "bw", "--loopback", "--frobnicate"], "--frobnicate")
        self.refuse(["fly", "bw"], "write, read and send")
        self.refuse(["write", "rate"], "bw or lat")
        self.refuse([], "roci-perf: ")

    # Options that depend on the hosts, which are not created.
    def test_rejects_congestion_control_cores_and_gid_index_before_the_test(self):
        self.refuse(["write", "bw", "--loopback", "--cc", "dqcnc"], "--cc: ", "dcqcn")
        self.refuse(["write", "bw", "--loopback", "--cc", "hpcc"], "base", "; set --cc-base-rtt")
        self.refuse(["write", "bw", "--loopback", "--cc", "dcqcn", "--cc-set", "nonsense=1"], "nonsense")
        self.refuse(["write", "bw", "--loopback", "--cores", "0,1023"], "--cores: CPU 1023 is not available to this process: ")
        self.refuse(["write", "bw", "--loopback", "-x", "7"], "--gid-index 7 does not exist", "0 to 1")

    def test_help_and_version_succeed(self):
        for arguments in (["--help"], ["write", "bw", "--help"], ["--version"]):
            done = self.run_perf(*arguments)
            self.assertEqual((done.returncode, done.err), (0, ""))
            self.assertNotEqual(done.out, "")


class InvalidConfiguration(PerfTest):
    def refuse(self, text, *parts):
        config = self.write("bad.yaml", text)
        self.assert_refused(self.run_perf("write", "bw", "--config", config), 2, "bad.yaml", *parts)

    def test_rejects_invalid_configuration(self):
        port = "port: {device: net_null0}"
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1/24], colour: red}}", "bad.yaml:1", "device.colour",
                    "unknown key", "addresses")
        self.refuse(f"eal: {{}}\nfabric: {{}}\ndevice: {{{port}, addresses: [10.0.0.1/24]}}", "bad.yaml:2", "fabric")
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1000/24]}}", "10.0.0.1000")
        self.refuse(f"device: {{{port}}}", "device.addresses")
        self.refuse("device: {addresses: [10.0.0.1/24]}", "port")
        self.refuse("device: {port: {mtu: 1500}, addresses: [10.0.0.1/24]}", "'device' is missing")
        self.refuse("device: {port: {device: net_null0, mtu: 100}, addresses: [10.0.0.1/24]}", "mtu", "100")
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1/24], vlan: 5000}}", "vlan", "5000")
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1/24], progress: later}}", "application, dedicated")
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1/24], cpu: 0}}", "progress: dedicated")
        self.refuse(f"device: {{{port}, addresses: [10.0.0.1/24], neighbors: [{{address: 10.0.0.2, mac: x}}]}}",
                    "neighbors[0].mac")
        self.refuse("device: {", "not valid YAML")

    def test_rejects_missing_file(self):
        self.assert_refused(self.run_perf("write", "bw", "--config", "/nowhere/x.yaml"), 2, "/nowhere/x.yaml")

    def test_rejects_path_mtu_above_port_mtu(self):
        config = self.host("h", "net_null0,no-rx=1", "10.0.0.1", mtu=1500)
        self.assert_refused(self.run_perf("write", "bw", "--config", config, "-m", "4096"), 2, "path MTU 4096", "at most 1024")

    def test_rejects_gid_index_out_of_range(self):
        config = self.host("h", "net_null0,no-rx=1", "10.0.0.1")
        self.assert_refused(self.run_perf("write", "bw", "--config", config, "-x", "7"), 2, "--gid-index 7", "0 to 1")


class RunTimeErrors(PerfTest):
    def null_host(self, name="h", address="10.0.0.1", **more):
        return self.host(name, "net_null0,no-rx=1", address, **more)

    # A server of roci-perf that a client of the test can connect to.
    def waiting_server(self):
        server = self.perf("write", "bw", "--config", self.null_host(), "-p", self.tcp_port)
        self.assertIn("waiting for a client", read_line(server))
        return server

    def test_reports_port_that_cannot_be_opened(self):
        for device in ("net_nosuch0", "0000:fe:1f.7", "net_memif0,role=client,id=0,socket=/nowhere/s.sock"):
            with self.subTest(device):
                config = self.write("h.yaml", f"""
eal: {{memory: 64MiB}}
device:
  port: {{device: "{device}", connect_timeout: 200ms}}
  addresses: [10.0.0.1/24]
""")
                done = self.run_perf("write", "bw", "--config", config, "--host-timeout", "0.5", "127.0.0.1")
                self.assert_refused(done, 1, device.split(",", maxsplit=1)[0])

    def test_client_times_out_without_server(self):
        done = self.run_perf("write", "bw", "--config", self.null_host(), "-p", self.tcp_port, "--host-timeout", "0.5",
                             "127.0.0.1")
        self.assert_refused(done, 1, f"HOST 127.0.0.1:{self.tcp_port} does not answer within 0.5 s")

    # The exchange over TCP succeeds and the packets get no answer: no host has the server's address.
    def test_both_sides_report_unreachable_peer_address(self):
        server = self.perf("write", "bw", "--config", self.null_host("server", "10.0.0.2"), "-p", self.tcp_port)
        client = self.run_perf("write", "bw", "--config", self.null_host("client"), "-p", self.tcp_port, "127.0.0.1")
        self.finish(server)
        self.assert_refused(client, 1, "10.0.0.2 does not answer")
        self.assert_sentence(server, 1, "the client reports: ", "10.0.0.2 does not answer")

    def test_reports_insufficient_memory(self):
        config = self.null_host(memory="8MiB")
        self.assert_refused(self.run_perf("write", "bw", "--config", config, "127.0.0.1"), 1, "emory")

    def test_server_times_out_without_client(self):
        done = self.run_perf("write", "bw", "--config", self.null_host(), "-p", self.tcp_port, "--host-timeout", "0.3")
        self.assert_sentence(done, 1, "no client connected")

    def test_reports_tcp_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.assert_refused(self.run_perf("write", "bw", "--config", self.null_host(), "-p", port), 1,
                                f"cannot listen on 127.0.0.1:{port}")

    def test_server_rejects_unknown_protocol(self):
        server = self.waiting_server()
        with socket.create_connection(("127.0.0.1", int(self.tcp_port)), timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.finish(server)
        self.assert_sentence(server, 1, "does not use the protocol of roci-perf")

    def test_server_rejects_result_without_values(self):
        server = self.waiting_server()
        test = {**ONE_WRITE, "verify": False}
        with socket.create_connection(("127.0.0.1", int(self.tcp_port)), timeout=10) as client:
            lines = client.makefile("rw")
            for message in ({"roci-perf": 1, "test": test, "largest_mtu": 1024},
                            {"round": 4096, "queue_pairs": ["gid=10.0.0.2,qpn=0x11,psn=0,rkey=1,va=0x1000"]},
                            {"done": True, "messages": [1], "result": {"bytes": 4096, "typical_us": 1}}):
                lines.write(json.dumps(message) + "\n")
                lines.flush()
                lines.readline()
            self.finish(server)
        self.assert_sentence(server, 1, "the peer's result has no values")

    def test_server_rejects_different_protocol_version(self):
        server = self.waiting_server()
        with socket.create_connection(("127.0.0.1", int(self.tcp_port)), timeout=10) as client:
            client.sendall(b'{"roci-perf": 99}\n')
            answer = client.makefile().readline()
            self.finish(server)
        self.assertIn("different versions", json.loads(answer)["error"])
        self.assert_sentence(server, 1, "different versions")

    # Verifies that the check can fail: this client reports that it has written a message, and has not.
    def test_verification_fails_if_data_was_not_written(self):
        server = self.waiting_server()
        test = {**ONE_WRITE, "verify": True}
        with socket.create_connection(("127.0.0.1", int(self.tcp_port)), timeout=10) as liar:
            lines = liar.makefile("rw")

            def say(message):
                lines.write(json.dumps(message) + "\n")
                lines.flush()
                return json.loads(lines.readline())

            self.assertIn("welcome", say({"roci-perf": 1, "test": test, "largest_mtu": 1024}))
            peer = "gid=10.0.0.2,qpn=0x11,psn=0,rkey=1,va=0x1000"
            self.assertIn("queue_pairs", say({"round": 4096, "queue_pairs": [peer]}))
            answer = say({"check": [[0, 1]]})
            self.finish(server)
        self.assertIn("message 0 of queue pair 0 is wrong at offset 0 of 4096", answer["error"])
        self.assert_sentence(server, 1, "verification failed", "got 0x00")

    def test_reports_capture_file_that_cannot_be_written(self):
        done = self.run_perf("write", "bw", "--loopback", "--capture", "/nowhere/c.pcapng")
        self.assert_refused(done, 1, "/nowhere/c.pcapng")

    def test_reports_trace_file_that_cannot_be_written(self):
        test = ["write", "bw", "--loopback", "--direct", "-n", "100", "--cc", "dcqcn", "--cc-trace"]
        done = self.run_perf(*test, "/nowhere/t.jsonl")
        self.assert_refused(done, 1, "--cc-trace: /nowhere/t.jsonl cannot be written: No such file")
        done = self.run_perf(*test, "/dev/full", "--json")
        self.assert_sentence(done, 1, "--cc-trace: /dev/full could not be written completely")
        self.assertEqual(json.loads(done.out)["results"][0]["iterations"], 100)  # still one object

    def test_reports_capture_that_is_incomplete(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the limit is an error of write()
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        path = self.folder / "c.pcapng"
        done = self.run_perf("write", "bw", "--loopback", "--direct", "-n", "100", "--capture", path, preexec_fn=limit)
        self.assert_sentence(done, 1, f'capture file "{path}": File too large')
        self.assertIn("65536", done.out)

    def test_reports_results_that_cannot_be_written(self):
        for more in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([self.programs["roci-perf"], "write", "bw", "--loopback", "--direct", "-n", "100", *more],
                                      stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "roci-perf: standard output cannot be written: No space left on device\n"))

    # The finished sizes are in the object, and the trace is complete.
    def test_interrupt_keeps_results_and_trace(self):
        trace = self.folder / "t.jsonl"
        perf = self.perf("write", "bw", "--loopback", "--direct", "-a", "-n", "20000", "--json", "--cc", "dcqcn",
                         "--cc-trace", trace)
        time.sleep(2)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertEqual(perf.returncode, 130, perf.err)
        self.assertIn("congestion control events written", perf.err)
        self.assertEqual(json.loads(trace.read_text(encoding="utf-8").splitlines()[0])["type"], "trace")
        found = json.loads(perf.out)
        self.assertIn("interrupted", found["error"])
        self.assertEqual([row["bytes"] for row in found["results"]], [2 ** (n + 1) for n in range(len(found["results"]))])
        self.assertGreater(len(found["results"]), 0)

    # With --json, a failure is an object as well. The sentence still goes to standard error.
    def test_json_output_contains_error(self):
        done = self.run_perf("write", "bw", "--config", self.null_host(), "-p", self.tcp_port, "--host-timeout", "0.3",
                             "--json", "127.0.0.1")
        self.assert_sentence(done, 1, "does not answer")
        self.assertIn("does not answer", json.loads(done.out)["error"])


if __name__ == "__main__":
    perf_harness.main("roci-perf")
