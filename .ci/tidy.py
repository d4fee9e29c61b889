#!/usr/bin/env python3
"""clang-tidy over every .cpp of the product in a compilation database, in parallel, remembering what passed.

Tests are left out: two compilers with warnings as errors and the sanitizers look at them, and they would double the time.
The database is that of a build which compiles several files at a time (ROCI_UNITY), so these are read several at a time.

A file is looked at again only when its preprocessed text (with comments, where NOLINT lives), its command line or
.clang-tidy changed since it last passed; what is remembered is the hash of the three, as an empty file in the cache
folder.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("lib", "switch", "cc", "apps", "bench")


def preprocess_command(entry):
    """The entry's compiler command, turned into one that prints the preprocessed text."""
    words = shlex.split(entry["command"]) if "command" in entry else list(entry["arguments"])
    if pathlib.Path(words[0]).name == "ccache":
        words = words[1:]
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        elif word not in ("-c", "-MD", "-MMD"):
            kept.append(word)
    return kept + ["-E", "-C", "-P"]


def fingerprint(entry):
    text = subprocess.run(preprocess_command(entry), cwd=entry["directory"], capture_output=True, check=False)
    if text.returncode != 0:
        return None  # clang-tidy will say why
    config = (ROOT / ".clang-tidy").read_bytes()
    command = " ".join(preprocess_command(entry)).encode()
    return hashlib.sha256(b"\0".join([config, command, text.stdout])).hexdigest()


def look_at(entry, build, cache):
    """Returns (path, complaints or None, seconds); seconds is 0 when the file had passed before."""
    path = pathlib.Path(entry["directory"], entry["file"]).resolve()
    started = time.monotonic()
    mark = fingerprint(entry)
    if mark and (cache / mark).exists():
        return path, None, 0.0
    run = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(build), str(path)], capture_output=True, text=True, check=False
    )
    if run.returncode == 0 and mark:
        (cache / mark).touch()
    return path, None if run.returncode == 0 else run.stdout + run.stderr, time.monotonic() - started


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    arguments.add_argument("--cache", type=pathlib.Path, required=True, help="folder for the marks of what passed")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--slowest", type=int, default=0, help="print this many of the slowest files")
    options = arguments.parse_args()

    options.cache.mkdir(parents=True, exist_ok=True)
    build = options.build.resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(path.is_relative_to(base / folder) for base in (build, ROOT) for folder in PRODUCT):
            entries.setdefault(path, entry)  # a file built into two targets is looked at once

    bad, fresh, times = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, complaints, seconds in pool.map(lambda e: look_at(e, build, options.cache), entries.values()):
            times.append((seconds, path.relative_to(ROOT)))
            fresh += seconds > 0
            if complaints is not None:
                bad += 1
                print(f"{path.relative_to(ROOT)}:\n{complaints}", flush=True)
    for seconds, path in sorted(times, reverse=True)[: options.slowest]:
        print(f"    {seconds:6.1f} s  {path}")
    print(f"    {len(entries)} files, {fresh} of them new or changed, {bad} with complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
