#!/usr/bin/env python3
"""Runs scenario files with several seeds and writes the page of the claims that hold and fail.

    python3 tests/roci-lab/results_page.py build/release/bin/roci-lab --seeds 10 --write docs/experiments/results.md

Results remain in --out; a file that is not run again, with --only, keeps its section of the page.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = """# Results of the experiments

Claims of the scenarios in [config/lab/](../../config/lab) with the values of their runs. Values of several seeds are
means with 95 % confidence intervals. A result is `holds`, `fails` (known, with the reason in the file), or `FAILS`. The
experiments are described in [experiments.md](../experiments.md).

`tests/roci-lab/results_page.py` runs the files and writes this page.

"""


def run(lab, scenario, seeds, out):
    """Runs a scenario file and stores its claims with the number of seeds."""
    folder = out / scenario.stem
    (folder / "claims.json").unlink(missing_ok=True)
    started = time.monotonic()
    done = subprocess.run([lab, "run", scenario, "--seeds", str(seeds), "--jobs", "2", "--out", folder], capture_output=True,
                          text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode not in (0, 1):
        sys.exit(f"{scenario.name}: roci-lab ended with {done.returncode}\n{done.stdout}{done.stderr}")
    expected = len(yaml.safe_load(scenario.read_text())["expect"])
    claims = json.loads((folder / "claims.json").read_text()) if (folder / "claims.json").exists() else []
    if len(claims) != expected or any(line.startswith("roci-lab: ") for line in done.stderr.splitlines()):
        sys.exit(f"{scenario.name}: {len(claims)} of {expected} claims were evaluated\n{done.stdout}{done.stderr}")
    (folder / "page.json").write_text(json.dumps({"seeds": seeds, "claims": claims}, indent=2) + "\n")
    failed = [claim["claim"] for claim in claims if result(claim) == "FAILS"]
    print(f"{scenario.stem}: {len(claims)} claims, {seconds:.0f} s" + "".join(f"\n  FAILS {claim}" for claim in failed), flush=True)


def result(claim):
    if claim["holds"]:
        return "HOLDS, marked as failing" if claim["fails"] else "holds"
    return f"fails: {claim['fails']}" if claim["fails"] else "FAILS"


def cell(text):
    # The mean of equal values has an interval of the rounding error.
    text = re.sub(r" ± \d(\.\d+)?e-1[5-9]", "", text)
    return text.replace("|", "\\|")


def page(scenarios, out):
    sections, rows = [], []
    for scenario in scenarios:
        stored = out / scenario.stem / "page.json"
        if not stored.exists():
            continue
        entry = json.loads(stored.read_text())
        claims = entry["claims"]
        holding = sum(result(claim) == "holds" for claim in claims)
        seeds = entry["seeds"]
        rows.append(f"| [{scenario.stem}](#{scenario.stem}) | {seeds} | {len(claims)} | {holding} | {len(claims) - holding} |")
        source = yaml.safe_load(scenario.read_text()).get("source", "none")
        lines = [f"## {scenario.stem}", "", f"Source: {source}. Seeds: {'1' if seeds == 1 else f'1 to {seeds}'}.", "",
                 "| Claim | Values | Result |", "|---|---|---|"]
        lines += [f"| {cell(claim['claim'])} | {cell(claim['found'])} | {cell(result(claim))} |" for claim in claims]
        sections.append("\n".join(lines) + "\n")
    table = "\n".join(["| File | Seeds | Claims | Hold | Fail |", "|---|--:|--:|--:|--:|", *rows])
    return HEAD + table + "\n\n" + "\n".join(sections)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("lab", type=pathlib.Path, help="the program roci-lab")
    parser.add_argument("--seeds", type=int, default=10, help="seeds per run [10]")
    parser.add_argument("--only", default="", help="run only files whose name matches this regular expression")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/experiments", help="folder for results")
    parser.add_argument("--write", type=pathlib.Path, help="write the page to this file")
    options = parser.parse_args()
    with_claims = [path for path in sorted((ROOT / "config/lab").glob("*.yaml"))
                   if "expect" in yaml.safe_load(path.read_text())]
    for scenario in with_claims:
        if re.search(options.only, scenario.stem):
            run(options.lab.resolve(), scenario, options.seeds, options.out)
    if options.write:
        options.write.write_text(page(with_claims, options.out))


if __name__ == "__main__":
    main()
