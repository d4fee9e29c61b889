#!/usr/bin/env python3
"""Forwards frames between two network interfaces, with faults in RoCEv2 packets. Runs in the namespace of the interfaces.

    relay.py veth1 wire0 loss=0.01,duplicate=0.005,reorder=0.01,corrupt=0.005,ce=0.1,seed=7
    relay.py veth1 wire0 drop=RC_ACK:2        the second ACK of each direction is lost

A probability holds for each packet of both directions. FAULT=OPCODE:N (drop, repeat, hold, damage) is for the N-th packet with this BTH
opcode, in each direction. Prints "relay: ready", and the number of faults of each kind when it ends by SIGTERM. Packets of queue pair 1
(MADs) and all frames that are not RoCEv2 have no faults but those chosen by OPCODE:N. until=N: only the first N packets of both directions
together have faults. The last acknowledgment of a connection may not be lost where the program that has sent it exits: its peer would
repeat the request without an answer, with any stack."""

import random
import select
import signal
import socket
import struct
import sys

SO_RCVBUFFORCE = 33  # Missing in the module socket of Python 3.11.
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_IGNORE_OUTGOING, PACKET_MR_PROMISC = 263, 1, 23, 1
ETH_P_ALL, ROCE_PORT = 3, 4791
PROBABILITIES = ("loss", "duplicate", "reorder", "corrupt", "ce")
CHOICES = {"drop": "loss", "repeat": "duplicate", "hold": "reorder", "damage": "corrupt"}
OPCODES = ("RC_SEND_FIRST", "RC_SEND_MIDDLE", "RC_SEND_LAST", "RC_SEND_LAST_IMM", "RC_SEND_ONLY", "RC_SEND_ONLY_IMM", "RC_WRITE_FIRST",
           "RC_WRITE_MIDDLE", "RC_WRITE_LAST", "RC_WRITE_LAST_IMM", "RC_WRITE_ONLY", "RC_WRITE_ONLY_IMM", "RC_READ_REQUEST",
           "RC_READ_RESPONSE_FIRST", "RC_READ_RESPONSE_MIDDLE", "RC_READ_RESPONSE_LAST", "RC_READ_RESPONSE_ONLY", "RC_ACK",
           "RC_ATOMIC_ACK", "RC_COMPARE_SWAP", "RC_FETCH_ADD")
UD_SEND_ONLY = 0x64


class BadFaults(Exception):
    """Text of faults that cannot be parsed."""


class Faults:
    def __init__(self, text):
        self.probability = dict.fromkeys(PROBABILITIES, 0.0)
        self.chosen = {}  # (opcode, number): fault
        self.count = dict.fromkeys(PROBABILITIES, 0)
        self.packets, self.until = 0, None
        seed = 1
        for item in filter(None, text.split(",")):
            key, _, value = item.partition("=")
            try:
                if key == "seed":
                    seed = int(value)
                elif key == "until":
                    self.until = int(value) if self.until is None else min(int(value), self.until)
                elif key in PROBABILITIES and 0 <= float(value) <= 1:
                    self.probability[key] = float(value)
                elif key in CHOICES:
                    name, _, number = value.partition(":")
                    opcode = UD_SEND_ONLY if name == "UD_SEND_ONLY" else OPCODES.index(name)
                    self.chosen[opcode, int(number or 1)] = CHOICES[key]
                else:
                    raise ValueError
            except ValueError:
                raise BadFaults(f"faults: {item!r}: allowed are {', '.join(PROBABILITIES)} (0 to 1), seed, until, and "
                                f"{', '.join(CHOICES)} with OPCODE:N") from None
        self.random = random.Random(seed)

    def of(self, opcode, number, is_mad):
        """Returns the fault of a packet, or None."""
        self.packets += 1
        if self.until is not None and self.packets > self.until:
            return None
        found = self.chosen.get((opcode, number))
        if found is None and not is_mad:
            found = next((kind for kind in PROBABILITIES if self.random.random() < self.probability[kind]), None)
        if found is not None:
            self.count[found] += 1
        return found


def bth_offset(frame):
    """Returns the offset of the BTH of an unfragmented RoCEv2 packet, or None."""
    at = 12
    while frame[at:at + 2] == b"\x81\x00":
        at += 4
    ip = at + 2
    if frame[at:ip] == b"\x08\x00" and len(frame) > ip + 40 and frame[ip + 9] == socket.IPPROTO_UDP:
        udp = ip + (frame[ip] & 15) * 4
    elif frame[at:ip] == b"\x86\xdd" and len(frame) > ip + 60 and frame[ip + 6] == socket.IPPROTO_UDP:
        udp = ip + 40
    else:
        return None
    return udp + 8 if frame[udp + 2:udp + 4] == ROCE_PORT.to_bytes(2, "big") else None


def with_congestion_experienced(frame):
    frame = bytearray(frame)
    ip = 14
    while frame[ip - 2:ip] == b"\x81\x00":
        ip += 4
    if frame[ip] >> 4 == 6:
        frame[ip + 1] |= 0x30
        return bytes(frame)
    frame[ip + 1] |= 3
    frame[ip + 10:ip + 12] = bytes(2)
    total = sum(struct.unpack_from(">10H", frame, ip))
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    struct.pack_into(">H", frame, ip + 10, ~total & 0xffff)
    return bytes(frame)


class Direction:
    def __init__(self, source, target, faults):
        self.source, self.target, self.faults = source, target, faults
        self.numbers = {}  # Number of packets of each opcode.
        self.held = None  # Frame that the next one overtakes.

    def forward(self, frame):
        frames = [frame]
        bth = bth_offset(frame)
        if bth is not None:
            opcode, qpn = frame[bth], int.from_bytes(frame[bth + 5:bth + 8], "big")
            number = self.numbers[opcode] = self.numbers.get(opcode, 0) + 1
            fault = self.faults.of(opcode, number, qpn == 1)
            if fault == "loss":
                return
            if fault == "reorder" and self.held is None:
                self.held = frame
                return
            if fault == "corrupt":
                frames = [frame[:bth + 12] + bytes([frame[bth + 12] ^ 1]) + frame[bth + 13:]]
            elif fault == "duplicate":
                frames = [frame, frame]
            elif fault == "ce":
                frames = [with_congestion_experienced(frame)]
        for one in frames:
            self.send(one)
        self.flush()

    def flush(self):
        if self.held is not None:
            self.send(self.held)
            self.held = None

    def send(self, frame):
        try:
            self.target.send(frame)
        except BlockingIOError:  # Dropped, as by a full queue.
            pass


def opened(interface):
    opened_socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened_socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    opened_socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    membership = struct.pack("iHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0, bytes(8))
    opened_socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
    opened_socket.bind((interface, 0))
    opened_socket.setblocking(False)
    return opened_socket


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        faults = Faults(sys.argv[3])
    except BadFaults as bad:
        sys.exit(f"relay: {bad}")
    one, other = opened(sys.argv[1]), opened(sys.argv[2])
    directions = {one: Direction(one, other, faults), other: Direction(other, one, faults)}
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print("relay: ready", flush=True)
    while not ended:
        readable, _, _ = select.select([one, other], [], [], 0.01)
        for direction in directions.values():
            if direction.source not in readable:
                direction.flush()
                continue
            for _ in range(64):
                try:
                    direction.forward(direction.source.recv(65536))
                except (BlockingIOError, InterruptedError):
                    break
    print("relay: " + ", ".join(f"{kind} {count}" for kind, count in faults.count.items()), flush=True)


if __name__ == "__main__":
    main()
