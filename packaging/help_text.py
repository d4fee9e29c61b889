"""Parses the --help output of a program and its subcommands, for manual pages and bash completion.

The output of CLI11 consists of a description, "Usage:", groups of entries ("  -s,--size SIZE   text"), and a footer. All texts
start at the same column. If an entry is too long, its text starts on the next line.
"""

import dataclasses
import os
import re
import subprocess

HEADING = re.compile(r"^(\S.*):$")
NAMED = {"Positionals", "Subcommands"}  # groups with entries that do not start with a dash
KINDS = {"UINT": "N", "INT": "N", "FLOAT": "N"}


@dataclasses.dataclass(frozen=True)
class Entry:
    names: tuple  # ("-s", "--size"), ("HOST",), ("write",)
    value: str    # "SIZE", or empty
    text: str


@dataclasses.dataclass
class Command:
    words: list        # ["roci-perf", "write", "bw"]
    about: list        # paragraphs before "Usage:"
    usage: str         # after the program's name in the line "Usage:"
    groups: dict       # options by heading
    positionals: list
    subcommands: list  # Commands
    more: list         # paragraphs after the groups

    def options(self):
        return [entry for entries in self.groups.values() for entry in entries]

    def leaves(self):
        """The subcommands without further subcommands, or the command itself."""
        return [leaf for command in self.subcommands for leaf in command.leaves()] or [self]

    def every(self):
        return [self] + [one for command in self.subcommands for one in command.every()]


def paragraphs(text):
    return [block for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]


def value_of(text):
    """The name of the value in 'SIZE', 'CPU[,CPU]', 'TEXT:SECONDS', 'UINT:INT in [1 - 9]' or 'TEXT REQUIRED'."""
    text = re.sub(r"\b(Excludes|Needs): .*$|\bREQUIRED\b|\.\.\.", "", text).strip()
    kind, _, check = text.partition(":")
    kind = re.sub(r" ?\[[0-9.]+\]$|=[0-9.]+$", "", kind)  # a default
    return check if re.fullmatch(r"[A-Z]+", check) else KINDS.get(kind, kind)


def parse(words, program, text):
    before, usage, rest = re.fullmatch(r"(?ms)(.*?)^Usage: (.*?)\n(.*)", text).groups()
    column = len(re.search(r"(?m)^(  -h,--help +)\S", rest)[1])
    groups, more, heading = {}, [], None
    for line in rest.split("\n"):
        if more or not heading and not HEADING.match(line):
            more += [line] if more or line.strip() else []
        elif line.startswith(" " * column):
            left, body = groups[heading][-1]
            groups[heading][-1] = (left, f"{body} {line.strip()}".strip())
        elif HEADING.match(line) and line != "Examples:":
            heading = line[:-1]
        elif line.startswith("  -") or line.startswith("  ") and heading in NAMED:
            split = column if line[column - 1:column] == " " else len(line)
            groups.setdefault(heading, []).append((line[:split].strip(), line[split:].strip()))
        elif line.strip():
            more.append(line)
    entries = {}
    for name, lines in groups.items():
        for left, body in lines:
            names, _, value = left.partition(" ")
            entries.setdefault(name, []).append(Entry(tuple(names.split(",")), value_of(value), body))
    positionals, below = entries.pop("Positionals", []), entries.pop("Subcommands", [])
    for name in (program, *words):
        usage = usage.strip().removeprefix(name)
    command = Command(words, paragraphs(before), usage.strip(), entries, positionals, [], paragraphs("\n".join(more)))
    return command, [entry.names[0] for entry in below]


def read(program, *subcommands):
    """Runs a program and each of its subcommands with --help."""
    asked = subprocess.run([program, *subcommands, "--help"], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    command, below = parse([os.path.basename(program), *subcommands], program, asked.stdout)
    command.subcommands = [read(program, *subcommands, word) for word in below]
    return command
