"""Tests of commands: timeouts, pairs of processes, and no processes left running."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from harness import compare, run as harness_run
from harness.case import Command, Pair
from harness.run import Failed, Place, Process, named, run, taken

PLACE = Place(seconds=1)
# The program and its child ignore SIGTERM; the file has their process ids.
DEAF = ("import os, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
            "open(os.environ['PIDS'], 'w').write(str(os.getpid()) + ' ' + str(child.pid)); time.sleep(60)")


def python(text, **options):
    return Command((sys.executable, "-c", text.replace("{", "{{").replace("}", "}}").replace("PORT", "{port}")), **options)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class SingleCommand(unittest.TestCase):
    def test_returns_output(self):
        self.assertEqual(run(python("print('hello')"), PLACE).text, "hello\n")

    def test_reports_exit_status_with_error_message(self):
        with self.assertRaisesRegex(Failed, "ended with 3: an error of mine"):
            run(python("import sys; print('an error of mine', file=sys.stderr); print('more'); sys.exit(3)"), PLACE)

    def test_accepts_listed_exit_status(self):
        self.assertEqual(run(python("print(1); raise SystemExit(1)", accepted=(0, 1)), PLACE).text, "1\n")

    def test_reports_terminating_signal_by_name(self):
        with self.assertRaisesRegex(Failed, "ended by SIGABRT"):
            run(python("import os; os.abort()"), PLACE)

    def test_reports_missing_program(self):
        with self.assertRaisesRegex(Failed, "'nowhere-to-be-found' cannot be started"):
            run(Command(("nowhere-to-be-found",)), PLACE)

    def test_passes_environment(self):
        self.assertEqual(run(python("import os; print(os.environ['A'])", environment=(("A", "b"),)), PLACE).text, "b\n")

    def test_kills_command_and_children_after_time_limit(self):
        with tempfile.NamedTemporaryFile("r") as pids, mock.patch.object(harness_run, "END_LIMIT", 0.2):
            # The limit leaves time for both processes to start, on a busy machine too.
            with self.assertRaisesRegex(Failed, "longer than 8 s"):
                run(python(DEAF, limit=8, environment=(("PIDS", pids.name),)), PLACE)
            started = [int(pid) for pid in pids.read().split()]
        self.assertEqual(len(started), 2)
        self.assertEqual([pid for pid in started if alive(pid)], [])
        self.assertEqual(Process.running, [])


class ServerAndClient(unittest.TestCase):
    SERVER = ("import socket; s = socket.socket(); s.bind(('127.0.0.1', PORT)); s.listen(); c, _ = s.accept(); "
              "print(c.recv(9).decode())")
    CLIENT = "import socket; s = socket.create_connection(('127.0.0.1', PORT)); s.send(b'from us'); print('sent')"

    def test_starts_client_after_server_listens(self):
        slow = "import time; time.sleep(0.3); " + self.SERVER
        out = run(Pair(python(slow), python(self.CLIENT), "tcp"), PLACE)
        self.assertEqual((out.text, out.server), ("sent\n", "from us\n"))

    def test_ends_server_that_continues_after_client(self):
        server = self.SERVER + "; import os, time; print(os.getpid(), flush=True); time.sleep(60)"
        with mock.patch.object(harness_run, "END_LIMIT", 0.2):
            out = run(Pair(python(server), python(self.CLIENT), "tcp"), PLACE)
        self.assertFalse(alive(int(out.server.split()[-1])))

    def test_reports_server_failure_after_client(self):
        with self.assertRaisesRegex(Failed, "the server ended with 1 behind its client: an error of the server"):
            run(Pair(python(self.SERVER + "; raise SystemExit('an error of the server')"), python(self.CLIENT), "tcp"),
                PLACE)

    def test_reports_server_exit_before_client_start(self):
        with self.assertRaisesRegex(Failed, "server exited before its client started: no, cannot"):
            run(Pair(python("raise SystemExit('no, cannot')"), python(self.CLIENT), "tcp"), PLACE)

    def test_reports_client_failure_with_server_output(self):
        server = self.SERVER + "; raise SystemExit('an error of the server')"
        client = self.CLIENT + "; s.close(); import time; time.sleep(0.3); raise SystemExit('an error of the client')"
        with self.assertRaisesRegex(Failed, "an error of the client; the server: an error of the server"):
            run(Pair(python(server), python(client), "tcp"), PLACE)


class Sockets(unittest.TestCase):
    def test_detects_ports_and_abstract_names_in_use(self):
        import socket
        with socket.socket() as listening, socket.socket(socket.AF_UNIX) as local, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
            listening.bind(("127.0.0.1", 0))
            self.assertFalse(taken("tcp", listening.getsockname()[1]))
            listening.listen()
            self.assertTrue(taken("tcp", listening.getsockname()[1]))
            bound.bind(("127.0.0.1", 0))
            self.assertTrue(taken("udp", bound.getsockname()[1]))
            name = f"roci-bench-test-{os.getpid()}"
            self.assertFalse(named(name))
            local.bind("\0" + name)
            self.assertTrue(named(name))
        self.assertFalse(named(name))


class Interruption(unittest.TestCase):
    # After Ctrl-C and after a killed harness, no process continues to run.
    def stop_harness(self, number):
        with tempfile.NamedTemporaryFile("r") as pids:
            script = ("from harness import run; from harness.case import Command; import sys\n"
                      "run.END_LIMIT = 0.2\n"
                      f"try: run.run(Command((sys.executable, '-c', {DEAF!r})), run.Place())\n"
                      "finally: run.end_all()")
            harness = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL,
                                       env={**os.environ, "PIDS": pids.name})
            started = []
            self.wait_until(lambda: started.extend(pids.read().split()) or len(started) == 2)
        harness.send_signal(number)
        harness.wait(20)
        return [int(pid) for pid in started]

    def wait_until(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_interrupt_ends_command_and_children(self):
        self.assertEqual([pid for pid in self.stop_harness(signal.SIGINT) if alive(pid)], [])

    def test_command_ends_after_harness_is_killed(self):
        command, child = self.stop_harness(signal.SIGKILL)
        self.wait_until(lambda: not alive(command))
        os.kill(child, signal.SIGKILL)  # The child has lost its parent; this test ends it.


class OtherRevisions(unittest.TestCase):
    def test_reports_option_unknown_to_revision(self):
        sentence = compare.explain(Failed("it ended with 2: roci-perf: The following argument was not expected: --loss"),
                                   "before")
        self.assertEqual(sentence, "that revision does not know an option of this run (not expected: --loss)")

    def test_removes_core_placement_from_both_sides(self):
        command = Command(("{bin}/roci-perf", "write", "bw", "--cores", "0,1", "--json"))
        self.assertEqual(compare.unplaced(command).words, ("{bin}/roci-perf", "write", "bw", "--json"))
        pair = compare.unplaced(Pair(command, command))
        self.assertEqual(pair.server, pair.client)
        self.assertNotIn("--cores", pair.server.words)

    def test_finds_own_program_in_arguments_of_scripts(self):
        self.assertEqual(compare.own_program(Command(("python3", "x.py", "--program", "{bin}/roci-budget"))), "roci-budget")
        self.assertIsNone(compare.own_program(Command(("iperf3",))))

    def test_rejects_unknown_revision(self):
        with self.assertRaisesRegex(compare.CannotCompare, "there is no revision 'nonsense'"):
            compare.resolve("nonsense")


if __name__ == "__main__":
    unittest.main()
