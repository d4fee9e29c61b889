"""The distribution's perftest over the drop-in library."""

import re
import subprocess
import sys
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)

ITERATIONS = 200


class Perftest(Programs):
    def measure(self, tool, *arguments, iterations=ITERATIONS):
        server, client = self.pair(tool, "-d", "roci0", "-n", iterations, *arguments)
        self.assertTrue(self.result_lines(client.text), client.text)
        return server, client

    def test_completes_every_operation_over_rc(self):
        for tool in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
                     "ib_atomic_bw", "ib_atomic_lat"):
            with self.subTest(tool):
                self.measure(tool, "-c", "RC")

    def test_completes_send_and_write_over_uc_and_send_over_ud(self):
        for tool in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat"):
            with self.subTest(tool):
                self.measure(tool, "-c", "UC")
        for tool in ("ib_send_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.measure(tool, "-c", "UD")

    def test_completes_every_operation_over_xrc(self):
        for tool in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
                     "ib_atomic_bw", "ib_atomic_lat"):
            with self.subTest(tool):
                self.measure(tool, "-c", "XRC")
        self.measure("ib_send_bw", "-c", "XRC", "-q", "4")

    def test_completes_with_completion_events(self):
        for tool in ("ib_send_bw", "ib_send_lat", "ib_read_bw"):
            with self.subTest(tool):
                self.measure(tool, "-e")

    def test_completes_with_four_queue_pairs(self):
        for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"):
            with self.subTest(tool):
                self.measure(tool, "-q", "4")

    def test_completes_bidirectional_transfers(self):
        for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
            with self.subTest(tool):
                self.measure(tool, "-b")

    def test_reports_all_message_sizes_from_2_bytes_to_8_mib(self):
        for tool in ("ib_send_bw", "ib_write_lat", "ib_read_bw"):
            with self.subTest(tool):
                _, client = self.measure(tool, "-a", iterations=5)
                sizes = [int(line.split()[0]) for line in self.result_lines(client.text)]
                self.assertEqual(sizes, [2 ** n for n in range(1, 24)])

    def test_completes_with_shared_receive_queue(self):
        for tool in ("ib_send_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.measure(tool, "--use-srq")
        self.measure("ib_send_bw", "--use-srq", "-q", "4")

    def test_completes_with_lists_of_work_requests(self):
        self.measure("ib_write_bw", "-l", "4")
        self.measure("ib_send_bw", "-l", "8")

    def test_completes_run_limited_by_duration(self):
        _, client = self.pair("ib_write_bw", "-d", "roci0", "-D", "1")
        self.assertTrue(self.result_lines(client.text), client.text)

    def test_completes_with_inline_option_and_tx_depth(self):
        self.measure("ib_write_lat", "-I", "32")  # prints that it continues without inline data
        self.measure("ib_send_bw", "-t", "16")
        self.measure("ib_write_bw", "-t", "1")

    def measure_frames(self, tool, *arguments):
        """raw_ethernet_* exchange no addresses: the MAC addresses are those of the first two slots."""
        macs = [f"02:77:0a:4d:00:{slot:02x}" for slot in (1, 2)]
        # Line by line: the output shows when the server has its flow rule.
        server = self.start("stdbuf", "-oL", tool, "--server", "-d", "roci0", "-B", macs[0], "-E", macs[1], *arguments)
        self.wait_for_line(server, " #bytes")
        client = self.start(tool, "--client", "-d", "roci0", "-B", macs[1], "-E", macs[0], *arguments)
        for end in (client, server):
            done = self.wait(end)
            self.assertEqual(done.status, 0, done.text)
            lines = self.result_lines(done.text)
            self.assertTrue(lines, done.text)
            self.assertGreater(int(lines[-1].split()[1]), 0, done.text)

    def test_completes_raw_ethernet_frames_selected_by_address_and_port(self):
        ports = ("-K", "5678", "-k", "1234")
        v4 = ("-J", "10.77.0.1", "-j", "10.77.0.2", *ports)
        for arguments in ((), v4, (*v4, "--tcp"), ("--raw_ipv6", "-J", "fd77::1", "-j", "fd77::2", *ports),
                          ("--promiscuous",), ("--sniffer",), ("-q", "4")):
            with self.subTest(arguments):
                self.measure_frames("raw_ethernet_bw", "-D", "1", "-s", "512", *arguments)

    def test_completes_raw_ethernet_latency_and_creation_of_flow_rules(self):
        self.measure_frames("raw_ethernet_lat", "-n", ITERATIONS, "-s", "256")
        self.measure_frames("raw_ethernet_lat", "-n", ITERATIONS, "--vlan_en")
        done = self.wait(self.start("raw_ethernet_fs_rate", "--server", "-d", "roci0", "-n", "100",
                                    "-B", "02:77:0a:4d:00:01", "-E", "02:77:0a:4d:00:02"))
        self.assertEqual(done.status, 0, done.text)
        self.assertRegex(done.text, r"\n ?100 +[\d.]+ .*\n-+\n")

    def test_recognizes_configured_nic_identity_and_uses_ibv_wr_api(self):
        version = subprocess.run(["ib_write_bw", "--version"], capture_output=True, text=True, check=False).stdout
        if float(re.search(r"Version: (\d+\.\d+)", version)[1]) >= 6.2:
            self.skipTest("this perftest requires the direct verbs of mlx5 for these numbers (docs/drop-in.md)")
        for tool in ("ib_write_lat", "ib_send_lat", "ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_lat"):
            with self.subTest(tool):
                inline = ("-I", "64") if "read" not in tool and "atomic" not in tool else ()
                size = () if "atomic" in tool else ("-s", "64")
                _, client = self.pair(tool, "-d", "roci0", "-n", ITERATIONS, *size, *inline,
                                      options=("--identity", "0x2c9:4119"))
                self.assertTrue(self.result_lines(client.text), client.text)
                self.assertRegex(client.text, r"ibv_wr\* API +: ON")
                self.assertNotIn("not recognized", client.text)
                if inline:
                    self.assertRegex(client.text, r"Max inline data +: 64\[B\]")


if __name__ == "__main__":
    unittest.main(verbosity=2)
