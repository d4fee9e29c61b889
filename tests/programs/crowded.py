#!/usr/bin/env python3
"""Runs pairs of unmodified programs repeatedly in parallel with other load, and counts the runs that complete.

    tests/programs/crowded.py build/release/bin --runs 300 --busy 4
    tests/programs/crowded.py build/release/bin --runs 20 --only write_lat mpi2 --within "taskset -c 0"

Not a part of ./roci test: the whole matrix takes hours. Exit status 1 if a run has not completed."""

import argparse
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from load import BusyLoops  # noqa: E402 (found by the line above)
from sockets import free_port, listens  # noqa: E402
from ucx_programs import MPI, RELIABLE, mpi_command  # noqa: E402

LIMIT = 180  # seconds for one run
PERFTEST = {
    "write_lat": ("ib_write_lat", "-a", "-n", "50"),
    "send_lat": ("ib_send_lat", "-a", "-n", "50"),
    "read_lat": ("ib_read_lat", "-a", "-n", "50"),
    "send_bw": ("ib_send_bw", "-D", "4"),
    "write_bw_256_qps": ("ib_write_bw", "-q", "256", "-n", "100"),
}
RANKS = {"mpi2": 2, "mpi4": 4}
THREE_PAIRS = "three_pairs"
POLLERS = {f"pollers_{mode}": (mode, "--seconds", "2") for mode in ("ud", "rc", "epoll")}
GLOO = {"gloo": (), "gloo_busy_poll": ("--busy-poll",)}


class Runs:
    def __init__(self, options, folder):
        self.bin = pathlib.Path(options.bin).resolve()
        self.within = shlex.split(options.within)
        self.roci_run_options = shlex.split(options.roci_run)
        self.folder = folder
        self.environment = {**os.environ, "ROCI_RUNTIME": folder, **MPI, **RELIABLE}

    def start(self, command):
        output = tempfile.TemporaryFile(dir=self.folder)
        process = subprocess.Popen([*self.within, str(self.bin / "roci-run"), *self.roci_run_options, *map(str, command)],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        process.output = output
        return process

    @staticmethod
    def end(process, deadline):
        """Returns why the process has not completed, with its output; an empty string if it has."""
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
            outcome = "" if process.returncode == 0 else f"exit status {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            outcome = f"not ended after {LIMIT} s"
        process.output.seek(0)
        text = process.output.read().decode(errors="replace")
        process.output.close()
        return f"{outcome}\n{text[-1500:]}" if outcome else ""

    def pairs(self, command, count):
        deadline = time.monotonic() + LIMIT
        processes = []
        for _ in range(count):
            port = free_port()
            server = self.start((*command, "-p", port))
            while not listens(port) and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            processes += [server, self.start((*command, "-p", port, "127.0.0.1"))]
        return "".join(self.end(process, deadline) for process in processes)

    def mpi(self, ranks):
        return self.end(self.start(mpi_command(ranks, self.bin / "mpi-check")), time.monotonic() + LIMIT)

    def gloo(self, options):
        deadline = time.monotonic() + LIMIT
        with tempfile.TemporaryDirectory(dir=self.folder) as store:
            ranks = [self.start((self.bin / "gloo-check", store, rank, 2, *options)) for rank in range(2)]
            return "".join(self.end(rank, deadline) for rank in ranks)

    def run(self, name):
        if name in RANKS:
            return self.mpi(RANKS[name])
        if name in POLLERS:
            return self.pairs((self.bin / "pollers-check", *POLLERS[name]), 1)
        if name in GLOO:
            return self.gloo(GLOO[name])
        if name == THREE_PAIRS:
            return self.pairs(("ib_write_bw", "-n", "2000"), 3)
        return self.pairs(PERFTEST[name], 1)


def main():
    names = [*PERFTEST, *RANKS, THREE_PAIRS, *POLLERS, *GLOO]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder with roci-run, mpi-check, pollers-check and gloo-check")
    parser.add_argument("--runs", type=int, default=20, help="runs of each pair (20)")
    parser.add_argument("--busy", type=int, default=0, help="busy loops in addition (none)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--within", default="", metavar="COMMAND", help="prefix of each command, such as taskset")
    parser.add_argument("--roci-run", default="", metavar="OPTIONS", help="options of roci-run")
    options = parser.parse_args()
    incomplete = 0
    print(f"{'program':<18} {'complete':>9} {'median s':>9} {'longest':>8}")
    with tempfile.TemporaryDirectory(prefix="crowded-") as folder, BusyLoops(options.busy):
        runs = Runs(options, folder)
        for name in options.only:
            seconds = []
            failed = 0
            for number in range(1, options.runs + 1):
                begin = time.monotonic()
                outcome = runs.run(name)
                seconds.append(time.monotonic() - begin)
                if outcome:
                    failed += 1
                    print(f"{name}, run {number}: {outcome}", flush=True)
            print(f"{name:<18} {options.runs - failed:>4}/{options.runs:<4} {statistics.median(seconds):>9.2f} "
                  f"{max(seconds):>8.2f}", flush=True)
            incomplete += failed
    return 1 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
