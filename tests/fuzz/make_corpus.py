#!/usr/bin/env python3
"""Writes seeds for frame_fuzz: of each opcode in the captures the smallest frame, as it is, with VLAN tags, and as IPv6.

Usage: make_corpus.py FOLDER CAPTURE…  (classic little-endian pcap files)
"""
import os
import struct
import sys

ETHERNET, IPV4, BTH = 14, 20, 42


def frames(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16 : at + 16 + length]
        at += 16 + length


def as_ipv6(frame):
    udp = frame[ETHERNET + IPV4 :]
    addresses = b"\xfd" + bytes(14) + b"\x01\xfd" + bytes(14) + b"\x02"
    return frame[:12] + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + addresses + udp


def main():
    folder, captures = sys.argv[1], sys.argv[2:]
    if not captures:
        sys.exit(__doc__)
    smallest = {}
    for path in captures:
        for frame in frames(path):
            if frame[BTH] not in smallest or len(frame) < len(smallest[frame[BTH]]):
                smallest[frame[BTH]] = frame
    os.makedirs(folder, exist_ok=True)
    for opcode, frame in smallest.items():
        variants = {
            "v4": frame,
            "v6": as_ipv6(frame),
            "vlan": frame[:12] + b"\x81\x00\x20\x05" + frame[12:],
            "qinq": frame[:12] + b"\x88\xa8\x00\x01\x81\x00\x20\x05" + frame[12:] + b"\0\0",
        }
        for name, seed in variants.items():
            with open(os.path.join(folder, f"{opcode:02x}-{name}"), "wb") as file:
                file.write(seed)


if __name__ == "__main__":
    main()
