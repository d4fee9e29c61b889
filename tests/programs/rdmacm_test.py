"""librdmacm programs of the distribution over the drop-in librdmacm.so.1."""

import signal
import subprocess
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

    def gid(self):
        return self.server if ":" in self.server else f"::ffff:{self.server}"


class Connections(RdmacmPrograms):
    """Reliable services, also with frame loss."""

    def rping(self, *options):
        port = str(free_port())
        command = ("rping", "-a", self.server, "-p", port, "-v", "-V", *options)
        return self.serve_once((*command, "-s"), (*command, "-c"))

    def test_rping_completes_20_iterations(self):
        _, client = self.rping("-C", "20")
        self.assertEqual(client.count("ping data: rdma-ping-"), 20, client)

    def test_ucmatose_completes_transfers(self):
        _, client = self.serve_once(*self.commands("ucmatose", "-c", "10"))
        self.assertIn("data transfers complete", client)

    def test_ucmatose_migrates_connections_to_another_event_channel(self):
        _, client = self.serve_once(*self.commands("ucmatose", "-c", "10", "-m"))
        self.assertIn("data transfers complete", client)

    def test_ucmatose_connects_between_gids(self):
        for space in ("tcp", "ib"):
            with self.subTest(space):
                command = ("ucmatose", "-p", str(free_port()), "-f", "gid", "-P", space, "-c", "10")
                _, client = self.serve_once((*command, "-b", self.gid()), (*command, "-s", self.gid()))
                self.assertIn("data transfers complete", client)

    def test_rdma_client_and_rdma_server_complete(self):
        port = str(free_port())
        self.serve_once(("rdma_server", "-s", self.server, "-p", port), ("rdma_client", "-s", self.server, "-p", port))

    def test_cmtime_reports_connect_time_and_server_continues(self):
        usage = subprocess.run(["cmtime", "--help"], capture_output=True, text=True, check=False)
        if "base_qpn" in usage.stdout + usage.stderr:
            self.skipTest("this cmtime binds a TCP socket to the device's address too, which no interface of the kernel has "
                          "(docs/install.md)")
        server_command, client_command = self.commands("cmtime")
        server, client = self.serve(server_command, (*client_command, "-c", "200"))
        self.assertRegex(client.text, r"connect +: +[\d.]+")
        self.assertNotIn("error:", client.text)
        self.assertIsNone(server.poll(), "the server, which serves for ever, has ended")


class Datagrams(RdmacmPrograms):
    def test_udaddy_completes_transfers(self):
        command = ("udaddy", "-c", "3")  # its port is constant
        _, client = self.serve_once((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertIn("data transfers complete", client)

    def test_udaddy_completes_transfers_between_gids(self):
        command = ("udaddy", "-f", "gid", "-c", "3")
        _, client = self.serve_once((*command, "-b", self.gid()), (*command, "-s", self.gid()))
        self.assertIn("data transfers complete", client)

    def test_mckey_receives_multicast_datagrams(self):
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
    def test_completes_rc_send_write_and_read(self):
        for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"):
            with self.subTest(tool):
                self.tool(tool, "-n", "100")

    def test_completes_with_four_queue_pairs(self):
        self.tool("ib_write_bw", "-n", "100", "-q", "4")


class PerftestOverUd(PerftestTools):
    def test_completes_send(self):
        for tool in ("ib_send_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.tool(tool, "-c", "UD", "-n", "100")


class PerftestWithFaults(Perftest):
    net_options = FAULTS

    @classmethod
    def tearDownClass(cls):
        cls.stop_net()
        for kind, count in cls.injected_faults().items():
            assert count > 0, f"the switch {kind} nothing"


class Calls(RdmacmPrograms):
    """Behavior of the calls: tests/programs/rdmacm_check.c."""

    def check(self, name):
        done = self.wait(self.start(CHECK, name, self.server))
        self.assertEqual(done.status, 0, done.text)
        self.assertIn(f"{name}: as it should be", done.text)

    def test_connection_reports_all_events_until_timewait_exit(self):
        self.check("connection")

    def test_reports_rejected_requests_and_unresolved_addresses(self):
        self.check("refusals")

    def test_connection_uses_queue_pair_numbers_of_the_application(self):
        self.check("own-qp")

    def test_bind_rejects_port_in_use_unless_reuseaddr_is_set(self):
        self.check("ports")

    def test_addresses_of_af_ib_connect_and_invalid_addresses_are_rejected(self):
        self.check("ib-addresses")

    def test_get_cm_event_does_not_return_after_channel_is_destroyed(self):
        self.check("channels")

    def test_get_cm_event_continues_after_restarting_signals(self):
        self.check("interrupts")

    def test_listener_loses_no_request_while_it_moves_between_channels(self):
        self.check("migration")

    def test_sidr_request_reports_reply_and_rejection(self):
        self.check("datagrams")

    def test_synchronous_sidr_request_leaves_no_event_of_the_listener(self):
        self.check("synchronous-datagrams")

    def test_multicast_groups_can_be_left_once(self):
        self.check("multicast")


class KilledPeer(RdmacmPrograms):
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

    def test_handshake_reports_rejected_if_killed_and_unreachable_if_stopped(self):
        for half_way in (self.half_way_as_active_side, self.half_way_as_passive_side):
            for end, told in ((signal.SIGKILL, "REJECTED"), (signal.SIGSTOP, "UNREACHABLE")):
                with self.subTest(half_way=half_way.__name__, end=end.name):
                    survivor, victim = half_way()
                    victim.send_signal(end)
                    self.assertIn(told, self.ends_badly(survivor))
                    victim.kill()
                    victim.wait()

    def test_waiting_server_receives_disconnect_of_terminated_client(self):
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

    def test_client_reports_retry_exceeded_after_server_is_killed(self):
        server, client = self.transfer()
        server.kill()
        self.assertRegex(self.ends_badly(client), self.RETRIES_EXCEEDED)

    def test_server_reports_retry_exceeded_after_client_is_killed(self):
        server, client = self.transfer()
        client.kill()
        self.assertRegex(self.ends_badly(server), self.RETRIES_EXCEEDED)

    def test_exit_without_disconnect_sends_disconnect_to_server(self):
        port = str(free_port())
        server = self.start("rping", "-s", "-p", port, "-C", "1")
        self.wait_for_place(server)
        client = self.wait(self.start(CHECK, "leaving", self.server, port))
        self.assertEqual(client.status, 0, client.text)
        self.assertIn("DISCONNECT EVENT", self.wait(server).text)


class ConnectionsOverIpv6(Connections):
    server = "fd77::1"


class DatagramsOverIpv6(Datagrams):
    server = "fd77::1"
    group = "ff0e::77:9"


class Ipv4Programs(RdmacmPrograms):
    """rdma_xserver listens on the first address of rdma_getaddrinfo()."""

    def test_rdma_xclient_and_rdma_xserver_complete_over_rc_and_xrc(self):
        for kind in ("r", "x"):
            with self.subTest(kind=kind):
                port = str(free_port())
                self.serve_once(("rdma_xserver", "-p", port, "-c", kind),
                                ("rdma_xclient", "-s", self.server, "-p", port, "-c", kind))


class ConnectionsWithFaults(Connections):
    net_options = FAULTS

    @classmethod
    def tearDownClass(cls):
        cls.stop_net()
        for kind, count in cls.injected_faults().items():
            assert count > 0, f"the switch {kind} nothing"

    def test_rping_completes_100_iterations(self):
        self.rping("-C", "100")


if __name__ == "__main__":
    unittest.main(verbosity=2)
