#!/usr/bin/env python3
"""CPU time per packet and stage: samples the two threads of a roci-perf run and adds up the samples by stage.

perf record samples by the CPU clock, which virtual machines also have. Each sample of the program is resolved to the
chain of inlined functions at its address; stage_table.py determines the stage. An output line has a thread, a stage,
and the nanoseconds of CPU time of that thread per packet that the requester sent.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import stage_table
from stage_table import REST, STAGES

PERIOD = 250_000  # nanoseconds of CPU time between two samples of a thread
ENOUGH = 400  # samples required per thread
MOST_REST = 0.15  # maximum fraction of a thread's time without a rule; a table with more is rejected
REQUESTER, RESPONDER = "requester", "responder"
TOTAL = "all"


class Unmeasured(Exception):
    """An error message."""


Sample = collections.namedtuple("Sample", "thread seconds address symbol binary")
Segment = collections.namedtuple("Segment", "start size offset")

SAMPLE = re.compile(r"^\s*(\d+)\s+(\d+\.\d+):\s+([0-9a-f]+)\s+(.*?)\s*\(([^()]*(?:\(deleted\))?)\)$")
MAPPING = re.compile(r"PERF_RECORD_MMAP2? (\d+)/\d+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]+|0)[ \]].* (\S+)$")
LOAD = re.compile(r"^\s*LOAD\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)", re.MULTILINE)


def read_script(text, program):
    """Parses the output of `perf script`. Returns the process, the segments of the program's code, and all samples."""
    process, segments, samples = None, [], []
    for line in text.splitlines():
        if "PERF_RECORD_" in line:
            found = MAPPING.search(line)
            if found and found.group(5) == program:
                process = int(found.group(1))
                segments.append(Segment(*(int(found.group(i), 16) for i in (2, 3, 4))))
        elif found := SAMPLE.match(line):
            thread, seconds, address, symbol, binary = found.groups()
            samples.append(Sample(int(thread), float(seconds), int(address, 16), symbol, binary))
    if process is None:
        raise Unmeasured(f"perf recorded no process of {program}")
    return process, segments, samples


def in_file(address, segments, loads):
    """Converts an address of the process into one of the program's file; None if it is outside of the program."""
    for segment in segments:
        if segment.start <= address < segment.start + segment.size:
            offset = address - segment.start + segment.offset
            for file_offset, virtual, size in loads:
                if file_offset <= offset < file_offset + size:
                    return offset - file_offset + virtual
    return None


def read_loads(text):
    """Returns file offset, address and size of a program's segments from the output of `readelf -lW`."""
    return [tuple(int(number, 16) for number in found) for found in LOAD.findall(text)]


def read_frames(text):
    """Returns the functions with their files for each address, innermost first, from the output of `addr2line -a -i
    -f`."""
    frames, current, function = {}, None, None
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current, function = frames.setdefault(int(line, 16), []), None
        elif current is None:
            raise Unmeasured("addr2line: the output does not start with an address")
        elif function is None:
            function = line
        else:
            current.append((function, re.sub(r":[0-9?]+(?: \(discriminator \d+\))?$", "", line)))
            function = None
    return frames


def stage_of(sample, program, places, frames):
    """Returns the stage of a sample. `places` maps addresses of the process to addresses of the file."""
    if sample.binary == program:
        return stage_table.of_frames(frames.get(places.get(sample.address), ()))
    return stage_table.of_library(sample.binary, sample.symbol)


def under_way(samples, process):
    """Returns the samples, as pairs with their stages, from the first packet to the last."""
    busy = [sample.seconds for sample, stage in samples
            if sample.thread == process and stage in (stage_table.REQUESTER, stage_table.HEADERS)]
    if not busy:
        raise Unmeasured("no sample of the program's first thread is in the requester")
    return [(sample, stage) for sample, stage in samples if busy[0] <= sample.seconds <= busy[-1]]


def add_up(samples, process, packets):
    """Returns {thread: {stage: ns per packet}} from samples as pairs with their stages. The requester is the
    program's first thread, the responder is the busiest other thread. The remaining threads are helpers, which
    sleep."""
    if packets <= 0:
        raise Unmeasured("roci-perf sent no packets")
    samples = under_way(sorted(samples), process)
    counts = collections.defaultdict(collections.Counter)
    for sample, stage in samples:
        counts[sample.thread][stage] += 1
    others = [thread for thread in counts if thread != process]
    if not others:
        raise Unmeasured("perf: samples of one thread only; samples of two threads are required")
    table = {}
    for name, thread in ((REQUESTER, process), (RESPONDER, max(others, key=lambda one: counts[one].total()))):
        total = counts[thread].total()
        if total < ENOUGH:
            raise Unmeasured(f"{total} samples of the {name}'s thread; at least {ENOUGH} are required, so run longer")
        if counts[thread][REST] > MOST_REST * total:
            raise Unmeasured(f"no stage is known for {counts[thread][REST] / total:.0%} of the {name}'s samples; the maximum is "
                             f"{MOST_REST:.0%}; add rules to bench/stage_table.py (--unknown lists the code without a rule)")
        table[name] = {stage: counts[thread][stage] * PERIOD / packets for stage in STAGES}
        table[name] = {TOTAL: total * PERIOD / packets, **table[name]}
    return table


def packets_sent(text):
    """Returns the number of the requester's packets from roci-perf's JSON."""
    try:
        return int(json.loads(text)["counters"]["tx_frames"])
    except (ValueError, KeyError, TypeError) as problem:
        raise Unmeasured("roci-perf: the JSON output has no counter tx_frames") from problem


def lines(table):
    for thread, stages in table.items():
        for stage, nanoseconds in stages.items():
            yield f"{thread:<10} {stage:<14} {nanoseconds:9.2f}"


def output_of(words, given=None):
    try:
        done = subprocess.run(words, input=given, capture_output=True, text=True, errors="replace", check=False)
    except OSError as problem:
        raise Unmeasured(f"'{words[0]}' cannot be started: {problem.strerror}") from problem
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()] or ["no output"]
        raise Unmeasured(f"'{' '.join(words[:2])}' ended with {done.returncode}: {said[-1].strip()}")
    return done.stdout


def profile(program, arguments):
    """Returns the samples with their stages, the process, the frames of each address, and the number of packets
    sent."""
    program = os.path.realpath(program)
    with tempfile.TemporaryDirectory(prefix="roci-stages-") as folder:
        data = str(pathlib.Path(folder) / "perf.data")
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-c", str(PERIOD), "-o", data, "--"]
        text = output_of([*record, program, *arguments])
        packets = packets_sent(text)
        script = output_of(["perf", "script", "-i", data, "--show-mmap-events", "-F", "tid,time,ip,sym,dso"])
    process, segments, samples = read_script(script, program)
    loads = read_loads(output_of(["readelf", "-lW", program]))
    places = {sample.address: in_file(sample.address, segments, loads) for sample in samples if sample.binary == program}
    asked = "".join(f"{place:#x}\n" for place in sorted({place for place in places.values() if place is not None}))
    frames = read_frames(output_of(["addr2line", "-a", "-i", "-f", "-C", "-e", program], asked))
    staged = [(sample, stage_of(sample, program, places, frames)) for sample in samples]
    return staged, process, {address: frames.get(place, ()) for address, place in places.items()}, packets


def unknown(staged, frames):
    """Returns the code without a rule, the most frequent first."""
    found = collections.Counter()
    for sample, stage in staged:
        if stage == REST:
            chain = " < ".join(f"{stage_table.within_the_tree(file)} {function}" for function, file in
                               frames.get(sample.address, ()))
            found[chain or f"{sample.binary} {sample.symbol}"] += 1
    return [f"{count:6} {what}" for what, count in found.most_common(40)]


def main(arguments):
    parser = argparse.ArgumentParser(prog="stages.py", allow_abbrev=False, description=__doc__,
                                     usage="stages.py --program ROCI_PERF [--unknown] ARGUMENT...",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="All other arguments are passed to roci-perf: a test, --loopback, --cores A,B, --json. "
                                            "Exit status: 0 on success, 1 if the run cannot be measured.")
    parser.add_argument("--program", required=True, help="path of roci-perf")
    parser.add_argument("--unknown", action="store_true", help="list the code without a stage instead of the table")
    options, rest = parser.parse_known_args(arguments)
    try:
        staged, process, frames, packets = profile(options.program, rest)
        if options.unknown:
            print("\n".join(unknown(under_way(staged, process), frames)))
        else:
            print("\n".join(lines(add_up(staged, process, packets))))
    except Unmeasured as problem:
        print(f"stages.py: cannot be measured: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
