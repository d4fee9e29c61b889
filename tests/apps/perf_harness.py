"""Harness that runs roci-perf and roci-switch: configurations in a temporary folder, a timeout for every process."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from sockets import free_port  # noqa: E402 (found by the line above)

TIMEOUT = 60  # seconds; generous, because tests may share two cores with a build


def take_programs(*names):
    """Removes the paths of the programs, in this order, from the command line and returns them by name."""
    paths = [pathlib.Path(sys.argv.pop(1)).resolve() for _ in names]
    return dict(zip(names, paths))


class PerfTest(unittest.TestCase):
    programs = {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tcp_port = str(free_port())
        # DPDK's runtime folder is in the temporary folder, so that tests do not see each other's processes.
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": str(self.folder)}

    # --- Configurations

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def host(self, name, device, address, mtu=4200, memory="128MiB", more=""):
        return self.write(f"{name}.yaml", f"""
eal: {{memory: {memory}}}
device:
  name: {name}
  port: {{device: "{device}", mtu: {mtu}}}
  addresses: [{address}/24]
{more}""")

    def write_switch(self, more="", p1="", p2=""):
        """Writes the configuration of a switch between two hosts, with additional keys of the switch and of its ports.
        """
        path = self.folder / "memif.sock"
        return self.write("switch.yaml", f"""
eal: {{memory: 256MiB}}
switch:
  name: s1
  idle: yield
{more}
  ports:
    - {{name: p1, mtu: 4200, device: "net_memif0,role=server,id=0,socket={path}" {p1}}}
    - {{name: p2, mtu: 4200, device: "net_memif1,role=server,id=1,socket={path}" {p2}}}
""")

    def memif_hosts(self, **of_switch):
        """Starts a switch that runs until the test ends; returns the configurations of its two hosts."""
        path = self.folder / "memif.sock"
        config = self.write_switch(**of_switch)
        ready = self.folder / "ready"
        switch = self.switch = self.start([self.programs["roci-switch"], "--config", config, "--ready-file", ready])
        self.wait_until(lambda: ready.exists() or switch.poll() is not None, "the switch to be ready")
        return (self.host("client", f"net_memif0,role=client,id=0,socket={path}", "10.0.0.1"),
                self.host("server", f"net_memif0,role=client,id=1,socket={path}", "10.0.0.2"))

    # --- Processes

    def start(self, command, **options):
        options.setdefault("env", self.environment)
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def perf(self, *arguments, **options):
        return self.start([self.programs["roci-perf"], *arguments], **options)

    def finish(self, process, timeout=TIMEOUT):
        """Waits for the process to exit; stores its output in .out and .err."""
        process.out, process.err = process.communicate(timeout=timeout)
        return process

    def run_perf(self, *arguments, **options):
        return self.finish(self.perf(*arguments, **options))

    def wait_until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"waited too long for {what}")
            time.sleep(0.01)

    def run_pair(self, hosts, test, client_options=(), server_options=()):
        """Runs a server and a client, and expects that both succeed. Returns the JSON output of the client."""
        client_config, server_config = hosts
        where = ["-p", self.tcp_port, "--host-timeout", "30"]
        server = self.perf(*test, "--config", server_config, *where, *server_options)
        client = self.start_client(server, *test, "--config", client_config, *where, "--json", *client_options,
                                   "127.0.0.1")
        self.finish(client)
        self.finish(server)
        self.assertEqual((client.returncode, server.returncode), (0, 0),
                         f"client: {client.out}{client.err}\nserver: {server.out}{server.err}")
        self.assertEqual(client.err, "")
        self.assertIn("#bytes", server.out)  # The server prints the results too.
        return json.loads(client.out)

    def start_client(self, _server, *arguments):
        return self.perf(*arguments)

    # --- Assertions

    def assert_refused(self, process, exit_code, *parts):
        """Expects the exit code, nothing on standard output, and one sentence on standard error with all the parts."""
        self.assertEqual(process.returncode, exit_code, process.out + process.err)
        self.assertEqual(process.out, "")
        self.assertRegex(process.err, r"\Aroci-perf: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, process.err)

    def assert_sentence(self, process, exit_code, *parts):
        """Like assert_refused(), but allows output on standard output."""
        self.assertEqual(process.returncode, exit_code, process.out + process.err)
        self.assertRegex(process.err, r"\Aroci-perf: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, process.err)

    def assert_bandwidth(self, result, size=65536):
        row = result["results"][0]
        self.assertEqual(row["bytes"], size)
        self.assertGreater(row["iterations"], 0)
        self.assertGreater(row["average_gbps"], 0)
        self.assertGreaterEqual(row["peak_gbps"] * 1.0001, row["average_gbps"])

    def assert_latency(self, result):
        row = result["results"][0]
        order = [row[key] for key in ("min_us", "p50_us", "p90_us", "p99_us", "p99.9_us", "p99.99_us", "max_us")]
        self.assertEqual(order, sorted(order))
        self.assertGreater(order[0], 0)


def read_line(process):
    """Returns the next line of standard output, or '' at its end. Later lines stay in the pipe, for communicate()."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode()


def queue_pair_line(process):
    """Returns the address of its own queue pair that a process with --peer prints, in the format that --peer accepts.
    """
    while line := read_line(process):
        found = re.match(r"local queue pair: (\S+)", line)
        if found:
            return found.group(1)
    raise AssertionError("no queue pair was printed: " + process.stderr.read())


def main(*programs):
    PerfTest.programs = take_programs(*programs)
    os.environ.setdefault("ROCI_LOG", "warn")
    unittest.main()
