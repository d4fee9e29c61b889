"""Runs the same commands with this tree and with another revision, alternately."""

import dataclasses
import pathlib
import re
import shutil
import subprocess

from harness import benchmarks, google_benchmark
from harness.case import Command, MORE, Pair, Unreadable
from harness.ratio import Ratio, median
from harness.run import Failed, Place, Process, ROOT, run

NO_DIFFERENCE = "no difference shown"
# With fewer rounds, equal performance too often gives only ratios above or only below 1: with 5 rounds once in 16
# comparisons.
ENOUGH_ROUNDS, TOO_FEW_ROUNDS = 5, "too few rounds for a result"
PLACING = "--cores"  # CPU affinity; omitted for both if the other revision lacks it


class CannotCompare(Exception):
    """An error message."""


@dataclasses.dataclass
class Compared:
    group: str
    name: str
    unit: str
    better: str = MORE
    before: float = None
    after: float = None
    ratio: Ratio = None  # after divided by before
    error: str = ""

    @property
    def verdict(self):
        if self.ratio is None:
            return ""
        if not self.ratio.shows_difference():
            return NO_DIFFERENCE
        if len(self.ratio.rounds) < ENOUGH_ROUNDS and min(self.ratio.rounds) != max(self.ratio.rounds):
            return TOO_FEW_ROUNDS
        return "better" if (self.ratio.median > 1) == (self.better == MORE) else "worse"


def git(*arguments):
    return subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments], capture_output=True,
                          check=False)


def resolve(revision):
    done = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.returncode != 0:
        raise CannotCompare(f"--compare: there is no revision '{revision}'")
    return done.stdout.decode().strip()


def built(sha, tell):
    """Returns the folder with that revision's programs; builds them if they do not exist."""
    folder = ROOT / "build/compare" / sha[:12]
    finished = folder / "build/finished"
    if finished.exists():
        return folder / finished.read_text().strip() / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tell(f"building {sha[:12]} in {folder.relative_to(ROOT)}")
    archive = git("archive", "--format=tar", sha)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    # Older revisions have no preset `lto`; their preset `release` uses link-time optimization.
    preset = "lto" if '"lto"' in (folder / "CMakePresets.json").read_text() else "release"
    for step in (["cmake", "--preset", preset],
                 ["cmake", "--build", f"build/{preset}", "--parallel", "--target", "roci-perf", "roci-switch", "benchmarks"]):
        build(step, folder)
    finished.write_text(f"build/{preset}\n")
    return folder / "build" / preset / "bin"


def build(words, folder):
    process = Process(words, (), folder, "build")
    status = process.wait(3600)
    process.end()
    if status != 0:
        raise CannotCompare(f"--compare: '{' '.join(words)}' failed in {folder.relative_to(ROOT)}; "
                            f"{folder.relative_to(ROOT)}/build.out has the errors")


def knows_placing(programs):
    """Whether roci-perf of that revision has the option --cores."""
    try:
        text = run(Command(("{bin}/roci-perf", "write", "bw", "--help")), Place(programs)).text
    except Failed:
        return True  # the runs report the error
    return PLACING in text


def unplaced(command):
    if isinstance(command, Pair):
        return dataclasses.replace(command, server=unplaced(command.server), client=unplaced(command.client))
    words = list(command.words)
    while PLACING in words:
        at = words.index(PLACING)
        del words[at:at + 2]
    return dataclasses.replace(command, words=tuple(words))


def own_program(command):
    """Returns the project's program that a command runs, directly or by a script; None if there is none."""
    if isinstance(command, Pair):
        command = command.server
    return next((word.removeprefix("{bin}/") for word in command.words if word.startswith("{bin}/")), None)


def explain(failure, side):
    """Returns an error message; names an option that the other revision does not have."""
    unknown = re.search(r"(?:not expected|unknown|no such|is not an option)[^\n]*", str(failure))
    if side == "before" and unknown:
        return f"that revision does not know an option of this run ({unknown.group(0).strip()})"
    return f"{'that revision' if side == 'before' else 'this tree'} failed: {failure}"


def alternate(command, places, rounds, tell, run_one):
    """Returns the outputs of both sides by round. The order alternates between rounds. Raises CannotCompare."""
    outputs = {side: [] for side in places}
    for number in range(rounds):
        for side in (list(places) if number % 2 == 0 else list(reversed(places))):
            tell(f"round {number + 1} of {rounds}, {side}: {places[side].line(getattr(command, 'client', command))}")
            try:
                outputs[side].append(run_one(command, places[side]))
            except Failed as failure:
                raise CannotCompare(explain(failure, side)) from failure
    return outputs


def compare_figures(group, rounds, places, adapt, tell, run_one):
    """Yields a row per case of a group. Cases with the same command share its runs."""
    outputs, errors = {}, {}
    for case in group.cases:
        figure = case.own
        row = Compared(group.name, case.name, figure.unit, figure.better)
        command = adapt(figure.command)
        program = own_program(command)
        if program is None:
            row.error = "it runs no program of Rocinante"
        elif not (places["before"].folder / program).exists():
            row.error = f"that revision has no {program}"
        else:
            if command not in outputs and command not in errors:
                try:
                    outputs[command] = alternate(command, places, group.rounds or rounds, tell, run_one)
                except CannotCompare as problem:
                    errors[command] = str(problem)
            row.error = errors.get(command, "")
        if not row.error:
            try:
                before, after = ([figure.take(out) for out in outputs[command][side]] for side in ("before", "after"))
                row.ratio, row.before, row.after = Ratio(after, before), median(before), median(after)
            except (Unreadable, ValueError) as problem:
                row.error = str(problem)
        yield row


def rate_of(one):
    """Returns the name of the rate by which a benchmark is compared; None: compared by time."""
    return next((counter for counter in google_benchmark.COMPARABLE if one.has(counter)), None)


def compare_program(name, rounds, options, places, tell):
    """Yields a row per benchmark of this tree; benchmarks missing in the other revision have an error."""
    if not (places["before"].folder / f"{name}{benchmarks.SUFFIX}").exists():
        yield Compared(name, "", "", error=f"that revision has no {name}{benchmarks.SUFFIX}")
        return
    try:
        outputs = alternate(benchmarks.command(name, 1, options), places, rounds, tell, run)
        pooled = {side: pool([google_benchmark.read(out.text) for out in outputs[side]]) for side in places}
    except (CannotCompare, Unreadable) as problem:
        yield Compared(name, "", "", error=str(problem))
        return
    for benchmark, after in pooled["after"].items():
        before = pooled["before"].get(benchmark)
        if before is None:
            yield Compared(name, benchmark, "", error="that revision has no such benchmark")
        elif before.error or after.error:
            yield Compared(name, benchmark, "", error=before.error or after.error)
        else:
            yield compared_benchmark(name, before, after)


def compared_benchmark(program, before, after):
    rate = rate_of(after) if rate_of(after) == rate_of(before) else None
    values = [one.of(rate) if rate else one.nanoseconds() for one in (before, after)]
    unit = google_benchmark.RATES[rate] if rate else "ns"
    return Compared(program, after.name, unit, MORE if rate else "less", median(values[0]), median(values[1]),
                    Ratio(values[1], values[0]))


def pool(documents):
    """Combines the repetitions of several runs."""
    pooled = {}
    for found in documents:
        for name, one in found.items():
            into = pooled.setdefault(name, google_benchmark.Benchmark(name))
            into.runs += one.runs
            into.error = into.error or one.error
    return pooled


def compare(sha, groups, programs, rounds, options, place, tell, run_one):
    """Returns the revision and all rows. Raises CannotCompare if the revision cannot be built."""
    before = built(sha, tell)
    places = {"before": Place(pathlib.Path(before), place.seconds, place.cores), "after": place}
    adapt = lambda command: command
    if groups and not knows_placing(before):
        tell(f"{sha[:12]} has no {PLACING}, so it is left out for both")
        adapt = unplaced
    rows = [row for group in groups for row in compare_figures(group, rounds, places, adapt, tell, run_one)]
    rows += [row for name in programs for row in compare_program(name, rounds, options, places, tell)]
    return sha[:12], rows
