#!/usr/bin/env python3
"""Checks that docs/congestion-algorithms.md equals the output of `roci-cc show` for each built-in algorithm.

    documented.py ROCI_CC docs/congestion-algorithms.md            exit 1 when they differ
    documented.py ROCI_CC docs/congestion-algorithms.md --write    rewrites the page
"""

import pathlib
import subprocess
import sys

HEAD = """# Congestion control algorithms

Reference of the built-in congestion control algorithms: parameters, states and reasons of changes. Selection,
monitoring and plugin development are in [congestion-control.md](congestion-control.md).

The page is the output of `roci-cc show NAME --markdown` for each algorithm; a test (`tests/roci-cc/documented.py`)
compares them. "Project default" is a value that the source does not give; "project addition" is a parameter that the
source does not have.
"""


def answer(program: str, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def page(program: str) -> str:
    algorithms = answer(program, "list").partition("\n\n")[0]
    names = [line.split()[0] for line in algorithms.splitlines() if line[:1].islower()]
    if not names:
        sys.exit("documented: roci-cc lists no algorithm")
    return HEAD + "".join(f"\n## {name}\n\n{answer(program, 'show', name, '--markdown')}" for name in names)


def main() -> None:
    program, file = sys.argv[1], pathlib.Path(sys.argv[2])
    wanted = page(program)
    if "--write" in sys.argv[3:]:
        file.write_text(wanted)
    elif file.read_text() != wanted:
        sys.exit(f"documented: {file} differs from the output of {program}; rewrite it: {sys.argv[0]} {program} {file} --write")


if __name__ == "__main__":
    main()
