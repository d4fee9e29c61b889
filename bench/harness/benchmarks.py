"""The Google Benchmark programs, each run completely."""

import dataclasses
import pathlib

from harness import google_benchmark
from harness.case import Command, Unreadable
from harness.machine import load
from harness.run import Failed, ROOT, run

SUFFIX = "_bench"
LIMIT = 1800  # seconds; a program has up to a hundred benchmarks
REPETITIONS, QUICK_REPETITIONS = 9, 3
WHAT = {
    "base": "timers, generator, tables",
    "wire": "ICRC, frames, packets, the pass over a payload",
    "loopback": "two hosts and a switch polled by one thread, and the limits of that",
    "queue_pairs": "what the number of queue pairs costs",
    "switch": "frames that one core forwards: bare, with marking, telemetry, everything",
}


def names(folder=ROOT / "bench"):
    """Returns a program name for each folder that has one, whether it is built or not."""
    return [name for name in WHAT if (folder / name).is_dir()] + sorted(
        path.parent.name for path in folder.glob("*/*_bench.cpp") if path.parent.name not in WHAT
        and path.name == f"{path.parent.name}{SUFFIX}.cpp")


def command(name, repetitions, options=()):
    return Command((f"{{bin}}/{name}{SUFFIX}", f"--benchmark_repetitions={repetitions}", "--benchmark_min_time=0.1",
                    "--benchmark_enable_random_interleaving=true", "--benchmark_format=json", *options), limit=LIMIT)


@dataclasses.dataclass
class ProgramResult:
    name: str
    command: Command
    found: dict
    error: str
    load_before: tuple
    load_after: tuple
    text: str = ""  # output that is not a measurement

    @property
    def failed(self):
        return bool(self.error) or any(one.error for one in self.found.values())


def measure(name, repetitions, options, place, tell):
    one = command(name, repetitions, options)
    before, found, error, text = load(), {}, "", ""
    tell(place.line(one))
    try:
        text = run(one, place).text
        pathlib.Path(ROOT / "build/bench").mkdir(parents=True, exist_ok=True)
        (ROOT / f"build/bench/{name}.json").write_text(text)
        found, text = google_benchmark.read(text), ""
    except Failed as failure:
        error = str(failure)
    except Unreadable as problem:
        if not options:  # with options of the user it may be a list or a help text
            error = str(problem)
    return ProgramResult(name, one, found, error, before, load(), text)
