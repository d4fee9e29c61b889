"""Tests of the roci-switch command: start, final counters, and error messages."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))
SOURCE = pathlib.Path(__file__).resolve().parents[2]

# net_null drops transmitted frames. With no-rx it never receives; without no-rx it receives empty frames forever.
QUIET = """
eal: {memory: 128MiB}
switch:
  name: s1
  idle: sleep
  ports:
    - {name: p1, device: "net_null0,no-rx=1", queue_frames: 64}
    - {name: p2, device: "net_null1,no-rx=1", queue_frames: 64}
"""


# The first port receives empty frames forever, with injected loss. Tests may configure faults on the second.
FAULTY = """
eal: {memory: 256MiB}
switch:
  name: s1
  idle: sleep
  faults: {enabled: true, seed: 3}
  classes:
    - {class: 3, mark: {kmin: 100KiB}}
  ports:
    - {name: p1, device: "net_null0", queue_frames: 64, faults: {loss: 0.25}}
    - {name: p2, device: "net_null1,no-rx=1", queue_frames: 64}
"""


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class RociSwitch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "s.yaml")
        # DPDK's runtime folder is in the temporary folder, so that tests do not see each other's switches.
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": self.folder.name}

    def write(self, text):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(text)

    def run_switch(self, *options):
        return subprocess.run([PROGRAM, "--config", self.config, *options], capture_output=True, text=True, timeout=60,
                              check=False, env=self.environment)

    def expect_error(self, message, *options):
        """Expects exit code 1, nothing on standard output, and exactly one line on standard error."""
        done = self.run_switch(*options)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aroci-switch: [^\n]*\n\Z")
        self.assertIn(message, done.stderr)

    def start(self, *options):
        ready = os.path.join(self.folder.name, "ready")
        process = subprocess.Popen([PROGRAM, "--config", self.config, "--ready-file", ready, *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(end, process)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(os.path.exists(ready), process.poll())
        with open(ready, encoding="utf-8") as f:
            self.assertEqual(int(f.read()), process.pid)
        return process, ready

    def test_reports_ready_and_prints_counters_on_stop_signal(self):
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

    def test_counts_received_frames_and_drop_reasons(self):
        # Frames of net_null have no source address.
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

    def test_memif_servers_open_without_clients(self):
        socket = os.path.join(self.folder.name, "m.sock")
        text = (SOURCE / "config/switch-memif.yaml").read_text(encoding="utf-8")
        self.assertIn("/run/roci/switch.sock", text)
        self.write(text.replace("/run/roci/switch.sock", socket))
        process, _ = self.start("--duration", "30s")
        self.assertTrue(os.path.exists(socket))
        process.terminate()
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("p2", out)

    def test_second_switch_on_same_socket_fails_without_affecting_first(self):
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

    def test_check_validates_file_without_opening_ports(self):
        self.write(QUIET.replace("net_null0", "net_memif0,role=server,socket=/nonexistent/x.sock"))
        done = self.run_switch("--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{self.config}: switch 's1' with 2 ports: correct\n")
        self.write(QUIET + "    - {name: p1, device: net_null2}\n")
        self.expect_error("s.yaml:4: switch: switch 's1': port 'p1': duplicate name", "--check")

    def test_check_accepts_every_switch_configuration_of_repository(self):
        paths = sorted((SOURCE / "config").glob("switch-*.yaml"))
        self.assertTrue(paths)
        for path in paths:
            done = subprocess.run([PROGRAM, "--config", path, "--check"], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_check_accepts_commented_keys_of_example(self):
        text = (SOURCE / "config/switch-memif.yaml").read_text(encoding="utf-8")
        head, keys = text.split("\neal:", 1)
        self.assertIn("roci-switch --config", head)
        self.write("eal:" + re.sub(r"^( *)# (?=[ a-z-])(.*[:\]}{].*)$", r"\1\2", keys, flags=re.MULTILINE)
                   .replace("  Layer 3, between", "  # Layer 3, between"))
        done = self.run_switch("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_rejects_unknown_key_with_suggestion(self):
        self.write(QUIET.replace("idle: sleep", "idel: sleep"))
        self.expect_error("s.yaml:5: switch.idel is an unknown key, did you mean 'idle'? (allowed: idle, awake, cores, faults, shared_memory, crash_notices, name, ")

    def test_accepts_old_names_of_keys_with_warning(self):
        self.write(QUIET.replace("  idle: sleep", "  idle: sleep\n  last_words: left\n  neighbours: []\n  classes:\n"
                                 "    - {class: 3, qcn: {says: []}}"))
        done = self.run_switch("--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line, key, name in ((6, "last_words", "crash_notices"), (7, "neighbours", "neighbors"),
                                (9, "classes[0].qcn.says", "additional_values")):
            self.assertIn(f"s.yaml:{line}: switch.{key}: the key is named {name}; version 0.3 will reject the old name\n",
                          done.stderr)

    def test_shared_memory_ports_require_slot_and_network_folder(self):
        text = "switch:\n  %sports:\n    - {name: p1, device: %s%s}\n"
        self.write(text % ("", "shm0", ""))
        self.expect_error("s.yaml:2: switch: ports in shared memory require 'shared_memory', the folder of the network")
        self.write(text % ("shared_memory: /tmp\n  ", "shm32", ""))
        self.expect_error("'shm32' is not a slot in shared memory; allowed are shm0 to shm31")
        self.write(text % ("shared_memory: /tmp\n  ", "shm0", "}\n    - {name: p2, device: shm1, worker: 1"))
        self.expect_error("'shm1' must be polled by worker 0, as all ports in shared memory")

    def test_rejects_port_without_device(self):
        self.write("switch:\n  ports:\n    - {name: p1}\n")
        self.expect_error("s.yaml:3: switch.ports[0]: the required key 'device' is missing")

    def test_reports_missing_device(self):
        self.write(QUIET.replace("net_null1,no-rx=1", "net_af_packet0,iface=nonexistent9"))
        self.expect_error("s.yaml: port 'p2': ")
        self.write(QUIET.replace("net_null1,no-rx=1", "net_nonsense0"))
        self.expect_error("s.yaml: port 'p2': ")

    def test_rejects_invalid_value_and_lists_allowed_values(self):
        self.write(QUIET.replace("idle: sleep", "idle: doze"))
        self.expect_error("s.yaml:5: switch.idle: 'doze' is not one of spin, yield, sleep")

    def test_reports_missing_ports_missing_file_and_insufficient_memory(self):
        self.write("switch: {ports: []}\n")
        self.expect_error("switch 'switch': at least one port is required")
        self.write(QUIET.replace("queue_frames: 64", "queue_frames: 1000000"))
        self.expect_error("increase eal.memory")
        os.remove(self.config)
        self.expect_error("s.yaml' cannot be read: No such file or directory")

    def test_reports_unavailable_core(self):
        self.write(QUIET.replace("idle: sleep", "cores: [4000]"))
        self.expect_error("core 4000")

    def test_rejects_invalid_options(self):
        self.write(QUIET)
        for options in (["--duration", "soon"], ["--stats", "0"], ["--stats", "9ms"], ["--nonsense"],
                        ["--duration", "2562047h"], ["--linger", "0"]):
            done = self.run_switch(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertRegex(done.stderr, r"\Aroci-switch: [^\n]+\n\Z")

    def test_check_rejects_ports_that_exclude_each_other(self):
        for old, new, message in (
                ("net_null1,no-rx=1", "net_null0,no-rx=0", "port 'p2': the device 'net_null0' belongs to another port"),
                ("name: p2", 'name: "p,2"', "port 'p,2': the name must not be empty or contain ',' or '/'"),
                ("name: p2", "name: p/2", "the name must not"),
                ('"net_null1,no-rx=1"', "net_null1, queue: 1517B", "port 'p2': queue must hold a frame, that is, be at least 1518B"),
                ('"net_null1,no-rx=1"', "net_null1, queue: 0", "port 'p2': queue must hold a frame")):
            self.write(QUIET.replace(old, new))
            self.expect_error(message, "--check")
        self.write(QUIET + "  cnm_port: 4999\n  shapers:\n    - {prefix: 10.0.0.0/8, class: 0, rate: 1Gbps, queue: 1000B}\n")
        self.expect_error("shaper 10.0.0.0/8: queue must hold a frame of the ports, that is, be at least 1518B", "--check")

    def test_reads_signals_and_prints_no_burst_with_short_stats_interval(self):
        self.write(QUIET)
        process, _ = self.start("--stats", "10ms")
        self.assertIn("ready", process.stdout.readline())
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertLess(out.count("rx packets"), 90, "tables for the time in which the process was stopped")

    def test_keeps_other_files_and_reports_them(self):
        self.write(QUIET)
        other = pathlib.Path(self.folder.name) / "data"
        other.write_text("important\n", encoding="utf-8")
        self.expect_error("exists and does not contain a process id", "--ready-file", str(other))
        self.assertEqual(other.read_text(encoding="utf-8"), "important\n")

    def test_closed_standard_output_does_not_end_the_switch(self):
        self.write(QUIET)
        process, ready = self.start("--stats", "50ms")
        process.stdout.close()
        self.assertIn("'s1' prints no more tables: standard output cannot be written: Broken pipe", process.stderr.readline())
        self.assertIsNone(process.poll())
        self.assertTrue(os.path.exists(ready))
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 1)
        self.assertFalse(os.path.exists(ready))

    # --- Reload

    def reloaded(self, process, text):
        """Writes a new file and sends SIGHUP to reload it."""
        self.write(text)
        process.send_signal(signal.SIGHUP)

    def test_sighup_applies_marking_and_faults_and_reports_changes(self):
        self.write(FAULTY)
        process, _ = self.start()
        self.assertIn("ready", process.stdout.readline())
        for old, new, said in (("kmin: 100KiB", "kmin: 50KiB", "marking of p1 class 3, p2 class 3"),
                               ("loss: 0.25", "down: true", "marking of p1 class 3, p2 class 3; faults of p1: down")):
            self.reloaded(process, FAULTY.replace(old, new))
            self.assertEqual(process.stdout.readline(), f"roci-switch: 's1' reloaded {self.config}: {said}\n")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.stdout.readline(),
                         f"roci-switch: 's1' reloaded {self.config}: no change\n")
        process.terminate()
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertRegex(out, r"injected at p1: lost \d+, down_rx \d+ \(faults: down\)")

    def test_sighup_rejects_invalid_or_unsupported_changes_and_continues(self):
        self.write(FAULTY)
        process, _ = self.start()
        goes_on = "(no change was applied to 's1')"
        for text, said in (
                (FAULTY.replace("kmin: 100KiB", "kmin: 50KiB").replace("no-rx=1\", queue_frames: 64",
                                                                       "no-rx=1\", queue_frames: 65"),
                 "s.yaml: switch.ports[1].queue_frames cannot be changed by a reload"),
                (FAULTY + "nonsense: 1\n", "s.yaml:12: nonsense is an unknown key"),
                (FAULTY.replace("{enabled: true, seed: 3}", "{enabled: false}"), "fault injection requires")):
            self.reloaded(process, text)
            line = process.stderr.readline()
            self.assertIn(said, line)
            self.assertIn(goes_on, line)
        os.remove(self.config)
        process.send_signal(signal.SIGHUP)
        self.assertIn("cannot be read", process.stderr.readline())
        # The curve of the rejected change was not applied, so it is reported as a change now.
        self.reloaded(process, FAULTY.replace("kmin: 100KiB", "kmin: 50KiB"))
        self.assertIn("ready", process.stdout.readline())
        self.assertIn("marking of p1 class 3", process.stdout.readline())
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 0)

    # --- Crash notifications

    def leave(self, name, frames, lives=None):
        """Writes the crash notification of a process (lib/port/crash_notice.hpp). With `lives`, the process is alive: the
        open, locked file is appended to this list."""
        left = pathlib.Path(self.folder.name) / "left"
        left.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:
            f = stack.enter_context(open(left / f".{name}", "wb"))
            for frame in frames:
                f.write(struct.pack("=I", len(frame)) + frame.ljust(380, b"\0"))
            f.flush()
            if lives is not None:
                fcntl.lockf(f, fcntl.LOCK_EX)
                lives.append(stack.pop_all())
            os.rename(left / f".{name}", left / name)
        return left / name

    def test_sends_crash_notifications_of_exited_processes(self):
        self.write(QUIET.replace("  idle: sleep", f"  idle: sleep\n  crash_notices: {self.folder.name}/left"))
        frame = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x88\xb5" + bytes(46)
        early = self.leave("p1.17", [frame] * 3)
        process, _ = self.start()
        self.assertEqual(process.stdout.readline(), "roci-switch: 's1' is ready: 2 ports\n")
        self.assertEqual(process.stdout.readline(),
                         "roci-switch: 's1': process 17 at p1 has exited; crash notifications sent (3 frames)\n")
        many = self.leave("p2.18", [frame, b"", b"too short", *[frame] * 999])
        nobodys = self.leave("p3.19", [frame])
        lives = []
        self.leave("p1.20", [frame], lives)
        nothing_said = self.leave("p1.21", [])
        self.assertEqual(process.stdout.readline(),
                         "roci-switch: 's1': process 18 at p2 has exited; crash notifications sent (1000 frames)\n")
        deadline = time.monotonic() + 10
        while nothing_said.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        lives[0].close()
        self.assertIn("process 20 at p1 has exited", process.stdout.readline())
        process.terminate()
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(err, "")
        rows = {line.split()[0]: line.split() for line in out.splitlines()}
        self.assertEqual((rows["p1"][1], rows["p2"][3]), ("4", "4"), "came in by one, and left by the other")
        self.assertEqual((rows["p2"][1], rows["p1"][3]), ("1000", "1000"))
        for file, there in ((early, False), (many, False), (nothing_said, False), (nobodys, True)):
            self.assertEqual(file.exists(), there, file)

    def test_reports_unreadable_crash_notification_once(self):
        self.write(QUIET.replace("  idle: sleep", f"  idle: sleep\n  crash_notices: {self.folder.name}/left"))
        (pathlib.Path(self.folder.name) / "left" / "p1.17").mkdir(parents=True)
        self.leave("p2.18", [bytes(60)])
        process, _ = self.start()
        process.stdout.readline()
        self.assertIn("process 18 at p2 has exited", process.stdout.readline())
        time.sleep(0.3)  # The switch checks the folder several more times.
        process.terminate()
        _, err = process.communicate(timeout=30)
        self.assertRegex(err, r"\Aroci-switch: '[^\n]*/p1.17' cannot be opened: Is a directory\n\Z")

    # --- Fault injection

    def test_rejects_faults_unless_enabled(self):
        self.write(FAULTY.replace("  faults: {enabled: true, seed: 3}\n", ""))
        self.expect_error("s.yaml:9: switch.ports[0].faults: fault injection requires "
                          "'faults: {enabled: true}' of the switch", "--check")

    def test_report_contains_injected_faults(self):
        self.write(FAULTY)
        done = self.run_switch("--duration", "0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        received = int(re.search(r"^p1 +(\d+)", done.stdout, re.MULTILINE)[1])
        lost = int(re.search(r"^injected at p1: lost (\d+) \(faults: loss 0.25\)$", done.stdout, re.MULTILINE)[1])
        self.assertAlmostEqual(lost / (lost + received), 0.25, delta=0.02)
        self.assertNotIn("injected at p2", done.stdout)

    # --- Telemetry

    def socket_folder(self):
        (folder,) = pathlib.Path(self.folder.name, "dpdk").iterdir()
        return folder

    def ask(self, *questions):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
            asker.settimeout(30)
            asker.connect(str(self.socket_folder() / "dpdk_telemetry.v2"))
            asker.recv(1 << 16)
            answers = []
            for question in questions:
                asker.send(question.encode())
                (answer,) = json.loads(asker.recv(1 << 16)).values()
                answers.append(answer)
            return answers

    def test_serves_telemetry_and_removes_socket_on_exit(self):
        self.write(FAULTY)
        process, _ = self.start()
        names, ports, port, traffic_class, cnm = self.ask(
            "/roci/switch/list", "/roci/switch/ports,s1", "/roci/switch/port,s1,p1", "/roci/switch/class,s1,p1,3",
            "/roci/switch/cnm,s1")
        self.assertEqual((names, ports), (["s1"], ["p1", "p2"]))
        self.assertEqual(port["faults"], "loss 0.25")
        self.assertGreater(port["injected/lost"], 0)
        self.assertGreaterEqual(port["drops/bad_source"], port["dropped"])  # This counter was read later.
        self.assertEqual(traffic_class["marked"], 0)
        self.assertEqual(cnm["sent"], 0)
        (none,) = self.ask("/roci/switch/port,s1,p9")
        self.assertIn("switch 's1' has no port 'p9'", none)
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 0)
        self.assertEqual(list(pathlib.Path(self.folder.name, "dpdk").iterdir()), [])

    def test_telemetry_sets_faults_and_reload_restores_those_of_file(self):
        self.write(FAULTY)
        process, _ = self.start()
        self.assertIn("ready", process.stdout.readline())
        said, wrong = self.ask("/roci/switch/set_faults,s1,p2,delay=10us,down=true",
                               "/roci/switch/set_faults,s1,p2,speed=1")
        self.assertEqual(said, {"faults": "delay 10us, down"})
        self.assertIn("speed is an unknown key", wrong)
        (port,) = self.ask("/roci/switch/port,s1,p2")
        self.assertEqual((port["faults"], port["link_up"]), ("delay 10us, down", 0))
        process.send_signal(signal.SIGHUP)
        self.assertIn(": faults of p2: none", process.stdout.readline())
        (port,) = self.ask("/roci/switch/port,s1,p2")
        self.assertEqual((port["faults"], port["link_up"]), ("none", 1))

    def test_telemetry_rejects_faults_unless_enabled(self):
        self.write(QUIET)
        self.start()
        (said,) = self.ask("/roci/switch/set_faults,s1,p1,loss=1")
        self.assertEqual(said, "fault injection requires 'faults: {enabled: true}' of the switch")

    @unittest.skipUnless(shutil.which("dpdk-telemetry.py"), "the distribution's script is not installed")
    def test_dpdk_telemetry_script_receives_responses(self):
        self.write(QUIET)
        self.start()
        done = subprocess.run(["dpdk-telemetry.py", "-f", self.socket_folder().name], input="/roci/switch/list\n",
                              capture_output=True, text=True, timeout=60, check=False, env=self.environment)
        self.assertIn('{"/roci/switch/list": ["s1"]}', done.stdout, done.stderr)

    def test_creates_no_socket_with_telemetry_disabled(self):
        self.write(QUIET.replace("128MiB", "128MiB, telemetry: false"))
        process, _ = self.start()
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "dpdk", "roci")))
        self.assertEqual(list(pathlib.Path(self.folder.name).glob("dpdk/*/*")), [])
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 0)

    def test_reports_unusable_telemetry_folder_and_runs_without(self):
        self.write(QUIET)
        self.environment["RUNTIME_DIRECTORY"] = "/nonexistent"
        done = self.run_switch("--duration", "0.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]*telemetry is disabled: the folder '/nonexistent/dpdk'[^\n]*\n\Z")

    # Closing the terminal stops the switch. SIGHUP alone only reloads the file.
    def test_exits_when_terminal_is_closed(self):
        self.write(QUIET)
        ready = os.path.join(self.folder.name, "ready")
        pid, terminal = os.forkpty()
        if pid == 0:
            os.execve(PROGRAM, [PROGRAM, "--config", self.config, "--ready-file", ready], self.environment)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(pid, signal.SIGHUP)
        time.sleep(0.2)
        self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0), "it has read its file again, and goes on")
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)


if __name__ == "__main__":
    unittest.main()
