"""Tests of the roci-top command: tables and JSON of running switches, and restoring of the terminal."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

TOP = pathlib.Path(sys.argv.pop(1)).resolve()
SWITCH = pathlib.Path(sys.argv.pop(1)).resolve()
TIMEOUT = 60

# The first port receives empty frames forever, and drops all of them.
BUSY = """
eal: {memory: 128MiB}
switch:
  name: %s
  idle: sleep
  ports:
    - {name: p1, device: "net_null0", queue_frames: 64}
    - {name: p2, device: "net_null1,no-rx=1", queue_frames: 64}
"""

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen:
    """roci-top in a separate terminal."""

    def __init__(self, test, width, height, *options):
        self.test = test
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            time.sleep(0.2)  # Waits until the terminal has its size.
            os.execve(TOP, [TOP, *options], {**test.environment, "TERM": "xterm"})
        test.addCleanup(self.end)
        self.ended = False
        self.resize(width, height)
        self.before = termios.tcgetattr(self.terminal)
        self.seen = b""

    def end(self):
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def resize(self, width, height):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds):
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self.terminal, 1 << 16)
        except OSError:  # The other end is closed.
            return False
        self.seen += more
        return bool(more)

    def wait_for(self, what, after=0):
        """Waits until `what` has been written after position `after`; returns its end position."""
        deadline = time.monotonic() + TIMEOUT
        while self.seen.find(what, after) < 0:
            self.test.assertLess(time.monotonic(), deadline, f"{what} did not come in {self.seen[after:]}")
            self.read(0.1)
        return self.seen.find(what, after) + len(what)

    def frames(self):
        """Returns the drawn screens, each as a list of lines, without colors."""
        frames = self.seen.decode().split("\x1b[1;1H")[1:]
        return [[re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", line) for line in re.split(r"\x1b\[\d+;1H", frame)]
                for frame in frames]

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def wait_for_end(self):
        deadline = time.monotonic() + TIMEOUT
        while self.read(TIMEOUT):
            self.test.assertLess(time.monotonic(), deadline, "it does not end")
        self.ended = True
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def expect_restored(self):
        self.test.assertGreater(self.seen.rfind(LEAVE), self.seen.rfind(ENTER))
        self.test.assertTrue(self.seen.rfind(b"\x1b[?25h") > self.seen.rfind(b"\x1b[?25l"), "the cursor")
        self.test.assertEqual(termios.tcgetattr(self.terminal), self.before)


class RociTop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": folder.name}
        self.environment.pop("COLUMNS", None)
        self.environment.pop("LINES", None)

    def start_switch(self, name="s1"):
        config, ready = self.folder / f"{name}.yaml", self.folder / f"{name}.ready"
        config.write_text(BUSY % name, encoding="utf-8")
        process = subprocess.Popen([SWITCH, "--config", config, "--ready-file", ready], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        deadline = time.monotonic() + TIMEOUT
        while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(ready.exists())
        return process

    def top(self, *options, **environment):
        return subprocess.run([TOP, *options], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              env={**self.environment, **environment})

    # --- Script output

    def test_table_reports_drop_reasons_per_port_within_terminal_width(self):
        process = self.start_switch()
        for width in (60, 80, 160):
            done = self.top("--once", "--interval", "0.3", COLUMNS=str(width))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            self.assertEqual([line for line in lines if len(line) > width or "\x1b" in line], [])
            self.assertTrue(lines[0].startswith(f"switch s1 in roci-switch {process.pid}"), lines)
            self.assertRegex(lines[1], r"^port +rx Gb/s +tx Gb/s .*now +peak +marks/s +drops/s")
            self.assertRegex(lines[2], r"^p1 +\d")
            self.assertRegex(lines[3], r"^  drops/s: bad_source \d+(\.\d)?[kM]$")
            self.assertRegex(lines[4], r"^p2 +0\.000 +0\.000")
            self.assertEqual(len(lines), 5)
        self.assertEqual(len(self.top("--once", "--interval", "0.1").stdout.splitlines()[1]), 80)

    def test_json_reports_counters_and_rates(self):
        process = self.start_switch()
        done = self.top("--once", "--json", "--interval", "0.5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (line,) = done.stdout.splitlines()
        said = json.loads(line)
        self.assertAlmostEqual(said["seconds"], 0.5, delta=0.4)
        (entry,) = said["processes"]
        self.assertEqual((entry["pid"], entry["program"]), (process.pid, "roci-switch"))
        self.assertEqual(list((self.folder / "dpdk").iterdir()), [self.folder / "dpdk" / entry["prefix"]])
        (switch,) = entry["switches"]
        first, second = switch["ports"]
        self.assertEqual((switch["name"], first["name"], second["name"]), ("s1", "p1", "p2"))
        self.assertGreater(first["counts"]["rx_packets"], 0)
        self.assertGreater(first["per_second"]["rx_packets"], 0)
        self.assertGreater(first["per_second"]["drops/bad_source"], 0)
        self.assertEqual(second["per_second"]["rx_packets"], 0)
        self.assertEqual(first["queue_limit"], 1 << 20)
        self.assertNotIn("queue_limit", first["counts"])
        self.assertEqual(switch["cnm"]["counts"]["sent"], 0)

    def test_json_prints_one_line_per_interval(self):
        self.start_switch()
        process = subprocess.Popen([TOP, "--json", "--interval", "0.1"], stdout=subprocess.PIPE, text=True,
                                   env=self.environment)
        packets = [json.loads(process.stdout.readline())["processes"][0]["switches"][0]["ports"][0]["counts"]
                   ["rx_packets"] for _ in range(3)]
        self.assertEqual(packets, sorted(set(packets)))
        process.terminate()
        process.communicate(timeout=TIMEOUT)

    def test_shows_all_processes_or_those_selected_by_prefix(self):
        first, second = self.start_switch("left"), self.start_switch("right")
        done = self.top("--once", "--interval", "0.1")
        self.assertIn(f"switch left in roci-switch {first.pid}", done.stdout)
        self.assertIn(f"switch right in roci-switch {second.pid}", done.stdout)
        done = self.top("--once", "--interval", "0.1", "--process", f"roci-{second.pid}-")
        self.assertNotIn("switch left", done.stdout)
        self.assertIn("switch right", done.stdout)
        self.expect_nobody("no Rocinante process found whose DPDK prefix starts with 'x'", "--process", "x")

    def expect_nobody(self, sentence, *options):
        for more in ([], ["--once"], ["--json"]):
            done = self.top(*options, *more)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Aroci-top: [^\n]*\n\Z")
            self.assertIn(sentence, done.stderr)

    def test_reports_folder_when_no_process_is_found(self):
        self.expect_nobody(f"no Rocinante process found in {self.folder}/dpdk; processes of the same user")

    def test_ignores_socket_of_killed_process(self):
        process = self.start_switch()
        process.kill()
        process.wait()
        self.assertEqual(len(list(self.folder.glob("dpdk/*/dpdk_telemetry.v2"))), 1)
        self.expect_nobody("no Rocinante process found in")

    def test_unresponsive_process_does_not_block_other_processes(self):
        self.start_switch()
        place = self.folder / "dpdk" / "silent"
        place.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.bind(str(place / "dpdk_telemetry.v2"))
            silent.listen()
            begin = time.monotonic()
            done = self.top("--once", "--json", "--interval", "0.1")
            self.assertLess(time.monotonic() - begin, 10)
            said = json.loads(done.stdout)
            self.assertEqual((len(said["processes"]), said["silent_processes"]), (1, 1))
            self.expect_nobody("(1 not responding)", "--process", "silent")

    def answer(self, place, answers):
        """Starts a process that answers telemetry requests as specified, until the test ends. It is not a Rocinante
        process."""
        folder = self.folder / "dpdk" / place
        folder.mkdir(parents=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(str(folder / "dpdk_telemetry.v2"))
        listener.listen()

        def serve():
            while True:
                try:
                    asker, _ = listener.accept()
                except OSError:
                    return
                with asker:
                    asker.send(answers.get("", b'{"version": "x", "pid": 1, "max_output_len": 16384}'))
                    while question := asker.recv(1 << 16).decode():
                        answer = answers.get(question.split(",")[0], b'{"x": null}')
                        asker.send(answer(question.split(",")[1:]) if callable(answer) else answer)
        threading.Thread(target=serve, daemon=True).start()

    def test_ignores_processes_with_invalid_telemetry_responses(self):
        self.start_switch()
        self.answer("other", {})
        self.answer("mad", {"": b"\xff\xfe not JSON"})
        self.answer("bad", {"/roci/switch/list": b'{"/roci/switch/list": {"x": [1, {}]}}'})
        self.answer("worse", {"/roci/switch/list": b'{"/roci/switch/list": [["x"], 7, null]}'})
        self.answer("dead", {"/roci/switch/list": b'[' * 1000})
        for options in ([], ["--json"]):
            done = self.top("--once", "--interval", "0.1", *options)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("s1", done.stdout)
        said = json.loads(done.stdout)
        self.assertEqual((len(said["processes"]), said["silent_processes"]), (1, 2))

    def test_replaces_control_characters_in_names(self):
        self.answer("evil", {
            "/roci/switch/list": b'{"x": ["\\u001b[2Jevil\\u009b31m"]}',
            "/roci/switch/ports": b'{"x": ["\\u001b]0;title\\u0007"]}',
            "/roci/switch/port": b'{"x": {"faults": "\\u001bc", "rx_bytes": 7, "used_classes": 255}}',
            "/roci/switch/class": b'{"x": {"tx_bytes": "many", "marked": -5}}'})
        self.answer("worse", {
            "/roci/device/list": b'{"x": ["\\u001b[2Jhost"]}',
            "/roci/device/info": b'{"x": {"addresses": "\\u001b]0;title\\u0007", "queue_pairs": 18446744073709551615}}',
            "/roci/device/counters": b'{"x": {"timeouts": "many", "\\u009b": 5}}',
            "/roci/device/activity": b'{"x": {"next": 7, "qpn": [7, 7, "a", -1, 9], "state": ["\\u001bc"], "psns": {}}}',
            "/roci/device/queue_pair": b'{"x": {"next": 9, "qpn": [9, 7, {}, 4294967297], "type": ["\\u001bc", 5], '
                                       b'"algorithm": ["\\u0007", "b"], "rate": [18446744073709551615]}}'})
        # A list without an end does not block roci-top.
        done = self.top("--once", "--interval", "0.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotRegex(done.stdout, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("switch ?[2Jevil?31m", done.stdout)
        self.assertIn("queue pairs of ?[2Jhost", done.stdout)

    def test_reads_queue_pairs_in_pages_and_shows_the_busiest(self):
        numbers = list(range(5, 30_000, 10))  # 3,000 queue pairs.
        busy = {numbers[i] for i in (7, 500, 2_999)}
        looks = {number: 0 for number in numbers}

        def answer(**said):
            return json.dumps({"x": said}).encode()

        def activity(parameters):
            page = [number for number in numbers if number >= int(parameters[1])]
            for number in page[:400]:
                looks[number] += 1
            return answer(queue_pairs=3_000, next=page[400] if len(page) > 400 else 0, qpn=page[:400],
                          state=["RTS"] * len(page[:400]),
                          psns=[(looks[n] * (9 if n in busy else 1) - 5) % (1 << 24) for n in page[:400]])

        def queue_pair(parameters):
            self.assertLess(sum(map(len, parameters)) + len(parameters), 1000)
            page = [int(number) for number in parameters[1:]]
            return answer(next=30 if len(page) > 30 else 0, qpn=page[:30], type=["RC"] * len(page[:30]))

        self.answer("many", {"/roci/device/list": b'{"x": ["h"]}', "/roci/device/activity": activity,
                             "/roci/device/info": b'{"x": {"queue_pairs": 3000, "link_up": 1}}',
                             "/roci/device/queue_pair": queue_pair})
        done = self.top("--once", "--json", "--interval", "0.1")
        self.assertEqual(done.stderr, "")
        (host,) = json.loads(done.stdout)["processes"][0]["hosts"]
        self.assertEqual([pair["qpn"] for pair in host["queue_pairs"]], numbers)
        self.assertEqual(host["states/RTS"], 3_000)
        done = self.top("--once", "--interval", "0.1", "--queue-pairs", "3")
        self.assertIn(": 3 of 3,000, the busiest\n", done.stdout)
        self.assertEqual({int(line.split()[0]) for line in done.stdout.splitlines()[-3:]}, busy)

    def test_rejects_live_view_without_terminal(self):
        self.start_switch()
        done = self.top()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr,
                         "roci-top: standard output is not a terminal; use --once or --json\n")

    def test_rejects_invalid_interval(self):
        for interval in ("0", "-1", "soon", "nan", "inf"):
            done = self.top("--once", "--interval", interval)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"\Aroci-top: --interval: '{interval}' is not a number from 0.05 to 3600[^\n]*\n\Z")

    def test_reports_standard_output_that_cannot_be_written(self):
        self.start_switch()
        for options in (["--once"], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([TOP, *options, "--interval", "0.1"], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False, env=self.environment)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"\Aroci-top: standard output cannot be written(: No space left on device)?\n\Z")

    # --- Terminal

    def test_live_view_fits_terminal_and_exits_on_q(self):
        self.start_switch()
        for width, height in ((80, 24), (160, 24), (40, 4)):
            screen = Screen(self, width, height, "--interval", "0.2")
            at = screen.wait_for(b"\x1b[1;1H")
            for _ in range(3):
                at = screen.wait_for(b"\x1b[1;1H", at)
            if height > 4:  # on a busy machine, the process does not respond at first
                at = screen.wait_for(b"\x1b[1;1H", screen.wait_for(b"drops/s: bad_source"))
            screen.press("q")
            self.assertEqual(screen.wait_for_end(), 0)
            screen.expect_restored()
            for frame in screen.frames()[:-1]:
                self.assertLessEqual(len(frame), height + 1)
                self.assertEqual([line for line in frame if len(line) > width], [])
            shown = ["\n".join(frame) for frame in screen.frames()[:-1]]
            self.assertIn("roci-top, every 0.2 s", shown[2])
            if height > 4:
                complete = [frame for frame in shown if "drops/s: bad_source" in frame]
                self.assertRegex(complete[0], r"p1 +\d")

    def test_signals_end_live_view_and_restore_terminal(self):
        self.start_switch()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            screen = Screen(self, 80, 24)
            screen.wait_for(b"p1")
            os.kill(screen.pid, number)
            self.assertEqual(screen.wait_for_end(), 0)
            screen.expect_restored()

    def test_restores_terminal_while_stopped(self):
        self.start_switch()
        screen = Screen(self, 80, 24, "--interval", "0.2")
        screen.wait_for(b"p1")
        screen.press("\x1a")  # Ctrl-Z
        _, status = os.waitpid(screen.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        while screen.read(0.3):
            pass
        screen.expect_restored()
        stopped = len(screen.seen)
        os.kill(screen.pid, signal.SIGCONT)
        screen.wait_for(ENTER, stopped)
        screen.wait_for(b"p1", stopped)
        screen.press("q")
        self.assertEqual(screen.wait_for_end(), 0)
        screen.expect_restored()

    def test_keys_sort_and_pause_and_resize_redraws(self):
        self.start_switch()
        screen = Screen(self, 80, 24, "--interval", "0.2")
        at = screen.wait_for(b"sort: name")
        screen.press("s")
        at = screen.wait_for(b"sort: transmit", at)
        screen.press("p")
        at = screen.wait_for(b"PAUSED", at)
        while screen.read(0.5):
            pass
        self.assertEqual(screen.seen.count(b"PAUSED", at), 0, "nothing is drawn while it is paused")
        screen.resize(120, 24)
        at = screen.wait_for(b"PFC in", at)
        screen.press("p")
        screen.wait_for(b"every 0.2 s", at)
        screen.press("\x1b[B\x1b[6~\x1bOA\x1b[5~q")  # Written at once.
        self.assertEqual(screen.wait_for_end(), 0)

    def test_live_view_waits_for_next_process_after_last_one_exits(self):
        process = self.start_switch()
        screen = Screen(self, 80, 24, "--interval", "0.2")
        at = screen.wait_for(b"p1")
        process.terminate()
        process.wait(timeout=TIMEOUT)
        at = screen.wait_for(b"no Rocinante process found; waiting", at)
        self.start_switch("next")
        screen.wait_for(b"switch next", at)
        screen.press("q")
        self.assertEqual(screen.wait_for_end(), 0)


if __name__ == "__main__":
    unittest.main()
