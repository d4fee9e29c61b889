"""Programs of librdmacm, as Debian has them, over our librdmacm.so.1."""

import sys
import time
import unittest

from programs import LIMIT, Programs, free_port

Programs.run_program = sys.argv.pop(1)
SERVER = "10.77.0.1"  # of the first process that has a device


class Rdmacm(Programs):
    def connect(self, server_command, client_command):
        """Both have to end well. The client comes again when nobody listens yet."""
        server = self.start(*server_command)
        self.wait_for_place(server)
        deadline = time.monotonic() + LIMIT
        while True:
            client = self.wait(self.start(*client_command))
            if client.status == 0 or server.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertEqual(client.status, 0, f"the client: {client.text}\nthe server: {self.text_of(server)}")
        end = self.wait(server)
        self.assertEqual(end.status, 0, f"the server: {end.text}\nthe client: {client.text}")
        return end.text, client.text

    def test_rping(self):
        port = str(free_port())
        self.connect(("rping", "-s", "-p", port, "-C", "20", "-V"),
                     ("rping", "-c", "-a", SERVER, "-p", port, "-C", "20", "-V"))

    def test_ucmatose(self):
        port = str(free_port())
        _, client = self.connect(("ucmatose", "-p", port, "-c", "10"), ("ucmatose", "-s", SERVER, "-p", port, "-c", "10"))
        self.assertIn("data transfers complete", client)

    def test_udaddy(self):
        _, client = self.connect(("udaddy", "-c", "3"), ("udaddy", "-s", SERVER, "-c", "3"))  # its port is a constant
        self.assertIn("data transfers complete", client)

    def test_client_and_server_of_endpoints(self):
        port = str(free_port())
        self.connect(("rdma_server", "-p", port), ("rdma_client", "-s", SERVER, "-p", port))


if __name__ == "__main__":
    unittest.main(verbosity=2)
