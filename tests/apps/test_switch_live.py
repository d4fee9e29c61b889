"""Test of a roci-switch between two roci-perf processes: roci-top displays it, and it is set to mark and to drop
packets while traffic flows."""

import json
import signal

import perf_harness
from perf_harness import PerfTest

# ECN-capable traffic of class 3.
TRAFFIC = ["-T", str(26 * 4 + 2)]


class SwitchUnderTraffic(PerfTest):
    def look(self, *options):
        """Returns what roci-top reports for one interval of the only switch."""
        top = self.finish(self.start([self.programs["roci-top"], "--once", "--json", "--interval", "0.3", *options]))
        self.assertEqual((top.returncode, top.err), (0, ""))
        (process,) = json.loads(top.out)["processes"]
        self.assertEqual((process["program"], process["pid"]), ("roci-switch", self.switch.pid))
        (switch,) = process["switches"]
        self.assertEqual(switch["name"], "s1")
        return {port["name"]: port for port in switch["ports"]}

    def reload(self, **of_switch):
        self.write_switch(**of_switch)
        self.switch.send_signal(signal.SIGHUP)
        return self.switch.stdout.readline()

    def start_traffic(self, hosts, *options):
        where = ["-p", self.tcp_port, "--host-timeout", "30", *TRAFFIC]
        client_config, server_config = hosts
        self.server = self.perf("write", "bw", "--config", server_config, *where)
        self.client = self.perf("write", "bw", "--config", client_config, *where, "--json", "--verify", *options,
                                "127.0.0.1")

        def moves():
            classes = self.look()["p2"]["classes"]
            return "3" in classes and classes["3"]["per_second"]["tx_bytes"] > 1e6 or self.client.poll() is not None
        self.wait_until(moves, "traffic")

    def end_traffic(self):
        self.finish(self.client)
        self.finish(self.server)
        self.assertEqual((self.client.returncode, self.server.returncode), (0, 0), self.client.err + self.server.err)
        return json.loads(self.client.out)["verified"]

    def end_switch(self):
        self.switch.terminate()
        self.finish(self.switch)
        self.assertEqual((self.switch.returncode, self.switch.err), (0, ""))
        return self.switch.out

    def test_reload_changes_marking_without_packet_loss(self):
        slow = {"p1": "", "p2": ", rate: 200Mbps, queue: 8MiB"}
        hosts = self.memif_hosts(**slow)
        self.assertIn("ready", self.switch.stdout.readline())
        self.start_traffic(hosts, "-D", "50")
        seen = []

        def queued():
            seen.append(self.look()["p2"])
            return seen[-1]["queue_bytes"] > 0 or self.client.poll() is not None
        self.wait_until(queued, "a queue")
        before = seen[-1]
        self.assertGreater(before["queue_bytes"], 0)
        self.assertEqual(before["classes"]["3"]["counts"]["marked"], 0)

        said = self.reload(more="  classes: [{class: 3, mark: {kmin: 1KiB}}]", **slow)
        self.assertIn(": marking of p1 class 3, p2 class 3", said)
        during = self.look()["p2"]
        self.assertGreater(during["classes"]["3"]["per_second"]["marked"], 0)

        self.assertIn(": marking of p1 class 3, p2 class 3", self.reload(**slow))
        marked = self.look()["p2"]["classes"]["3"]["counts"]["marked"]
        after = self.look()["p2"]
        self.assertEqual(after["classes"]["3"]["counts"]["marked"], marked)
        self.assertIsNone(self.client.poll(), "there was traffic until here")
        self.assertGreater(after["counts"]["tx_packets"], before["counts"]["tx_packets"])
        self.assertEqual(after["counts"]["dropped"], before["counts"]["dropped"])
        self.client.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(self.client).returncode, 130, self.client.err)
        self.finish(self.server)
        self.end_switch()

    def test_hosts_recover_from_injected_faults_and_switch_reports_them(self):
        hosts = self.memif_hosts(more="  faults: {enabled: true}", p1=", faults: {loss: 0.01, corrupt: 0.01}",
                                 p2=", faults: {delay: 20us}")
        self.assertIn("ready", self.switch.stdout.readline())
        self.start_traffic(hosts, "-D", "2")
        table = self.finish(self.start([self.programs["roci-top"], "--once", "--interval", "0.3"]))
        self.assertIn("faults: loss 0.01, corrupt 0.01", table.out)
        self.assertIn("faults: delay 20us", table.out)
        self.assertGreater(self.end_traffic()["messages"], 0)
        ports = self.look()
        self.assertGreater(ports["p1"]["counts"]["injected/lost"], 0)
        self.assertGreater(ports["p1"]["counts"]["injected/corrupted"], 0)
        self.assertGreater(ports["p2"]["counts"]["injected/delayed"], 0)
        self.assertEqual(ports["p2"]["counts"]["injected/lost"], 0)
        out = self.end_switch()
        self.assertRegex(out, r"injected at p1: lost \d+, corrupted \d+ \(faults: loss 0.01, corrupt 0.01\)")
        self.assertRegex(out, r"injected at p2: delayed \d+ \(faults: delay 20us\)")


if __name__ == "__main__":
    perf_harness.main("roci-perf", "roci-switch", "roci-top")
