"""Programs with the drop-in libraries of a sanitizer's build: what peers send reaches instrumented code.

With AddressSanitizer and UBSan, the runtime is preloaded into unmodified programs. With ThreadSanitizer, only the programs of the
tests run, which are linked with its runtime. A report fails the test, also when the program ends before the report is complete and
with exit status 0. Leaks are not checked: the programs exit without freeing their memory.
"""

import os
import sys
import unittest

from programs import Programs, free_port

Programs.run_program = sys.argv.pop(1)
RDMACM_CHECK = sys.argv.pop(1)
RSOCKETS_CHECK = sys.argv.pop(1)
RUNTIME = sys.argv.pop(1) if len(sys.argv) > 1 else None  # of AddressSanitizer, as a shared library


class Sanitized(Programs):
    server = "10.77.0.1"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        report = f"log_path={cls.folder}/report"
        cls.environment.update(ASAN_OPTIONS=f"{report}:detect_leaks=0", TSAN_OPTIONS=report,
                               UBSAN_OPTIONS=f"{report}:print_stacktrace=1")

    def tearDown(self):
        reports = sorted(self.folder.glob("report*"))
        text = "\n".join(report.read_text(encoding="utf-8", errors="replace") for report in reports)
        for report in reports:
            report.unlink()
        self.assertEqual(text, "", "the sanitizer reports")

    def preloaded(self, command):
        if RUNTIME is None:
            return command
        # env(1) would be preloaded too.
        return ("/bin/sh", "-c", 'LD_PRELOAD="$0 $LD_PRELOAD" exec "$@"', RUNTIME, *command)


class TestPrograms(Sanitized):
    def test_rdmacm_check_passes(self):
        for check in ("connection", "refusals", "own-qp", "ports", "datagrams", "channels", "migration"):
            with self.subTest(check):
                end = self.wait(self.start(*self.preloaded((RDMACM_CHECK, check, self.server))))
                self.assertEqual(end.status, 0, end.text)

    def test_rsockets_check_passes(self):
        end = self.wait(self.start(*self.preloaded((RSOCKETS_CHECK, self.server))))
        self.assertEqual((end.status, end.text), (0, "all is so\n"))


class UnmodifiedPrograms(Sanitized):
    def pair(self, server, client):
        return self.serve_once(self.preloaded(server), self.preloaded(client))

    def test_rping_completes_50_iterations(self):
        command = ("rping", "-a", self.server, "-p", str(free_port()), "-v", "-V", "-C", "50")
        _, client = self.pair((*command, "-s"), (*command, "-c"))
        self.assertEqual(client.count("ping data: rdma-ping-"), 50, client)

    def test_ucmatose_completes_transfers(self):
        command = ("ucmatose", "-p", str(free_port()), "-c", "20")
        _, client = self.pair((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertIn("data transfers complete", client)

    def test_ucmatose_migrates_connections_to_another_event_channel(self):
        command = ("ucmatose", "-p", str(free_port()), "-c", "5", "-m")
        _, client = self.pair((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertIn("data transfers complete", client)

    def test_udaddy_completes_transfers(self):
        command = ("udaddy", "-c", "3")  # its port is a constant
        _, client = self.pair((*command, "-b", self.server), (*command, "-s", self.server))
        self.assertIn("data transfers complete", client)

    def test_rstream_verifies_data_in_each_mode(self):
        for mode in ("blocking", "nonblocking", "async"):
            with self.subTest(mode):
                command = ("rstream", "-p", free_port(), "-T", mode, "-T", "verify", "-S", "5000", "-C", "20", "-I", "2")
                _, client = self.pair((*command, "-b", self.server), (*command, "-s", self.server))
                self.assertRegex(client, r"custom +\S+ +\S+ +\d+ ")

    def test_rcopy_transfers_file_unchanged(self):
        content = os.urandom(300_001)
        (self.folder / "from").write_bytes(content)
        port = str(free_port())
        server, _ = self.serve(self.preloaded(("rcopy", "-p", port)),
                               self.preloaded(("rcopy", self.folder / "from", f"{self.server}:{self.folder / 'to'}",
                                               "-p", port)))
        self.assertEqual((self.folder / "to").read_bytes(), content)
        self.end(server)  # it waits for the next client

    def test_rping_server_exits_after_client_is_killed(self):
        command = ("rping", "-a", self.server, "-p", str(free_port()))
        server = self.start(*self.preloaded((*command, "-s")))
        self.wait_for_place(server)
        client = self.start(*self.preloaded((*command, "-c", "-v")))
        self.wait_for_line(client, "ping data: rdma-ping-100")
        client.kill()
        client.wait()
        self.wait(server)


if RUNTIME is None:
    del UnmodifiedPrograms  # ThreadSanitizer cannot be preloaded


if __name__ == "__main__":
    unittest.main(verbosity=2)
