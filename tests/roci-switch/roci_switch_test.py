"""roci-switch as its users see it: ready, counters at the end, one sentence for every mistake."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))
SOURCE = pathlib.Path(__file__).resolve().parents[2]

# net_null drops what it is sent; with no-rx it never receives, without it receives empty frames for ever.
QUIET = """
eal: {memory: 128MiB}
switch:
  name: s1
  idle: sleep
  ports:
    - {name: p1, device: "net_null0,no-rx=1", queue_frames: 64}
    - {name: p2, device: "net_null1,no-rx=1", queue_frames: 64}
"""


class RociSwitch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "s.yaml")

    def write(self, text):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(text)

    def run_switch(self, *options):
        return subprocess.run([PROGRAM, "--config", self.config, *options], capture_output=True, text=True, timeout=60,
                              check=False)

    def expect_error(self, message, *options):
        """Exit 1, nothing on standard output, and exactly one line on standard error."""
        done = self.run_switch(*options)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aroci-switch: [^\n]*\n\Z")
        self.assertIn(message, done.stderr)

    def start(self, *options):
        ready = os.path.join(self.folder.name, "ready")
        process = subprocess.Popen([PROGRAM, "--config", self.config, "--ready-file", ready, *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(os.path.exists(ready), process.poll())
        with open(ready, encoding="utf-8") as f:
            self.assertEqual(int(f.read()), process.pid)
        return process, ready

    def test_is_ready_and_prints_its_counters_when_it_is_told_to_stop(self):
        self.write(QUIET)
        for number in (signal.SIGINT, signal.SIGTERM):
            process, ready = self.start()
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(err, "")
            lines = out.splitlines()
            self.assertEqual(lines[0], "roci-switch: 's1' is ready: 2 ports")
            self.assertRegex(lines[1], r"^port +rx packets +rx Gb/s +tx packets")
            self.assertRegex(lines[2], r"^p1 +0 +0\.000 ")
            self.assertEqual(len(lines), 4)
            self.assertFalse(os.path.exists(ready), "the ready file goes with the switch")

    def test_counts_what_it_receives_and_why_it_drops_it(self):
        # net_null's frames have no source address.
        self.write(QUIET.replace("net_null0,no-rx=1", "net_null0"))
        done = self.run_switch("--duration", "300ms", "--stats", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = done.stdout.count("rx packets")
        self.assertGreaterEqual(tables, 2, done.stdout)
        last = [line for line in done.stdout.splitlines() if line.startswith("p1")][-1]
        row = re.match(r"p1 +(\d+) +([\d.]+) +0 +0\.000 +0 +0 +(\d+)  bad_source (\d+)$", last)
        self.assertTrue(row, last)
        self.assertGreater(int(row[1]), 1000)
        self.assertGreater(float(row[2]), 0)
        self.assertEqual(row[1], row[3])
        self.assertEqual(row[1], row[4])

    def test_memif_servers_open_without_their_clients(self):
        socket = os.path.join(self.folder.name, "m.sock")
        text = (SOURCE / "config/switch-memif.yaml").read_text(encoding="utf-8")
        self.assertIn("/tmp/roci-switch.sock", text)
        self.write(text.replace("/tmp/roci-switch.sock", socket))
        process, _ = self.start("--duration", "30s")
        self.assertTrue(os.path.exists(socket))
        process.terminate()
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("p2", out)

    def test_a_second_switch_on_the_same_socket_says_so_and_does_not_disturb_the_first(self):
        socket = os.path.join(self.folder.name, "m.sock")
        self.write(QUIET.replace("net_null0,no-rx=1", f"net_memif0,role=server,id=0,socket={socket}")
                   .replace("net_null1,no-rx=1", f"net_memif1,role=server,id=1,socket={socket}"))
        process, _ = self.start("--duration", "30s")
        for _ in range(3):
            self.expect_error(f'socket "{socket}" is in use by another process')
        self.assertIsNone(process.poll(), "the first switch still runs")
        process.kill()
        process.communicate(timeout=30)
        self.assertTrue(os.path.exists(socket), "left behind")
        done = self.run_switch("--duration", "0.05")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_check_says_whether_a_file_is_correct_and_opens_nothing(self):
        self.write(QUIET.replace("net_null0", "net_memif0,role=server,socket=/nonexistent/x.sock"))
        done = self.run_switch("--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{self.config}: switch 's1' with 2 ports: correct\n")
        self.write(QUIET + "    - {name: p1, device: net_null2}\n")
        self.expect_error("s.yaml:4: switch: switch 's1': port 'p1' is there twice", "--check")

    def test_every_configuration_in_the_repository_is_correct(self):
        for path in sorted((SOURCE / "config").glob("switch-*.yaml")):
            done = subprocess.run([PROGRAM, "--config", path, "--check"], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_keys_that_the_example_shows_as_comments_exist(self):
        text = (SOURCE / "config/switch-memif.yaml").read_text(encoding="utf-8")
        head, keys = text.split("\neal:", 1)
        self.assertIn("roci-switch --config", head)
        self.write("eal:" + re.sub(r"^( *)# (?=[ a-z-])(.*[:\]}{].*)$", r"\1\2", keys, flags=re.MULTILINE)
                   .replace("  Layer 3, between", "  # Layer 3, between"))
        done = self.run_switch("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_unknown_key_is_one_sentence_with_the_key_that_was_meant(self):
        self.write(QUIET.replace("idle: sleep", "idel: sleep"))
        self.expect_error("s.yaml:5: switch.idel is an unknown key, did you mean 'idle'? (allowed: idle, core, name, ")

    def test_a_port_without_a_device_is_one_sentence(self):
        self.write("switch:\n  ports:\n    - {name: p1}\n")
        self.expect_error("s.yaml:3: switch.ports[0]: the required key 'device' is missing")

    def test_a_device_that_does_not_exist_is_one_sentence(self):
        self.write(QUIET.replace("net_null1,no-rx=1", "net_af_packet0,iface=nonexistent9"))
        self.expect_error("s.yaml: port 'p2': ")
        self.write(QUIET.replace("net_null1,no-rx=1", "net_nonsense0"))
        self.expect_error("s.yaml: port 'p2': ")

    def test_a_bad_value_is_one_sentence_with_what_is_allowed(self):
        self.write(QUIET.replace("idle: sleep", "idle: doze"))
        self.expect_error("s.yaml:5: switch.idle: 'doze' is not one of spin, yield, sleep")

    def test_no_ports_no_file_and_too_little_memory_are_one_sentence_each(self):
        self.write("switch: {ports: []}\n")
        self.expect_error("switch 'switch': it has no ports")
        self.write(QUIET.replace("queue_frames: 64", "queue_frames: 1000000"))
        self.expect_error("raise eal.memory")
        os.remove(self.config)
        self.expect_error("s.yaml' cannot be read: No such file or directory")

    def test_a_core_that_is_not_there_is_one_sentence(self):
        self.write(QUIET.replace("idle: sleep", "core: 4000"))
        self.expect_error("core 4000")

    def test_a_bad_option_is_an_error(self):
        self.write(QUIET)
        for options in (["--duration", "soon"], ["--stats", "0"], ["--nonsense"]):
            self.assertNotEqual(self.run_switch(*options).returncode, 0)


if __name__ == "__main__":
    unittest.main()
