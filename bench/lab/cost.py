#!/usr/bin/env python3
"""Runs a simulation and prints its cost in CPU time and memory. Used by `./roci bench lab`.

The command after the options is run once, or once per number in --hosts. The number replaces the word HOSTS in the
command (HOSTS/8: an eighth of it). The command must print a line `packet_hops NUMBER`, or write the run.json of
roci-lab to the folder --results. CPU time and resident memory are those of the whole process, including its start, the
creation of the network and the output of results. An output line is a name and a number. With --hosts,
`kib_per_host_N` is the additional memory per host, compared with the previous size.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time


class Unmeasured(Exception):
    """An error message."""


def packet_hops(output, results):
    """Returns the packet-hops, and the run time in seconds reported by the simulation, or None."""
    if results is None:
        found = re.search(r"^packet_hops (\d+)$", output, re.MULTILINE)
        if not found:
            raise Unmeasured("the program printed no line 'packet_hops NUMBER'")
        return int(found.group(1)), None
    try:
        run = json.loads((pathlib.Path(results) / "run.json").read_text())
        return int(run["packet_hops"]), float(run["seconds"])
    except (OSError, ValueError, KeyError) as problem:
        raise Unmeasured(f"{results}/run.json has no results: {problem}") from problem


def simulate(words, results):
    """Runs the command. Returns the figures by name."""
    began = time.monotonic()
    try:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    except OSError as problem:
        raise Unmeasured(f"'{words[0]}' cannot be started: {problem.strerror}") from problem
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.monotonic() - began
    if child.returncode != 0:
        raise Unmeasured(f"{os.path.basename(words[0])} ended with {child.returncode}")
    dropped = re.search(r"^dropped (\d+)$", output, re.MULTILINE)
    if dropped and int(dropped.group(1)):
        raise Unmeasured(f"{dropped.group(1)} packets were dropped; none may be dropped")
    hops, simulating = packet_hops(output, results)
    if hops == 0:
        raise Unmeasured("no packet was forwarded")
    cpu = used.ru_utime + used.ru_stime
    figures = {"packet_hops": hops, "cpu_seconds": cpu, "seconds": elapsed, "hops_per_cpu_second": hops / cpu,
               "resident_kib": used.ru_maxrss}
    if simulating:
        figures["hops_per_second"] = hops / simulating
    return figures


def with_hosts(words, hosts):
    def number(match):
        return str(hosts // int(match.group(1) or 1))
    return [re.sub(r"\bHOSTS(?:/(\d+))?\b", number, word) for word in words]


def memory(words, results, sizes):
    before = None
    for hosts in sizes:
        resident = simulate(with_hosts(words, hosts), results)["resident_kib"]
        yield f"resident_kib_{hosts}", resident
        if before:
            yield f"kib_per_host_{hosts}", (resident - before[1]) / (hosts - before[0])
        before = hosts, resident


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", metavar="FOLDER", help="folder of the run.json that the command writes")
    parser.add_argument("--hosts", metavar="N,N...", type=lambda text: [int(word) for word in text.split(",")],
                        help="measure the memory per host with networks of these sizes, in ascending order")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is required")
    return options


def main():
    options = arguments()
    try:
        if options.hosts:
            figures = memory(options.command, options.results, options.hosts)
        else:
            figures = simulate(options.command, options.results).items()
        for name, value in figures:
            print(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}", flush=True)
    except Unmeasured as problem:
        print(f"cost.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
