"""Test of roci-lab on real ports: hosts and a switch on the interfaces veth0 and veth1 of tests/tools/netns.sh."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(sys.argv.pop(1)).resolve()
TIMEOUT = 240

# Payload checksums are verified, so a completed flow has arrived as it was sent.
SCENARIO = """
name: veth
about: two hosts at a switch, of which one has a real cable
duration: 20ms
drain: 20s
sample: 100us
payload: carried
topology: {kind: star, hosts: 2, link: {rate: 50Mbps, delay: 10us}}
hosts: {congestion_control: {profile: dctcp}}
switches: {classes: [{class: 0, mark: {kmin: 30KB, kmax: 30KB, pmax: 1}}]}
traffic:
  - {name: write, pattern: all_to_all, from: all, to: all, size: 30KB}
  - {name: send, from: h0, to: h1, size: 10KB, operation: send}
  - {name: read, from: h1, to: h0, size: 10KB, operation: read}
ports:
  - {between: [h0, s0], devices: ["net_af_packet0,iface=veth0", "net_af_packet1,iface=veth1"]}
expect:
  - {claim: all flows end, that: run.traffic.write.ended >= 2}
"""


class RealPorts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def lab(self, text, status=0):
        (self.path / "veth.yaml").write_text(text)
        done = subprocess.run([LAB, "run", "veth.yaml", "--real", "--out", "x"], cwd=self.path, capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_flows_complete_without_frame_loss(self):
        out, _ = self.lab(SCENARIO)
        self.assertIn("holds   all flows end", out)
        summary = json.loads((self.path / "x" / "summary.json").read_text())
        for traffic, flows in {"write": 2, "send": 1, "read": 1}.items():
            self.assertEqual(summary["traffic"][traffic]["ended"], flows, traffic)
            self.assertEqual(summary["traffic"][traffic]["failed"], 0, traffic)
        self.assertEqual(summary["drops"]["all"], 0, summary["drops"])
        run = json.loads((self.path / "x" / "run.json").read_text())
        self.assertEqual(run["mode"], "real")
        host, switch = run["ports"]
        self.assertEqual((host["cable"], host["device"]), ("h0 to s0", "net_af_packet0"))
        self.assertEqual((switch["cable"], switch["device"]), ("s0 to h0", "net_af_packet1"))
        # 30 KB in each direction, 10 KB twice from h0 to h1, in packets of 1 KB.
        self.assertGreaterEqual(host["tx_packets"], 50)
        self.assertEqual(host["tx_packets"], switch["rx_packets"])
        self.assertEqual(switch["tx_packets"], host["rx_packets"])
        for port in run["ports"]:
            self.assertEqual((port["rx_missed"], port["dropped"]), (0, 0), port)

    def test_rejects_interface_mtu_below_packet_size(self):
        out, error = self.lab(SCENARIO.replace("hosts: {cong", "hosts: {path_mtu: 4096, cong"), status=1)
        self.assertIn("roci-lab: veth: veth.yaml:16: ports[0].devices: net_af_packet0: network interface "
                      '"veth0" has MTU 1500, and the port 4400', error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertFalse((self.path / "x").exists())


if __name__ == "__main__":
    unittest.main()
