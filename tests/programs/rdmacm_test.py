"""librdmacm programs of the distribution over the drop-in librdmacm.so.1."""

import signal
import sys
import time
import unittest

from programs import FAULTS, LIMIT, REFUSED, Programs, free_port

Programs.run_program = sys.argv.pop(1)
CHECK = sys.argv.pop(1)


class RdmacmPrograms(Programs):
    group = "239.77.0.9"

    def commands(self, program, *options):
        """Commands of a server and a client with a port option and the server's address."""
        command = (program, "-p", str(free_port()), *options)
        return (*command, "-b", self.server), (*command, "-s", self.server)


class Connected(RdmacmPrograms):
    """Reliable services, also with frame loss."""

    def rping(self, *options):
        port = str(free_port())
        command = ("rping", "-a", self.server, "-p", port, "-v", "-V", *options)
        return self.serve_once((*command, "-s"), (*command, "-c"))

    def test_rping(self):
        _, client = self.rping("-C", "20")
        self.assertEqual(client.count("ping data: rdma-ping-"), 20, client)

    def test_ucmatose(self):
        _, client = self.serve_once(*self.commands("ucmatose", "-c", "10"))
        self.assertIn("data transfers complete", client)

    def test_ucmatose_moves_its_connections_to_another_channel(self):
        _, client = self.serve_once(*self.commands("ucmatose", "-c", "10", "-m"))
        self.assertIn("data transfers complete", client)

    def test_client_and_server_of_endpoints(self):
        port = str(free_port())
        self.serve_once(("rdma_server", "-s", self.server, "-p", port), ("rdma_client", "-s", self.server, "-p", port))

    def test_cmtime(self):
        server_command, client_command = self.commands("cmtime")
        server, client = self.serve(server_command, (*client_command, "-c", "200"))
        self.assertRegex(client.text, r"connect +: +[\d.]+")
        self.assertNotIn("error:", client.text)
        self.assertIsNone(server.poll(), "the server, which serves for ever, has ended")


class Datagrams(RdmacmPrograms):
    def test_udaddy(self):
        command = ("udaddy", "-c", "3")  # its port is constant
        _, client = self.serve_once((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertIn("data transfers complete", client)

    def test_mckey(self):
        receiver = self.start("mckey", "-m", self.group, "-b", self.server)
        self.wait_for_place(receiver)
        deadline = time.monotonic() + LIMIT
        # Datagrams that are sent before the receiver has joined the group are lost.
        while receiver.poll() is None and time.monotonic() < deadline:
            sender = self.wait(self.start("mckey", "-m", self.group, "-s"))
            self.assertEqual(sender.status, 0, sender.text)
        end = self.wait(receiver)
        self.assertEqual(end.status, 0, end.text)
        self.assertIn("data transfers complete", end.text)


class PerftestTools(RdmacmPrograms):
    """perftest with connections through librdmacm (-R).

    A server listens, stops, and listens again for the second connection. A client that connects in between is
    rejected, as by Linux. The client then fails (it may crash) while the server waits for it. So the test restarts
    both.
    """

    def tool(self, tool, *options):
        deadline = time.monotonic() + LIMIT
        while True:
            command = (tool, "-R", "-p", str(free_port()), *options)
            server = self.start(*command)
            self.wait_for_place(server)
            client = self.wait(self.start(*command, self.server))
            if not REFUSED.search(client.text):
                break
            self.assertLess(time.monotonic(), deadline, client.text)
            server.kill()
            server.wait()
        self.assertEqual(client.status, 0, client.text)
        end = self.wait(server)
        self.assertEqual(end.status, 0, end.text)
        self.assertTrue(self.result_lines(client.text), client.text)


class Perftest(PerftestTools):
    def test_reliable(self):
        for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"):
            with self.subTest(tool):
                self.tool(tool, "-n", "100")

    def test_several_queue_pairs(self):
        self.tool("ib_write_bw", "-n", "100", "-q", "4")


class PerftestOfDatagrams(PerftestTools):
    def test_datagrams(self):
        for tool in ("ib_send_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.tool(tool, "-c", "UD", "-n", "100")


class PerftestUnderLoss(Perftest):
    net_options = FAULTS


class Calls(RdmacmPrograms):
    """Behavior of the calls: tests/programs/rdmacm_check.c."""

    def check(self, name):
        done = self.wait(self.start(CHECK, name, self.server))
        self.assertEqual(done.status, 0, done.text)
        self.assertIn(f"{name}: as it should be", done.text)

    def test_a_connection_from_its_beginning_to_its_end(self):
        self.check("connection")

    def test_who_is_refused_and_who_finds_nobody(self):
        self.check("refusals")

    def test_programs_bring_their_own_queue_pair(self):
        self.check("own-qp")

    def test_who_may_have_which_port(self):
        self.check("ports")

    def test_a_channel_is_destroyed_while_a_thread_waits(self):
        self.check("channels")

    def test_datagram_services(self):
        self.check("datagrams")


class Killed(RdmacmPrograms):
    """One process is killed or stopped. The other one, a program of the distribution, must fail in bounded time."""

    RETRIES_EXCEEDED = r"wc status 12|Completion with error"

    def start(self, *command, options=(), where=None):
        network = self.folder / f"{self.net}.yaml"
        network.write_text(f"net: {{name: {self.net}, connection_manager: {{response_timeout: 67ms, retries: 3}}}}\n",
                           encoding="utf-8")
        return super().start(*command, options=options, where=("--config", network) if where is None else where)

    def ends_badly(self, process):
        end = self.wait(process)
        self.assertNotEqual(end.status, 0, end.text)
        return end.text

    def half_way_as_active_side(self):
        port = str(free_port())
        server = self.start(CHECK, "requested", self.server, port)
        self.wait_for_place(server)
        client = self.start("rping", "-c", "-a", self.server, "-p", port, "-C", "1")
        self.wait_for_line(server, "requested")
        return client, server

    def half_way_as_passive_side(self):
        port = str(free_port())
        server = self.start("rping", "-s", "-p", port, "-C", "1")
        self.wait_for_place(server)
        client = self.start(CHECK, "answered", self.server, port)
        self.wait_for_line(client, "answered")
        return server, client

    def test_in_the_middle_of_the_handshake(self):
        for half_way in (self.half_way_as_active_side, self.half_way_as_passive_side):
            for end, told in ((signal.SIGKILL, "REJECTED"), (signal.SIGSTOP, "UNREACHABLE")):
                with self.subTest(half_way=half_way.__name__, end=end.name):
                    survivor, victim = half_way()
                    victim.send_signal(end)
                    self.assertIn(told, self.ends_badly(survivor))
                    victim.kill()
                    victim.wait()

    def test_who_only_waits_hears_of_it(self):
        """rping's server waits for messages most of the time."""
        for end in (signal.SIGINT, signal.SIGKILL):
            with self.subTest(end=end.name):
                port = str(free_port())
                server = self.start("rping", "-s", "-p", port, "-v")
                self.wait_for_place(server)
                client = self.start("rping", "-c", "-a", self.server, "-p", port, "-v", "-C", "1000000000")
                self.wait_for_line(client, "ping data")
                client.send_signal(end)
                client.wait()
                self.assertIn("DISCONNECT EVENT", self.wait(server).text)

    def transfer(self):
        """A bidirectional transfer. Both processes only poll completions."""
        deadline = time.monotonic() + LIMIT
        while True:
            command = ("ib_send_bw", "-R", "-b", "-D", "60", "-p", str(free_port()))
            server = self.start(*command)
            self.wait_for_place(server)
            client = self.start(*command, self.server)
            if self.moves(client, deadline):
                return server, client
            server.kill()
            server.wait()

    def moves(self, client, deadline):
        """Returns False if the client was rejected (PerftestTools)."""
        while not self.have_traffic(2, "ib_send_bw"):
            self.assertLess(time.monotonic(), deadline, self.text_of(client))
            if client.poll() is not None:
                self.assertRegex(self.text_of(client), REFUSED)
                return False
            time.sleep(0.05)
        return True

    def test_the_passive_side_of_a_transfer(self):
        server, client = self.transfer()
        server.kill()
        self.assertRegex(self.ends_badly(client), self.RETRIES_EXCEEDED)

    def test_the_active_side_of_a_transfer(self):
        server, client = self.transfer()
        client.kill()
        self.assertRegex(self.ends_badly(server), self.RETRIES_EXCEEDED)

    def test_who_ends_without_a_word_has_it_said_for_him(self):
        port = str(free_port())
        server = self.start("rping", "-s", "-p", port, "-C", "1")
        self.wait_for_place(server)
        client = self.wait(self.start(CHECK, "leaving", self.server, port))
        self.assertEqual(client.status, 0, client.text)
        self.assertIn("DISCONNECT EVENT", self.wait(server).text)


class ConnectedOverIpv6(Connected):
    server = "fd77::1"


class DatagramsOverIpv6(Datagrams):
    server = "fd77::1"
    group = "ff0e::77:9"


class OfIpv4Only(RdmacmPrograms):
    """rdma_xserver listens on the first address of rdma_getaddrinfo()."""

    def test_xclient_and_xserver(self):
        for kind in ("r", "x"):
            with self.subTest(kind=kind):
                port = str(free_port())
                self.serve_once(("rdma_xserver", "-p", port, "-c", kind),
                                ("rdma_xclient", "-s", self.server, "-p", port, "-c", kind))


class ConnectedUnderLoss(Connected):
    net_options = FAULTS

    @classmethod
    def tearDownClass(cls):
        cls.stop_net()
        for kind, count in cls.injected_faults().items():
            assert count > 0, f"the switch {kind} nothing"

    def test_many_pings(self):
        self.rping("-C", "100")


if __name__ == "__main__":
    unittest.main(verbosity=2)
