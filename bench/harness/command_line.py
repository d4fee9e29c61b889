"""Command line of `./roci bench`: options, names of benchmarks, and the order of runs."""

import argparse
import datetime
import json
import shutil
import signal
import sys

from harness import benchmarks, compare, document, google_benchmark, machine, measure, near, peers, report
from harness.case import Pair
from harness.groups import GROUPS, WITH_TARGETS
from harness.run import Place, end_all, run

ROUNDS, COMPARED_ROUNDS, QUICK_ROUNDS = 5, 7, 2
SECONDS, QUICK_SECONDS = 2, 1
USAGE = "./roci bench [NAME...] [--quick] [--runs N] [--near [NS]] [--json | --markdown] [--compare REV] [-- OPTION...]"
TARGETS = "targets"

EPILOG = """\
Groups measure Rocinante, peers and limits in the same run. Each round runs all commands, every second round in reverse
order. Tables have medians, half the range (+-), and the ratio of Rocinante's figure to each other one, per round.
Programs are Google Benchmark programs with their own tables.

examples:
  ./roci bench                          all benchmarks; about 30 minutes on an idle machine
  ./roci bench targets                  all groups with targets, then a summary of the targets
  ./roci bench latency memif --quick    two groups, fewer and shorter rounds, for a smoke test
  ./roci bench bandwidth --json >b.json all rounds, as JSON
  ./roci bench loss --compare HEAD~1    Rocinante of both revisions, alternating; builds in build/compare
  ./roci bench wire -- --benchmark_filter=icrc

Exit status: 0 all measurements were made, even if targets are not met; 1 a measurement failed; 2 invalid names or
options; 130 interrupted. Progress is printed to standard error."""


class Misused(Exception):
    """An error message."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Misused(f"{message}; './roci bench --help' lists the allowed arguments")


def whole_number(text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 to 1000")
    return number


def parser():
    names = "names:\n" + "\n".join(f"  {name:<18}{what}" for name, what in listed()) + "\n\n"
    options = Parser(prog="./roci bench", usage=USAGE, add_help=False, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter, epilog=names + EPILOG,
                     description="Measures this tree against peers, limits and targets. Installs the required peers and "
                                 "builds. Reliable figures require\nan idle machine.")
    options.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run, see below; default: all")
    options.add_argument("--quick", action="store_true",
                         help=f"{QUICK_ROUNDS} rounds of {QUICK_SECONDS} s instead of {ROUNDS} ({COMPARED_ROUNDS} with "
                              f"--compare) of {SECONDS} s, for a smoke test")
    options.add_argument("--runs", type=whole_number, metavar="N", help="number of rounds")
    options.add_argument("--near", nargs="?", type=whole_number, const=near.MOST, metavar="NS",
                         help="groups: repeat runs during which the round trip of a cache line between the two cores took "
                              f"more than NS nanoseconds (default {near.MOST})")
    options.add_argument("--json", action="store_true", help="print only one JSON document to standard output")
    options.add_argument("--markdown", action="store_true", help="print tables in the format of bench/RESULTS.md")
    options.add_argument("--compare", metavar="REV", help="compare this tree with revision REV, in alternating runs")
    options.add_argument("--list", action="store_true", help="list the benchmarks")
    # Used by the script ./roci.
    options.add_argument("--packages", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--unpacked", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("-h", "--help", action="store_true", help="show this help")
    return options


def listed():
    yield TARGETS, "all groups with targets, and a summary of the targets"
    for group in GROUPS:
        yield group.name, group.what
    for name in benchmarks.names():
        yield name, f"{name}{benchmarks.SUFFIX}: {benchmarks.WHAT.get(name, 'Google Benchmark program')}"


def parse(arguments):
    """Returns the options, and the arguments after `--`."""
    behind = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, behind = arguments[:at], arguments[at + 1:]
    options = parser().parse_args(arguments)
    known = [name for name, _ in listed()]
    options.names = [name.removesuffix(benchmarks.SUFFIX) for name in options.names]
    for name in options.names:
        if name not in known:
            raise Misused(f"unknown benchmark '{name}'; allowed: {', '.join(known)}")
    if options.json and options.markdown:
        raise Misused("--json and --markdown exclude each other")
    return options, behind


def chosen(names):
    """Returns the groups and programs without duplicates, in the order of the list."""
    groups = [group for group in GROUPS
              if not names or group.name in names or (TARGETS in names and group in WITH_TARGETS)]
    return groups, [name for name in benchmarks.names() if not names or name in names]


def commands_of(groups, own_only):
    for group in groups:
        for command in (dict.fromkeys(case.own.command for case in group.cases) if own_only else group.commands):
            yield from (command.server, command.client) if isinstance(command, Pair) else (command,)


def words_of(groups, own_only):
    return {word for command in commands_of(groups, own_only) for word in command.words}


def packages(groups, own_only):
    """Returns the Debian packages that contain these groups' peers."""
    programs = {command.program for command in commands_of(groups, own_only)}
    words = words_of(groups, own_only)
    programs |= {program for script, program in peers.SCRIPTS.items() if script in words}
    return sorted({peers.PACKAGES[program] for program in programs if program in peers.PACKAGES})


def unpacked(groups, own_only):
    """Returns the packages that are unpacked instead of installed."""
    words = words_of(groups, own_only)
    return sorted({package for script, found in peers.UNPACKED.items() if script in words for package in found})


def tell(text):
    """Prints the progress, on one line of a terminal."""
    line = f"    {text}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = line if len(line) <= width else line[:width - 3] + "..."
    print(line, file=sys.stderr, flush=True)


def show(lines):
    print("\n".join(lines), end="\n\n", flush=True)


def show_program(result, place, options):
    print(f"{'### ' if options.markdown else ''}{result.name}{benchmarks.SUFFIX}\n\n{place.line(result.command)}\n"
          f"{report.loads(result)}\n")
    if result.error:
        show([f"failed: {result.error}"])
    elif result.text:
        show([result.text.rstrip()])  # a list or a help text
    else:
        make = report.markdown if options.markdown else report.plain
        rows = [tuple(cell.replace("; ", "<br>") for cell in row) if options.markdown else row
                for row in google_benchmark.rows(result.found)]
        show(make(google_benchmark.HEADINGS, rows, right=(1, 2)))


def start(options, about):
    """Prints the machine and the time, the heading of the tables. Returns the time."""
    started = datetime.datetime.now().astimezone().isoformat(timespec="minutes")
    if not options.json:
        show([f"{started[:16].replace('T', ' ')}, {machine.sentence(about)}"])
    return started


def run_groups(groups, programs, options, behind, place):
    about = machine.describe()
    started = start(options, about)
    rounds = options.runs or (QUICK_ROUNDS if options.quick else ROUNDS)
    repetitions = options.runs or (benchmarks.QUICK_REPETITIONS if options.quick else benchmarks.REPETITIONS)
    near_cores = near.Near(options.near, place) if options.near else None
    results, program_results = [], []
    for group in groups:
        tell(f"--- {group.name}")
        results.append(measure.measure(group, rounds, place, tell, machine.load, near_cores))
        if not options.json:
            show(report.group_lines(results[-1], place, options.markdown))
    for name in programs:
        tell(f"--- {name}{benchmarks.SUFFIX}")
        program_results.append(benchmarks.measure(name, repetitions, behind, place, tell))
        if not options.json:
            show_program(program_results[-1], place, options)
    if options.json:
        json.dump(document.whole(about, started, results, program_results, place), sys.stdout, indent=1)
        print()
    elif any(result.group.target for result in results):
        show(report.target_lines(results, options.markdown))
    failed = len({one.figure for result in results for case in result.cases for one in case.failed})
    failed += sum(result.failed for result in program_results)
    if failed:
        print(f"roci: bench: {failed} figures could not be measured; see 'failed:' above for the reasons", file=sys.stderr)
    return 1 if failed else 0


def run_comparison(groups, programs, options, behind, place):
    about = machine.describe()
    rounds = options.runs or (QUICK_ROUNDS if options.quick else COMPARED_ROUNDS)
    sha = compare.resolve(options.compare)
    started = start(options, about)
    revision, rows = compare.compare(sha, groups, programs, rounds, behind, place, tell,
                                      near.Near(options.near, place).run if options.near else run)
    if options.json:
        json.dump(document.whole(about, started, [], [], place, revision, rows), sys.stdout, indent=1)
        print()
    else:
        show(report.compared_lines(rows, revision, rounds, options.markdown))
    failed = sum(bool(row.error) for row in rows)
    if failed:
        print(f"roci: bench: {failed} of {len(rows)} could not be compared", file=sys.stderr)
    return 1 if failed else 0


def interrupted(number, _frame):
    raise SystemExit(128 + number)


def main(arguments):
    try:
        options, behind = parse(arguments)
    except Misused as problem:
        print(f"roci: bench: {problem}", file=sys.stderr)
        return 2
    if options.help:
        parser().print_help()
        return 0
    if options.list:
        show(f"{name:<18}{what}" for name, what in listed())
        return 0
    groups, programs = chosen(options.names)
    if options.packages or options.unpacked:
        print("\n".join((packages if options.packages else unpacked)(groups, options.compare is not None)))
        return 0
    if behind and (groups or not programs):
        print("roci: bench: arguments after '--' are passed to Google Benchmark programs; specify only these benchmarks: "
              f"{', '.join(benchmarks.names())}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    place = Place(seconds=QUICK_SECONDS if options.quick else SECONDS)
    try:
        work = run_comparison if options.compare is not None else run_groups
        return work(groups, programs, options, behind, place)
    except compare.CannotCompare as problem:
        print(f"roci: bench: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("roci: bench: interrupted; nothing is left running", file=sys.stderr)
        return 130
    finally:
        end_all()


