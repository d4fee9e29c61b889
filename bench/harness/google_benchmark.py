"""Results of Google Benchmark's JSON: medians, their spread, and the ratios that labels request.

A benchmark with the label "against NAME…" is compared with those benchmarks of the same file, repetition by
repetition: its rate divided by the other's, for the first rate that both report, otherwise by time. A ratio above 1
is faster. Rates are per second of CPU time of the measuring thread, so that other load has little effect, except for
benchmarks with real_time or manual_time in the name: wall time, of all of an iteration or of the part that it measures.
"""

import collections
import json

from harness.case import Unreadable
from harness.ratio import Ratio, median, spread, with_range

# In the order of preference for comparisons.
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
HEADINGS = ("benchmark", "time", "+-", "rates", "ratio: median (range)")
SCALE = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


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


class Benchmark:
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
        # Manual time is in the key real_time; the key cpu_time then has the whole iteration.
        kind = "real_time" if self.name.endswith(("/real_time", "/manual_time")) else "cpu_time"
        return [run[kind] * SCALE[run["time_unit"]] for run in self.runs]

    def of(self, counter):
        return [run[counter] for run in self.runs]

    def has(self, counter):
        return bool(self.runs) and all(counter in run for run in self.runs)

    def counters(self):
        return {counter: self.of(counter) for counter in RATES if self.has(counter)}

    def against(self):
        words = self.runs[0].get("label", "").split()
        return words[1:] if words[:1] == ["against"] else []

    def rates(self):
        shown = [counter for counter in SHOWN if self.has(counter)]
        if self.has("bytes_per_second") and not self.has("Gb_per_second"):
            shown.append("bytes_per_second")
        return ", ".join(short(median(self.of(counter))) + RATES[counter] for counter in shown)

    def ratio(self, other):
        """Returns the own rate divided by the other, by repetition; above 1 is faster."""
        common = [counter for counter in COMPARABLE if self.has(counter) and other.has(counter)]
        own, theirs = (self.of(common[0]), other.of(common[0])) if common else (other.nanoseconds(), self.nanoseconds())
        count = min(len(own), len(theirs))
        return Ratio(own[:count], theirs[:count])


def read(text):
    """Returns the benchmarks of a JSON document by name, in the program's order. Raises Unreadable."""
    try:
        runs = [run for run in json.loads(text)["benchmarks"] if run.get("run_type") == "iteration"]
        found = collections.OrderedDict()
        for run in sorted(runs, key=lambda run: (run.get("family_index", 0), run.get("per_family_instance_index", 0),
                                                 run.get("repetition_index", 0))):
            found.setdefault(run["run_name"], Benchmark(run["run_name"])).add(run)
    except (ValueError, KeyError, TypeError) as problem:
        raise Unreadable("this is not what Google Benchmark writes as JSON") from problem
    if not found:
        raise Unreadable("no benchmark ran")
    return found


def ratios(found, one):
    """Yields names of other benchmarks with the ratio to them; omits those that a filter excluded."""
    for name in one.against():
        other = found.get(name)
        if other is not None and other.runs and not other.error:
            yield name, one.ratio(other)


def rows(found):
    for one in found.values():
        if one.error:
            yield one.name, "failed", "", one.error, ""
            continue
        times = one.nanoseconds()
        compared = "; ".join(f"{with_range(ratio)} of {name}" for name, ratio in ratios(found, one))
        yield one.name, duration(median(times)), f"{spread(times):.0f} %", one.rates(), compared


def document(found):
    return [{"name": one.name, "error": one.error, "nanoseconds": one.nanoseconds(), "counters": one.counters(),
             "against": [{"name": name, "ratio": ratio.document()} for name, ratio in ratios(found, one)] if one.runs
                        else []} for one in found.values()]
