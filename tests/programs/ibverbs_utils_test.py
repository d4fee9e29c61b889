"""The rdma-core examples of the distribution over the drop-in library."""

import sys
import time
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)

ROUNDS = ("-n", "300", "-g", "1")  # GID 1 is the IPv4 address


class Pingpong(Programs):
    def test_completes_over_rc_uc_ud_srq_and_xrc(self):
        for service in ("rc", "uc", "srq", "xsrq"):
            with self.subTest(service):
                self.pair(f"ibv_{service}_pingpong", *ROUNDS, *(("-c",) if service != "xsrq" else ()))
        self.pair("ibv_ud_pingpong", *ROUNDS)

    def test_completes_with_completion_events(self):
        for service in ("rc", "uc", "ud", "srq", "xsrq"):
            with self.subTest(service):
                self.pair(f"ibv_{service}_pingpong", *ROUNDS, "-e")

    def test_completes_with_ibv_wr_and_extended_cq_calls(self):
        self.pair("ibv_rc_pingpong", *ROUNDS, "-N", "-c")  # ibv_wr_*
        self.pair("ibv_rc_pingpong", *ROUNDS, "-t")  # ibv_start_poll, with timestamps
        self.pair("ibv_rc_pingpong", *ROUNDS, "-e", "-t")  # ends with an event for an empty queue

    def test_completes_with_odp_implicit_odp_and_device_memory(self):
        self.pair("ibv_rc_pingpong", *ROUNDS, "-o", "-c")
        self.pair("ibv_rc_pingpong", *ROUNDS, "-O", "-c")
        self.pair("ibv_rc_pingpong", *ROUNDS, "-j", "-c")

    def test_completes_with_ipv6_gid(self):
        self.pair("ibv_rc_pingpong", "-n", "300", "-g", "0", "-c")


class Devices(Programs):
    def test_ibv_devices_and_ibv_devinfo_report_device(self):
        listed = self.wait(self.start("ibv_devices"))
        self.assertEqual(listed.status, 0, listed.text)
        self.assertIn("roci0", listed.text)
        described = self.wait(self.start("ibv_devinfo", "-v"))
        self.assertEqual(described.status, 0, described.text)
        for words in ("hca_id:\troci0", "PORT_ACTIVE", "link_layer:\t\tEthernet", "RoCE v2", "::ffff:10.77.0.1",
                      "ODP_SUPPORT"):
            self.assertIn(words, described.text)

    def test_ibv_asyncwatch_opens_device_and_waits(self):
        watch = self.start("ibv_asyncwatch", "-d", "roci0")
        deadline = time.monotonic() + 60
        while "async event FD" not in self.text_of(watch) and time.monotonic() < deadline:
            self.assertIsNone(watch.poll(), self.text_of(watch))
            time.sleep(0.05)
        self.assertIn("async event FD", self.text_of(watch))
        self.assertIsNone(watch.poll())


if __name__ == "__main__":
    unittest.main(verbosity=2)
