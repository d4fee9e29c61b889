#!/usr/bin/env python3
"""Compares the instructions of the data path, counted by callgrind, with the budgets in bench/budget.yaml.

The number of instructions is the same in every run, whereas wall time on a shared machine varies by more than a few
percent. A workload that exceeds its budget by more than 3 % fails. The budget is changed by hand or with --update,
together with the reason.

Exit status: 1 if budgets are exceeded, 2 for other failures, for example a workload without a budget.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).parent
BUDGETS = HERE / "budget.yaml"
TOLERANCE = 0.03


def fail(sentence, status=2):
    print(f"budget: {sentence}", file=sys.stderr)
    sys.exit(status)


def counted(program, names, keep=None):
    """Returns the instructions of each workload: {name: (per message, per packet)}."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = pathlib.Path(keep or folder)
        dumps.mkdir(parents=True, exist_ok=True)
        for old in dumps.glob("callgrind.out*"):
            old.unlink()
        messages = {}
        for name in names or [None]:
            out = dumps / f"callgrind.out.{name or 'all'}"
            command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q", f"--callgrind-out-file={out}",
                       str(program)] + ([name] if name else [])
            run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if run.returncode != 0:
                fail(f"'{' '.join(command)}' ended with {run.returncode}: {run.stderr.strip()[-500:]}")
            for line in run.stdout.splitlines():
                workload, count, packets = line.split()
                messages[workload] = int(count), int(packets)
        figures = {}
        for dump in dumps.glob("callgrind.out*"):
            text = dump.read_text(errors="replace")
            trigger = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            if trigger and total:
                count, packets = messages[trigger.group(1)]
                figures[trigger.group(1)] = int(total.group(1)) / count, int(total.group(1)) / packets
        for name in messages:
            if name not in figures:
                fail(f"callgrind wrote no counts of {name}")
        return {name: figures[name] for name in messages}


def read_budgets():
    budgets = yaml.safe_load(BUDGETS.read_text()) or {}
    for name, entry in budgets.items():
        counts = [entry.get("instructions"), entry.get("without_lto")]
        if set(entry) != {"instructions", "without_lto", "reason"} or not all(isinstance(count, int) for count in counts):
            fail(f"{BUDGETS.name}: {name} must have only 'instructions' and 'without_lto', two integers, and 'reason'")
    return budgets


def write_budgets(budgets):
    """Writes the budgets; keeps the lines above the first entry."""
    lines = BUDGETS.read_text().splitlines()
    first = next((i for i, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    text = "\n".join(lines[:first]) + "\n"
    for name, entry in budgets.items():
        ordered = {key: entry[key] for key in ("instructions", "without_lto", "reason")}
        text += yaml.safe_dump({name: ordered}, sort_keys=False, width=1000)
    BUDGETS.write_text(text)


def updated(entry, kind, count, reason, named):
    """Returns the entry of a workload with the count. A change within the tolerance keeps the reason, unless the workload
    was named on the command line. Changes of at most 0.1 % keep the entry."""
    old = entry.get(kind)
    change = abs(count / old - 1) if old else None
    if change is not None and change <= 0.001:
        return entry
    new = {"instructions": 0, "without_lto": 0}  # a new workload needs --update with both builds
    explained = change is None or change > TOLERANCE or named
    return {**new, **entry, kind: round(count), "reason": reason if explained else entry["reason"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="*", help="workloads to count; default: all")
    parser.add_argument("--program", default="build/lto/bin/roci-budget")
    parser.add_argument("--without-lto", action="store_true", help="the program is that of a build without link-time "
                        "optimization (preset release)")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the output files of callgrind in FOLDER, for callgrind_annotate")
    parser.add_argument("--update", metavar="REASON", help="write the counted instructions to budget.yaml; the reason replaces that of named workloads "
                        "and of changes above 3 %%")
    options = parser.parse_args()
    kind = "without_lto" if options.without_lto else "instructions"
    budgets = read_budgets()
    unknown = set(options.workload) - set(budgets)
    if unknown and not options.update:
        fail(f"unknown workload '{', '.join(sorted(unknown))}'; allowed: {', '.join(budgets)}")
    figures = counted(options.program, options.workload, options.keep)

    over, missing = [], []
    print(f"{'workload':<28}{'per message':>12}{'per packet':>12}{'budget':>9}{'change':>9}")
    for name, (per_message, per_packet) in figures.items():
        budget = budgets.get(name, {}).get(kind)
        change = per_message / budget - 1 if budget else None
        shown = f"{change:+.1%}" if budget else "new"
        print(f"{name:<28}{per_message:>12.0f}{per_packet:>12.0f}{budget or '-':>9}{shown:>9}")
        if change is None:
            missing.append(name)
        elif change > TOLERANCE:
            over.append(name)
        if options.update:
            budgets[name] = updated(budgets.get(name, {}), kind, per_message, options.update, name in options.workload)
    if options.update:
        write_budgets(budgets)
        return
    if not options.workload:
        for name in sorted(set(budgets) - set(figures)):
            fail(f"{BUDGETS.name} has {name}, which is not a workload")
    if missing:
        fail(f"{BUDGETS.name} has no {kind} of {', '.join(missing)}; add the budget with bench/budget.py --update REASON")
    if over:
        fail(f"over budget by more than {TOLERANCE:.0%}: {', '.join(over)}. Reduce the cost, or change the budget "
             "with bench/budget.py --update REASON", status=1)


if __name__ == "__main__":
    main()
