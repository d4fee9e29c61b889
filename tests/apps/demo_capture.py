#!/usr/bin/env python3
"""Tests the captures of `./roci demo`, with a shorter capture of each kind of run. Verifies that tshark finds no malformed
packet and the same fields as `roci-pcap show --json`, that every ICRC is correct, and that the expected opcodes occur."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Test, size, and opcodes that the capture must contain.
RUNS = [
    ("write", "bw", 65536, {"RC_WRITE_FIRST", "RC_WRITE_MIDDLE", "RC_WRITE_LAST", "RC_ACK"}),
    ("read", "bw", 65536, {"RC_READ_REQUEST", "RC_READ_RESP_FIRST", "RC_READ_RESP_MIDDLE", "RC_READ_RESP_LAST"}),
    ("send", "bw", 65536, {"RC_SEND_FIRST", "RC_SEND_MIDDLE", "RC_SEND_LAST", "RC_ACK"}),
    ("write", "lat", 8, {"RC_WRITE_ONLY", "RC_ACK"}),
    ("read", "lat", 8, {"RC_READ_REQUEST", "RC_READ_RESP_ONLY"}),
    ("send", "lat", 8, {"RC_SEND_ONLY", "RC_ACK"}),
]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexited {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roci-perf", required=True)
    parser.add_argument("--roci-pcap", required=True)
    parser.add_argument("--compare-tshark", required=True)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        captures = []
        for test, kind, size, opcodes in RUNS:
            capture = pathlib.Path(folder) / f"{test}_{kind}.pcapng"
            captures.append(capture)
            run([arguments.roci_perf, test, kind, "--loopback", "--verify", "-s", str(size), "-n", "200",
                 "--capture", capture, "--capture-packets", "300"])
            packets = [json.loads(line) for line in run([arguments.roci_pcap, "show", "--json", capture]).splitlines()]
            seen = {packet["opcode"] for packet in packets if "opcode" in packet}
            if not opcodes <= seen:
                sys.exit(f"{capture.name} lacks {', '.join(sorted(opcodes - seen))}; it has {', '.join(sorted(seen))}")
        print(run([arguments.roci_pcap, "check", *captures]))
        print(run([sys.executable, arguments.compare_tshark, "--roci-pcap", arguments.roci_pcap, *captures]))


if __name__ == "__main__":
    main()
