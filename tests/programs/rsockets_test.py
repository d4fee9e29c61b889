"""rsockets: programs of the distribution, librspreload, and test programs."""

import glob
import os
import re
import sys
import time
import unittest

from programs import LIMIT, REFUSED, Programs, free_port

Programs.run_program = sys.argv.pop(1)
RSOCKETS_CHECK = sys.argv.pop(1)
SOCKETS_CHECK = sys.argv.pop(1)


class RsocketPairs(Programs):
    def stream(self, *options, program="rstream"):
        """Both processes must succeed, and the client must print its result."""
        command = (program, "-p", free_port(), *options)
        _, client = self.serve_once((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertRegex(client, r"custom +\S+ +\S+ +\d+ ", f"{command}")

    def copy(self, bytes_of_it):
        content = os.urandom(bytes_of_it)
        (self.folder / "from").write_bytes(content)
        port = str(free_port())
        server, _ = self.serve(("rcopy", "-p", port),
                               ("rcopy", self.folder / "from", f"{self.server}:{self.folder / 'to'}", "-p", port))
        self.assertEqual((self.folder / "to").read_bytes(), content)
        self.end(server)  # the server waits for the next client

    def echo(self, *options):
        """The number of datagrams that the client reports."""
        port = str(free_port())
        server = self.start("udpong", "-b", self.server, "-p", port, *options)
        self.wait_for_place(server)
        client = self.wait(self.start("udpong", "-s", self.server, "-p", port, "-C", "10", "-S", "700", *options), 30)
        self.assertEqual(client.status, 0, client.text)
        sent = re.search(r"custom +700 +(\d+) ", client.text)
        self.assertIsNotNone(sent, client.text)
        self.end(server)  # the server does not exit by itself
        return int(sent[1])


class Rsockets(RsocketPairs):
    def test_rsockets_check_passes(self):
        end = self.wait(self.start(RSOCKETS_CHECK, self.server))
        self.assertEqual((end.status, end.text), (0, "all is so\n"))

    def test_rstream_verifies_data_in_each_mode(self):
        for mode in ("nonblocking", "blocking", "async", "resolve"):
            with self.subTest(mode):
                self.stream("-T", mode, "-T", "verify", "-S", "1000", "-C", "50", "-I", "3")
        with self.subTest("asynchronous, in calls that wait"):
            self.stream("-T", "async", "-T", "blocking", "-T", "verify", "-S", "1000", "-C", "50", "-I", "3")

    def test_rstream_verifies_data_across_buffer_wraparound(self):
        self.stream("-T", "blocking", "-T", "verify", "-B", "5000", "-S", "7001", "-C", "40", "-I", "2")
        self.stream("-T", "verify", "-S", "1500000", "-C", "2", "-I", "2")

    def test_rstream_completes_with_keepalive(self):
        self.stream("-T", "blocking", "-k", "1", "-S", "64", "-C", "10", "-I", "2")

    def test_riostream_verifies_data_blocking_and_nonblocking(self):
        for mode in ("blocking", "nonblocking"):
            with self.subTest(mode):
                self.stream("-T", mode, "-T", "verify", "-S", "5000", "-C", "10", "-I", "3", program="riostream")

    def test_rcopy_transfers_file_unchanged(self):
        self.copy(1_000_003)

    def test_udpong_exchanges_datagrams_with_and_without_echo(self):
        for mode in ("blocking", "nonblocking", "async"):
            with self.subTest(mode):
                self.assertEqual(self.echo("-T", mode, "-T", "echo"), 20)
        with self.subTest("one way"):
            self.assertGreater(self.echo("-T", "blocking"), 0)  # datagrams without a free buffer are lost

    def preload(self):
        library = glob.glob("/usr/lib/*/rsocket/librspreload.so")
        self.assertTrue(library, "librdmacm1 has no librspreload.so")
        return f"LD_PRELOAD={library[0]}"

    def test_librspreload_redirects_plain_sockets(self):
        command = ("env", self.preload(), SOCKETS_CHECK, self.server, free_port())
        server = self.start(*command)
        self.wait_for_line(server, "listening")  # otherwise the client would use the kernel's sockets
        client = self.wait(self.start(*command, 500_000))
        self.assertEqual(client.status, 0, client.text)
        self.assertIn("from 10.77.0.2", client.text)
        self.assertIn("500000 of 500000", client.text)
        self.assertEqual(self.wait(server).status, 0)

    def test_iperf3_transfers_over_librspreload(self):
        """iperf3 waits with select(), for a listener and accepted sockets. It prints an error for TCP_INFO, which it needs
        for the number of retransmissions only. The receiver stops at a message of the other connection, which may arrive
        before the last data: it has reported 63.9 MBytes."""
        for options in (("-n", "64M"), ("-n", "64M", "-R")):
            with self.subTest(options):
                command = ("env", self.preload(), "iperf3", "--forceflush", "-p", free_port())
                server = self.start(*command, "-s", "-1", "-B", self.server)
                self.wait_for_line(server, "Server listening")
                client = self.wait(self.start(*command, "-c", self.server, *options))
                self.assertEqual(client.status, 0, client.text)
                self.assertRegex(client.text, r"6[3-9]\.\d MBytes .* receiver")
                self.assertEqual(self.wait(server).status, 0)

    def test_rstream_fails_after_peer_is_killed(self):
        for who in ("server", "client"):
            for mode in ("blocking", "async"):
                with self.subTest(who=who, mode=mode):
                    self.check_survivor(who, mode)

    def check_survivor(self, who, mode):
        command = ("rstream", "-p", free_port(), "-T", mode, "-T", "blocking", "-S", "100000", "-C", "1000000", "-I", "1")
        sides = {"server": self.start(*command)}
        self.wait_for_place(sides["server"])
        deadline = time.monotonic() + LIMIT
        while True:
            sides["client"] = self.start(*command, "-s", self.server)
            moved = 0
            while sides["client"].poll() is None and moved < 1000 and time.monotonic() < deadline:
                time.sleep(0.05)
                moved = self.moved()
            if not REFUSED.search(self.text_of(sides["client"])) or time.monotonic() > deadline:
                break
        texts = "\n".join(self.text_of(side) for side in sides.values())
        self.assertEqual([side.poll() for side in sides.values()], [None, None], f"ended before the kill:\n{texts}")
        self.assertGreaterEqual(moved, 1000, texts)
        killed = sides.pop(who)
        killed.kill()
        killed.wait()
        end = self.wait(*sides.values())
        self.assertNotEqual(end.status, 0, end.text)

    def moved(self):
        """Number of packets of all processes."""
        return sum(qp["counts"]["acked_packets"] for process in self.look() for host in process["hosts"]
                   for qp in host["queue_pairs"])


class RsocketsOverIpv6(RsocketPairs):
    server = "fd77::1"

    def test_rstream_verifies_data(self):
        self.stream("-T", "verify", "-S", "1000", "-C", "50", "-I", "3")

    def test_riostream_verifies_data(self):
        self.stream("-T", "verify", "-S", "5000", "-C", "10", "-I", "3", program="riostream")

    def test_udpong_exchanges_datagrams_with_echo(self):
        self.assertEqual(self.echo("-T", "echo"), 20)


class RsocketsWithLoss(RsocketPairs):
    net_options = ("--loss", "0.01")

    def tearDown(self):
        self.stop_net()
        self.assertGreater(self.injected_faults()["lost"], 0)

    def test_rstream_verifies_data(self):
        self.stream("-T", "blocking", "-T", "verify", "-S", "20000", "-C", "30", "-I", "3")

    def test_rcopy_transfers_file_unchanged(self):
        self.copy(2_000_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
