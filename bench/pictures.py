#!/usr/bin/env python3
"""Draws the results of bench/pictures/*.cpp, measured in virtual time: one SVG per experiment, with gnuplot.

    ./roci build release --target roci-pfc-over-time
    python3 bench/pictures.py --program build/lto/bin/roci-pfc-over-time --out docs/pictures

The same program produces the same bytes in every run. A changed picture means that the behavior of the switch has
changed."""

import argparse
import pathlib
import subprocess
import sys

PICTURES = {
    "unfairness": {
        "title": "Three flows at line rate into one port: f1 alone by its ingress port, f2 and f3 share another",
        "flows": ["f1, alone", "f2", "f3"],
        "fair": [(4, 10, "a third of the line", 3.33)],
    },
    "victim": {
        "title": "f2 goes to an idle port; from 2 ms on f1, which shares its link, goes to a port of 1 Gb/s",
        "flows": ["f1, to the slow port", "f2, to the idle port"],
        "fair": [],
    },
}
COLOURS = ["#1b6ca8", "#d1495b", "#66a182"]
WAYS = {"pfc": "with PFC", "none": "without PFC"}


def run(program: str, experiment: str, way: str) -> str:
    done = subprocess.run([program, experiment, way], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"pictures: '{program} {experiment} {way}' failed: {done.stderr.strip()}")
    return done.stdout


def dropped(table: str) -> int:
    return int(table.split("# dropped ")[1].split()[0])


def script(experiment: str, tables: dict[str, str], out: pathlib.Path) -> str:
    picture = PICTURES[experiment]
    lines = [
        "set terminal svg size 900,560 font 'sans-serif,13' background '#ffffff'",
        f"set output '{out}'",
        f"set multiplot layout 2,1 title \"{picture['title']}\" font ',14'",
        "set border 3; set tics nomirror out; set grid ytics lc rgb '#dddddd'",
        "set xrange [0:10]; set yrange [0:11]; set ylabel 'Gb/s'; set key outside right top Left reverse width -2",
    ]
    for way, table in tables.items():
        lines.append(f"set title '{WAYS[way]}: {dropped(table):,} frames dropped' offset 0,-0.6")
        lines.append("set xlabel 'ms'" if way == "none" else "unset xlabel")
        lines += [f"$data_{way} << EOD", *[row for row in table.splitlines() if not row.startswith("#")], "EOD"]
        curves = [
            f"$data_{way} using 1:{i + 2} with lines lw 2 lc rgb '{COLOURS[i]}' title '{name}'"
            for i, name in enumerate(picture["flows"])
        ]
        for begin, end, name, rate in picture["fair"]:
            lines.append(f"set arrow 1 from {begin},{rate} to {end},{rate} nohead dt 3 lc rgb '#555555'")
            lines.append(f"set label 1 '{name}' at {end},{rate} right offset 0,0.6 tc rgb '#555555' font ',11'")
        lines.append("plot " + ", ".join(curves))
    lines.append("unset multiplot")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of roci-pfc-over-time")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/pictures"), help="output folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for experiment in PICTURES:
        tables = {way: run(options.program, experiment, way) for way in WAYS}
        out = options.out / f"pfc-{experiment}.svg"
        try:
            drawn = subprocess.run(["gnuplot"], input=script(experiment, tables, out), text=True, check=False)
        except FileNotFoundError:
            sys.exit("pictures: gnuplot is not installed; install the Debian package gnuplot-nox")
        if drawn.returncode != 0:
            sys.exit(f"pictures: gnuplot failed for {out}")
        print(f"{out}: " + ", ".join(f"{WAYS[way]} {dropped(table)} dropped" for way, table in tables.items()))


if __name__ == "__main__":
    main()
