#!/usr/bin/env python3
"""Runs clang-tidy for every .cpp file of a compilation database that is not a test, in parallel, with a cache.

Files are checked in the order of their last change in the history, newest first. With --limit, no further file is started
after that time, and the number of files that were not checked is printed. Continuous integration uses this: it has no
cache, and all files take 16 minutes on two cores.

Tests are excluded: two compilers with warnings as errors and the sanitizers check them, and they would double the time.
With ROCI_UNITY, the database contains the generated files that include several sources.

A file that has passed is checked again only if its preprocessed text (including comments, for NOLINT), its command line
or .clang-tidy has changed. The cache folder contains an empty file per passed file, named by the hash of the three.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("lib", "switch", "cc", "apps", "bench")


def preprocess_command(entry):
    """Converts the compiler command of an entry into one that prints the preprocessed text."""
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
        return None  # clang-tidy reports the reason
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


def last_changes():
    """Returns the time of the last commit of each tracked file. Files without a commit are not contained."""
    log = subprocess.run(
        ["git", "log", "--format=%ct", "--name-only", "--no-renames"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    times, when = {}, 0
    for line in log.stdout.splitlines():
        if line.isdigit():
            when = int(line)
        elif line:
            times.setdefault(line, when)
    return times


def sources(path):
    """Returns the source files of a unit: the file itself, or those that a file of a unity build includes."""
    if "/Unity/" not in str(path):
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', path.read_text(), re.MULTILINE)]


def newest_change(path, times):
    """Returns the time of the newest change of the sources of a unit and of the headers in their folders."""
    newest = 0
    for source in sources(path):
        if source.is_relative_to(ROOT):
            for file in [source, *source.parent.glob("*.hpp")]:
                newest = max(newest, times.get(str(file.relative_to(ROOT)), 0))
    return newest


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    arguments.add_argument("--cache", type=pathlib.Path, required=True, help="cache folder")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--limit", type=float, metavar="SECONDS", help="start no further file after this time")
    arguments.add_argument("--slowest", type=int, default=0, help="print this many of the slowest files")
    options = arguments.parse_args()

    options.cache.mkdir(parents=True, exist_ok=True)
    build = options.build.resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(path.is_relative_to(base / folder) for base in (build, ROOT) for folder in PRODUCT):
            entries.setdefault(path, entry)  # a file of two targets is checked once

    changes = last_changes()
    order = sorted(entries, key=lambda path: newest_change(path, changes), reverse=True)
    deadline = time.monotonic() + options.limit if options.limit else float("inf")

    def check(path):
        return look_at(entries[path], build, options.cache) if time.monotonic() < deadline else None

    bad, fresh, times = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(check, order):
            if result is None:
                continue
            path, complaints, seconds = result
            times.append((seconds, path.relative_to(ROOT)))
            fresh += seconds > 0
            if complaints is not None:
                bad += 1
                print(f"{path.relative_to(ROOT)}:\n{complaints}", flush=True)
    for seconds, path in sorted(times, reverse=True)[: options.slowest]:
        print(f"    {seconds:6.1f} s  {path}")
    skipped = len(order) - len(times)
    limit = f", {skipped} not checked within {options.limit:.0f} s (those changed longest ago)" if skipped else ""
    print(f"    {len(order)} files, {fresh} of them new or changed, {bad} with findings{limit}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
