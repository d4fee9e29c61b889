#!/usr/bin/env python3
"""Runs scenario files with several seeds and writes the page of the claims that hold and fail.

    python3 tests/roci-lab/results_page.py build/release/bin/roci-lab --seeds 10 --write docs/experiments/results.md

Results remain in --out; a file that is not run again, with --only, keeps its section of the page.
"""

import argparse
import datetime
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

- A result compares means. A claim can hold although its values end with `the difference is not significant`: the 95 %
  confidence interval of the difference includes equality. These claims have their own column in the table of files.
- "Values" has both sides of the comparison, each with its factor. For example, a claim of "more than twice" a value
  shows the doubled value.

`tests/roci-lab/results_page.py` runs the files and writes this page. The revision of a section ends with `+` if the tree
had changes.

"""
# Facts of the sections that were stored without a revision.
OLDER = """Sections without a revision were recorded by 2026-11-29 13:18, with revision 3255cd7e or an earlier one. Their values do
not state how many flows ended, which `roci-lab` prints since revision 2212b2a1. The claims about TIMELY of `hadoop` and
`hadoop_incast` are older than the others: the profile `timely_hpcc_sim` did not count samples below `t_low`
(`low_counts: 0`).

"""
NOT_SIGNIFICANT = "the difference is not significant"


def revision():
    """Returns the revision of the tree, with + if it has changes, and the date."""
    described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--exclude=*", "--dirty=+"], capture_output=True,
                               text=True, check=False)
    return f"{described.stdout.strip() or 'unknown'} of {datetime.date.today()}"


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
    (folder / "page.json").write_text(json.dumps({"seeds": seeds, "revision": revision(), "claims": claims}, indent=2) + "\n")
    failed = [claim["claim"] for claim in claims if result(claim) == "FAILS"]
    print(f"{scenario.stem}: {len(claims)} claims, {seconds:.0f} s" + "".join(f"\n  FAILS {claim}" for claim in failed), flush=True)


def result(claim):
    if claim["holds"]:
        return "HOLDS, marked as failing" if claim["fails"] else "holds"
    return f"fails: {claim['fails']}" if claim["fails"] else "FAILS"


def cell(text):
    # The mean of equal values has an interval of the rounding error. An interval of 0 is below the shown digits.
    text = re.sub(r" ± \d(\.\d+)?e-1[5-9]", "", text)
    text = re.sub(r" ± 0( [A-Za-z/]+)?(?= against| \(|$)", "", text)
    return text.replace("|", "\\|")


def page(scenarios, out):
    sections, rows, older = [], [], False
    for scenario in scenarios:
        stored = out / scenario.stem / "page.json"
        if not stored.exists():
            continue
        entry = json.loads(stored.read_text())
        claims = entry["claims"]
        holding = [claim for claim in claims if result(claim) == "holds"]
        unclear = sum(NOT_SIGNIFICANT in claim["found"] for claim in holding)
        seeds = entry["seeds"]
        rows.append(f"| [{scenario.stem}](#{scenario.stem}) | {seeds} | {len(claims)} | {len(holding) - unclear} | {unclear} | "
                    f"{len(claims) - len(holding)} |")
        recorded = f" Revision {entry['revision']}." if "revision" in entry else ""
        older = older or not recorded
        source = yaml.safe_load(scenario.read_text()).get("source", "none")
        lines = [f"## {scenario.stem}", "", f"Source: {source}. Seeds: {'1' if seeds == 1 else f'1 to {seeds}'}.{recorded}", "",
                 "| Claim | Values | Result |", "|---|---|---|"]
        lines += [f"| {cell(claim['claim'])} | {cell(claim['found'])} | {cell(result(claim))} |" for claim in claims]
        sections.append("\n".join(lines) + "\n")
    table = "\n".join(["| File | Seeds | Claims | Hold | Hold, not significant | Fail |", "|---|--:|--:|--:|--:|--:|", *rows])
    return HEAD + (OLDER if older else "") + table + "\n\n" + "\n".join(sections)


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
