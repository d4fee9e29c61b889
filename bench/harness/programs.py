"""Commands of the cases, and parsers of the output of the project's programs."""

import json
import re
import shlex

from harness.case import Command, Figure, LESS, MORE, Pair, Unreadable


def command(line, **options):
    """Creates a command from a line in shell syntax. A prefix `NAME=value` sets the environment."""
    words = shlex.split(line)
    environment = []
    while "=" in words[0] and not words[0].startswith("{"):
        environment.append(tuple(words.pop(0).split("=", 1)))
    return Command(tuple(words), environment=tuple(environment), **options)


# roci-perf

def in_loopback(test, **options):
    """roci-perf with both hosts in one process and one core each: in_loopback("write bw -s 64")."""
    return command(f"{{bin}}/roci-perf {test} --loopback --direct --cores {{core0}},{{core1}} --json", **options)


def over_memif(test, **options):
    """roci-perf as two processes that share memory, with one core each."""
    def side(core, config, more):
        return command(f"{{bin}}/roci-perf {test} --config {{bench}}/memif/{config}.yaml --cores {core} -p {{port}} {more}",
                       **options)
    # The server opens its TCP port after the client has connected to the shared memory.
    return Pair(side("{core0}", "server", "--host-timeout 20"), side("{core1}", "client", "--json 127.0.0.1"), "unix roci-bench")


def perf_result(key, factor=1.0):
    """Reads a key of the only result of roci-perf --json."""
    def take(output):
        try:
            (row,) = json.loads(output.text)["results"]
            return float(row[key]) * factor
        except (ValueError, KeyError, TypeError) as problem:
            raise Unreadable(f"roci-perf's JSON has no result with {key}") from problem
    return take


def p99_over_median(output):
    return perf_result("p99_us")(output) / perf_result("p50_us")(output)


def bandwidth(name, run):
    return Figure(name, run, perf_result("average_gbps"), "Gb/s")


def large_writes(name, options=""):
    """Consecutive 64 KiB WRITEs at a path MTU of 4096, in loopback."""
    return bandwidth(name, in_loopback(f"write bw -s 65536 -m 4096 -D {{seconds}} {options}"))


def message_rate(name, run):
    return Figure(name, run, perf_result("message_rate_mpps"), "M/s")


def median_latency(name, run):
    return Figure(name, run, perf_result("p50_us", 1000), "ns", LESS)


# Google Benchmark programs, run for one benchmark.

def benchmark(program, name, seconds=0.5):
    """Runs one benchmark, or all whose names match; a figure then uses the best."""
    return command(f"{{bin}}/{program}_bench --benchmark_filter=^{name}$ --benchmark_min_time={seconds} "
                   "--benchmark_format=json", limit=60)


def benchmark_counter(key, factor=1.0):
    """Reads a counter: the maximum if several benchmarks ran."""
    def take(output):
        try:
            rows = json.loads(output.text)["benchmarks"]
            for row in rows:
                if row.get("error_occurred"):
                    raise Unreadable(f"{row['name']} gave up: {row.get('error_message', 'no reason given')}")
            return max(float(row[key]) for row in rows) * factor
        except (ValueError, KeyError, TypeError) as problem:
            raise Unreadable(f"the benchmark's JSON has no {key}") from problem
    return take


def core_round_trip():
    """Round-trip time of a cache line between the two cores. On a virtual machine it changes over time, and two-core
    results with it."""
    return Figure("round trip of a cache line", benchmark("loopback", "limit_core_round_trip/real_time", 0.1),
                  benchmark_counter("ns_per_round_trip"), "ns", LESS)


# Tables and lines printed by the project's scripts and programs.

def matched(pattern, what):
    """Reads the number in the pattern's only group; `what` describes the line in error messages."""
    def take(output):
        found = re.search(pattern, output.text, re.MULTILINE)
        if not found:
            raise Unreadable(f"the output has no {what}")
        return float(found.group(1))
    return take


def line(key):
    """Reads a line with a name and a number, as printed by roci-footprint."""
    return matched(rf"^{re.escape(key)} ([0-9.]+)$", f"line '{key} NUMBER'")


def budget_row(workload):
    """Reads the instructions of a workload from the table of bench/budget.py."""
    return matched(rf"^{re.escape(workload)} +(\d+) +\d+ ", f"line of the budget of {workload}")


def stage_row(thread, stage):
    """Reads the nanoseconds of a thread's stage from the table of bench/stages.py."""
    return matched(rf"^{re.escape(thread)} +{re.escape(stage)} +([0-9.]+)$", f"line of the {thread}'s stage {stage}")


__all__ = ["LESS", "MORE", "bandwidth", "benchmark", "benchmark_counter", "budget_row", "command", "core_round_trip",
           "in_loopback", "large_writes", "line", "median_latency", "message_rate", "over_memif", "p99_over_median", "perf_result", "stage_row"]
