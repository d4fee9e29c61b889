"""Test of roci-top on two roci-perf processes that exchange traffic over a roci-switch."""

import json
import signal

import perf_harness
from perf_harness import PerfTest

QUEUE_PAIRS = 6


class HostsUnderTraffic(PerfTest):
    def setUp(self):
        super().setUp()
        path = self.folder / "memif.sock"
        ready = self.folder / "ready"
        self.switch = self.start([self.programs["roci-switch"], "--config", self.write_switch(), "--ready-file", ready])
        self.wait_until(lambda: ready.exists() or self.switch.poll() is not None, "the switch to be ready")
        self.configs = [self.host(name, f"net_memif0,role=client,id={index},socket={path}", f"10.0.0.{index + 1}",
                                  memory="128MiB, telemetry: true")
                        for index, name in enumerate(("client", "server"))]

    def top(self, *options, **environment):
        done = self.finish(self.start([self.programs["roci-top"], "--once", "--interval", "0.3", *options],
                                      env={**self.environment, **environment}))
        self.assertEqual((done.returncode, done.err), (0, ""))
        return done.out

    def look(self, *options):
        """Returns the hosts that roci-top reports, by name."""
        said = json.loads(self.top("--json", *options))
        return {host["name"]: {**host, "pid": process["pid"], "program": process["program"]}
                for process in said["processes"] for host in process["hosts"]}

    def start_traffic(self, *test):
        where = ["-p", self.tcp_port, "--host-timeout", "30", "-q", str(QUEUE_PAIRS), "--cc", "dcqcn"]
        self.server = self.perf(*test, "--config", self.configs[1], *where)
        self.client = self.perf(*test, "--config", self.configs[0], *where, "-D", "50", "127.0.0.1")

        def moves():
            hosts = self.look()
            return self.client.poll() is not None or len(hosts) == 2 and all(
                host["per_second"]["port/rx_bytes"] > 1e5 and host["queue_pair_count"] == QUEUE_PAIRS
                for host in hosts.values())
        self.wait_until(moves, "traffic")

    def end_traffic(self):
        self.assertIsNone(self.client.poll(), "there was traffic until here")
        self.client.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(self.client).returncode, 130, self.client.err)
        self.finish(self.server)

    def test_roci_top_reports_writes_at_both_hosts(self):
        self.start_traffic("write", "bw")
        hosts = self.look()
        client, server = hosts["client"], hosts["server"]
        self.assertEqual((client["program"], client["pid"]), ("roci-perf", self.client.pid))
        self.assertEqual((server["program"], server["pid"]), ("roci-perf", self.server.pid))
        self.assertEqual((client["addresses"], client["link_up"], client["mtu"]), ("10.0.0.1/24", 1, 4200))
        self.assertEqual(client["states/RTS"], QUEUE_PAIRS)
        self.assertGreater(client["per_second"]["port/tx_bytes"], client["per_second"]["port/rx_bytes"])
        self.assertGreater(server["per_second"]["requests_received"], 0)
        self.assertEqual(len(client["queue_pairs"]), QUEUE_PAIRS)
        # The peer of each queue pair is a queue pair of the other process.
        of_server = {pair["qpn"]: pair for pair in server["queue_pairs"]}
        self.assertEqual({pair["peer_qpn"] for pair in client["queue_pairs"]}, set(of_server))
        for pair in client["queue_pairs"]:
            self.assertEqual((pair["type"], pair["state"], pair["peer"]), ("RC", "RTS", "10.0.0.2"))
            self.assertEqual((pair["algorithm"], pair["responses"]), ("dcqcn", False))
            self.assertGreater(pair["rate"], 0)
            self.assertIsNone(pair["window"])
            self.assertGreater(pair["counts"]["sent_packets"], 0)
            self.assertEqual(of_server[pair["peer_qpn"]]["peer_qpn"], pair["qpn"])
        sent, received = (sum(pair["per_second"][name] for pair in host["queue_pairs"])
                          for host, name in ((client, "acked_bytes"), (server, "received_bytes")))
        self.assertGreater(sent, 0)
        self.assertGreater(received, 0)

        self.assertEqual(len(self.look("--queue-pairs", "2")["client"]["queue_pairs"]), 2)
        self.assertEqual(self.look("--queue-pairs", "0")["client"]["queue_pairs"], [])
        for width in (80, 160):
            table = self.top(COLUMNS=str(width))
            self.assertEqual([line for line in table.splitlines() if len(line) > width], [])
            self.assertIn("switch s1", table)
            self.assertRegex(table, r"(?m)^client +\d+\.\d+ +\d+\.\d+ ")
            self.assertIn(f"  10.0.0.2/24; roci-perf {self.server.pid}, prefix roci-{self.server.pid}-", table)
            self.assertIn(f"queue pairs of client in roci-perf {self.client.pid}: {QUEUE_PAIRS}\n", table)
            self.assertEqual(sum("dcqcn" in line for line in table.splitlines()), 2 * QUEUE_PAIRS)
        self.assertIn(f"queue pairs of server in roci-perf {self.server.pid}: 2 of {QUEUE_PAIRS}, the busiest\n",
                      self.top("--queue-pairs", "2"))
        self.end_traffic()

    def test_roci_top_reports_reads_as_responses_of_server(self):
        self.start_traffic("read", "bw")
        hosts = self.look()
        responses = [pair for pair in hosts["server"]["queue_pairs"] if pair["responses"]]
        self.assertEqual(len(responses), QUEUE_PAIRS)
        self.assertGreater(sum(pair["per_second"]["sent_packets"] for pair in responses), 0)
        self.assertGreater(sum(pair["per_second"]["received_bytes"] for pair in hosts["client"]["queue_pairs"]), 0)
        self.assertIn("; r: READ responses", self.top())
        self.end_traffic()


if __name__ == "__main__":
    perf_harness.main("roci-perf", "roci-switch", "roci-top")
