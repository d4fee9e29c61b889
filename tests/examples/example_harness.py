"""Harness for the storage examples: hosts on a roci-switch that drops, duplicates and reorders frames."""

import os
import pathlib
import random
import resource
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "apps"))
import perf_harness  # noqa: E402 (found by the line above)

# Applied to the frames received on each port of the switch, so to both directions.
FAULTS = "loss: 0.005, corrupt: 0.001, duplicate: 0.01, reorder: 0.01"


class ExampleTest(perf_harness.PerfTest):
    """Several hosts on one switch. A failing test prints the seed of all random values."""

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("ROCI_SEED", "1"))
        self.random = random.Random(self.seed)
        print(f"{self.id().rsplit('.', 1)[-1]}: seed {self.seed}; ROCI_SEED=S sets another one", file=sys.stderr)

    def switch_file(self, hosts, faults):
        socket = self.folder / "memif.sock"
        ports = "\n".join(
            f'    - {{name: p{i}, mtu: 4200, device: "net_memif{i},role=server,id={i},socket={socket}"'
            + (f", faults: {{{faults}}}" if faults else "") + "}" for i in range(hosts))
        enabled = f"faults: {{enabled: true, seed: {self.seed}}}" if faults else "idle: yield"
        return self.write("switch.yaml", f"eal: {{memory: 256MiB}}\nswitch:\n  name: s1\n  {enabled}\n  ports:\n{ports}\n")

    def start_switch(self, hosts, faults):
        ready = self.folder / "ready"
        switch = self.start([self.programs["roci-switch"], "--config", self.switch_file(hosts, faults),
                             "--ready-file", ready])
        self.wait_until(lambda: ready.exists() or switch.poll() is not None, "the switch to be ready")
        return switch

    def network(self, hosts, faults=True, more=""):
        """Returns the configurations of `hosts` hosts; the first host has the address 10.0.0.1."""
        switch = self.start_switch(hosts, FAULTS if faults else "")
        self.assertIsNone(switch.poll())
        socket = self.folder / "memif.sock"
        return [self.host(f"host{i}", f"net_memif{i},role=client,id={i},socket={socket}", f"10.0.0.{i + 1}",
                          more=f"  extensions: {{selective_repeat: true}}\n  idle: sleep\n{more if i == 0 else ''}")
                for i in range(hosts)]

    def exhaust_descriptors(self, process, connections=8):
        """Limits the server to one more open file than it has, and opens more TCP connections than that."""
        count = len(os.listdir(f"/proc/{process.pid}/fd"))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (count + 1, count + 1))
        sockets = []
        for _ in range(connections):
            sockets.append(socket.create_connection(("127.0.0.1", int(self.tcp_port))))
            self.addCleanup(sockets[-1].close)
        time.sleep(1.5)  # About 15 attempts to accept them.
        return sockets

    def expect_line(self, process, part):
        """Expects that the next line of the process contains `part`; returns the line."""
        line = perf_harness.read_line(process)
        if part not in line:
            process.kill()
            self.finish(process)
            self.fail(f"'{line}' and not '{part}'; standard error: {process.err}")
        return line

    def assert_failed(self, process, code, *parts):
        self.finish(process)
        self.assertEqual(process.returncode, code, process.out + process.err)
        for part in parts:
            self.assertIn(part, process.err)


def main(*programs):
    ExampleTest.programs = perf_harness.take_programs(*programs)
    os.environ.setdefault("ROCI_LOG", "warn")
    unittest.main()
