"""Runs a command with a time limit, in an empty folder, and without remaining processes."""

import ctypes
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time

from harness.case import Command, Output

ROOT = pathlib.Path(__file__).resolve().parents[2]
READY_LIMIT = 20  # seconds for a server to listen
END_LIMIT = 1  # seconds for a server to exit after its client, and for a process after a signal
PR_SET_PDEATHSIG = 1
TCP_LISTEN = "0A"
COMPLAINT = re.compile(r"error|fail|cannot|refused|denied|unable|not expected|invalid|roci-perf: ", re.IGNORECASE)


class Failed(Exception):
    """A command that failed. Contains an error message."""


class Place:
    """The values of the names in braces in a command."""

    def __init__(self, folder=ROOT / "build/lto/bin", seconds=2, cores=None):
        self.folder = folder
        self.seconds = seconds
        self.cores = cores or two_cores()

    def words(self, command, port):
        values = {"bin": self.folder, "bench": ROOT / "bench", "root": ROOT, "port": port, "seconds": self.seconds,
                  "core0": self.cores[0], "core1": self.cores[1]}
        return [word.format(**values) for word in command.words]

    def line(self, command, port="PORT"):
        """Returns the command line as entered in the top folder of the tree."""
        if not isinstance(command, Command):
            return f"{self.line(command.server, port)} & {self.line(command.client, port)}"
        words = [f"{name}={value}" for name, value in command.environment] + self.words(command, port)
        return " ".join(shlex.quote(word.replace(f"{ROOT}/", "")) for word in words)


def two_cores():
    """Returns the first two CPUs that this process may use; the same one twice if there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[0], cpus[min(1, len(cpus) - 1)]


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def taken(protocol, port):
    """Whether a socket of this machine listens on the port (TCP) or is bound to it (UDP)."""
    for version in ("", "6"):
        try:
            lines = pathlib.Path(f"/proc/net/{protocol}{version}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state = line.split()[:4]
            if int(local.rsplit(":", 1)[1], 16) == port and (protocol == "udp" or state == TCP_LISTEN):
                return True
    return False


def named(name):
    """Whether an abstract socket with this name exists."""
    lines = pathlib.Path("/proc/net/unix").read_text(errors="replace").splitlines()
    return any(line.split()[-1].rstrip("@\0") == f"@{name}" for line in lines[1:])


class Process:
    """A running command in its own process group, with its output in files."""

    running = []

    def __init__(self, words, environment, folder, name):
        self.folder, self.name, self.program = folder, name, os.path.basename(words[0])
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self._path("out"), "wb") as out, open(self._path("err"), "wb") as err:
            try:
                self.child = subprocess.Popen(  # the child is killed when this process exits
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, start_new_session=True,
                    env={**os.environ, **dict(environment)},
                    preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
            except OSError as problem:
                raise Failed(f"'{words[0]}' cannot be started: {problem.strerror}") from problem
        Process.running.append(self)

    def _path(self, kind):
        return self.folder / f"{self.name}.{kind}"

    def text(self, kind="out"):
        return self._path(kind).read_text(errors="replace")

    def wait(self, seconds):
        """Returns the exit status, or None if the process still runs after `seconds`."""
        try:
            return self.child.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        """Ends the whole group by SIGTERM, then SIGKILL. Children may remain after a process has exited."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._signal(number):
                break
            deadline = time.monotonic() + END_LIMIT
            while self._signal(0) and time.monotonic() < deadline:
                self.child.poll()
                time.sleep(0.01)
        self.child.wait()
        if self in Process.running:
            Process.running.remove(self)

    def _signal(self, number):
        """Sends a signal. Returns whether the group had a process."""
        try:
            os.killpg(self.child.pid, number)
            return True
        except ProcessLookupError:
            return False

    def last_error_line(self):
        errors, output = ([line.strip() for line in self.text(kind).splitlines() if line.strip()] for kind in ("err", "out"))
        complaints = [line for line in errors + output if COMPLAINT.search(line)]
        return (complaints or errors or output or ["no output"])[-1][:300]


def end_all():
    for process in list(Process.running):
        process.end()


def wait_until_ready(server, ready, port):
    kind, _, argument = ready.partition(" ")
    deadline = time.monotonic() + READY_LIMIT
    while True:
        if kind == "unix" and named(argument):
            return
        if kind in ("tcp", "udp") and taken(kind, port):
            return
        if not kind:
            return
        if server.child.poll() is not None:
            raise Failed(f"the server exited before its client started: {server.last_error_line()}")
        if time.monotonic() > deadline:
            raise Failed(f"the server was not ready after {READY_LIMIT} s")
        time.sleep(0.01)


def finish(process, command):
    status = process.wait(command.limit)
    if status is None:
        raise Failed(f"it took longer than {command.limit:g} s")
    if status not in command.accepted:
        raise Failed(f"it {ending(status)}: {process.last_error_line()}")


def ending(status):
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"


def run(command, place):
    """Returns the output of a command or a pair. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="roci-bench-") as folder:
        folder = pathlib.Path(folder)
        port = free_port()
        try:
            if isinstance(command, Command):
                process = Process(place.words(command, port), command.environment, folder, "own")
                finish(process, command)
                return Output(process.text())
            server = Process(place.words(command.server, port), command.server.environment, folder, "server")
            wait_until_ready(server, command.ready, port)
            client = Process(place.words(command.client, port), command.client.environment, folder, "client")
            try:
                finish(client, command.client)
            except Failed as failure:
                if server.child.poll() not in (None, 0):
                    raise Failed(f"{failure}; the server: {server.last_error_line()}") from failure
                raise
            status = server.wait(END_LIMIT)
            if status is not None and status not in command.server.accepted:
                raise Failed(f"the server {ending(status)} behind its client: {server.last_error_line()}")
            server.end()
            return Output(client.text(), server.text())
        finally:
            end_all()
