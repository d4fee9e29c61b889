"""Frames for a queue pair under test."""

import struct

import guest
import raw_sender
from raw_sender import OPCODES, RC, UC, UD

RQ_PSN, SQ_PSN = 1000, 2000  # First PSN that the stack expects, and first PSN that it sends.
REMOTE, REMOTE_KEY = 0x100000, 0x1234  # Remote address and key in requests of the stack.
QKEY = 0x11111111


def data_of(length, seed=0):
    """Returns a payload without any byte value that `fresh` of odd-peer writes."""
    return bytes(0x80 | (i * 3 + seed) & 0x7f for i in range(length))


class Target:
    """Creates frames for the queue pair under test of a stack. PSNs are relative to the first one."""

    def __init__(self, stack, made, setup, requests):
        self.stack, self.requests = stack, requests
        self.qpn, self.va, self.key = made["qpn"], made["va"], made["rkey"]
        self.foreign, self.gone, self.local_key = made["foreign"], made["gone"], made["receives_key"]
        self.rq_psn, self.sq_psn = int(setup["rq_psn"]), int(setup["sq_psn"])
        self.address = guest.address(stack.host, 6 if ":" in setup["peer"] else 4)
        self.transport = {"rc": RC, "uc": UC, "ud": UD}[setup["kind"]]

    def raw(self, opcode, psn, **fields):
        fields = {"qpn": self.qpn, "destination_mac": self.stack.mac, "destination": self.address, **fields}
        qpn = fields.pop("qpn")
        return raw_sender.frame(fields.pop("destination_mac"), fields.pop("destination"), opcode, qpn, self.rq_psn + psn, **fields)

    def request(self, name, psn, headers=b"", length=0, seed=0, **fields):
        fields = {"ack": self.transport == RC, "payload": data_of(length, seed), **fields}
        return self.raw(self.transport | OPCODES[name], psn, headers=headers, **fields)

    def send(self, psn, length=16, part="ONLY", immediate=None, invalidate=None, **fields):
        headers, suffix = b"", ""
        if immediate is not None:
            headers, suffix = struct.pack(">I", immediate), "_IMM"
        if invalidate is not None:
            headers, suffix = struct.pack(">I", invalidate), "_INV"
        return self.request(f"SEND_{part}{suffix}", psn, headers, length, **fields)

    def reth(self, at, length, key=None):
        return struct.pack(">QII", (self.va + at) % (1 << 64), self.key if key is None else key, length)

    def write(self, psn, length=16, part="ONLY", at=0, announced=None, key=None, immediate=None, **fields):
        headers = self.reth(at, length if announced is None else announced, key) if part in ("ONLY", "FIRST") else b""
        if immediate is not None:
            headers += struct.pack(">I", immediate)
        return self.request(f"WRITE_{part}{'' if immediate is None else '_IMM'}", psn, headers, length, **fields)

    def read(self, psn, size, at=0, key=None, **fields):
        return self.request("READ_REQUEST", psn, self.reth(at, size, key), **fields)

    def atomic(self, name, psn, at=0, key=None, value=1, compare=0, **fields):
        headers = struct.pack(">QIQQ", self.va + at, self.key if key is None else key, value, compare)
        return self.request(name, psn, headers, **fields)

    def add(self, psn, **fields):
        return self.atomic("ADD", psn, **fields)

    def swap(self, psn, **fields):
        return self.atomic("SWAP", psn, **fields)

    def good(self, psn):
        """A request that shows which PSN the responder expects."""
        return self.write(psn, 4, at=4096 + 4 * (psn & 0xff), seed=5)

    def datagram(self, length=16, qkey=QKEY, source=0x77, immediate=None, name="SEND_ONLY", **fields):
        headers = struct.pack(">II", qkey, source) + (b"" if immediate is None else struct.pack(">I", immediate))
        return self.request(name + ("" if immediate is None else "_IMM"), fields.pop("psn", 0), headers, length, **fields)

    # Answers to requests of the stack. PSNs are relative to its first one.

    def answer(self, name, psn, headers=b"", length=0, seed=0, **fields):
        fields = {"payload": data_of(length, seed), **fields}
        return self.raw(OPCODES[name], self.sq_psn - self.rq_psn + psn, headers=headers, **fields)

    def ack(self, psn, syndrome=0x1f, msn=1, **fields):
        return self.answer("ACK", psn, struct.pack(">I", syndrome << 24 | msn), **fields)

    def nak(self, psn, code, msn=0, **fields):
        return self.ack(psn, 0x60 | code, msn, **fields)

    def rnr(self, psn, timer=1, msn=0, **fields):
        return self.ack(psn, 0x20 | timer, msn, **fields)

    def data(self, part, psn, length, syndrome=0x1f, msn=1, **fields):
        headers = b"" if part == "MIDDLE" else struct.pack(">I", syndrome << 24 | msn)
        return self.answer(f"READ_RESPONSE_{part}", psn, headers, length, **fields)

    def result(self, psn, value=0x8182838485868788, syndrome=0x1f, msn=1, **fields):
        return self.answer("ATOMIC_ACK", psn, struct.pack(">IQ", syndrome << 24 | msn, value), **fields)
