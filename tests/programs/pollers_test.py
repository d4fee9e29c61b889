"""Request-response programs with pinned pollers on UD and RC, and with epoll, alone and together with busy loops:
pollers_check.c."""

import os
import re
import sys
import unittest

from load import BusyLoops
from programs import Faulty, Programs

Programs.run_program = sys.argv.pop(1)
POLLERS = sys.argv.pop(1)
SECONDS = 1.5
FIGURES = re.compile(r"^\w+: (\d+) requests, \d+ requests/s, latency median [\d.]+ us, p99 [\d.]+ us, max [\d.]+ us",
                     re.MULTILINE)


class PollerModes:
    def check(self, mode, *options):
        server, client = self.pair(POLLERS, mode, "--seconds", SECONDS, *options)
        figures = FIGURES.search(client.text)
        self.assertIsNotNone(figures, client.text)
        self.assertGreater(int(figures[1]), 0, client.text)
        self.assertIn(f"{mode}: {figures[1]} requests served", server.text)
        print(client.text, end="")

    def test_pinned_pollers_serve_requests_over_ud(self):
        self.check("ud")

    def test_pinned_pollers_serve_requests_over_rc_with_read_and_write(self):
        self.check("rc")

    def test_epoll_server_serves_requests(self):
        self.check("epoll")


class Pollers(PollerModes, Programs):
    def test_epoll_server_serves_one_request_at_a_time(self):
        self.check("epoll", "--depth", 1)

    def test_pinned_pollers_serve_1024_byte_datagrams(self):
        self.check("ud", "--size", 1024)

    def test_pinned_pollers_transfer_64_kib_per_request_over_rc(self):
        self.check("rc", "--size", 65536)

    def test_epoll_server_serves_64_kib_messages(self):
        self.check("epoll", "--size", 65536)


class PollersWithBusyLoops(PollerModes, Programs):
    def test_epoll_server_serves_one_request_at_a_time(self):
        self.check("epoll", "--depth", 1)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(BusyLoops(os.cpu_count()))


class PollersWithSwitchAndBusyLoops(PollerModes, Programs):
    """Networks with a switch, together with busy loops of the same and of other sessions."""

    net_options = ("--loss", "0")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(BusyLoops(2 * os.cpu_count(), alone=os.cpu_count()))


class PollersWithFaults(PollerModes, Faulty):
    """A switch loses, duplicates and reorders frames. The client retransmits datagrams, the devices retransmit on RC.
    """


if __name__ == "__main__":
    unittest.main(verbosity=2)
