#!/usr/bin/env python3
"""Checks docs/requirements.md: the numbering of each document, and status, file and test of every row.

Prints one line per wrong row, `docs/requirements.md: <number>: <what is wrong>`, and exits with 1 if any is found.

usage: check_requirements.py [repository]
"""

import collections
import pathlib
import re
import sys

from findings import report
from named_tests import NAMED_TEST, DefinedTests

PAGE = "docs/requirements.md"
STATUSES = ("implemented", "implemented, untested", "differs", "not implemented")
WITH_REASON = ("differs", "not implemented")
SUMMARY_HEAD = ["Document", "Numbers", *STATUSES]
ROW_CELLS = 6  # Number, section, requirement, status, file, test.
NONE = "–"
NO_TEST = "no test"

NUMBER = re.compile(r"([A-Z])(\d+)")
RANGE = re.compile(r"([A-Z])1 to \1(\d+)")
CODE = re.compile(r"`([^`]+)`")
# CTest runs a scenario as gallery_<name>, which fails if one of its expectations does not hold.
SCENARIO = re.compile(r"config/lab/\w+\.yaml")

Row = collections.namedtuple("Row", "number status reason files tests problem")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read_rows(text):
    """Returns the rows of the tables of requirements. A row with a wrong number of cells has only a problem."""
    for line in text.splitlines():
        row = cells(line)
        if not line.startswith("| ") or not NUMBER.fullmatch(row[0]):
            continue
        if len(row) != ROW_CELLS:
            yield Row(row[0], "", "", "", "", f"{len(row)} cells; allowed are {ROW_CELLS}")
            continue
        status, _, reason = row[3].partition(":")
        yield Row(row[0], status.strip(), reason.strip(), row[4], row[5], "")


def read_summary(text):
    """Returns the counts of the summary table by letter: the highest number, then one count per status. "" has the
    totals."""
    summary = {}
    inside = False
    for line in text.splitlines():
        row = cells(line)
        if row == SUMMARY_HEAD:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and len(row) == len(SUMMARY_HEAD) and all(cell.isdigit() for cell in row[2:]):
            counts = [int(cell) for cell in row[2:]]
            numbers = RANGE.fullmatch(row[1])
            if numbers:
                summary[numbers.group(1)] = [int(numbers.group(2)), *counts]
            elif row[1].isdigit():
                summary[""] = [int(row[1]), *counts]
    return summary


def is_scenario(root, name):
    path = root / name
    return bool(SCENARIO.fullmatch(name)) and path.is_file() and "\nexpect:" in path.read_text()


def problems_of(row, root, tests):
    if row.problem:
        yield row.problem
        return
    if row.status not in STATUSES:
        yield f"status '{row.status}' is unknown; allowed are {', '.join(STATUSES)}"
    if row.status in WITH_REASON and not row.reason:
        yield f"'{row.status}' without a reason"

    files = CODE.findall(row.files)
    yield from (f"file {name} does not exist" for name in files if not (root / name).is_file())
    if not files and not (row.status == "not implemented" and row.files == NONE):
        yield "no file"

    named = CODE.findall(row.tests)
    for name in named:
        test = NAMED_TEST.fullmatch(f"`{name}`")
        if not (tests.has(*test.groups()) if test else is_scenario(root, name)):
            yield f"test {name} does not exist"
    if row.status == "implemented" and not named:
        yield "'implemented' without a test; the status without one is 'implemented, untested'"
    if row.status == "implemented, untested" and (named or row.tests != NO_TEST):
        yield f"'implemented, untested' with a test; allowed is '{NO_TEST}'"


def check_numbers(rows, summary):
    found = collections.Counter(row.number for row in rows)
    for number, count in found.items():
        letter, digits = NUMBER.fullmatch(number).groups()
        if count > 1:
            yield f"{number}: {count} rows; allowed is one"
        if letter not in summary or not 1 <= int(digits) <= summary[letter][0] or digits.startswith("0"):
            yield f"{number}: not a number of the summary"
    for letter in sorted(set(summary) - {""}):
        for number in range(1, summary[letter][0] + 1):
            if f"{letter}{number}" not in found:
                yield f"{letter}{number}: no row"


def check_counts(rows, summary):
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        for letter in (NUMBER.fullmatch(row.number).group(1), ""):
            counts[letter][row.status] += 1
    for letter in sorted(set(counts) | {""}):
        real = [counts[letter][status] for status in STATUSES]
        said = summary.get(letter, [])[1:]
        name = letter or "total"
        if not said:
            yield f"summary: no row for {name}"
        elif said != real:
            yield f"summary: {name} has the counts {said}; the rows have {real}"
    total = sum(summary[letter][0] for letter in summary if letter)
    if "" in summary and summary[""][0] != total:
        yield f"summary: the total is {summary[''][0]} requirements; the documents have {total}"


def check(root):
    root = pathlib.Path(root)
    text = (root / PAGE).read_text()
    rows = list(read_rows(text))
    summary = read_summary(text)
    if not rows:
        yield f"{PAGE}: no row of a requirement"
    tests = DefinedTests(root)
    for row in rows:
        problems = "; ".join(problems_of(row, root, tests))
        if problems:
            yield f"{PAGE}: {row.number}: {problems}"
    for problem in (*check_numbers(rows, summary), *check_counts(rows, summary)):
        yield f"{PAGE}: {problem}"


def main():
    return report(check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))


if __name__ == "__main__":
    sys.exit(main())
