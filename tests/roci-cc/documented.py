#!/usr/bin/env python3
"""docs/congestion-algorithms.md says of each built-in algorithm what roci-cc says.

    documented.py ROCI_CC docs/congestion-algorithms.md            exit 1 when they differ
    documented.py ROCI_CC docs/congestion-algorithms.md --write    writes it
"""

import pathlib
import subprocess
import sys

HEAD = """# Algorithms of congestion control

What `roci-cc show NAME --markdown` says of each that is built in; a test compares. How to choose, watch and write one is in
[congestion-control.md](congestion-control.md).
"""


def answer(program: str, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def page(program: str) -> str:
    names = [line.split()[0] for line in answer(program, "list").splitlines() if line[:1].islower()]
    if not names:
        sys.exit("documented: roci-cc lists no algorithm")
    return HEAD + "".join(f"\n## {name}\n\n{answer(program, 'show', name, '--markdown')}" for name in names)


def main() -> None:
    program, file = sys.argv[1], pathlib.Path(sys.argv[2])
    wanted = page(program)
    if "--write" in sys.argv[3:]:
        file.write_text(wanted)
    elif file.read_text() != wanted:
        sys.exit(f"documented: {file} is not what {program} says; write it anew with {sys.argv[0]} {program} {file} --write")


if __name__ == "__main__":
    main()
