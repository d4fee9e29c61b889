"""Programs of librdmacm, as Debian has them, over our librdmacm.so.1."""

import sys
import time
import unittest

from programs import FAULTS, LIMIT, Programs, free_port

Programs.run_program = sys.argv.pop(1)


class RdmacmPrograms(Programs):
    server = "10.77.0.1"  # of the first process that has a device, on IPv4
    group = "239.77.0.9"

    def connect(self, server_command, client_command, serves_once=True):
        """Both have to end well, or, of a server that would go on, the client. It comes again when nobody listens yet."""
        server = self.start(*server_command)
        self.wait_for_place(server)
        deadline = time.monotonic() + LIMIT
        while True:
            client = self.wait(self.start(*client_command))
            if client.status == 0 or server.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertEqual(client.status, 0, f"the client: {client.text}\nthe server: {self.text_of(server)}")
        if not serves_once:
            self.end_server(server)
            return "", client.text
        end = self.wait(server)
        self.assertEqual(end.status, 0, f"the server: {end.text}\nthe client: {client.text}")
        return end.text, client.text

    def end_server(self, server):
        self.assertIsNone(server.poll(), "the server ended by itself")
        server.terminate()
        self.wait(server)

    def pair_of(self, program, *options, client=(), **how):
        """A program that takes a port, and as client the server's address with -s."""
        port = str(free_port())
        return self.connect((program, "-p", port, *options), (program, "-s", self.server, "-p", port, *options, *client),
                            **how)


class OnIpv4(RdmacmPrograms):
    def rping(self, *options):
        port = str(free_port())
        server, client = self.connect(("rping", "-s", "-p", port, "-v", "-V", *options),
                                      ("rping", "-c", "-a", self.server, "-p", port, "-v", "-V", *options))
        return server, client

    def test_rping(self):
        _, client = self.rping("-C", "20")
        self.assertEqual(client.count("ping data: rdma-ping-"), 20, client)

    def test_ucmatose(self):
        _, client = self.pair_of("ucmatose", "-c", "10")
        self.assertIn("data transfers complete", client)

    def test_ucmatose_moves_its_connections_to_another_channel(self):
        _, client = self.pair_of("ucmatose", "-c", "10", "-m")
        self.assertIn("data transfers complete", client)

    def test_udaddy(self):
        _, client = self.connect(("udaddy", "-c", "3"), ("udaddy", "-s", self.server, "-c", "3"))  # its port is a constant
        self.assertIn("data transfers complete", client)

    def test_client_and_server_of_endpoints(self):
        port = str(free_port())
        self.connect(("rdma_server", "-p", port), ("rdma_client", "-s", self.server, "-p", port))

    def test_xclient_and_xserver(self):
        for kind in ("r", "x"):
            with self.subTest(kind=kind):
                port = str(free_port())
                self.connect(("rdma_xserver", "-p", port, "-c", kind),
                             ("rdma_xclient", "-s", self.server, "-p", port, "-c", kind))

    def test_cmtime(self):
        _, client = self.pair_of("cmtime", client=("-c", "200"), serves_once=False)
        self.assertRegex(client, r"connect +: +[\d.]+")

    def test_mckey(self):
        receiver = self.start("mckey", "-m", self.group, "-b", self.server)
        self.wait_for_place(receiver)
        deadline = time.monotonic() + LIMIT
        # What is sent before somebody has joined is lost, as with any group.
        while receiver.poll() is None and time.monotonic() < deadline:
            sender = self.wait(self.start("mckey", "-m", self.group, "-s"))
            self.assertEqual(sender.status, 0, sender.text)
        end = self.wait(receiver)
        self.assertEqual(end.status, 0, end.text)
        self.assertIn("data transfers complete", end.text)


class OnIpv6(OnIpv4):
    server = "fd77::1"
    group = "ff0e::77:9"


class UnderLoss(OnIpv4):
    net_options = FAULTS

    @classmethod
    def tearDownClass(cls):
        cls.stop_net()
        for kind, count in cls.injected_faults().items():
            assert count > 0, f"the switch {kind} nothing"

    def test_many_pings(self):
        self.rping("-C", "500")


if __name__ == "__main__":
    unittest.main(verbosity=2)
