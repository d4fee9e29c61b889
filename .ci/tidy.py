#!/usr/bin/env python3
"""Runs clang-tidy for every .cpp file of a compilation database that is not a test, in parallel, with a cache.

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


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    arguments.add_argument("--cache", type=pathlib.Path, required=True, help="cache folder")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--slowest", type=int, default=0, help="print this many of the slowest files")
    options = arguments.parse_args()

    options.cache.mkdir(parents=True, exist_ok=True)
    build = options.build.resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(path.is_relative_to(base / folder) for base in (build, ROOT) for folder in PRODUCT):
            entries.setdefault(path, entry)  # a file of two targets is checked once

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
    print(f"    {len(entries)} files, {fresh} of them new or changed, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
