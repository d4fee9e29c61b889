#!/usr/bin/env python3
"""Tests of the roci-pcap command. Usage: roci_pcap_test.py ROCI_PCAP CAPTURE_FOLDER [unittest options]"""
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = CAPTURES = ""
DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "wire-extensions.md")
COMPARE = os.path.join(os.path.dirname(__file__), "..", "tools", "compare_tshark.py")
ETHERNET, RAW_IP = 1, 101

# Offsets in an untagged IPv4 frame with a header of 20 bytes.
ETH_TYPE, IP, UDP, BTH = 12, 14, 34, 42
AETH = PAYLOAD = 54


def read_pcap(name):
    """Returns the frames of one of the captures, which are little-endian pcap files."""
    with open(os.path.join(CAPTURES, name), "rb") as file:
        data = file.read()
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    at, frames = 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def pcap_bytes(frames, link=ETHERNET, snap=65535):
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for i, frame in enumerate(frames):
        out += struct.pack("<IIII", 1000, i, len(frame[:snap]), len(frame)) + frame[:snap]
    return out


def pcapng_bytes(frames):
    """Returns a section header, one Ethernet interface, and one enhanced packet block per frame."""

    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", ETHERNET, 0, 0))
    for i, frame in enumerate(frames):
        out += block(6, struct.pack("<IIIII", 0, 0, i, len(frame), len(frame)) + frame)
    return out


def changed(frame, offset, value):
    return frame[:offset] + bytes([value]) + frame[offset + 1 :]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="roci-pcap-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def run_program(self, *arguments, program=None, data=None):
        done = subprocess.run([program or PROGRAM, *arguments], input=data, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def check(self, status, *arguments):
        code, out, err = self.run_program("check", *arguments)
        self.assertEqual(code, status, out + err)
        return out + err

    def show_json(self, path, *options):
        code, out, err = self.run_program("show", "--json", *options, path)
        self.assertEqual(code, 0, err)
        return [json.loads(line) for line in out.splitlines()]


class Check(Case):
    def test_accepts_captures_that_match_index_and_reports_declared_bad_icrc(self):
        files = sorted(os.path.join(CAPTURES, f) for f in os.listdir(CAPTURES) if f.endswith(".pcap"))
        self.assertEqual(len(files), 31)
        out = self.check(0, *files)
        line = next(line for line in out.splitlines() if "corrupt.pcap" in line)
        self.assertRegex(line, r"9 RoCEv2 .* 8 good +1 bad .* ok; bad ICRC declared in the index: packet 2$")
        self.assertIn("31 files, 1463 RoCEv2 packets: ICRC 1462 good, 1 bad", out)
        self.assertRegex(out, r"\nRC_WRITE_MIDDLE +408\n")

    def test_reports_undeclared_bad_icrc(self):
        shutil.copy(os.path.join(CAPTURES, "corrupt.pcap"), self.folder)
        out = self.check(1, self.path("corrupt.pcap"))
        self.assertRegex(out, r"packet 2: data.icrc: 0x[0-9a-f]{8} is stored, 0x[0-9a-f]{8} is computed")
        self.assertIn("data.icrc", self.check(1, "--no-index", os.path.join(CAPTURES, "corrupt.pcap")))
        self.check(0, "--index", os.path.join(CAPTURES, "INDEX.md"), self.path("corrupt.pcap"))

    def test_reports_packet_and_field_of_wrong_byte(self):
        frames = read_pcap("write.pcap")
        first, ack = frames[0], next(f for f in frames if f[BTH] == 0x11)
        self.assertEqual(first[BTH], 0x06)
        rows = [
            (first, PAYLOAD + 16, first[PAYLOAD + 16] ^ 1, "data.icrc"),
            (first, len(first) - 1, first[-1] ^ 0x80, "data.icrc"),
            (ack, AETH + 3, ack[AETH + 3] ^ 1, "data.icrc"),
            (first, IP + 5, first[IP + 5] ^ 1, "ip.checksum"),
            (first, IP + 8, 63, "ip.checksum"),
            (first, IP + 3, 0, "ip.total_length|ip.checksum"),
            (first, UDP + 5, first[UDP + 5] ^ 4, "udp.length"),
            (first, UDP + 7, 1, "udp.checksum"),
            (first, BTH, 0x1E, "bth.opcode: 0x1e is not a known opcode"),
            (first, BTH + 1, 0x03, "bth.version: 3"),
            (ack, BTH + 1, 0x10, "bth.pad_count: 1 exceeds the payload"),
            (first, BTH + 1, 0x10, "data.icrc"),  # The pad count is possible; the ICRC is wrong.
            (ack, BTH, 0x0C, "udp.length: too short for the headers of RC_READ_REQUEST"),
        ]
        for i, (frame, offset, value, field) in enumerate(rows):
            with self.subTest(field=field, offset=offset):
                self.assertNotEqual(frame[offset], value)
                wrong = frames[:i] + [changed(frame, offset, value)] + frames[i:]
                out = self.check(1, self.write("wrong.pcap", pcap_bytes(wrong)))
                self.assertRegex(out, rf"packet {i + 1}: ({field})")

    def test_detects_change_of_every_protected_byte(self):
        frame = next(f for f in read_pcap("write.pcap") if f[BTH] == 0x11)
        unprotected = set(range(0, ETH_TYPE)) | {BTH + 4}  # MAC addresses; FECN and BECN.
        no_longer_roce = {ETH_TYPE, ETH_TYPE + 1, IP, IP + 9, UDP + 2, UDP + 3}  # EtherType, IHL, protocol, UDP port.
        files = [self.write(f"{at:03}.pcap", pcap_bytes([changed(frame, at, frame[at] ^ 0x41)]))
                 for at in range(len(frame))]
        lines = self.check(1, *files).splitlines()
        for at, path in enumerate(files):
            line = next(line for line in lines if line.startswith(path))
            if at in no_longer_roce:
                self.assertRegex(line, r" 0 RoCEv2 .* 1 other |DIFFERENT", at)
            else:
                self.assertEqual("DIFFERENT" in line, at not in unprotected, line)

    def test_reports_counts_that_differ_from_index(self):
        shutil.copy(os.path.join(CAPTURES, "ud.pcap"), self.folder)
        row = "| ud.pcap | text | {} |\n"
        right = "3 RoCEv2, ICRC good 3, bad 0, other frames 0: UD_SEND_ONLY 2, UD_SEND_ONLY_IMM 1"
        self.write("INDEX.md", ("# heading\n\n| file | what | packets |\n|---|---|---|\n" + row.format(right)).encode())
        self.check(0, self.path("ud.pcap"))
        for wrong, told in [
            (right.replace("3 RoCEv2", "4 RoCEv2"), "RoCEv2 packets: 4 in the index, 3 in the capture"),
            (right.replace("bad 0", "bad 1"), "bad ICRCs: 1 in the index, 0 in the capture"),
            (right.replace("frames 0", "frames 2"), "other frames: 2 in the index, 0 in the capture"),
            (right.replace("ONLY 2", "ONLY 1"), "UD_SEND_ONLY: 1 in the index, 2 in the capture"),
            (right + ", RC_ACK 5", "RC_ACK: 5 in the index, 0 in the capture"),
        ]:
            self.write("INDEX.md", row.format(wrong).encode())
            self.assertIn(told, self.check(1, self.path("ud.pcap")))
        self.write("INDEX.md", row.format("3 RoCEv2, of which many").encode())
        self.assertRegex(self.check(2, self.path("ud.pcap")), r"INDEX.md: line 1: .* is invalid")
        self.write("INDEX.md", b"| other.pcap | text | 1 RoCEv2, ICRC good 1, bad 0, other frames 0: RC_ACK 1 |\n")
        self.check(0, self.path("ud.pcap"))

    def test_accepts_and_counts_packets_truncated_by_capture(self):
        path = self.write("cut.pcap", pcap_bytes(read_pcap("write.pcap"), snap=100))
        out = self.check(0, path)
        self.assertIn("30 truncated by the capture, not checked", out)
        self.assertRegex(out, r"40 RoCEv2  ICRC +10 good")  # The ACKs fit.
        for snap in range(1, 100, 7):
            self.check(0, self.write("cut.pcap", pcap_bytes(read_pcap("write.pcap")[:3], snap=snap)))

    def test_reports_frame_shorter_than_its_headers_specify(self):
        frames = read_pcap("write.pcap")
        path = self.write("short.pcap", pcap_bytes([frames[0], frames[1][:-1]]))
        self.assertRegex(self.check(1, path), r"packet 2: frame: its \d+ bytes are fewer than the headers specify")

    def test_accepts_pcapng_file(self):
        path = self.write("read.pcapng", pcapng_bytes(read_pcap("read.pcap")))
        self.assertRegex(self.check(0, path), r"40 RoCEv2  ICRC +40 good")

    def test_unreadable_file_returns_2_with_one_line(self):
        good = os.path.join(CAPTURES, "ud.pcap")
        with open(good, "rb") as file:
            data = file.read()
        rows = [
            (self.path("missing.pcap"), "No such file"),
            (self.write("text.pcap", b"this is not a capture, only text\n" * 5), "cannot be read as a pcap"),
            (self.write("empty.pcap", b""), "cannot be read as a pcap"),
            (self.write("raw.pcap", pcap_bytes([], link=RAW_IP)), "link type RAW; supported is Ethernet"),
            (self.write("broken.pcap", data[:-7]), "truncated after packet 2"),
            (self.folder, "cannot be read as a pcap"),
        ]
        for path, why in rows:
            for command in (["check"], ["show"], ["show", "--json"]):
                with self.subTest(path=path, command=command):
                    code, _, err = self.run_program(*command, path)
                    self.assertEqual(code, 2)
                    self.assertEqual(len(err.splitlines()), 1, err)
                    self.assertTrue(err.startswith(f"roci-pcap: {path}: "), err)
                    self.assertIn(why, err)
        out = self.check(2, self.path("missing.pcap"), good)  # The other file is still checked.
        self.assertRegex(out, r"ud.pcap +3 RoCEv2")

    def test_invalid_usage_returns_2_and_help_returns_0(self):
        for arguments in ([], ["check"], ["show"], ["chekc", "x"], ["check", "--frob", "x"],
                          ["show", "--payload", "x"], ["check", "--no-index", "--index", "a", "x"]):
            code, out, err = self.run_program(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertRegex(err, r"\Aroci-pcap: [^\n]+\n\Z")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"roci-pcap: standard output cannot be written", done.stderr)
        for arguments in (["--help"], ["check", "--help"], ["show", "--help"]):
            code, out, _ = self.run_program(*arguments)
            self.assertEqual(code, 0)
            self.assertIn("roci-pcap", out)


def other_frames():
    """Returns frames that are not RoCEv2, with their expected descriptions."""
    macs = bytes.fromhex("020000000002020000000001")
    v6 = bytes.fromhex("fd000000000000000000000000000001fd000000000000000000000000000002")

    def ipv4(protocol, body):
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0,
                           bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        total = sum(struct.unpack(">10H", head))
        total = (total & 0xFFFF) + (total >> 16)
        return macs + b"\x08\x00" + head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:] + body

    def ipv6(protocol, body):
        return macs + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(body), protocol, 64) + v6 + body

    arp = bytes.fromhex("0001080006040001") + macs[6:] + bytes([10, 0, 0, 1]) + bytes(6) + bytes([10, 0, 0, 2])
    return [
        (macs + b"\x08\x06" + arp, "ARP request: who has 10.0.0.2? tell 10.0.0.1"),
        (macs + b"\x08\x06" + arp[:7] + b"\x02" + arp[8:], "ARP reply: 10.0.0.1 is at 02:00:00:00:00:01"),
        (ipv4(1, b"\x08\x00" + bytes(6)), "ICMP echo request"),
        (ipv4(6, struct.pack(">HH", 1000, 22) + bytes(16)), "TCP 1000 to 22"),
        (ipv4(17, struct.pack(">HHHH", 68, 67, 8, 0)), "UDP 68 to 67"),
        (ipv6(58, b"\x87\x00" + bytes(22)), "ICMPv6 neighbor solicitation"),
        (macs + b"\x88\xcc" + b"\x02\x07", "EtherType 0x88cc"),
        (macs, "truncated"),
    ]


def extended_frames():
    """Returns the packets that docs/wire-extensions.md prints, each in a frame. The tests of their encoders check their
    contents."""
    with open(DOCUMENT) as file:
        blocks = re.findall(r"^```\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    texts = ["".join(part.split()) for block in blocks for part in block.split("\n\n")]
    everything = next(text for text in texts if text.startswith("101f"))
    packets = [text for text in texts if re.match("11|04|e[0-4]", text)]
    packets.append("1100ffff00000011401234561f000005" + everything)
    frames = []
    for packet in map(bytes.fromhex, packets):
        udp = struct.pack(">HHHH", 0xC000, 4791, 8 + len(packet) + 4, 0) + packet
        addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
        head = struct.pack(">BBHHHBBH", 0x45, 2, 20 + len(udp) + 4, 1, 0x4000, 64, 17, 0) + addresses
        total = sum(struct.unpack(">10H", head))
        total = (total & 0xFFFF) + (total >> 16)
        covered = bytearray(b"\xff" * 8 + head + udp)
        for at in (1, 8, 10, 11, 26, 27, 32):  # TOS, TTL, two checksums, FECN and BECN.
            covered[8 + at] = 0xFF
        icrc = struct.pack("<I", zlib.crc32(bytes(covered)))
        head = head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:]
        frames.append(bytes.fromhex("020000000002 020000000001 0800") + head + udp + icrc)
    return frames


class Show(Case):
    def test_prints_fields_of_private_opcodes_and_extension_blocks(self):
        path = self.write("extended.pcap", pcap_bytes(extended_frames()))
        _, out, _ = self.run_program("show", path)
        lines = out.splitlines()[1:]
        wanted = [
            r"RC_ACK .* ok +AETH ACK, msn 5  ce_echo packets 100 marked 3  lsn lsn 4294971392  ts_echo time 9999990000 "
            r"hold 3000 host_delay 1000$",
            r"RC_SEND_ONLY +0x000011 +9 +5 .* ok +source_qp qp 0x000118  ts time 10000000000$",
            r"CC_PROBE .* ok +probe id 0x0000002a flags 0x0003 sent 10000000000 lsn 4294971392$",
            r"CC_PROBE_RESP .* probe_times received 100 answered 200 raw 0102030405060708090a0b0c$",
            r"CC_RRACK .* ok +AETH ACK, msn 5  ce_echo packets 100 marked 3$",
            r"CC_INT_RESP .* switch 0x00002 port 7 time 2000000 tx_units 5000 rate 100000 Mb/s queue 1500 bytes "
            r"sampled_bth 0700ffff0000001100123456$",
            r"CC_RXW .* ok +rx_window bytes 65536 psn 1193046$",
            r"RC_ACK .* rate delta 1 rate -50 x 100 kb/s  int_echo hops 2 .* auth sequence 7 mac 0x0102030405060708$",
        ]
        self.assertEqual(len(lines), len(wanted))
        for line, regex in zip(lines, wanted):
            self.assertRegex(line, regex)
        last = self.show_json(path)[-1]
        self.assertEqual(last["int_echo_hop1"]["time"], 1999000)
        self.assertEqual(last["ccx"]["types"], "0x83ff")
        self.assertEqual(last["payload_length"], 0)
        self.assertRegex(self.check(0, path), r"8 RoCEv2 +ICRC +8 good +0 bad +0 other  ok")

    def test_prints_addresses_opcode_psn_headers_and_icrc_per_line(self):
        code, out, _ = self.run_program("show", os.path.join(CAPTURES, "corrupt.pcap"))
        self.assertEqual(code, 0)
        lines = out.splitlines()
        self.assertEqual(len(lines), 1 + 9)
        self.assertRegex(lines[1], r"^ +1 +0\.000000  10\.77\.0\.2 > 10\.77\.0\.1 +RC_WRITE_FIRST +0x000044 +1000 +1024 "
                                   r".* ok +RETH va 0x7fc1b5e7f000 rkey 0x00003797 length 4000$")
        self.assertRegex(lines[2], r"RC_WRITE_MIDDLE .* BAD$")
        self.assertRegex(lines[5], r"RC_ACK .* ok +AETH NAK: PSN sequence error, msn 0$")
        column = lines[0].index("opcode")
        for line in lines[1:]:
            self.assertTrue(line[column:].startswith("RC_"), line)

    def test_json_contains_header_fields_and_payload_on_request(self):
        path = os.path.join(CAPTURES, "atomic_cas.pcap")
        frame = read_pcap("atomic_cas.pcap")[0]
        packet = self.show_json(path)[0]
        self.assertEqual(packet["opcode"], "RC_CMP_SWAP")
        self.assertEqual(packet["bth"]["psn"], int.from_bytes(frame[BTH + 9 : BTH + 12], "big"))
        self.assertEqual(int(packet["atomic_eth"]["va"], 16), int.from_bytes(frame[PAYLOAD : PAYLOAD + 8], "big"))
        self.assertEqual(packet["icrc"]["stored"], "0x" + frame[-4:].hex())
        self.assertTrue(packet["icrc"]["good"])
        send = self.show_json(os.path.join(CAPTURES, "ud.pcap"), "--payload")[2]
        frame = read_pcap("ud.pcap")[2]
        self.assertEqual(send["payload"], frame[PAYLOAD + 8 : PAYLOAD + 17].hex())
        self.assertEqual(send["pad"], frame[PAYLOAD + 17 : PAYLOAD + 20].hex())

    def test_describes_and_counts_other_frames(self):
        rows = other_frames()
        path = self.write("other.pcap", pcap_bytes([frame for frame, _ in rows] + read_pcap("ud.pcap")))
        packets = self.show_json(path)
        for packet, (_, words) in zip(packets, rows):
            self.assertEqual(packet["description"], words)
        self.assertEqual([packet["kind"] for packet in packets[len(rows):]], ["RoCEv2"] * 3)
        self.assertRegex(self.check(0, path), rf"3 RoCEv2 .* {len(rows)} other  ok")
        _, out, _ = self.run_program("show", path)
        self.assertIn("ARP request: who has 10.0.0.2? tell 10.0.0.1", out)

    def test_prints_truncated_packet_without_icrc_result(self):
        path = self.write("cut.pcap", pcap_bytes(read_pcap("write.pcap"), snap=100))
        packet = self.show_json(path)[0]
        self.assertEqual(packet["reth"]["length"], 3000)
        self.assertNotIn("icrc", packet)
        self.assertNotIn("payload", self.show_json(path, "--payload")[0])
        _, out, _ = self.run_program("show", path)
        self.assertRegex(out.splitlines()[1], r"RC_WRITE_FIRST .* \? .*cut at 100 of \d+ bytes$")

    def test_prints_invalid_field_of_malformed_packet(self):
        frame = changed(read_pcap("write.pcap")[0], BTH, 0x1E)
        _, out, _ = self.run_program("show", self.write("odd.pcap", pcap_bytes([frame])))
        self.assertIn("RoCEv2, malformed: bth.opcode: 0x1e is not a known opcode", out)


class CompareTshark(Case):
    def test_reports_field_with_different_value(self):
        liar = self.write("liar", f"#!/bin/sh\n'{PROGRAM}' \"$@\" | sed 's/:101}}/:102}}/'\n".encode())
        os.chmod(liar, stat.S_IRWXU)
        code, out, err = self.run_program(COMPARE, "--roci-pcap", liar, os.path.join(CAPTURES, "ud.pcap"),
                                          program=sys.executable)
        self.assertEqual(code, 1, out + err)
        self.assertIn("packet 3: infiniband.bth.psn: tshark reads 101, roci-pcap 102", out)

    def test_reports_packet_that_only_tshark_parses(self):
        frame = changed(read_pcap("write.pcap")[0], BTH + 1, 0x01)  # tshark accepts this transport version.
        path = self.write("odd.pcap", pcap_bytes([frame]))
        code, out, err = self.run_program(COMPARE, "--roci-pcap", PROGRAM, path, program=sys.executable)
        self.assertEqual(code, 1, out + err)
        self.assertIn("packet 1: tshark reads a BTH, roci-pcap says RoCEv2, malformed: bth.version: 1", out)

    def test_missing_program_returns_2(self):
        code, _, err = self.run_program(COMPARE, "--roci-pcap", self.path("none"), "x.pcap", program=sys.executable)
        self.assertEqual(code, 2)
        self.assertRegex(err, r"^compare_tshark: .*none is not installed\n$")


if __name__ == "__main__":
    PROGRAM, CAPTURES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
