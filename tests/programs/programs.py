"""Unmodified programs of the distribution in a network of their own: a server and its client, both under roci-run."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from sockets import free_port, listens  # noqa: E402 (found by the line above)

FAULTS = ("--loss", "0.01", "--duplicate", "0.01", "--reorder", "0.01")  # for networks with faults
PYTHON = "/usr/bin/python3"  # the interpreter of the distribution's packages
LIMIT = 120  # seconds that a program may take, including on a busy machine
# Output of clients when the server does not listen yet. Some of them exit with status 0 then. UD clients report the SIDR
# status, which is positive. Perftest writes a semicolon after the name of the event.
REFUSED = re.compile("RDMA_CM_EVENT_REJECTED|RDMA_CM_EVENT_UNREACHABLE[,;] error:? [1-9]|Unexpected CM event bl blka 8|"
                     "Connection refused")
NO_ANSWER = re.compile("RDMA_CM_EVENT_UNREACHABLE[,;] error:? -")  # some clients exit with status 0 then, too


def with_descendants(pid):
    """The process and all processes that descend from it."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has exited
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for known in found:
        found += children.get(known, [])
    return found


def kill(process):
    """Kills the process and its descendants. fio opens the device in a child process with a session of its own, which
    would keep its address in the network."""
    for pid in with_descendants(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def require_programs(*names, modules=()):
    """Ends the test as skipped (77) if a program of the distribution or a Python module is missing. With ROCI_REQUIRE_ALL,
    as in CI, the tests run and fail."""
    missing = [name for name in names if shutil.which(name) is None]
    missing += [name for name in modules if subprocess.run([PYTHON, "-c", f"import {name}"], stderr=subprocess.DEVNULL,
                                                           check=False).returncode != 0]
    if missing and not os.environ.get("ROCI_REQUIRE_ALL"):
        print(f"SKIPPED: not installed: {', '.join(missing)}")
        sys.exit(77)


class Finished:
    def __init__(self, process, text):
        self.status = process.returncode
        self.text = text


class Programs(unittest.TestCase):
    """The tests of one class share a network."""

    server = "10.77.0.1"  # address of the first process with a device
    run_program = None      # roci-run
    # For every roci-run. In networks with a switch: ROCI_TEST_NET_OPTIONS='--loss 0'.
    net_options = tuple(os.environ.get("ROCI_TEST_NET_OPTIONS", "").split())
    environment_more = {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="programs-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = {**os.environ, "ROCI_RUNTIME": str(cls.folder / "r"), "RUNTIME_DIRECTORY": folder.name,
                           **cls.environment_more}
        for name in ("ROCI_NET", "ROCI_CONFIG", "ROCI_CC", "ROCI_STATS", "LD_PRELOAD", "LD_LIBRARY_PATH"):
            cls.environment.pop(name, None)
        cls.net = cls.__name__.lower()
        cls.addClassCleanup(cls.stop_net)

    @classmethod
    def stop_net(cls):
        subprocess.run([cls.run_program, "--stop", cls.net], env=cls.environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)

    @classmethod
    def injected_faults(cls, *nets):
        """Numbers of injected faults by kind, from the logs of the switches of these networks (default: that of the
        class)."""
        logs = [(cls.folder / "r" / net / "switch.log").read_text(encoding="utf-8") for net in nets or (cls.net,)]
        made = "".join(line for log in logs for line in log.splitlines() if "injected at slot" in line)
        return {kind: sum(map(int, re.findall(rf"{kind} (\d+)", made))) for kind in ("lost", "duplicated", "reordered")}

    def start(self, *command, options=(), where=None):
        """Starts the program in the network of this class, or where the options `where` of roci-run specify."""
        where = ("--net", self.net, *self.net_options) if where is None else where
        output = tempfile.TemporaryFile(dir=self.folder)
        process = subprocess.Popen([self.run_program, *map(str, (*where, *options, *command))],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, cwd=self.folder)
        process.output = output
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            kill(process)
        process.output.close()

    def wait(self, process, limit=LIMIT):
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            kill(process)
            self.fail(f"{' '.join(process.args)}: not ended after {limit} s:\n{self.text_of(process)}")
        return Finished(process, self.text_of(process))

    @staticmethod
    def text_of(process):
        process.output.seek(0)
        return process.output.read().decode(errors="replace")

    def wait_for_server(self, server, port):
        deadline = time.monotonic() + LIMIT
        while not listens(port):
            if server.poll() is not None or time.monotonic() > deadline:
                self.fail(f"{' '.join(server.args)} does not listen:\n{self.text_of(server)}")
            time.sleep(0.02)

    def wait_for_place(self, process):
        """Waits until the process, or a child of it, has a slot in the network, so that the next process gets the next
        address."""
        deadline = time.monotonic() + LIMIT
        while not set(map(int, re.findall(r"\((\d+)\)", self.run_list()))) & set(with_descendants(process.pid)):
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"{' '.join(process.args)} takes no slot:\n{self.text_of(process)}")
            time.sleep(0.02)

    def wait_for_line(self, process, line):
        deadline = time.monotonic() + LIMIT
        while line not in self.text_of(process):
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"{' '.join(process.args)} does not say '{line}':\n{self.text_of(process)}")
            time.sleep(0.02)

    def run_list(self):
        return subprocess.run([self.run_program, "--list"], env=self.environment, capture_output=True, text=True,
                              timeout=LIMIT, check=True).stdout

    def look(self):
        """The processes of these tests, as roci-top reports them."""
        top = subprocess.run([pathlib.Path(self.run_program).with_name("roci-top"), "--once", "--json", "--interval", "0.1"],
                             env=self.environment, capture_output=True, text=True, timeout=LIMIT, check=False)
        return json.loads(top.stdout)["processes"] if top.returncode == 0 else []

    def have_traffic(self, processes, program):
        """Whether this number of processes of the program have each transferred more than 1000 packets."""
        def moves(process):
            packets = sum(qp["counts"]["acked_packets"] + qp["counts"]["received_packets"]
                          for host in process["hosts"] for qp in host["queue_pairs"])
            return process["program"] == program and packets > 1000

        return sum(map(moves, self.look())) >= processes

    def wait_for_traffic(self, processes, program):
        deadline = time.monotonic() + LIMIT
        while not self.have_traffic(processes, program):
            self.assertLess(time.monotonic(), deadline, f"{program} moves nothing")
            time.sleep(0.1)

    def run_client(self, server, client_command):
        """Runs the client until it exits. It is started again if it was refused, because the server does not listen
        yet."""
        self.wait_for_place(server)
        deadline = time.monotonic() + LIMIT
        while True:
            client = self.wait(self.start(*client_command))
            refused = REFUSED.search(client.text)
            if not refused or server.poll() is not None or time.monotonic() > deadline:
                return client
            time.sleep(0.05)

    def serve(self, server_command, client_command):
        """Starts a server and runs its client, which must succeed. Returns both."""
        server = self.start(*server_command)
        client = self.run_client(server, client_command)
        self.assertEqual((client.status, REFUSED.search(client.text), NO_ANSWER.search(client.text)), (0, None, None),
                         f"the client: {client.text}\nthe server: {self.text_of(server)}")
        return server, client

    def serve_once(self, server_command, client_command):
        """Runs a server and its client, which must both succeed. Returns their output."""
        server, client = self.serve(server_command, client_command)
        end = self.wait(server)
        self.assertEqual(end.status, 0, f"the server: {end.text}\nthe client: {client.text}")
        return end.text, client.text

    def pair(self, *command, options=(), port_option="-p", both=True):
        """Runs the same command as server and, with the server's address, as client. Both must succeed."""
        port = free_port()
        command = [*command, port_option, port]
        server = self.start(*command, options=options)
        self.wait_for_server(server, port)
        client = self.start(*command, "127.0.0.1", options=options)
        client_end = self.wait(client)
        self.assertEqual(client_end.status, 0, f"{command}: the client:\n{client_end.text}\nthe server:\n"
                                               f"{self.text_of(server)}")
        server_end = self.wait(server)
        if both:
            self.assertEqual(server_end.status, 0, f"{command}: the server:\n{server_end.text}")
        return server_end, client_end

    def result_lines(self, text):
        """The result lines of perftest. On a busy machine perftest may print infinite values because it could not
        measure the clock frequency."""
        return [line for line in text.splitlines() if re.match(r"^\s*\d+\s+\d+\s+([\d.]+|inf)", line)]


class Faulty(Programs):
    """A network with faults. The switch must report afterwards that it injected them."""

    net_options = FAULTS

    def tearDown(self):
        self.stop_net()
        for kind, count in self.injected_faults().items():
            self.assertGreater(count, 0, f"the switch {kind} nothing")
