#!/usr/bin/env python3
"""Checks docs/programs.yaml, and that docs/programs.md is generated from it.

Prints one line per finding, `file: what`, and exits with 1 if any is found. With --write it rewrites the page instead.

usage: check_programs.py [--write] [repository]
"""

import pathlib
import re
import sys

import yaml

from findings import report

DATA, PAGE = "docs/programs.yaml", "docs/programs.md"
TEST, BY_HAND, FAILS = VERDICTS = ("test", "by hand", "does not run")
REQUIRED = ("program", "version", "distribution", "verdict")
KEYS = (*REQUIRED, "commands", "services", "tests", "note")
LISTS = ("commands", "tests")
USUAL_DISTRIBUTION = "Debian 12"  # the page names only other distributions

HEAD = """# Programs

Unmodified programs that were run with [roci-run](roci-run.md) on the default network, unless the table specifies another one.
`roci-run --supported` prints the same list. Versions are those of Debian 12 if no other distribution is specified.

This page is generated from [programs.yaml](programs.yaml) by `tests/house/check_programs.py --write`; the test
`house_programs` compares them.

- [Run in tests](#run-in-tests)
- [Run by hand](#run-by-hand)
- [Do not run](#do-not-run)
"""
TESTED_TEXT = """
The tests compare the data, or require that the program has checked it, unless the note specifies otherwise.
"""
BEHIND_TESTED = """
[interop.md](interop.md) lists the programs that run between a Rocinante device and Linux soft-RoCE,
[install.md](install.md#portable-archive) those of Debian 13.
"""
BY_HAND_TEXT = """
These ran once or a few times on a machine with two cores, in November 2026. No test repeats them.
"""


def shown(entry):
    """The program and its executables, in Markdown."""
    commands = [f"`{command}`" for command in entry.get("commands", []) if command != entry["program"]]
    return entry["program"] + (": " + ", ".join(commands) if commands else "")


def version(entry):
    usual = entry["distribution"] in ("", USUAL_DISTRIBUTION)
    return entry["version"] if usual else f"{entry['version']} ({entry['distribution']})".strip()


def table(titles, rows):
    yield f"| {' | '.join(titles)} |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def page(entries):
    """The text of the page."""
    def rows(verdict, *more):
        return ([shown(entry), version(entry), *(cell(entry) for cell in more)]
                for entry in entries if entry["verdict"] == verdict)

    def services(entry):
        return entry.get("services", "")

    def note(entry):
        return entry.get("note", "")

    def tests(entry):
        return ", ".join(f"`{test}`" for test in entry["tests"])

    parts = (("Run in tests", TESTED_TEXT, ("Program", "Version", "Services and options", "Test", "Note"),
              rows(TEST, services, tests, note), BEHIND_TESTED),
             ("Run by hand", BY_HAND_TEXT, ("Program", "Version", "Command, network", "Result"),
              rows(BY_HAND, services, note), ""),
             ("Do not run", "", ("Program", "Version", "Services and options", "Reason"), rows(FAILS, services, note), ""))
    text = HEAD
    for heading, before, titles, lines, behind in parts:
        text += f"\n## {heading}\n{before}\n" + "\n".join(table(titles, lines)) + f"\n{behind}"
    return text


def problems(entry, root):
    for key in sorted(set(entry) - set(KEYS)):
        yield f"unknown key '{key}'; allowed are {', '.join(KEYS)}"
    for key in REQUIRED:
        if key not in entry:
            yield f"'{key}' is missing"
    for key, value in entry.items():
        values = value if key in LISTS else [value]
        if not isinstance(values, list) or not all(isinstance(one, str) and "|" not in one for one in values):
            yield f"'{key}' is not {'a list of texts' if key in LISTS else 'a text'} without '|'"
            return
    verdict = entry.get("verdict")
    if verdict not in VERDICTS:
        yield f"verdict '{verdict}'; allowed are {', '.join(VERDICTS)}"
    if (verdict == TEST) != bool(entry.get("tests")):
        yield "'tests' is required for the verdict 'test', and allowed for no other one"
    if verdict != TEST and not entry.get("note"):
        yield f"'note' is required for the verdict '{verdict}'"
    for test in entry.get("tests", []):
        program = re.fullmatch(r"programs_(\w+)", test)
        path = f"tests/programs/{program[1]}_test.py" if program else test
        if not (root / path).is_file():
            yield f"there is no test '{test}'"


def check(root):
    root = pathlib.Path(root).resolve()
    missing = [name for name in (DATA, PAGE) if not (root / name).is_file()]
    if missing:
        yield from (f"{name}: is missing" for name in missing)
        return
    entries = yaml.safe_load((root / DATA).read_text())["programs"]
    found = [f"{DATA}: {entry.get('program')}: {problem}" for entry in entries for problem in problems(entry, root)]
    yield from found
    if not found and (root / PAGE).read_text() != page(entries):
        yield f"{PAGE}: differs from {DATA}; 'tests/house/check_programs.py --write' rewrites it"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
    if "--write" in sys.argv[1:]:
        (root / PAGE).write_text(page(yaml.safe_load((root / DATA).read_text())["programs"]))
    return report(check(root))


if __name__ == "__main__":
    sys.exit(main())
