#!/usr/bin/env python3
"""Tables of Google Benchmark's JSON files: medians, their spread, and the ratios that benchmarks ask for.

A benchmark with the label "against NAME…" is compared with those benchmarks of the same file, repetition by
repetition: own rate over theirs, by the first rate that both report, or else by time. Above 1 is faster. All is per
second of CPU time of the measuring thread, so that other programs on the machine matter little. Files of the same
program are pooled, since where its memory comes to lie differs from process to process.
"""

import argparse
import collections
import json
import os
import pathlib
import statistics
import sys

# In the order in which they are preferred for a comparison.
RATES = {
    "packets_per_second": "packets/s",
    "bytes_per_second": "B/s",
    "items_per_second": "/s",
    "messages_per_second": "messages/s",
    "frames_per_second": "frames/s",
    "Gb_per_second": "Gb/s",
    "bytes_each": "B each",
    "us_to_create": "us to create",
    "us_to_connect": "us to connect",
    "us_to_destroy": "us to destroy",
    "us_longest": "us the longest",
}
COMPARABLE = ("packets_per_second", "bytes_per_second", "items_per_second", "messages_per_second")
SHOWN = ("messages_per_second", "packets_per_second", "frames_per_second", "Gb_per_second", "items_per_second",
         "bytes_each", "us_to_create", "us_to_connect", "us_to_destroy", "us_longest")


def short(value):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.3g} "


def duration(nanoseconds):
    for limit, unit in ((1e6, "ms"), (1e3, "us")):
        if nanoseconds >= limit:
            return f"{nanoseconds / limit:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def spread(values):
    """Half the range, in percent of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle * 50 if middle else 0


class Measured:
    """All repetitions of one benchmark."""

    def __init__(self, name):
        self.name = name
        self.runs = []  # by repetition
        self.error = None

    def add(self, run):
        if run.get("error_occurred"):
            self.error = run.get("error_message", "gave up")
        else:
            self.runs.append(run)

    def nanoseconds(self):
        scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
        return [run["cpu_time"] * scale[run["time_unit"]] for run in self.runs]

    def of(self, counter):
        return [run[counter] for run in self.runs]

    def median(self, counter):
        return statistics.median(self.of(counter))

    def has(self, counter):
        return all(counter in run for run in self.runs)

    def against(self):
        words = self.runs[0].get("label", "").split()
        return words[1:] if words[:1] == ["against"] else []

    def rates(self):
        shown = [counter for counter in SHOWN if self.has(counter)]
        if self.has("bytes_per_second") and not self.has("Gb_per_second"):
            shown.append("bytes_per_second")
        return ", ".join(short(self.median(counter)) + RATES[counter] for counter in shown)

    def ratio(self, other):
        """Median, lowest and highest of own over other, by repetition."""
        common = [counter for counter in COMPARABLE if self.has(counter) and other.has(counter)]
        if common:
            pairs = zip(self.of(common[0]), other.of(common[0]))
        else:
            pairs = zip(other.nanoseconds(), self.nanoseconds())
        values = [own / theirs for own, theirs in pairs]
        return statistics.median(values), min(values), max(values)


def read(path):
    """The context and the benchmarks of a file, by name in the order of the file."""
    document = json.loads(pathlib.Path(path).read_text())
    found = collections.OrderedDict()
    runs = [run for run in document["benchmarks"] if run.get("run_type") == "iteration"]
    for run in sorted(runs, key=lambda run: (run.get("family_index", 0), run.get("per_family_instance_index", 0),
                                             run.get("repetition_index", 0))):
        name = run["run_name"]
        found.setdefault(name, Measured(name)).add(run)
    return document["context"], found


def rows(found):
    for one in found.values():
        if one.error:
            yield one.name, "failed", "", one.error, ""
            continue
        ratios = []
        for name in one.against():
            other = found.get(name)  # absent when a filter left it out
            if other is not None and other.runs:
                middle, low, high = one.ratio(other)
                ratios.append(f"{middle:.2f} ({low:.2f}-{high:.2f}) of {name}")
        times = one.nanoseconds()
        yield one.name, duration(statistics.median(times)), f"{spread(times):.0f} %", one.rates(), "; ".join(ratios)


HEADINGS = ("benchmark", "CPU time", "+-", "rates", "ratio: median (range)")


def plain(table):
    table = [HEADINGS, *table]
    widths = [max(len(row[i]) for row in table) for i in range(4)]
    for row in table:
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3].ljust(widths[3])]
        yield "  ".join([*cells, row[4]]).rstrip()


def markdown(table):
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|---|--:|--:|---|---|"
    for row in table:
        yield "| " + " | ".join(row).replace("; ", "<br>") + " |"


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def conditions(context, repetitions):
    before = "/".join(f"{load:.1f}" for load in context.get("load_avg", []))
    after = "/".join(f"{load:.1f}" for load in os.getloadavg())
    return (f"{context['date'][:16].replace('T', ' ')}, {cpu_model()}, {context['num_cpus']} cores at "
            f"{context['mhz_per_cpu']} MHz, {repetitions} repetitions, load average before {before or '?'}, "
            f"after {after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what --benchmark_out wrote, as JSON")
    parser.add_argument("--markdown", action="store_true", help="tables for bench/RESULTS.md")
    options = parser.parse_args()
    failed = False
    programs = collections.OrderedDict()
    for path in options.files:
        context, found = read(path)
        _, pooled = programs.setdefault(context["executable"], (context, collections.OrderedDict()))
        for name, one in found.items():
            into = pooled.setdefault(name, Measured(name))
            into.runs += one.runs
            into.error = into.error or one.error
    for context, found in programs.values():
        failed = failed or any(one.error for one in found.values())
        repetitions = max((len(one.runs) for one in found.values()), default=0)
        print(conditions(context, repetitions), end="\n\n")
        print("\n".join((markdown if options.markdown else plain)(list(rows(found)))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
