"""Tests of the roci-run command: networks, host slots, exit codes, signals, path shim, and error messages."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from sockets import free_port, listens  # noqa: E402 (found by the line above)

RUN, PERF, LOOK = (pathlib.Path(sys.argv.pop(1)) for _ in range(3))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHELL = "/bin/sh"

# A switch with few slots starts quickly and is small.
SMALL = """
net:
  name: small
  slots: 3
  memory: 128MiB
  queue_frames: 256
  linger: 60s
"""

# Without a switch: frames pass directly between the processes.
DIRECT = """
net:
  name: small
  slots: 3
"""


def wait_until(true, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


def is_alive(pid):
    """Returns whether the process still runs. A zombie counts as ended, because containers may have no init that reaps
    it. With other threads still running, it keeps its files and locks, and counts as alive."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        return state != "Z" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class RociRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runtime = self.folder / "r"
        self.config = self.folder / "small.yaml"
        self.config.write_text(SMALL, encoding="utf-8")
        self.environment = {**os.environ, "ROCI_RUNTIME": str(self.runtime), "RUNTIME_DIRECTORY": folder.name,
                            "LOOK_FOLDER": folder.name}
        for name in ("ROCI_NET", "ROCI_CONFIG", "ROCI_CC", "ROCI_STATS"):
            self.environment.pop(name, None)
        self.addCleanup(self.stop_all)

    def stop_all(self):
        for net in self.runtime.glob("*/net.yaml"):
            self.run_("--stop", net.parent.name)

    def run_(self, *arguments, **more):
        return subprocess.run([RUN, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                              env={**self.environment, **more})

    def start(self, *arguments, **more):
        process = subprocess.Popen([RUN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**self.environment, **more})
        self.addCleanup(end, process)
        return process

    def small(self, *arguments, **more):
        return self.run_("--config", self.config, *arguments, **more)

    def expect_error(self, message, *arguments, **more):
        done = self.run_(*arguments, **more)
        self.assertEqual(done.returncode, 125, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aroci-run: [^\n]*\n\Z")
        self.assertIn(message, done.stderr)

    def switch_pid(self, net="small"):
        return int((self.runtime / net / "switch.pid").read_text())

    def used_slots(self):
        found = re.search(r"^small +\S+ +(\d+)/3", self.run_("--list").stdout, re.MULTILINE)
        return int(found[1]) if found else 0

    # --- Execution of the program

    def doctor(self, before="", **more):
        """Returns the lines of --doctor as {subject: (verdict, text)}, and its exit status."""
        done = subprocess.run([SHELL, "-c", f'{before} exec "$0" --doctor', RUN], capture_output=True, text=True, timeout=120,
                              check=False, env={**self.environment, **more})
        rows = re.findall(r"(?m)^(\S.*?) {2,}(ok|note|FAILED) +(.*)$", done.stdout)
        self.assertEqual(len(rows), len(done.stdout.splitlines()), done.stdout + done.stderr)
        return {subject: (verdict, text) for subject, verdict, text in rows}, done.returncode

    def test_doctor_opens_a_device_and_leaves_no_network(self):
        found, status = self.doctor()
        self.assertEqual(status, 0, found)
        self.assertEqual(found["device"][0], "ok", found)
        self.assertRegex(found["device"][1], r"address 10\.77\.0\.1$")
        self.assertEqual(list(self.runtime.glob("doctor-*")), [])

    def test_doctor_reports_limits_and_folders_that_prevent_a_device(self):
        found, status = self.doctor("ulimit -n 32;")
        self.assertEqual((status, found["open files"]), (1, ("FAILED", "32; at least 64 are required")))
        self.assertNotIn("device", found)
        found, status = self.doctor("ulimit -f 1;")
        self.assertEqual((status, found["file size"][0], found["runtime folder"][0]), (1, "FAILED", "FAILED"), found)
        self.assertIn("at least 1.1 GiB are required", found["file size"][1])
        self.assertEqual(list(self.runtime.iterdir()), [], "no file is left")
        found, status = self.doctor(ROCI_RUNTIME="/proc/self/no-folder")
        self.assertEqual((status, found["runtime folder"][0]), (1, "FAILED"))
        self.assertIn("set ROCI_RUNTIME to use another one", found["runtime folder"][1])
        found, status = self.doctor("ulimit -l 0;")
        self.assertEqual((status, found["locked memory"]), (0, ("ok", "0.0 MiB; Rocinante locks no memory")))

    def test_passes_through_arguments_output_and_exit_code(self):
        for stats in ([], ["--stats"]):
            done = self.small(*stats, SHELL, "-c", "echo out; echo err >&2; echo $1; exit 7", "x", "--stats")
            self.assertEqual(done.returncode, 7, done)
            self.assertEqual(done.stdout, "out\n--stats\n")
            self.assertTrue(done.stderr.startswith("err\n"), done.stderr)
        self.assertEqual(done.stderr, "err\nroci-run: no device was used\n")

    def test_double_dash_separates_program(self):
        done = self.small("--", SHELL, "-c", "echo $1", "x", "--")
        self.assertEqual((done.returncode, done.stdout), (0, "--\n"), done)
        self.expect_error("PROGRAM is missing", "--")

    def test_reports_terminating_signal_in_exit_status(self):
        done = self.small("--stats", SHELL, "-c", "kill -SEGV $$")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertEqual(done.stderr, "roci-run: no counters: signal 11 (Segmentation fault) ended the program, and processes "
                         "write their counters at exit\n")
        done = self.small(SHELL, "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, -signal.SIGTERM, "it is the program itself")

    def test_returns_127_for_missing_and_126_for_unexecutable_program(self):
        for stats in ([], ["--stats"]):
            done = self.small(*stats, "/nonexistent/program")
            self.assertEqual(done.returncode, 127)
            self.assertIn("'/nonexistent/program' cannot be run: No such file or directory", done.stderr)
            self.assertEqual(self.small(*stats, self.config).returncode, 126)

    def test_forwards_signals_to_program(self):
        script = ("trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo ready; "
                  "while :; do sleep 0.05; done")
        process = self.start("--config", self.config, "--stats", SHELL, "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), "usr1\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "term\n")
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)

    def test_delivers_terminal_interrupt_to_program_once(self):
        script = "import signal,time,sys\nn=0\ndef h(*a):\n  global n; n+=1\nsignal.signal(signal.SIGINT,h)\n" \
                 "print('ready',flush=True)\nend=time.time()+1\nwhile time.time()<end: time.sleep(0.05)\nprint(n)"
        pid, terminal = os.forkpty()
        if pid == 0:
            os.execve(RUN, [str(RUN), "--config", str(self.config), "--stats", sys.executable, "-c", script],
                      self.environment)
        out = b""
        while b"ready" not in out:
            out += os.read(terminal, 1024)
        os.write(terminal, b"\x03")
        try:
            while chunk := os.read(terminal, 1024):
                out += chunk
        except OSError:
            pass
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, out)
        self.assertRegex(out, rb"(\n|\^C)1\r\n", "one, behind what the terminal echoes")

    def test_switch_is_in_session_of_program_without_signals_of_terminal(self):
        pid, terminal = os.forkpty()
        if pid == 0:
            # exec: a shell that receives SIGINT while it creates a process ends after this process.
            os.execve(RUN, [str(RUN), "--config", str(self.config), SHELL, "-c", "echo ready; exec sleep 60"],
                      self.environment)
        out = b""
        while b"ready" not in out:
            out += os.read(terminal, 1024)
        switch = self.switch_pid()
        # Alone in a session, it would be alone in its scheduling group (autogroup).
        self.assertEqual(os.getsid(switch), pid)
        self.assertNotEqual(os.getpgid(switch), os.getpgid(pid))
        terminal_of = pathlib.Path(f"/proc/{switch}/stat").read_text().rpartition(")")[2].split()[4]
        self.assertEqual(terminal_of, "0")
        os.write(terminal, b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGINT)
        os.close(terminal)
        self.assertTrue(is_alive(switch))
        self.assertEqual(self.small("true").returncode, 0)
        self.assertEqual(self.switch_pid(), switch)

    def test_stops_and_continues_with_program(self):
        process = self.start("--config", self.config, "--stats", SHELL, "-c", "kill -STOP $$; echo on; exit 4")
        state = lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        self.assertTrue(wait_until(lambda: state() == "T"))
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual((out, process.returncode), ("on\n", 4))

    # --- Supported programs

    def test_lists_supported_programs_as_table_and_json(self):
        done = self.run_("--supported", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        programs = json.loads(done.stdout)
        self.assertEqual({one["verdict"] for one in programs}, {"test", "by hand", "does not run"})
        data = (SOURCE / "docs/programs.yaml").read_text(encoding="utf-8")
        self.assertEqual(len(programs), len(re.findall(r"(?m)^  - program: ", data)))
        for one in programs:
            self.assertEqual(list(one), ["program", "commands", "version", "distribution", "services", "verdict", "tests",
                                         "note"])
            self.assertEqual(bool(one["tests"]), one["verdict"] == "test", one)
            self.assertNotRegex(json.dumps(one), r"`|\]\(", "Markdown")
        [perftest] = [one for one in programs if one["program"] == "perftest"]
        self.assertIn("ib_write_bw", perftest["commands"])
        self.assertIn("programs_perftest", perftest["tests"])

        table = self.run_("--supported")
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        lines = table.stdout.splitlines()
        self.assertRegex(lines[0], r"^program +version +distribution +verdict$")
        rows = [line for line in lines[1:] if not line.startswith(" ")]
        self.assertEqual(len(rows), len(programs))
        for one, row in zip(programs, rows):
            self.assertTrue(row.startswith(one["program"]), row)
            self.assertTrue(row.endswith(f"  {one['verdict']}"), row)
        self.assertIn("  commands: ib_send_bw, ib_send_lat, ib_write_bw,", table.stdout)
        self.assertIn("  tests: programs_perftest, ", table.stdout)
        self.assertLessEqual(max(map(len, lines)), 120)
        self.assertFalse(self.runtime.exists(), "no network was created")
        self.expect_error("--json requires --supported", "--json", "true")

    # --- Networks

    def test_sets_program_environment_and_private_runtime_folder(self):
        done = self.small("--cc", "dcqcn", "/usr/bin/env")
        values = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        self.assertEqual(values["ROCI_NET"], str(self.runtime / "small"))
        self.assertEqual(values["ROCI_CC"], "dcqcn")
        libraries = values["LD_LIBRARY_PATH"].split(":")[0]
        self.assertTrue(libraries.endswith("/lib/rocinante"), libraries)
        self.assertEqual((self.runtime.stat().st_mode & 0o777), 0o700)

    def test_concurrent_starts_share_one_switch(self):
        processes = [self.start("--config", self.config, "/usr/bin/env") for _ in range(6)]
        for process in processes:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
        log = (self.runtime / "small" / "switch.log").read_text()
        self.assertEqual(log.count("is ready"), 1, log)
        running = subprocess.run(["pgrep", "-f", f"{self.runtime}/small/switch.yaml"], capture_output=True, text=True,
                                 check=False).stdout.split()
        self.assertEqual(running, [str(self.switch_pid())])

    def test_lists_and_stops_networks(self):
        self.assertEqual(self.run_("--list").stdout, "no networks\n")
        self.small("true")
        pid = self.switch_pid()
        self.assertRegex(self.run_("--list").stdout, rf"(?m)^small +{pid} +0/3  10\.77\.0\.0/16 +-$")
        self.assertEqual(self.run_("--stop", "small").stdout, "network 'small' was stopped\n")
        self.assertTrue(wait_until(lambda: not is_alive(pid), 5), "it may still be giving back its memory")
        self.assertRegex(self.run_("--list").stdout, r"(?m)^small +ended +0/3")
        self.assertEqual(self.run_("--stop", "small").stdout, "network 'small' was not running\n")
        self.expect_error("unknown network 'other'; existing are: small", "--stop", "other")

    def test_switch_exits_after_linger_time(self):
        self.config.write_text(SMALL.replace("60s", "1s"), encoding="utf-8")
        self.small("true")
        pid = self.switch_pid()
        self.assertTrue(wait_until(lambda: not is_alive(pid)))
        log = (self.runtime / "small" / "switch.log").read_text()
        self.assertIn("roci-switch: 'small' exits: no process is connected", log)
        self.assertEqual(self.small("true").returncode, 0, "and starts again")

    def test_restarts_killed_switch(self):
        self.small("true")
        first = self.switch_pid()
        os.kill(first, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not is_alive(first)))
        self.assertEqual(self.small("true").returncode, 0)
        self.assertNotEqual(self.switch_pid(), first)

    def test_rejects_different_description_of_running_network(self):
        self.small("true")
        self.config.write_text(SMALL.replace("slots: 3", "slots: 4"), encoding="utf-8")
        self.expect_error("the network 'small' is in use with another description", "--config", self.config, "true")
        self.assertEqual(self.run_("--net", "small", "true").returncode, 0, "by its name it is joined as it is")

    def test_reports_faults_of_network_joined_by_name(self):
        self.config.write_text(SMALL + "  faults: {loss: 0.25}\n", encoding="utf-8")
        self.assertEqual(self.small("true").stderr, "")
        self.assertRegex(self.run_("--net", "small", "true").stderr,
                         r"\Aroci-run: note: the network 'small' injects faults: loss: 0.25[^\n]*\n\Z")

    # --- Traffic

    def perf(self, port, *options):
        return ["--config", self.config, PERF, "write", "bw", "-s", "4096", "-n", "2000", "-p", str(port), *options]

    def measure(self, more_run=(), **environment):
        port = free_port()
        server = self.start(*more_run, *self.perf(port), **environment)
        self.assertTrue(wait_until(lambda: listens(port) or server.poll() is not None))
        client = self.run_(*more_run, *self.perf(port), "localhost", **environment)
        out, err = server.communicate(timeout=60)
        self.assertEqual(client.returncode, 0, client.stderr + client.stdout)
        self.assertEqual(server.returncode, 0, err + out)
        return client

    def test_two_processes_exchange_data(self):
        client = self.measure()
        self.assertIn("4096", client.stdout)
        self.assertTrue(wait_until(lambda: self.used_slots() == 0))

    def test_network_without_switch_transfers_data_and_ends_with_last_process(self):
        self.config.write_text(DIRECT, encoding="utf-8")
        client = self.measure()
        self.assertIn("4096", client.stdout)
        self.assertTrue(wait_until(lambda: self.used_slots() == 0))
        self.assertFalse((self.runtime / "small" / "switch.pid").exists())
        self.assertRegex(self.run_("--list").stdout, r"(?m)^small +none +0/3 ")
        self.assertEqual(self.run_("--stop", "small").stdout,
                         "network 'small' has no switch; it ends with its last process\n")

    def test_network_without_switch_runs_five_congestion_control_algorithms(self):
        self.config.write_text(DIRECT, encoding="utf-8")
        for name in ("dcqcn", "ldcp", "hpcc", "swift", "dctcp"):
            client = self.measure(("--cc", name, "--stats"))
            self.assertRegex(client.stderr, rf"(?m)^  \d+ +RC +10\.77\.0\.1/\d+ +[1-9][\d.]* .* {name} ")

    def test_rejects_different_description_of_running_network_without_switch(self):
        self.config.write_text(DIRECT, encoding="utf-8")
        server = self.start(*self.perf(free_port()))
        self.assertTrue(wait_until(lambda: self.used_slots() == 1))
        self.config.write_text(DIRECT.replace("slots: 3", "slots: 4"), encoding="utf-8")
        self.expect_error("the network 'small' is in use with another description", "--config", self.config, "true")
        self.config.write_text(SMALL, encoding="utf-8")
        self.expect_error("the network 'small' is in use with another description", "--config", self.config, "true")
        server.kill()
        self.assertTrue(wait_until(lambda: self.used_slots() == 0))
        self.assertEqual(self.small("true").returncode, 0)

    def test_killed_pair_does_not_affect_another_pair_without_switch(self):
        self.config.write_text(DIRECT.replace("slots: 3", "slots: 4"), encoding="utf-8")
        self.kill_two_beside_two_others()

    def test_processes_continue_after_switch_is_killed_and_restarted(self):
        server, client = self.talk("3")
        self.assertTrue(wait_until(lambda: len(re.findall(r"\d: roci-perf", self.run_("--list").stdout)) == 2))
        time.sleep(0.3)
        first = self.switch_pid()
        os.kill(first, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not is_alive(first)))
        self.assertEqual(self.small("true").returncode, 0)
        self.assertNotEqual(self.switch_pid(), first)
        out, err = client.communicate(timeout=60)
        self.assertEqual(client.returncode, 0, err + out)
        server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0)

    def test_two_processes_run_five_congestion_control_algorithms(self):
        for name in ("dcqcn", "ldcp", "hpcc", "swift", "dctcp"):
            client = self.measure(("--cc", name, "--stats"))
            self.assertRegex(client.stderr, rf"(?m)^  \d+ +RC +10\.77\.0\.1/\d+ +[1-9][\d.]* .* {name} ")

    def test_two_processes_exchange_data_with_loss_duplicates_and_reordering(self):
        self.config.write_text(SMALL + "  faults: {loss: 0.01, duplicate: 0.01, reorder: 0.01}\n", encoding="utf-8")
        self.measure()
        os.kill(self.switch_pid(), signal.SIGTERM)
        log = self.runtime / "small" / "switch.log"
        self.assertTrue(wait_until(lambda: "injected at slot0" in log.read_text()))
        self.assertRegex(log.read_text(), r"injected at slot\d: lost \d+, duplicated \d+, reordered \d+")

    def test_reports_owners_when_all_slots_are_in_use(self):
        servers = [self.start(*self.perf(free_port())) for i in range(3)]
        self.assertTrue(wait_until(lambda: self.used_slots() == 3))
        done = self.run_(*self.perf(free_port()))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("all 3 slots of the network 'small' are taken (by the processes ", done.stderr)
        for server in servers:
            self.assertIn(str(server.pid), done.stderr)
        servers[1].kill()
        self.assertTrue(wait_until(lambda: self.used_slots() == 2))

    def test_killed_pair_does_not_affect_another_pair(self):
        self.config.write_text(SMALL.replace("slots: 3", "slots: 4"), encoding="utf-8")
        self.kill_two_beside_two_others()
        self.measure()

    def kill_two_beside_two_others(self):
        """Two processes exchange data. Two others start to do so and are killed during it, one before the other."""
        for turn in range(4):
            server, client = self.talk("2")
            victims = self.talk("60")
            self.assertTrue(wait_until(lambda: len(re.findall(r"\d: roci-perf", self.run_("--list").stdout)) == 4))
            time.sleep(0.2 + 0.03 * turn)
            self.assertEqual([process.poll() for process in (server, client, *victims)], [None] * 4, "ended before the kill")
            for victim in victims if turn % 2 else reversed(victims):
                victim.kill()
                victim.communicate()
            out, err = client.communicate(timeout=60)
            server_out, server_err = server.communicate(timeout=60)
            self.assertEqual((client.returncode, server.returncode), (0, 0),
                             f"the client: {err}{out}\nthe server: {server_err}{server_out}")

    def talk(self, seconds):
        """Starts a server and its client, which run for `seconds`."""
        port = free_port()
        command = ["--config", self.config, PERF, "write", "bw", "-D", seconds, "-p", port]
        server = self.start(*command)
        self.assertTrue(wait_until(lambda: listens(port) or server.poll() is not None))
        return server, self.start(*command, "localhost")

    # --- Path shim

    def test_path_shim_shows_device_files(self):
        done = self.small(LOOK)
        self.assertEqual((done.stdout, done.returncode), ("all found\n", 0), done)
        listing = self.small("ls", "/sys/class/infiniband/roci0/ports/1/gid_attrs").stdout
        self.assertEqual(listing.split(), ["ndevs", "types"])

    # --- Errors

    def test_reports_invalid_options_and_configuration_in_one_line(self):
        self.expect_error("PROGRAM is missing")
        self.expect_error("unknown option '--nonsense'", "--nonsense", "true")
        self.expect_error("is not a valid network name", "--net", "../x", "true")
        for loss in ("2", "nan", "101%", "-1", "often", "", "%"):
            self.expect_error("--loss: ", "--net", "x", "--loss", loss, "true")
        self.expect_error("--delay: ", "--net", "x", "--delay", "soon", "true")
        self.expect_error("fault injection requires --net NAME or --config FILE", "--loss", "1%", "true")
        for option in ("--net", "--config", "--stop", "--cc", "--delay"):
            self.expect_error(f"{option}: the value is empty", option, "", "true")
        self.expect_error("--list excludes --stop", "--list", "--stop", "x")
        self.expect_error("--doctor excludes --supported", "--supported", "--doctor")
        self.expect_error("--list excludes PROGRAM ('true')", "--list", "true")
        self.expect_error("--identity: 'mlx5' is not VENDOR:PART", "--identity", "mlx5", "true")
        self.expect_error("--net excludes --config", "--config", self.config, "--net", "x", "true")
        self.expect_error("cannot be read", "--config", self.folder / "no.yaml", "true")
        self.config.write_text("net:\n  slosts: 3\n", encoding="utf-8")
        self.expect_error("small.yaml:2: net.slosts is an unknown key, did you mean 'slots'?", "--config", self.config, "true")

    def test_rejects_unknown_congestion_control_and_lists_available(self):
        self.expect_error("dcqcn", "--cc", "dqcnc", "true")
        self.expect_error("ROCI_CC: ", "true", ROCI_CC="nonsense")
        self.assertFalse((self.runtime / "default" / "net.yaml").exists(), "nothing was started")

    def test_reports_reason_when_switch_does_not_start(self):
        self.config.write_text(SMALL + "  uplink: {device: \"net_af_packet0,iface=nonexistent9\"}\n", encoding="utf-8")
        self.expect_error("did not start: roci-switch: ", "--config", self.config, "true")

    def test_runs_program_with_configured_device(self):
        file = self.folder / "device.yaml"
        file.write_text("device: {name: mine0, port: {device: net_null0}, addresses: [10.0.0.1/24]}\n", encoding="utf-8")
        done = self.run_("--config", file, SHELL, "-c", "echo $ROCI_CONFIG $ROCI_NET; ls /sys/class/infiniband")
        self.assertEqual(done.stdout, f"{file}\nmine0\n", done.stderr)
        self.expect_error("fault injection requires a network with a switch", "--config", file, "--loss", "0.1", "true")
        file.write_text("eal: {memory: 128MiB, pci: false}\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        done = self.run_("--config", file, PERF, "write", "bw", "--host-timeout", "0.1", "-p", str(free_port()))
        self.assertIn("no client connected", done.stderr, done)

        done = subprocess.run([SHELL, "-c", 'cat "$1" | "$0" --config /dev/stdin true', RUN, file], capture_output=True,
                              text=True, timeout=60, check=False, env=self.environment)
        self.assertEqual(done.returncode, 125)
        self.assertIn("'/dev/stdin' is not a regular file", done.stderr)

    # roci-top shows it, as other programs that roci-run starts.
    def test_roci_perf_serves_telemetry(self):
        self.config.write_text(DIRECT, encoding="utf-8")
        port = free_port()
        server = self.start("--config", self.config, PERF, "write", "bw", "-p", str(port))
        self.assertTrue(wait_until(lambda: listens(port) or server.poll() is not None))
        self.assertTrue(list(self.folder.glob("dpdk/roci-*/dpdk_telemetry.v2")))

    # A killed roci-run may have had the same process id, which containers reuse.
    def test_replaces_draft_of_killed_process(self):
        script = ('for pid in $$; do mkdir -p "$ROCI_RUNTIME/.paths-roci0-lo-2.$pid/sys/class/infiniband"; '
                  'ln -s x "$ROCI_RUNTIME/.paths-roci0-lo-2.$pid/sys/class/infiniband/roci0"; done; exec "$0" --config "$1" true')
        self.runtime.mkdir(mode=0o700)
        done = subprocess.run([SHELL, "-c", script, RUN, self.config], capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_reports_standard_output_that_cannot_be_written(self):
        for mode in ("--list", "--doctor", "--supported", "--help", "--version"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([RUN, mode], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                                      env=self.environment)
            self.assertEqual(done.returncode, 125, mode)
            self.assertRegex(done.stderr, r"\Aroci-run: standard output cannot be written(: No space left on device)?\n\Z")

    def test_rejects_runtime_folder_writable_by_others(self):
        self.runtime.mkdir(mode=0o777)
        self.runtime.chmod(0o777)
        self.expect_error("is writable by other users", "true")

    def test_help_fits_into_120_columns(self):
        done = self.run_("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("roci-run [OPTIONS] PROGRAM", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 120)


if __name__ == "__main__":
    unittest.main(verbosity=2)
