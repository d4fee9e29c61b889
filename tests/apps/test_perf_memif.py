"""Test of two roci-perf processes and a roci-switch process, connected by memif."""

import time

import perf_harness
from perf_harness import PerfTest, queue_pair_line


class TwoProcesses(PerfTest):
    def test_write_bandwidth_test_verifies_every_byte(self):
        result = self.run_pair(self.memif_hosts(), ["write", "bw"], ["--verify", "-n", "500"])
        self.assert_bandwidth(result)
        self.assertEqual(result["verified"], {"messages": 500, "bytes": 500 * 65536})
        self.assertEqual(result["mtu"], 4096)

    def test_write_latency_test_reports_percentiles(self):
        self.assert_latency(self.run_pair(self.memif_hosts(), ["write", "lat"]))

    def test_read_and_send_complete_with_four_queue_pairs(self):
        hosts = self.memif_hosts()
        for verb in ("read", "send"):
            with self.subTest(verb):
                result = self.run_pair(hosts, [verb, "bw"], ["--verify", "-n", "100", "-q", "4"])
                self.assert_bandwidth(result)
                self.assertEqual(result["verified"]["messages"], 400)

    # The server adopts the client's parameters, including one round per size.
    def test_send_verifies_all_sizes_from_2_bytes_to_8_mib(self):
        result = self.run_pair(self.memif_hosts(), ["send", "bw"], ["--verify", "-a", "-n", "3"])
        self.assertEqual([row["bytes"] for row in result["results"]], [2**power for power in range(1, 24)])
        self.assertEqual(result["verified"]["bytes"], 3 * sum(2**power for power in range(1, 24)))

    # Device threads (progress: dedicated) instead of polling by the applications.
    def test_completes_with_dedicated_progress(self):
        hosts = self.memif_hosts()
        for name in hosts:
            with open(name, "a", encoding="utf-8") as f:
                f.write("  progress: dedicated\n  idle: yield\n")
        self.assert_latency(self.run_pair(hosts, ["send", "lat"], ["--verify", "-n", "200"]))
        self.assert_bandwidth(self.run_pair(hosts, ["write", "bw"], ["--verify", "-n", "100"]))

    # The smaller path MTU of the two sides is used.
    def test_uses_smaller_path_mtu_of_server(self):
        result = self.run_pair(self.memif_hosts(), ["write", "bw"], ["-n", "50"], ["-m", "1024"])
        self.assertEqual(result["mtu"], 1024)


class PeerFailures(PerfTest):
    def start_pair(self, test, *server_options):
        client_config, server_config = self.memif_hosts()
        server = self.perf(*test, "--config", server_config, "-p", self.tcp_port, *server_options)
        client = self.perf(*test, "--config", client_config, "-p", self.tcp_port, "-D", "30", "--host-timeout", "30",
                           "127.0.0.1")
        for line in client.stdout:  # The heading ends when the traffic starts.
            if "#bytes" in line:
                break
        time.sleep(0.3)
        self.assertIsNone(client.poll(), "the client ended by itself")
        return client, server

    # The server is killed: it sends no more packets, and its TCP connection is closed. The completion gives the
    # reason why the test ended.
    def test_client_reports_retry_exceeded_after_server_is_killed(self):
        client, server = self.start_pair(["write", "bw"])
        server.kill()
        self.finish(client)
        self.assert_sentence(client, 1, "IBV_WC_RETRY_EXC_ERR", "does not respond")

    def test_latency_client_fails_after_server_is_killed(self):
        client, server = self.start_pair(["send", "lat"])
        server.kill()
        self.finish(client)
        self.assertEqual(client.returncode, 1)
        self.assertRegex(client.err, r"\Aroci-perf: [^\n]*(the server closed the control connection|IBV_WC_RETRY_EXC_ERR)[^\n]*\n\Z")

    def test_server_fails_after_client_is_killed(self):
        client, server = self.start_pair(["write", "bw"])
        client.kill()
        self.finish(server)
        self.assert_sentence(server, 1, "the client closed the control connection")

    # Ctrl-C on one side ends both, in order.
    def test_interrupted_client_notifies_server_and_exits(self):
        client, server = self.start_pair(["read", "bw"])
        client.send_signal(2)
        self.finish(client)
        self.finish(server)
        self.assert_sentence(client, 130, "interrupted")
        self.assert_sentence(server, 1, "the client reports: interrupted")

    def test_both_sides_reject_different_tests(self):
        client_config, server_config = self.memif_hosts()
        for server_test, client_test, reason in (
                (["write", "bw"], ["read", "bw"], "\"write bw\" and the client \"read bw\""),
                (["write", "bw", "-q", "2"], ["write", "bw"], "--qp is 2 on the server and 1 on the client")):
            with self.subTest(reason):
                server = self.perf(*server_test, "--config", server_config, "-p", self.tcp_port)
                client = self.perf(*client_test, "--config", client_config, "-p", self.tcp_port, "--host-timeout", "30",
                                   "127.0.0.1")
                self.finish(client)
                self.finish(server)
                self.assert_refused(client, 1, "the server reports: ", reason)
                self.assert_sentence(server, 1, reason)


class ManualPeer(PerfTest):
    # With a seed, a process has the same queue pair in each run, so its numbers can be read before they are needed.
    def learn(self, test, config, seed):
        process = self.perf(*test, "--config", config, "--seed", str(seed), "--wait-file", self.folder / "never",
                            "--peer", "gid=10.0.0.9,qpn=1,psn=1,rkey=1,va=0")
        line = queue_pair_line(process)
        process.kill()
        self.finish(process)
        return line

    def run_peers(self, test):
        active_config, passive_config = self.memif_hosts()
        active_address = self.learn(test, active_config, 1)
        passive = self.perf(*test, "--config", passive_config, "--seed", "2", "--passive", "-D", "4", "--peer",
                            active_address)
        passive_address = queue_pair_line(passive)
        go = self.folder / "go"
        active = self.perf(*test, "--config", active_config, "--seed", "1", "--wait-file", go, "--peer", passive_address,
                           "-n", "100")
        self.assertEqual(queue_pair_line(active).split(",rkey")[0], active_address.split(",rkey")[0])
        go.touch()
        self.finish(active)
        self.finish(passive)
        self.assertEqual((active.returncode, passive.returncode), (0, 0), active.err + passive.err)
        self.assertIn("#bytes", active.out)

    def test_bandwidth_test_completes(self):
        for verb in ("write", "send"):
            with self.subTest(verb):
                self.run_peers([verb, "bw"])

    def test_latency_test_completes(self):
        self.run_peers(["send", "lat"])


if __name__ == "__main__":
    perf_harness.main("roci-perf", "roci-switch")
