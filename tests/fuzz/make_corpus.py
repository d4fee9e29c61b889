#!/usr/bin/env python3
"""Writes seeds for frame_fuzz: the smallest frame of each opcode in the captures, unchanged, with VLAN tags, and as IPv6.
With --switch, writes seeds for switch_headers_fuzz: one or two frames of each kind. With --cm, writes seeds for
cm_mad_fuzz: the CM messages of the captures.

Usage: make_corpus.py FOLDER CAPTURE…  (classic little-endian pcap files)
       make_corpus.py --switch FOLDER
       make_corpus.py --cm FOLDER CAPTURE…
"""
import os
import struct
import sys

ETHERNET, IPV4, BTH = 14, 20, 42
UD_SEND_ONLY, MAD, MAD_BYTES, CM_CLASS = 0x64, 62, 256, 7


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


MACS = "020000000002 020000000001"
TAGS = "88a87001 8100a005 22e9a878"
PDU = "0015 0200000000aa0305 0177 ff64 6000 020000000002 0008 0800450000300001"
ACK = "1140ffff0000001100123456 1f000005 6d4ab86b"
HOP = "12345678 0a0b0c0d 00000200 29c41bb8"
TLVS = "0104000003e8 0204fffffff6 0310123456780a0b0c0d0000020029c41bb8 04080000006400000003 7701ff"
AUTH = "050c0000002a0000000000000000"
SOURCE = "0000 8000 08"  # input of check_begin(): a compact hop, 8 hops
PUSH = "00 2328" + "00" * 30  # known domain, MTU 9000, and a report


def ipv4(udp, ports):
    """A frame with these UDP ports and payload, without a UDP checksum."""
    body = bytes.fromhex(udp)
    header = bytearray(struct.pack(">BBHHHBBH", 0x45, 2, 28 + len(body), 1, 0x4000, 64, 17, 0))
    header += bytes([10, 0, 0, 2, 10, 0, 0, 1])
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = struct.pack(">H", ~total & 0xFFFF)
    frame = bytes.fromhex(MACS + "0800") + header + struct.pack(">HHHH", *ports, 8 + len(body), 0) + body
    return frame


def ipv6_l3_cnm():
    """The example of l3_congestion_notification_test.cpp, with a valid checksum."""
    return bytes.fromhex(
        "020000000001 0200000000aa 8100c005 86dd 6c012345 0078 1140"
        "fd000000000000000000000000000002 fd000000000000000000000000000001 d000 1389 0078 6ee5 11c00600"
        "fd000000000000000000000000000001 fd000000000000000000000000000002 162e0015"
        + PDU + "0104000003e8 0204fffffff6 0310123456780a0b0c0d0000020029c41bb8 04080000006400000003"
    )


def write_switch_seeds(folder):
    flow = "11%s1100 0a000001 0a000002 c12312b7"
    seeds = {
        "pause": ("", bytes.fromhex("0180c2000001 02000000000b 8808 0001 1234") + bytes(42)),
        "pfc": ("", bytes.fromhex("0180c2000001 02000000000b 8808 0101 0028" + "ffff" * 8) + bytes(26)),
        "cn-tagged": ("", bytes.fromhex(MACS + TAGS + "0800 4500") + bytes(64)),
        "cnm": ("", bytes.fromhex(MACS + TAGS + "22e7" + PDU)),
        "cnm-pdu": ("", bytes.fromhex(PDU)),
        "l3-cnm": ("", ipv4(flow % "00" + PDU, (53248, 5001))),
        "l3-cnm-tlvs": ("", ipv4(flow % "40" + PDU + TLVS + AUTH, (53248, 5001))),
        "l3-cnm-v6": ("", ipv6_l3_cnm()),
        "roce": (SOURCE + PUSH * 2, ipv4(ACK, (49152, 4791))),
        "int": (SOURCE + PUSH, ipv4("140b12b7 2000040e 00000007 80008000" + HOP * 2 + ACK, (49152, 5000))),
        "int-all": ("ffff 8000 08" + PUSH, ipv4("140312b7 20000c01 f0000007 40000000" + ACK, (49152, 5000))),
    }
    os.makedirs(folder, exist_ok=True)
    for name, (choices, frame) in seeds.items():
        chosen = bytes.fromhex(choices) or b"\0"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes([len(chosen) - 1]) + chosen + frame)


def write_cm_seeds(folder, captures):
    os.makedirs(folder, exist_ok=True)
    for path in captures:
        capture = os.path.splitext(os.path.basename(path))[0]
        for number, frame in enumerate(frames(path), 1):
            mad = frame[MAD : MAD + MAD_BYTES]
            if frame[BTH] == UD_SEND_ONLY and len(mad) == MAD_BYTES and mad[1] == CM_CLASS:
                with open(os.path.join(folder, f"{capture}-{number}"), "wb") as file:
                    file.write(mad)


def main():
    if sys.argv[1:2] == ["--cm"] and len(sys.argv) > 3:
        return write_cm_seeds(sys.argv[2], sys.argv[3:])
    if len(sys.argv) == 3 and sys.argv[1] == "--switch":
        return write_switch_seeds(sys.argv[2])
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
