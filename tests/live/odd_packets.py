#!/usr/bin/env python3
"""Sends hand-made packets to a Rocinante device and to the soft-RoCE of a Linux kernel, and compares the reactions.

    tests/live/odd_packets.py build/release/bin                   kernel 6.12, all packets
    tests/live/odd_packets.py build/release/bin --kernel 6.1 --only 'READ' -v
    tests/live/odd_packets.py build/release/bin --write           also writes the differences to docs/interop.md
    tests/live/odd_packets.py --check-page                        compares docs/interop.md with the table; needs neither root nor guest

odd_table.py lists the packets, the clauses of the specification and the expected differences. For each entry, odd-peer creates a queue
pair on either side. Compared are response packets, completions, asynchronous events, the state of the queue pair, and the memory. Exit
status 1 if a difference is not expected, or an expected difference did not occur. Requires root."""

import argparse
import collections
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import zlib

import guest
import odd_page
import odd_table
import odd_target
import session
from odd_assessments import HABITS, Crash
from raw_sender import ADDRESS, CNP, OPCODES, OPERATIONS, RawSender, frame

MTU = 1500
CONTROL_PORT = 7471
PROBE_QPN, QPN = 0x70, 0x77  # Queue pairs of the raw sender.
ANSWER_LIMIT = 10  # Seconds, for a probe and for a command.
STATUSES = ["success", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
            "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",
            "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR"]
EVENTS = ["CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR"]
STATES = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
OPERATION_NAMES = {0: "SEND", 1: "WRITE", 2: "READ", 3: "SWAP", 4: "ADD", 128: "RECV", 129: "RECV_RDMA_WITH_IMM"}
NAKS = {0: "sequence error", 1: "invalid request", 2: "remote access error", 3: "remote operational error", 4: "invalid RD request"}


class Stack:
    """One of the two devices: its odd-peer, and the queue pair that answers probes."""

    def __init__(self, sender, name, host, control):
        self.sender, self.name, self.host, self.address = sender, name, host, guest.address(host)
        self.mac = sender.resolve(self.address)
        deadline = time.monotonic() + ANSWER_LIMIT
        while True:
            try:
                self.control = socket.create_connection((control, CONTROL_PORT), 1)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{name}: no odd-peer at {control}: {error}") from error
                sender.pump(0.1)
        self.control.setblocking(False)
        self.control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.probe_psn = 1
        self.probe_qpn = self.command(f"probe peer={ADDRESS} peer_qpn={PROBE_QPN} rq_psn=1")["qpn"]
        # A Rocinante device drops packets with a certain reserved bit until its capability request to the peer has
        # timed out.
        self.probe(0.2, reserved7=0x7f)

    def lines(self, command):
        """Returns the lines of the answer to a command."""
        self.control.sendall(command.encode() + b"\n")
        lines, deadline = [], time.monotonic() + ANSWER_LIMIT
        while not lines or not lines[-1].startswith(("ok", "error")):
            if b"\n" in self.rest:
                line, _, self.rest = self.rest.partition(b"\n")
                lines.append(line.decode())
                continue
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: odd-peer does not answer '{command}'")
            self.sender.pump(0.5, also=self.control)
            try:
                received = self.control.recv(65536)
            except BlockingIOError:
                continue
            if not received:
                raise RuntimeError(f"{self.name}: odd-peer has exited at '{command}'")
            self.rest += received
        return lines

    def command(self, command):
        """Returns the values of the last line of the answer."""
        last = self.lines(command)[-1]
        if last.startswith("error"):
            raise RuntimeError(f"{self.name}: {command}: {last}")
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", last)}

    def probe(self, patience=ANSWER_LIMIT / 3, **fields):
        """Sends an empty WRITE to the probe queue pair, and waits for its acknowledgment."""
        psn = self.probe_psn
        self.probe_psn += 1

        def answered():
            return any(packet.source == self.address and packet.qpn == PROBE_QPN and packet.psn == psn & 0xffffff
                       for packet in self.sender.received)

        data = frame(self.mac, self.address, OPCODES["WRITE_ONLY"], self.probe_qpn, psn, headers=bytes(16), ack=True, **fields)
        deadline = time.monotonic() + ANSWER_LIMIT
        while time.monotonic() < deadline:
            self.sender.send(data)
            self.sender.pump(patience, answered)
            if answered():
                return
        raise RuntimeError(f"{self.name}: no acknowledgement of the probe")

    def settle(self, silence):
        """Waits until the stack has processed all frames; returns the packets for the queue pair under test."""
        self.probe()
        count = -1
        while count != len(self.sender.received):
            count = len(self.sender.received)
            self.sender.pump(silence)
        self.probe()
        # Queue pair 1 may receive management datagrams of the device at any time.
        packets = [packet for packet in self.sender.received if packet.qpn not in (1, PROBE_QPN)]
        self.sender.received.clear()
        return packets


def relative(psn, base):
    distance = (psn - base) & 0xffffff
    return f"{distance - (1 << 24) if distance >= 1 << 23 else distance:+d}"


def describe(packet, target):
    """Returns a received packet as text, without values that differ between runs."""
    name = OPERATIONS[packet.opcode & 0x1f] if packet.opcode & 0x1f < len(OPERATIONS) else f"{packet.opcode:#04x}"
    if packet.opcode == CNP:
        return "CNP" if packet.reserved8 == 0x40 and packet.qpn == QPN else "CNP without BECN"
    name = {0: "", 1: "UC ", 3: "UD "}.get(packet.opcode >> 5, f"{packet.opcode:#04x} ") + name
    rest, words = packet.rest, []
    is_answer = 0x0d <= packet.opcode <= 0x12
    psn = f"PSN {relative(packet.psn, target.rq_psn if is_answer and not target.requests else target.sq_psn)}"
    if packet.opcode in (0x0d, 0x0f, 0x10, 0x11, 0x12):
        syndrome, msn = rest[0], int.from_bytes(rest[1:4], "big")
        rest = rest[4:]
        value = syndrome & 31
        kind = {0: "" if value == 31 else f"credits {value}", 1: f"RNR NAK timer {value}", 3: f"NAK {NAKS.get(value, value)}"}
        text = kind.get(syndrome >> 5, f"syndrome {syndrome:#04x}")
        if packet.opcode == 0x11 and text:
            name, text = text, ""
        words += [text] if text else []
        words.append(f"MSN {msn}")
    elif packet.opcode in (0x06, 0x0a, 0x0b, 0x0c):
        _, _, length = struct.unpack(">QII", rest[:16])
        offset = struct.unpack(">Q", rest[:8])[0] - odd_target.REMOTE
        words.append(f"offset {offset} length {length}")
        rest = rest[16:]
    elif packet.opcode in (0x13, 0x14):
        rest = rest[28:]
    if packet.opcode == 0x12:
        words.append(f"value {rest.hex()}")
    elif rest:
        data = rest[:len(rest) - packet.pad]
        words.append(f"{len(data)} bytes" + ("" if target.requests else f" {zlib.crc32(data):08x}"))
        if any(rest[len(data):]):
            words.append("pad not zero")
    for field, usual in (("has_right_icrc", True), ("qpn", QPN), ("pkey", 0xffff), ("version", 0), ("migrated", 0), ("reserved7", 0),
                         ("source", target.address)):
        if getattr(packet, field) != usual:
            words.append(f"{field} {getattr(packet, field)}")
    if packet.reserved8:
        words.append("BECN" if packet.reserved8 == 0x40 else f"reserved8 {packet.reserved8:#x}")
    if is_answer and packet.ack:
        words.append("AckReq")
    return " ".join([name, psn, *words])


def describe_completion(line):
    side = line.split()[1]
    values = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
    status = STATUSES[values["status"]] if values["status"] < len(STATUSES) else str(values["status"])
    if status != "success":
        return f"{side} {status}"
    words = [side, OPERATION_NAMES.get(values["opcode"], str(values["opcode"]))]
    if "bytes" in values:
        words.append(f"{values['bytes']} bytes")
    words += [f"{key} {values[key]}" for key in ("immediate", "source", "grh") if key in values]
    return " ".join(words + (["invalidated"] if "invalidated" in values else []))


def outcome_of(stack, entry):
    """Sends the packets of an entry to a stack and returns its reaction: text by aspect."""
    setup = {"kind": "rc", "peer": ADDRESS, "peer_qpn": QPN, "rq_psn": odd_target.RQ_PSN, "sq_psn": odd_target.SQ_PSN, **entry.setup}
    made = stack.command("fresh " + " ".join(f"{key}={value}" for key, value in setup.items()))
    target = odd_target.Target(stack, made, setup, entry.is_requester)
    stack.sender.received.clear()
    outcome, sent, lines = {}, set(), []
    for number, step in enumerate(entry.steps(target), 1):
        for action in step if isinstance(step, tuple) else (step,):
            if isinstance(action, str):
                stack.command(action)
            elif isinstance(action, float):
                stack.sender.pump(action)
            else:
                stack.sender.send(action)
        answers = []
        for packet in stack.settle(0.04 if entry.is_requester else 0.002):
            text = describe(packet, target)
            if entry.is_requester:
                # A request counts once per step: a stack may retransmit it any number of times during a silence.
                text = f"again {text}" if text in sent else text
                sent.add(text)
                if text in answers:
                    continue
            answers.append(text)
        *new, last = stack.lines("report")
        outcome[f"packets after step {number}"] = ", ".join(answers)
        outcome[f"completions after step {number}"] = ", ".join(describe_completion(line) for line in new if line.startswith("completion"))
        lines += new
    outcome["solicited event"] = "yes" if "notified" in lines else ""
    outcome["events"] = ", ".join(sorted(EVENTS[int(line.split()[1])] for line in lines if line.startswith("event")))
    outcome["state"] = STATES[int(re.search(r"state=(\d+)", last)[1])]
    outcome["memory"] = ", ".join(line.removeprefix("changed ") for line in new if line.startswith("changed"))
    return outcome


def differences(linux, rocinante):
    return {aspect: (linux[aspect], rocinante[aspect]) for aspect in linux if linux[aspect] != rocinante[aspect]}


class DevicePeer:
    """odd-peer with the Rocinante device."""

    def __init__(self, options, program):
        self.log = open(pathlib.Path(options.folder) / "odd-peer.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([options.bin / "roci-run", "--config", options.config, program, "roci0", "1", "2", str(CONTROL_PORT)],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.seek(0)
        return self.log.read()


def start_in_guest(peer, program):
    encoded = subprocess.run(["base64", program], check=True, capture_output=True, text=True).stdout
    status, text = peer.run(f"base64 -d > /tmp/odd-peer <<'END'\n{encoded}END\nchmod 755 /tmp/odd-peer")
    if status != 0:
        raise RuntimeError(f"odd-peer cannot be copied to the guest: {text}")
    return peer.start(f"/tmp/odd-peer rxe0 1 2 {CONTROL_PORT}", 3600)


def run_all(options, peer):
    sender = RawSender(MTU)
    program = options.peer or options.bin / "odd-peer"
    device = DevicePeer(options, program)
    try:
        in_guest = start_in_guest(peer, program)
        linux = Stack(sender, "Linux", guest.GUEST, guest.address(guest.GUEST))
        rocinante = Stack(sender, "Rocinante", guest.DEVICE, "127.0.0.1")
        return compare_all(options, peer, linux, rocinante)
    except RuntimeError as error:
        print(error)
        print(device.close()[-3000:], in_guest.text[-1000:], peer.log()[-3000:], sep="\n")
        return 1
    finally:
        device.close()


def compare(options, linux, rocinante, entry):
    """Returns the outcomes of both stacks, the differing aspects, the matching habits, and whether all runs agree."""
    try:
        outcomes = [(outcome_of(linux, entry), outcome_of(rocinante, entry)) for _ in range(options.repeat)]
    except RuntimeError as error:
        raise RuntimeError(f"{entry.name}: {error}") from error
    found = differences(*outcomes[0])
    habits = [habit for habit in HABITS if habit.explains(found, *outcomes[0])]
    is_steady = all(outcome == outcomes[0] for outcome in outcomes)
    return outcomes[0], found, habits, is_steady


def print_outcome(entry, outcomes, found, everything):
    print(f"\n{entry.name} [{entry.clause}]")
    for aspect, text in outcomes[0].items():
        if aspect in found:
            print(f"    {aspect}:\n        Linux:     {text or '-'}\n        Rocinante: {outcomes[1][aspect] or '-'}")
        elif everything or aspect.startswith("packets"):
            print(f"    {aspect}: {text or '-'}")


def compare_all(options, peer, linux, rocinante):
    begin, problems, results, used = time.monotonic(), [], [], collections.Counter()
    for entry in odd_table.entries():
        if options.only and not any(re.search(pattern, entry.name) for pattern in options.only):
            continue
        assessment = entry.assessment(options.kernel)
        if isinstance(assessment, Crash) and not options.crash:
            results.append(odd_page.Result(entry, {"guest": ("the kernel panics", "")}, assessment))
            continue
        for is_last in (False, True):
            outcomes, found, habits, is_steady = compare(options, linux, rocinante, entry)
            as_expected = bool(found) == (assessment is not None) and is_steady
            if as_expected or is_last:
                break
            # A stack retransmits requests after a silence, which a busy machine may cause.
            print(f"{entry.name}: not as expected; once more")
        used.update(habits)
        results.append(odd_page.Result(entry, found, assessment))
        if not is_steady:
            problems.append(f"{entry.name}: not the same in each run")
        if found and assessment is None:
            problems.append(f"{entry.name}: different, without an assessment")
        if assessment is not None and not found:
            problems.append(f"{entry.name}: assessed, but not different")
        if options.verbose or not as_expected:
            print_outcome(entry, outcomes, found, options.verbose)
    if not options.only:
        problems += [f"{habit.name}: no packet shows it" for habit in HABITS if habit not in used]
        problems += odd_page.update(options.kernel, results, used, options.write and not problems)
    print("".join(f"\nproblem: {problem}" for problem in problems))
    print(f"{peer.kernel()}: {odd_page.count_line(results)} ({time.monotonic() - begin:.0f} s)")
    return 1 if problems or not results else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if "--check-page" in sys.argv[1:]:
        problems = odd_page.check()
        print("\n".join(problems) or "docs/interop.md agrees with the table")
        return 1 if problems else 0
    session.add_arguments(parser)
    parser.add_argument("--check-page", action="store_true", help="only compare docs/interop.md with the table")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="only entries whose name matches one of the regular expressions")
    parser.add_argument("--write", action="store_true", help="write the differences to docs/interop.md")
    parser.add_argument("--repeat", type=int, default=1, help="number of runs per entry; all outcomes must be equal (1)")
    parser.add_argument("--peer", type=pathlib.Path, help="the program odd-peer (BIN/odd-peer)")
    parser.add_argument("--crash", action="store_true", help="also send packets that crash the kernel of the guest")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the outcome of all entries")
    options = parser.parse_args()
    if options.peer:
        options.peer = options.peer.resolve()
    with session.session(options, MTU) as (peer, _):
        return run_all(options, peer)


if __name__ == "__main__":
    sys.exit(main())
