#!/usr/bin/env python3
"""Compares what tshark and roci-pcap read in captures: every RoCEv2 packet, field by field.

Also asserts that tshark finds no malformed packet. Its heuristic for RPC over RDMA is off, because it takes small
SENDs for RPC messages. Exit status: 0 agreement, 1 a difference, 2 wrong usage or a program that failed.
"""
import argparse
import json
import subprocess
import sys

HEURISTIC = "rpcrdma_infiniband"
SHOWN = 20


def number(text):
    """Parses '17', '0x11', 'True', or '00:00:00:05'."""
    if text in ("True", "False"):
        return int(text == "True")
    if ":" in text:
        return int(text.replace(":", ""), 16)
    return int(text, 0)


def hex_bytes(text):
    return int(text.replace(":", ""), 16)


# tshark field, its parser, its paths in roci-pcap (the first that exists is used), and whether a packet of any opcode
# has it.
FIELDS = [
    ("infiniband.bth.opcode", number, ["bth.opcode"], True),
    ("infiniband.bth.se", number, ["bth.solicited"], True),
    ("infiniband.bth.m", number, ["bth.mig_req"], True),
    ("infiniband.bth.padcnt", number, ["bth.pad_count"], True),
    ("infiniband.bth.tver", number, ["bth.version"], True),
    ("infiniband.bth.p_key", number, ["bth.pkey"], True),
    ("infiniband.bth.destqp", number, ["bth.destination_qp"], True),
    ("infiniband.bth.a", number, ["bth.ack_request"], True),
    ("infiniband.bth.psn", number, ["bth.psn"], True),
    ("infiniband.deth.q_key", number, ["deth.qkey"], False),
    ("infiniband.deth.srcqp", number, ["deth.source_qp"], False),
    ("infiniband.reth.va", number, ["reth.va", "atomic_eth.va"], False),
    ("infiniband.reth.r_key", number, ["reth.rkey", "atomic_eth.rkey"], False),
    ("infiniband.reth.dmalen", number, ["reth.length"], False),
    ("infiniband.atomiceth.swapdt", number, ["atomic_eth.swap_or_add"], False),
    ("infiniband.atomiceth.cmpdt", number, ["atomic_eth.compare"], False),
    ("infiniband.aeth.syndrome", number, ["aeth.syndrome"], False),
    ("infiniband.aeth.msn", number, ["aeth.msn"], False),
    ("infiniband.atomicacketh.origremdt", number, ["atomic_ack.original"], False),
    ("infiniband.immdt", hex_bytes, ["imm.data"], False),
    ("infiniband.ieth", hex_bytes, ["ieth.rkey"], False),
    ("infiniband.invariant.crc", number, ["icrc.stored"], False),
]
CNP = 0x81  # tshark 4.0 decodes only its BTH.


def give_up(why):
    print(f"compare_tshark: {why}", file=sys.stderr)
    sys.exit(2)


def run(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
    except FileNotFoundError:
        give_up(f"{command[0]} is not installed")
    if done.returncode != 0:
        give_up(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().splitlines()


def read_tshark(program, path):
    """Returns {packet number: (is malformed, {field: text})} for packets with a BTH, and for malformed ones."""
    names = [field[0] for field in FIELDS]
    command = [program, "-n", "-r", path, "--disable-heuristic", HEURISTIC, "-T", "fields", "-E", "separator=/t",
               "-E", "occurrence=f", "-e", "frame.number", "-e", "_ws.malformed"]
    for name in names:
        command += ["-e", name]
    packets = {}
    for line in run(command):
        values = line.split("\t")
        values += [""] * (2 + len(names) - len(values))
        fields = {name: value for name, value in zip(names, values[2:]) if value != ""}
        if fields or values[1]:
            packets[int(values[0])] = (bool(values[1]), fields)
    return packets


def lookup(packet, paths):
    for path in paths:
        value = packet
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return int(value, 0) if isinstance(value, str) else int(value)
    return None


def compare(theirs, ours):
    """Returns the differences between the two decodings of a capture, and the number of compared fields."""
    differences, compared = [], 0
    numbers = {packet["number"] for packet in ours}
    for stray in sorted(set(theirs) - numbers):
        differences.append(f"packet {stray}: only tshark sees it")
    for packet in ours:
        n = packet["number"]
        malformed, fields = theirs.get(n, (False, {}))
        if malformed:
            differences.append(f"packet {n}: tshark calls it malformed")
        if packet["kind"] != "RoCEv2":
            if fields:
                differences.append(f"packet {n}: tshark reads a BTH, roci-pcap says {packet['description']}")
            continue
        for name, read, paths, always in FIELDS:
            mine = lookup(packet, paths)
            if int(packet["bth"]["opcode"], 0) == CNP and not always:
                continue
            other = read(fields[name]) if name in fields else None
            compared += mine is not None
            if mine != other:
                differences.append(f"packet {n}: {name}: tshark reads {other}, roci-pcap {mine}")
    return differences, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--roci-pcap", default="roci-pcap", help="the program to compare (default: from PATH)")
    parser.add_argument("--tshark", default="tshark", help="the program to compare with (default: from PATH)")
    options = parser.parse_args()
    failed = False
    for path in options.files:
        ours = [json.loads(line) for line in run([options.roci_pcap, "show", "--json", path])]
        differences, compared = compare(read_tshark(options.tshark, path), ours)
        roce = sum(packet["kind"] == "RoCEv2" for packet in ours)
        print(f"{path}: {len(ours)} frames, {roce} RoCEv2, {compared} fields, {len(differences)} differences")
        for text in differences[:SHOWN]:
            print(f"    {text}")
        if len(differences) > SHOWN:
            print(f"    and {len(differences) - SHOWN} more")
        failed = failed or bool(differences)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
