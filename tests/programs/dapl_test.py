"""DAPL: `dtest` as server and client, over the connection manager (provider `cma`) and over TCP (provider `scm`)."""

import sys
import unittest

from programs import Programs, require_programs

Programs.run_program = sys.argv.pop(1)
PORT = 15828  # TCP port of dtest, on which the server sends its parameters
OPTIONS = (("-b", 65536), ("-W", "-D", "-b", 65536), ("-W", "-a", "-i", 2048, "-b", 8192), ("-c", "-b", 4096),
           ("-p", "-b", 1024), ("-w", "-b", 65536))


class Dapl(Programs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for role, address in (("server", "10.77.0.1"), ("client", "10.77.0.2")):
            (cls.folder / f"{role}.conf").write_text(
                f'cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{address} 0" ""\n'
                'scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "roci0 1" ""\n', encoding="utf-8")

    def dtest(self, role, *options):
        self.environment = {**self.environment, "DAT_OVERRIDE": str(self.folder / f"{role}.conf")}
        return self.start("dtest", *options)

    def check(self, provider):
        for options in OPTIONS:
            with self.subTest(options):
                server = self.dtest("server", "-P", provider, *options)
                self.wait_for_server(server, PORT)
                client = self.wait(self.dtest("client", "-P", provider, "-h", "127.0.0.1", *options))
                server = self.wait(server)
                for end in (server, client):
                    self.assertEqual(end.status, 0, f"the server:\n{server.text}\nthe client:\n{client.text}")
                    self.assertIn("DAPL Test Complete. PASSED", end.text)

    def test_transfers_over_connection_manager(self):
        self.check("cma")

    def test_transfers_over_queue_pairs_connected_by_tcp(self):
        self.check("scm")


if __name__ == "__main__":
    require_programs("dtest")
    unittest.main(verbosity=2)
