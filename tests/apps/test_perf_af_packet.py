"""Test of two roci-perf processes on the two ends of a veth pair. Requires a network namespace with veth0 and veth1."""

import socket

import perf_harness
from perf_harness import PerfTest


class VethPair(PerfTest):
    def hosts(self):
        return (self.host("client", "net_af_packet0,iface=veth0", "10.0.0.1"),
                self.host("server", "net_af_packet0,iface=veth1", "10.0.0.2"))

    def start_client(self, server, *arguments):
        # DPDK computes the id of a fanout group as process id XOR interface index, 16 bits. The kernel rejects one
        # group on two interfaces. A client whose process id causes a collision is therefore killed at once, and
        # another client started.
        unlucky = server.pid ^ socket.if_nametoindex("veth0") ^ socket.if_nametoindex("veth1")
        client = self.perf(*arguments)
        while (client.pid ^ unlucky) & 0xffff == 0:
            client.kill()
            self.finish(client)
            client = self.perf(*arguments)
        return client

    def test_write_bandwidth_test_verifies_every_byte(self):
        result = self.run_pair(self.hosts(), ["write", "bw"], ["--verify", "-n", "200"])
        self.assert_bandwidth(result)
        self.assertEqual(result["verified"], {"messages": 200, "bytes": 200 * 65536})

    def test_write_latency_test_reports_percentiles(self):
        self.assert_latency(self.run_pair(self.hosts(), ["write", "lat"], ["-n", "300"]))

    def test_rejects_missing_interface(self):
        config = self.host("client", "net_af_packet0,iface=nosuch0", "10.0.0.1")
        self.assert_refused(self.run_perf("write", "bw", "--config", config, "127.0.0.1"), 1, "nosuch0")


if __name__ == "__main__":
    perf_harness.main("roci-perf")
