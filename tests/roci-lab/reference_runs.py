#!/usr/bin/env python3
"""Compares runs of roci-lab with reference runs of HPCC's ns-3 simulator: same inputs, equal parameters.

    python3 tests/roci-lab/reference_runs.py build/release/bin/roci-lab --seeds 10 --write docs/experiments/reference.md

Each percentile of the slowdown, by size of the flows, must be within 10 % of the reference, or be listed with its cause
in reference/exceptions.yaml. Exits with 1 otherwise. A slowdown is the completion time of a flow divided by its minimum in
an idle network, with the packets of the same simulator. The difference of the completion times themselves is printed in
parentheses.
"""

import argparse
import collections
import csv
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
REFERENCE = HERE / "reference"
LIMIT = 10  # percent
PERCENTILES = (50, 95, 99)
SIZES = (("< 10 KB", 10_000), ("10 to 100 KB", 100_000), ("100 KB to 1 MB", 1_000_000), (">= 1 MB", float("inf")))
PAYLOAD, HEADERS, TIMELY_HEADERS, ACKNOWLEDGMENT = 1000, 48, 56, 60  # bytes on the line of the reference
HEAD = """# Comparison with HPCC's ns-3 simulator

Completion times of the lab and of an independent simulator,
[HPCC's ns-3](https://github.com/alibaba-edu/High-Precision-Congestion-Control) (commit `9f4be2a`), for the same
topologies, lists of flows and parameters. `roci-lab import` translates the simulator's files
([lab.md](../lab.md#other-simulators)). The inputs and the completion times of the reference are in
[tests/roci-lab/reference/](../../tests/roci-lab/reference), which also describes the runs.

```sh
python3 tests/roci-lab/reference_runs.py build/release/bin/roci-lab --seeds 10 --write docs/experiments/reference.md
```

The command imports and runs the files, writes this page, and fails if a percentile differs by more than 10 % without an
entry in `exceptions.yaml`, or if an entry is obsolete. `./roci test` runs it for the incasts, `./roci test --ci` for all
runs.

Values are slowdowns: the completion time of a flow divided by its minimum in an idle network. Each cell has the reference,
the lab, and the difference. Each simulator's minimum is that of its own packets, which cannot be made equal: 1000 bytes of
payload and 48 of headers (TIMELY 56) in the reference, whose clock also rounds transmission times down to ns; 1024 and 82 in the lab.
In an idle network, large flows take 4 % longer in the lab. The difference of the completion times themselves, relative to
one common minimum, is in parentheses.
"""

Flow = collections.namedtuple("Flow", "source destination bytes duration minimum")


def packet_time(length, rate):
    return int(length * 8 / rate)


class Network:
    """Topology file of the simulator, for minimum durations."""

    def __init__(self, path, headers):
        self.headers = headers
        words = path.read_text().split()
        nodes, switches, links = map(int, words[:3])
        self.hosts = set(range(nodes)) - set(map(int, words[3:3 + switches]))
        self.links = collections.defaultdict(list)
        for i in range(links):
            one, other, rate, delay, _ = words[3 + switches + 5 * i:][:5]
            link = (float(rate.removesuffix("Gbps")), float(delay.removesuffix("ns")))
            self.links[int(one)].append((int(other), link))
            self.links[int(other)].append((int(one), link))

    def path(self, source, destination):
        """Links of a shortest path, as (Gb/s, ns)."""
        paths = {source: []}
        nodes = [source]
        for node in nodes:
            for following, link in self.links[node]:
                if following in paths:
                    continue
                paths[following] = [*paths[node], link]
                if following not in self.hosts:
                    nodes.append(following)
        return paths[destination]

    def minimum(self, source, destination, size):
        """Duration in the reference: packets back to back on the slowest link, until the last acknowledgment, in ns.

        The clock of the reference rounds the time of each packet down to ns. Telemetry is not included."""
        path = self.path(source, destination)
        slowest = min(rate for rate, _ in path)
        first = min(size, PAYLOAD)
        full, last = divmod(size - first, PAYLOAD)
        on_links = sum(2 * delay + packet_time(first + self.headers, rate) + packet_time(ACKNOWLEDGMENT, rate) for rate, delay in path)
        return (on_links + full * packet_time(PAYLOAD + self.headers, slowest)
                + (packet_time(last + self.headers, slowest) if last else 0))


def reference_flows(run, network):
    with (REFERENCE / "fct" / f"{run}.csv").open() as file:
        rows = [[int(row[name]) for name in ("src", "dst", "bytes", "fct_ns")] for row in csv.DictReader(file)]
    return [Flow(*row, network.minimum(*row[:3])) for row in rows]


def node(address):
    return int(address, 16) >> 8 & 0xffff


def lab_flows(path):
    """Flows of a file in the simulator's format."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [Flow(node(row[0]), node(row[1]), int(row[4]), int(row[6]), int(row[7])) for row in rows]


def execute(lab, run, out, changes=()):
    """Imports and runs a configuration; returns the flows."""
    scenario = out / f"{run}.yaml"
    subprocess.run([lab, "import", REFERENCE / "parameters" / f"{run}.txt", "-o", scenario], check=True, capture_output=True)
    done = subprocess.run([lab, "run", scenario, "--ns3-results", "--quiet", "--out", out / run,
                           *(argument for change in changes for argument in ("--set", change))],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{run}: roci-lab ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return lab_flows(out / run / "fct.txt")


def size_of(flow):
    return next(name for name, end in SIZES if flow.bytes < end)


def slowdowns(flows, size, minimum):
    return sorted(flow.duration / minimum(flow) for flow in flows if size_of(flow) == size)


def percentile(values, percent):
    return values[percent * (len(values) - 1) // 100]


def compare(run, reference, measured):
    """Rows (size, flows, [(percent, reference, lab, difference of completion times)])."""
    if sorted(flow[:3] for flow in reference) != sorted(flow[:3] for flow in measured):
        sys.exit(f"{run}: {len(measured)} flows have ended, which are not the {len(reference)} of the reference")
    common = {flow[:3]: flow.minimum for flow in reference}
    rows = []
    for size, _ in SIZES:
        own = [slowdowns(flows, size, lambda flow: flow.minimum) for flows in (reference, measured)]
        same = slowdowns(measured, size, lambda flow: common[flow[:3]])
        values = [(percent, *(percentile(one, percent) for one in own),
                   difference(percentile(own[0], percent), percentile(same, percent))) for percent in PERCENTILES if same]
        rows += [(size, len(same), values)] if same else []
    return rows


def difference(reference, lab):
    return 100 * (lab / reference - 1)


def ranges(rows_of_seeds):
    """Least and largest slowdown in all seeds, by size and percentile."""
    out = {}
    for rows in rows_of_seeds:
        for size, _, values in rows:
            for percent, _, lab, _ in values:
                least, most = out.get((size, percent), (lab, lab))
                out[size, percent] = (min(least, lab), max(most, lab))
    return out


def evaluate(run, rows, exceptions):
    """Sentences about differences that are not as listed."""
    listed = {(entry["size"], entry["percentile"]): entry for entry in exceptions if entry["run"] == run}
    wrong = []
    for size, _, values in rows:
        for percent, reference, lab, _ in values:
            differs = difference(reference, lab)
            entry = listed.pop((size, percent), None)
            where = f"{run}, {size}, p{percent}: {reference:.3f}, here {lab:.3f}: {differs:+.1f} %"
            if entry is None and abs(differs) > LIMIT:
                wrong.append(f"{where}; at most {LIMIT} % are allowed without an entry in exceptions.yaml")
            elif entry is not None and abs(differs) <= LIMIT:
                wrong.append(f"{where}; remove the entry in exceptions.yaml")
            elif entry is not None and not entry["from"] <= differs <= entry["to"]:
                wrong.append(f"{where}; exceptions.yaml has {entry['from']} to {entry['to']} %")
    return wrong + [f"{run}, {size}, p{percent}: exceptions.yaml has an entry without a value" for size, percent in listed]


def table(results, exceptions):
    listed = {(entry["run"], entry["size"], entry["percentile"]) for entry in exceptions}
    lines = ["| Run | Size | Flows | " + " | ".join(f"p{percent}" for percent in PERCENTILES) + " |",
             "|---|---|--:|" + "---|" * len(PERCENTILES)]
    for run, rows in results.items():
        for size, flows, values in rows:
            cells = []
            for percent, reference, lab, of_times in values:
                text = f"{reference:.2f}, {lab:.2f}, {difference(reference, lab):+.1f} % ({of_times:+.0f} %)"
                cells.append(f"**{text}**" if (run, size, percent) in listed else text)
            lines.append(f"| {run} | {size} | {flows} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def exception_rows(results, of_seeds, exceptions):
    for entry in exceptions:
        run, size, percent = entry["run"], entry["size"], entry["percentile"]
        if run not in results:
            continue
        values = next(row for name, _, row in results[run] if name == size)
        _, reference, lab, _ = next(value for value in values if value[0] == percent)
        least, most = of_seeds[run][size, percent]
        yield f"| {run} | {size} | p{percent} | {reference:.2f} | {lab:.2f} | {least:.2f} to {most:.2f} | {entry['cause']} |\n"


def page(results, of_seeds, seeds, exceptions):
    values = [difference(reference, lab) for rows in results.values() for _, _, row in rows for _, reference, lab, _ in row]
    within = sum(abs(value) <= LIMIT for value in values)
    out = HEAD + f"\n{within} of {len(values)} percentiles are within {LIMIT} %. The others are bold.\n\n"
    out += table(results, exceptions)
    out += f"\n## Exceptions\n\n| Run | Size | | Reference | Lab | Seeds 1 to {seeds} | Cause |\n|---|---|---|--:|--:|---|---|\n"
    return out + "".join(exception_rows(results, of_seeds, exceptions))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("lab", type=pathlib.Path, help="the program roci-lab")
    parser.add_argument("--only", default="", help="runs whose name matches this regular expression from its start")
    parser.add_argument("--seeds", type=int, default=1, help="also the range of the values with further seeds [1]")
    parser.add_argument("--write", type=pathlib.Path, help="write the page to this file")
    parser.add_argument("--set", action="append", default=[], help="overrides a key of all scenarios; skips the evaluation")
    options = parser.parse_args()
    exceptions = yaml.safe_load((REFERENCE / "exceptions.yaml").read_text()) or []
    results, of_seeds, wrong = {}, {}, []
    runs = sorted(path.stem for path in (REFERENCE / "fct").glob("*.csv") if re.match(options.only, path.stem))
    if not runs:
        sys.exit(f"no reference run matches '{options.only}'")
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            topology = re.search(r"^TOPOLOGY_FILE (\S+)", (REFERENCE / "parameters" / f"{run}.txt").read_text(), re.M)[1]
            started = time.monotonic()
            flows = execute(options.lab.resolve(), run, pathlib.Path(folder), options.set)
            print(f"{run}: {len(flows)} flows, {time.monotonic() - started:.1f} s", flush=True)
            reference = reference_flows(run, Network(REFERENCE / topology, TIMELY_HEADERS if run.endswith("_timely") else HEADERS))
            results[run] = compare(run, reference, flows)
            further = [execute(options.lab.resolve(), run, pathlib.Path(folder), [*options.set, f"seed={seed}"])
                       for seed in range(2, options.seeds + 1)]
            of_seeds[run] = ranges([results[run], *(compare(run, reference, flows) for flows in further)])
            if not options.set:
                wrong += evaluate(run, results[run], exceptions)
    print(table(results, exceptions))
    if options.seeds > 1:
        for run, values in of_seeds.items():
            for (size, percent), (least, most) in values.items():
                print(f"{run}, {size}, p{percent}: seeds 1 to {options.seeds}: {least:.2f} to {most:.2f}")
    if options.write:
        options.write.write_text(page(results, of_seeds, options.seeds, exceptions))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
