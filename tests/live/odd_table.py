"""The table of hand-made packets: names, clauses of the IBTA specification, and frames."""

import struct

import guest
import raw_sender
from odd_assessments import ASSESSMENTS
from odd_target import QKEY, REMOTE, REMOTE_KEY, RQ_PSN, SQ_PSN, data_of
from raw_sender import OPCODES, UC, UD

MTU = 1024  # Path MTU.
REGION = 8192  # Size of the registered memory in bytes.
SEQUENCE, INVALID, ACCESS, OPERATIONAL, INVALID_RD = range(5)  # Codes of a NAK.


class Entry:
    """Packets for a new queue pair, and the clause that they test. A step is a frame, a command of odd-peer, a time in
    seconds, or a tuple of these. The packets that the stack sends are collected after each step."""

    def __init__(self, group, name, clause, steps, **setup):
        self.name, self.clause, self.steps, self.setup = f"{group}: {name}", clause, steps, setup
        self.is_requester = group == "RC requester"

    def assessment(self, kernel):
        found = [assessment for assessment in ASSESSMENTS.get(self.name, ()) if kernel in assessment.kernels]
        return found[0] if found else None


def post(operation, length=16, n=1, at=0):
    return f"post op={operation} length={length} n={n} at={at} raddr={REMOTE} rkey={REMOTE_KEY}"


RECEIVE = "receive n=1 length=1024"


def entries():
    return [*responder_opcodes(), *responder_psns(), *responder_keys(), *responder_lengths(), *responder_receives(), *headers(),
            *headers_of_ipv6(), *unreliable(), *datagrams(), *acknowledgements(), *responses()]


def group_of(group, **common):
    def make(name, clause, steps, **setup):
        return Entry(group, name, clause, steps, **{**common, **setup})

    return make


def responder_opcodes():
    rc = group_of("RC responder")
    return [
        rc("WRITE, correct", "9.7.4", lambda t: [t.write(0), t.good(1)]),
        rc("WRITE of three packets, correct", "9.7.4", lambda t: [
            t.write(0, MTU, "FIRST", announced=2100, ack=False), t.write(1, MTU, "MIDDLE", ack=False), t.write(2, 52, "LAST"), t.good(3)]),
        rc("SEND with immediate, correct", "9.7.4", lambda t: [RECEIVE, t.send(0, immediate=5), t.good(1)]),
        rc("SEND of two packets with immediate, correct", "9.7.4", lambda t: [
            "receive n=1 length=2000", t.send(0, MTU, "FIRST"), t.send(1, 10, "LAST", immediate=9), t.good(2)]),
        rc("READ of three packets, correct", "9.7.4", lambda t: [t.read(0, 2500), t.good(3)]),
        rc("ADD and SWAP, correct", "9.7.4", lambda t: [t.add(0), t.swap(1, value=3, compare=0x312a231c150e0701), t.good(2)]),
        rc("WRITE LAST without FIRST", "9.7.4.1.2", lambda t: [t.write(0, part="LAST"), t.good(0)]),
        rc("SEND MIDDLE without FIRST", "9.7.4.1.2", lambda t: [RECEIVE, t.send(0, MTU, "MIDDLE"), t.good(0)]),
        rc("WRITE FIRST within a WRITE", "9.7.4.1.2", lambda t: [
            t.write(0, MTU, "FIRST", announced=2048), t.write(1, MTU, "FIRST", announced=2048), t.good(1)]),
        rc("WRITE ONLY within a WRITE", "9.7.4.1.2", lambda t: [t.write(0, MTU, "FIRST", announced=2048), t.write(1), t.good(1)]),
        rc("SEND LAST within a WRITE", "9.7.4.1.2", lambda t: [
            RECEIVE, t.write(0, MTU, "FIRST", announced=2048), t.send(1, MTU, "LAST"), t.good(1)]),
        rc("WRITE LAST within a SEND", "9.7.4.1.2", lambda t: [
            "receive n=1 length=2048", t.send(0, MTU, "FIRST"), t.write(1, MTU, "LAST"), t.good(1)]),
        rc("READ within a WRITE", "9.7.4.1.2", lambda t: [t.write(0, MTU, "FIRST", announced=2048), t.read(1, 8), t.good(1)]),
        rc("ADD within a SEND", "9.7.4.1.2", lambda t: ["receive n=1 length=2048", t.send(0, MTU, "FIRST"), t.add(1), t.good(1)]),
        rc("ACK with nothing outstanding", "9.7.5.1.1", lambda t: [
            t.request("ACK", 0, struct.pack(">I", 0x1f000000), ack=False), t.good(0)]),
        rc("READ RESPONSE ONLY with nothing outstanding", "9.7.5.1.1", lambda t: [
            t.request("READ_RESPONSE_ONLY", 0, struct.pack(">I", 0x1f000001), 16, ack=False), t.good(0)]),
        rc("ATOMIC ACK with nothing outstanding", "9.7.5.1.1", lambda t: [
            t.request("ATOMIC_ACK", 0, struct.pack(">IQ", 0x1f000001, 5), ack=False), t.good(0)]),
        rc("reserved opcode 15", "9.6.1.1", lambda t: [t.raw(0x15, 0, payload=data_of(16), ack=True), t.good(0)]),
        rc("reserved opcode 18", "9.6.1.1", lambda t: [t.raw(0x18, 0, payload=data_of(16), ack=True), t.good(0)]),
        rc("opcode 1c (FLUSH) of no placement type", "A19.4.2", lambda t: [
            t.raw(0x1c, 0, headers=struct.pack(">I", 0) + t.reth(0, 16), ack=True), t.good(0)]),
        rc("opcode 1c (FLUSH), not permitted", "A19.4.2", lambda t: [
            t.raw(0x1c, 0, headers=struct.pack(">I", 1) + t.reth(0, 16), ack=True), t.good(0)]),
        rc("opcode 1d (ATOMIC WRITE)", "A19.4.1", lambda t: [t.raw(0x1d, 0, headers=t.reth(0, 8), payload=data_of(8), ack=True), t.good(0)]),
        rc("reserved opcode 1f", "9.6.1.1", lambda t: [t.raw(0x1f, 0, payload=data_of(16), ack=True), t.good(0)]),
        rc("opcode of UC", "9.6.1.1", lambda t: [t.raw(UC | 0x0a, 0, headers=t.reth(0, 16), payload=data_of(16), ack=True), t.good(0)]),
        rc("opcode of RD", "9.6.1.1", lambda t: [
            t.raw(0x44, 0, headers=struct.pack(">III", 0, QKEY, 0x77), payload=data_of(16), ack=True), t.good(0)]),
        rc("opcode of UD", "9.6.1.1", lambda t: [
            t.raw(UD | 4, 0, headers=struct.pack(">II", QKEY, 0x77), payload=data_of(16), ack=True), t.good(0)]),
        rc("opcode of XRC", "9.6.1.1", lambda t: [
            t.raw(0xaa, 0, headers=struct.pack(">I", 1) + t.reth(0, 16), payload=data_of(16), ack=True), t.good(0)]),
        rc("manufacturer opcode", "9.6.1.1", lambda t: [t.raw(0xc0, 0, payload=data_of(16), ack=True), t.good(0)]),
        rc("CNP", "A17.9.3", lambda t: [t.raw(0x81, 0, reserved8=0x40, payload=bytes(16)), t.good(0)]),
        rc("unknown queue pair", "9.6.1.1.1", lambda t: [t.write(0, qpn=t.qpn ^ 0x800000), t.good(0)]),
        rc("queue pair 0", "9.6.1.1.1", lambda t: [t.write(0, qpn=0), t.good(0)]),
        rc("queue pair ffffff", "9.6.1.1.1", lambda t: [t.write(0, qpn=0xffffff), t.good(0)]),
        rc("SEND to queue pair 1 with an RC opcode", "9.6.1.1.1", lambda t: [t.send(0, qpn=1), t.good(0)]),
        rc("WRITE in SQD", "10.3.1.5", lambda t: ["state to=sqd", t.write(0), t.good(1)]),
        rc("WRITE in RTR", "10.3.1.3", lambda t: [t.write(0), t.good(1)], to="rtr"),
        rc("WRITE in INIT", "10.3.1.2", lambda t: [t.write(0), t.good(0)], to="init"),
        rc("WRITE in RESET", "10.3.1.1", lambda t: ["state to=reset", t.write(0), t.good(0)]),
        rc("WRITE in the error state", "10.3.1.7", lambda t: ["state to=error", t.write(0), t.good(0)]),
        rc("SEND in the error state, with a receive request", "10.3.1.7", lambda t: [RECEIVE, "state to=error", t.send(0)]),
    ]


def responder_psns():
    rc = group_of("RC responder")
    half = 1 << 23
    return [
        rc("PSN ahead by 1, twice, then in order, then a second gap", "9.7.5.1.1", lambda t: [
            t.good(1), t.good(2), t.good(0), t.good(3), t.good(1)]),
        rc("PSN ahead by 1, without AckReq", "9.7.5.1.1", lambda t: [t.write(1, ack=False), t.good(0)]),
        rc("PSN ahead, READ", "9.7.5.1.1", lambda t: [t.read(2, 16), t.good(0)]),
        rc("PSN ahead, ADD", "9.7.5.1.1", lambda t: [t.add(2), t.good(0)]),
        rc("PSN ahead by 2^23 - 1", "9.7.4.1.1", lambda t: [t.good(0), t.write(half), t.good(1)]),
        rc("PSN behind by 2^23", "9.7.4.1.1", lambda t: [t.good(0), t.write(half + 1), t.good(1)]),
        rc("PSN ahead with an unknown key", "9.7.4.1.1", lambda t: [t.write(1, key=t.key ^ 0x10), t.good(0)]),
        rc("PSN ahead with an opcode out of sequence", "9.7.4.1.1", lambda t: [t.write(1, part="LAST"), t.good(0)]),
        rc("PSN wraps from ffffff to 0", "9.7.2", lambda t: [t.write(0), t.write(1), t.write(2), t.good(3)], rq_psn=0xfffffe),
        rc("READ whose responses wrap from ffffff to 0", "9.7.2", lambda t: [t.read(0, 2500), t.good(3)], rq_psn=0xffffff),
        rc("duplicate before anything was executed", "9.7.5.1.2", lambda t: [t.write(-1), t.good(0)]),
        rc("duplicate READ before anything was executed", "9.7.5.1.3", lambda t: [t.read(-1, 16), t.good(0)]),
        rc("duplicate WRITE, other data", "9.7.5.1.2", lambda t: [t.write(0), t.write(0, seed=9), t.good(1)]),
        rc("duplicate WRITE without AckReq", "9.7.5.1.2", lambda t: [t.write(0), t.write(0, ack=False), t.good(1)]),
        rc("duplicate WRITE, two packets old", "9.7.5.1.2", lambda t: [t.good(0), t.good(1), t.write(0, seed=9), t.good(2)]),
        rc("duplicate SEND", "9.7.5.1.2", lambda t: [
            "receive n=2 length=1024", t.send(0), t.send(0, seed=9), t.send(1, seed=3), t.good(2)]),
        rc("duplicate FIRST in the middle of a message", "9.7.5.1.2", lambda t: [
            t.write(0, MTU, "FIRST", announced=2048), t.write(0, MTU, "FIRST", announced=2048, seed=9), t.write(1, MTU, "LAST"), t.good(2)]),
        rc("duplicate WRITE with an unknown key", "9.7.5.1.2", lambda t: [t.write(0), t.write(0, key=t.key ^ 0x10), t.good(1)]),
        rc("duplicate WRITE with a wrong length", "9.7.5.1.2", lambda t: [t.write(0), t.write(0, announced=500), t.good(1)]),
        rc("duplicate LAST, opcode out of sequence", "9.7.5.1.2", lambda t: [t.write(0), t.write(0, part="LAST"), t.good(1)]),
        rc("duplicate ADD", "9.7.5.1.3", lambda t: [t.add(0), t.add(0), t.good(1)]),
        rc("duplicate ADD after a later WRITE", "9.7.5.1.3", lambda t: [t.add(0), t.good(1), t.add(0), t.good(2)]),
        rc("duplicate ADD with another operand", "9.7.5.1.3", lambda t: [t.add(0), t.add(0, value=7), t.good(1)]),
        rc("duplicate ADD with another address", "9.7.5.1.3", lambda t: [t.add(0), t.add(0, at=16), t.good(1)]),
        rc("duplicate ADD with an unknown key", "9.7.5.1.3", lambda t: [t.add(0), t.add(0, key=t.key ^ 0x10), t.good(1)]),
        rc("SWAP at the PSN of an ADD", "9.7.5.1.3", lambda t: [t.add(0), t.swap(0), t.good(1)]),
        rc("ADD at the PSN of a WRITE", "9.7.5.1.3", lambda t: [t.write(0), t.add(0), t.good(1)]),
        rc("READ at the PSN of an ADD", "9.7.5.1.3", lambda t: [t.add(0), t.read(0, 8), t.good(1)]),
        rc("READ at the PSN of a WRITE", "9.7.5.1.3", lambda t: [t.write(0), t.read(0, 8), t.good(1)]),
        rc("WRITE at the PSN of a READ", "9.7.5.1.2", lambda t: [t.read(0, 8), t.write(0), t.good(1)]),
        rc("duplicate ADD older than the resources (1)", "9.7.5.1.3", lambda t: [t.add(0), t.add(1, at=16), t.add(0), t.good(2)], reads=1),
        rc("duplicate READ, whole", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, 2500), t.good(3)]),
        rc("duplicate READ, from its second packet", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(1, 2500 - MTU, at=MTU), t.good(3)]),
        rc("duplicate READ, last packet alone", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(2, 452, at=2 * MTU), t.good(3)]),
        rc("duplicate READ, first packet alone", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, MTU), t.good(3)]),
        rc("duplicate READ, ends within a packet", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, 1000), t.good(3)]),
        rc("duplicate READ, address not advanced with the PSN", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(1, 1476), t.good(3)]),
        rc("duplicate READ, beyond the end of the first one", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(1, 2500, at=MTU), t.good(3)]),
        rc("duplicate READ, of another address", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, 2500, at=64), t.good(3)]),
        rc("duplicate READ with an unknown key", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, 2500, key=t.key ^ 0x10), t.good(3)]),
        rc("duplicate READ of 0 bytes in place of 2500", "9.7.5.1.3", lambda t: [t.read(0, 2500), t.read(0, 0), t.good(3)]),
        rc("duplicate READ after a WRITE to the same memory", "9.7.5.1.3", lambda t: [t.read(0, 16), t.write(1), t.read(0, 16), t.good(2)]),
        rc("duplicate READ older than the resources (1)", "9.7.5.1.3", lambda t: [t.read(0, 16), t.read(1, 16, at=64), t.read(0, 16), t.good(2)],
           reads=1),
    ]


def responder_keys():
    rc = group_of("RC responder")
    return [
        rc("WRITE with an unknown key", "9.7.4.1.5", lambda t: [t.write(0, key=t.key ^ 0x10), t.good(0)]),
        rc("WRITE with key 0", "9.7.4.1.5", lambda t: [t.write(0, key=0), t.good(0)]),
        rc("WRITE with the key of a region of another protection domain", "9.7.4.1.5", lambda t: [t.write(0, key=t.foreign), t.good(0)]),
        rc("WRITE with the key of a region that was deregistered", "9.7.4.1.5", lambda t: [t.write(0, key=t.gone), t.good(0)]),
        rc("READ with an unknown key", "9.7.4.1.5", lambda t: [t.read(0, 16, key=t.key ^ 0x10), t.good(0)]),
        rc("ADD with an unknown key", "9.7.4.1.5", lambda t: [t.add(0, key=t.key ^ 0x10), t.good(0)]),
        rc("WRITE, region without remote write", "9.7.4.1.5", lambda t: [t.write(0), t.good(0)], region="lr"),
        rc("READ, region without remote read", "9.7.4.1.5", lambda t: [t.read(0, 16), t.good(0)], region="lw"),
        rc("ADD, region without remote atomic", "9.7.4.1.5", lambda t: [t.add(0), t.good(0)], region="lwr"),
        rc("WRITE, queue pair without remote write", "9.7.4.1.3", lambda t: [t.write(0), t.good(0)], access="r"),
        rc("READ, queue pair without remote read", "9.7.4.1.3", lambda t: [t.read(0, 16), t.good(0)], access="w"),
        rc("ADD, queue pair without remote atomic", "9.7.4.1.3", lambda t: [t.add(0), t.good(0)], access="wr"),
        rc("READ, queue pair without resources for READs", "9.7.4.1.4", lambda t: [t.read(0, 16), t.good(0)], reads=0),
        rc("ADD, queue pair without resources for atomics", "9.7.4.1.4", lambda t: [t.add(0), t.good(0)], reads=0),
        rc("WRITE of 0 bytes, queue pair without remote write", "9.7.4.1.3", lambda t: [t.write(0, 0), t.good(0)], access="r"),
        rc("WRITE one byte before the region", "9.7.4.1.5", lambda t: [t.write(0, at=-1), t.good(0)]),
        rc("WRITE one byte beyond the region", "9.7.4.1.5", lambda t: [t.write(0, at=REGION - 15), t.good(0)]),
        rc("WRITE to the end of the region, correct", "9.7.4.1.5", lambda t: [t.write(0, at=REGION - 16), t.good(1)]),
        rc("READ one byte beyond the region", "9.7.4.1.5", lambda t: [t.read(0, 16, at=REGION - 15), t.good(0)]),
        rc("WRITE over the end of the address space", "9.7.4.1.5", lambda t: [t.write(0, at=-t.va - 8), t.good(0)]),
        rc("READ over the end of the address space", "9.7.4.1.5", lambda t: [t.read(0, 16, at=-t.va - 8), t.good(0)]),
        rc("WRITE FIRST, end of the message outside the region", "9.7.4.1.5", lambda t: [
            t.write(0, MTU, "FIRST", at=REGION - 2 * MTU, announced=2 * MTU + 1), t.good(1)]),
        rc("ADD, misaligned", "9.4.5", lambda t: [t.add(0, at=4), t.good(0)]),
        rc("ADD beyond the region", "9.7.4.1.5", lambda t: [t.add(0, at=REGION), t.good(0)]),
        rc("ADD, misaligned and over the end of the region", "9.7.4.1.5", lambda t: [t.add(0, at=REGION - 4), t.good(0)]),
        rc("WRITE of 0 bytes with an unknown key", "9.7.4.1.5", lambda t: [t.write(0, 0, key=t.key ^ 0x10), t.good(1)]),
        rc("READ of 0 bytes with an unknown key", "9.7.4.1.5", lambda t: [t.read(0, 0, key=t.key ^ 0x10), t.good(1)]),
        rc("SEND with Invalidate of an unknown key", "9.4.1.1.3", lambda t: [RECEIVE, t.send(0, invalidate=t.key ^ 0x10), t.good(1)]),
        rc("SEND with Invalidate of a region", "9.4.1.1.3", lambda t: [RECEIVE, t.send(0, invalidate=t.key), t.good(1)]),
    ]


def responder_lengths():
    rc = group_of("RC responder")
    return [
        rc("WRITE ONLY, RETH longer than the payload", "9.7.4.1.6", lambda t: [t.write(0, 16, announced=20), t.good(0)]),
        rc("WRITE ONLY, RETH shorter than the payload", "9.7.4.1.6", lambda t: [t.write(0, 16, announced=12), t.good(0)]),
        rc("WRITE ONLY, RETH of 0 bytes with payload", "9.7.4.1.6", lambda t: [t.write(0, 16, announced=0), t.good(0)]),
        rc("WRITE LAST longer than announced", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=MTU + 8), t.write(1, 16, "LAST"), t.good(1)]),
        rc("WRITE LAST shorter than announced", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=MTU + 20), t.write(1, 16, "LAST"), t.good(1)]),
        rc("WRITE MIDDLE that ends the announced bytes", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=2 * MTU), t.write(1, MTU, "MIDDLE"), t.good(1)]),
        rc("WRITE MIDDLE beyond the announced bytes", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=MTU + 8), t.write(1, MTU, "MIDDLE"), t.good(1)]),
        rc("WRITE FIRST that announces a single packet", "9.7.4.1.6", lambda t: [t.write(0, MTU, "FIRST", announced=MTU), t.good(1)]),
        rc("WRITE FIRST of 2^31 + 1 bytes", "9.7.4.1.6", lambda t: [t.write(0, MTU, "FIRST", announced=(1 << 31) + 1), t.good(1)]),
        rc("READ of 2^31 + 1 bytes", "9.7.4.1.6", lambda t: [t.read(0, (1 << 31) + 1), t.good(1)]),
        rc("READ of 2^31 bytes, beyond the region", "9.7.4.1.5", lambda t: [t.read(0, 1 << 31), t.good(1)]),
        rc("WRITE ONLY of the path MTU, correct", "9.7.4.1.6", lambda t: [t.write(0, MTU), t.good(1)]),
        rc("WRITE ONLY longer than the path MTU", "9.7.4.1.6", lambda t: [t.write(0, MTU + 4), t.good(0)]),
        rc("SEND ONLY longer than the path MTU", "9.7.4.1.6", lambda t: ["receive n=1 length=2048", t.send(0, MTU + 4), t.good(0)]),
        rc("SEND ONLY longer than a path MTU of 256", "9.7.4.1.6", lambda t: ["receive n=1 length=2048", t.send(0, 260), t.good(0)], mtu=256),
        rc("WRITE FIRST shorter than the path MTU", "9.7.4.1.6", lambda t: [t.write(0, MTU - 4, "FIRST", announced=2000), t.good(1)]),
        rc("WRITE FIRST longer than the path MTU", "9.7.4.1.6", lambda t: [t.write(0, MTU + 4, "FIRST", announced=2000), t.good(1)]),
        rc("WRITE MIDDLE shorter than the path MTU", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=3000), t.write(1, MTU - 4, "MIDDLE"), t.good(1)]),
        rc("SEND FIRST without payload", "9.7.4.1.6", lambda t: ["receive n=1 length=2048", t.send(0, 0, "FIRST"), t.good(1)]),
        rc("WRITE LAST without payload", "9.7.4.1.6", lambda t: [
            t.write(0, MTU, "FIRST", announced=MTU), t.write(1, 0, "LAST"), t.good(1)]),
        rc("SEND LAST without payload", "9.7.4.1.6", lambda t: [
            "receive n=1 length=2048", t.send(0, MTU, "FIRST"), t.send(1, 0, "LAST"), t.good(2)]),
        rc("SEND LAST longer than the path MTU", "9.7.4.1.6", lambda t: [
            "receive n=1 length=4096", t.send(0, MTU, "FIRST"), t.send(1, MTU + 4, "LAST"), t.good(1)]),
        rc("SEND FIRST with a pad count", "9.7.4.1.6", lambda t: ["receive n=1 length=2048", t.send(0, MTU - 3, "FIRST"), t.good(1)]),
        rc("SEND of 0 bytes", "9.7.4.1.6", lambda t: [RECEIVE, t.send(0, 0), t.good(1)]),
        rc("WRITE of 13 bytes with pad, correct", "9.2.4", lambda t: [t.write(0, 13), t.good(1)]),
        rc("pad bytes that are not zero", "9.2.4", lambda t: [
            t.request("WRITE_ONLY", 0, t.reth(0, 13), payload=data_of(16), pad=3, pad_bytes=0), t.good(1)]),
        rc("pad count smaller than the payload requires", "9.2.4", lambda t: [t.write(0, 13, pad=1, pad_bytes=3), t.good(1)]),
        rc("pad count of 1 with an aligned payload, RETH as the payload", "9.2.4", lambda t: [t.write(0, 16, pad=1, pad_bytes=0), t.good(1)]),
        rc("packet that is no multiple of 4 bytes", "9.2.4", lambda t: [t.write(0, 13, pad=0), t.good(1)]),
        rc("pad count of 3 without payload", "9.2.4", lambda t: [t.write(0, 0, pad=3, pad_bytes=0), t.good(1)]),
        rc("READ with payload", "9.4.4", lambda t: [t.read(0, 16, length=16), t.good(1)]),
        rc("READ with a pad count", "9.4.4", lambda t: [t.read(0, 16, pad=3, pad_bytes=0), t.good(1)]),
        rc("ADD with payload", "9.4.5", lambda t: [t.add(0, length=16), t.good(1)]),
        rc("WRITE that ends within its RETH", "9.6.1.1", lambda t: [t.request("WRITE_ONLY", 0, t.reth(0, 16)[:8]), t.good(0)]),
        rc("READ without RETH", "9.6.1.1", lambda t: [t.request("READ_REQUEST", 0), t.good(0)]),
        rc("SEND that ends within its BTH", "9.6.1.1", lambda t: [RECEIVE, t.send(0, 0, truncate=4), t.good(0)]),
        rc("SEND with immediate, without ImmDt", "9.6.1.1", lambda t: [
            RECEIVE, t.request("SEND_ONLY_IMM", 0), t.good(0)]),
    ]


def responder_receives():
    rc = group_of("RC responder")
    return [
        rc("SEND without a receive request", "9.7.5.2.8", lambda t: [t.send(0), RECEIVE, t.send(0), t.good(1)]),
        rc("SEND without a receive request and without AckReq", "9.7.5.2.8", lambda t: [t.send(0, ack=False), RECEIVE, t.send(0)]),
        rc("SEND without a receive request, RNR timer 0", "9.7.5.2.8", lambda t: [t.send(0)], rnr_timer=0),
        rc("packets after an RNR NAK", "9.7.5.2.8", lambda t: [
            t.send(0, MTU, "FIRST"), t.send(1, 16, "LAST"), t.good(2), "receive n=1 length=2048", t.send(0, MTU, "FIRST"),
            t.send(1, 16, "LAST")]),
        rc("duplicate after an RNR NAK", "9.7.5.2.8", lambda t: [t.good(0), t.send(1), t.good(0), RECEIVE, t.send(1)]),
        rc("WRITE at the PSN of an RNR NAK", "9.7.5.2.8", lambda t: [t.send(0), t.good(0)]),
        rc("SEND longer than the receive buffer", "9.7.4.1.6", lambda t: ["receive n=2 length=8", t.send(0), t.good(1)]),
        rc("SEND whose second packet does not fit", "9.7.4.1.6", lambda t: [
            "receive n=1 length=1030", t.send(0, MTU, "FIRST"), t.send(1, 16, "LAST"), t.good(2)]),
        rc("WRITE with immediate without a receive request", "9.7.5.2.8", lambda t: [
            t.write(0, immediate=3), RECEIVE, t.write(0, immediate=3), t.good(1)]),
        rc("WRITE with immediate of 0 bytes", "9.7.4", lambda t: [RECEIVE, t.write(0, 0, immediate=3), t.good(1)]),
        rc("WRITE LAST with immediate without a receive request", "9.7.5.2.8", lambda t: [
            t.write(0, MTU, "FIRST", announced=MTU + 16), t.write(1, 16, "LAST", immediate=3), RECEIVE, t.write(1, 16, "LAST", immediate=3)]),
        rc("receive request of 0 bytes, SEND of 0 bytes", "9.7.4", lambda t: ["receive n=1 length=0", t.send(0, 0), t.good(1)]),
        rc("SEND with the solicited bit", "9.2.3", lambda t: [RECEIVE, t.send(0, solicited=True)]),
        rc("SEND without the solicited bit", "9.2.3", lambda t: [RECEIVE, t.send(0)]),
        rc("SEND with the solicited bit on FIRST alone", "9.2.3", lambda t: [
            "receive n=1 length=2048", t.send(0, MTU, "FIRST", solicited=True), t.send(1, 16, "LAST")]),
        rc("WRITE with the solicited bit", "9.2.3", lambda t: [RECEIVE, t.write(0, solicited=True), t.send(1)]),
        rc("WRITE with immediate and the solicited bit", "9.2.3", lambda t: [RECEIVE, t.write(0, immediate=3, solicited=True)]),
        rc("READ with the solicited bit", "9.2.3", lambda t: [t.read(0, 16, solicited=True), t.good(1)]),
        rc("READ without AckReq", "9.7.3.1", lambda t: [t.read(0, 16, ack=False), t.good(1)]),
        rc("ADD without AckReq", "9.7.3.1", lambda t: [t.add(0, ack=False), t.good(1)]),
        rc("refused request without AckReq", "9.7.5.2", lambda t: [t.write(0, key=t.key ^ 0x10, ack=False), t.good(0)]),
    ]


def headers():
    """Tests header fields of an otherwise correct WRITE. A second WRITE shows whether the first was executed."""
    rc = group_of("headers")

    def write(name, clause, **fields):
        return rc(name, clause, lambda t: [t.write(0, **fields), t.good(1)])

    return [
        write("wrong ICRC", "A17.3.3", icrc_error=1),
        write("TVer 1", "9.6.1.1.2", version=1),
        write("TVer 15", "9.6.1.1.2", version=15),
        write("P_Key 1234", "9.6.1.1.3", pkey=0x1234),
        write("P_Key 0", "9.6.1.1.3", pkey=0),
        write("P_Key 8000", "9.6.1.1.3", pkey=0x8000),
        write("P_Key 7fff, of a limited member", "9.6.1.1.3", pkey=0x7fff),
        write("MigReq", "9.2.3", migrated=True),
        write("FECN", "A17.9.3", reserved8=0x80),
        write("BECN", "A17.9.3", reserved8=0x40),
        write("reserved bits before the QPN", "9.2", reserved8=0x3f),
        write("reserved bits after AckReq", "9.2", reserved7=0x7f),
        write("another source address", "9.6.1.4", source=raw_sender.OTHER_ADDRESS),
        write("another source MAC", "A17.4", source_mac=raw_sender.OTHER_MAC),
        write("multicast source MAC", "IEEE 802.3 3.2.3", source_mac=bytes.fromhex("010000000009")),
        write("another destination address", "9.6.1.4", destination=raw_sender.OTHER_ADDRESS),
        write("broadcast address of IPv4", "9.6.1.4", destination="255.255.255.255"),
        write("another destination MAC", "IEEE 802.3 4.1.2", destination_mac=raw_sender.OTHER_MAC),
        write("broadcast destination MAC", "RFC 1122 3.3.6", destination_mac=bytes(6 * [0xff])),
        write("destination MAC of an IPv4 group", "RFC 1122 3.3.6", destination_mac=bytes.fromhex("01005e000001")),
        write("wrong IPv4 header checksum", "RFC 1122 3.2.1.2", ip_checksum_error=0x5555),
        write("IPv4 options", "A17.4.2", options=bytes.fromhex("01010101")),
        write("IP version 5", "RFC 1122 3.2.1.1", ip_version=5),
        write("IPv4 total length shorter than the packet", "RFC 768", ip_length_error=-4),
        write("IPv4 total length longer than the packet", "RFC 1122 3.2.1", ip_length_error=4),
        write("protocol TCP", "A17.4", protocol=6),
        write("EtherType of IPv6", "A17.4", ethernet_type=0x86dd),
        write("TTL 1", "A17.4.2", ttl=1),
        write("TTL 0", "RFC 1122 3.2.1.7", ttl=0),
        write("DF not set", "A17.4.2", fragment=0),
        write("reserved flag of IPv4", "RFC 791 3.1", fragment=0xc000),
        write("first fragment alone", "A17.4.2", fragment=0x2000),
        write("last fragment alone", "A17.4.2", fragment=0x0010),
        rc("two fragments", "A17.4.2", lambda t: [raw_sender.fragments(t.write(0), 24), t.good(1)]),
        write("DSCP 46", "A17.4.2", tos=0xb8),
        write("CE", "A17.9.1", tos=3),
        write("UDP length 4 too long", "RFC 768", udp_length_error=4),
        write("UDP length 4 too short", "RFC 768", udp_length_error=-4),
        write("UDP length 0", "RFC 768", udp_length_error=-(8 + 12 + 16 + 16 + 4)),
        write("right UDP checksum", "A17.4.5.1", udp_checksum="right"),
        write("wrong UDP checksum", "A17.4.5.1", udp_checksum="wrong"),
        write("UDP source port 1", "A17.4.5.1", source_port=1),
        write("UDP source port 0", "A17.4.5.1", source_port=0),
        write("another UDP destination port", "A17.4.5.1", destination_port=4790),
        write("padding after the packet", "A17.4", trailer=bytes(18)),
        write("VLAN 0 with priority 3", "IEEE 802.1Q 9.6", vlan=0x6000),
        write("VLAN 5", "IEEE 802.1Q 9.6", vlan=5),
    ]


def headers_of_ipv6():
    rc = group_of("IPv6 headers", peer=raw_sender.ADDRESS6)
    no_options = bytes.fromhex("1100010400000000")  # One extension header of 8 bytes before UDP.
    whole_fragment = bytes.fromhex("1100000000000001")

    def write(name, clause, **fields):
        return rc(name, clause, lambda t: [t.write(0, **fields), t.good(1)])

    return [
        write("correct", "A17.4.2"),
        write("wrong ICRC", "A17.3.3", icrc_error=1),
        write("hop limit 1", "A17.4.2", ttl=1),
        write("hop limit 0", "RFC 8200 3", ttl=0),
        write("traffic class b8", "A17.4.2", tos=0xb8),
        write("flow label fffff", "A17.4.2", flow_label=0xfffff),
        write("version 4", "RFC 8200 3", ip_version=4),
        write("EtherType of IPv4", "A17.4", ethernet_type=0x0800),
        write("protocol TCP", "A17.4", protocol=6),
        write("destination options before UDP", "RFC 8200 4.6", protocol=60, extensions=no_options),
        write("hop-by-hop options before UDP", "RFC 8200 4.3", protocol=0, extensions=no_options),
        write("fragment header of a whole packet", "RFC 8200 4.5", protocol=44, extensions=whole_fragment),
        write("payload length 4 too long", "RFC 8200 3", ip_length_error=4),
        write("payload length 4 too short", "RFC 8200 3", ip_length_error=-4),
        write("UDP length 4 too long", "RFC 768", udp_length_error=4),
        write("UDP length 4 too short", "RFC 768", udp_length_error=-4),
        write("right UDP checksum", "RFC 8200 8.1", udp_checksum="right"),
        write("wrong UDP checksum", "RFC 8200 8.1", udp_checksum="wrong"),
        write("another source address", "9.6.1.4", source=raw_sender.OTHER_ADDRESS6),
        write("unspecified source address", "RFC 4291 2.5.2", source="::"),
        write("multicast source address", "RFC 4291 2.7", source="ff02::1"),
        write("another destination address", "9.6.1.4", destination=raw_sender.OTHER_ADDRESS6),
        write("multicast destination address", "9.6.1.4", destination="ff02::1", destination_mac=bytes.fromhex("333300000001")),
        write("padding after the packet", "A17.4", trailer=bytes(18)),
        rc("IPv4 packet for a queue pair of IPv6", "9.6.1.4", lambda t: [t.write(0, destination=t.stack.address), t.good(1)]),
        rc("IPv6 packet for a queue pair of IPv4", "9.6.1.4", lambda t: [t.write(0, destination=guest.address(t.stack.host, 6)), t.good(1)],
           peer=raw_sender.ADDRESS),
        rc("READ, correct", "A17.4.2", lambda t: [t.read(0, 2500), t.good(3)]),
    ]


def unreliable():
    uc = group_of("UC responder", kind="uc", access="w")
    return [
        uc("WRITE and SEND, correct", "9.8.2.2", lambda t: [RECEIVE, t.write(0), t.send(1)]),
        uc("AckReq", "9.8.3", lambda t: [RECEIVE, t.write(0, ack=True), t.send(1, ack=True)]),
        uc("PSN jumps between messages", "9.8.2.2", lambda t: [RECEIVE, t.write(100), t.send(5000)]),
        uc("PSN repeated", "9.8.2.2", lambda t: ["receive n=2 length=1024", t.send(0), t.send(0, seed=9)]),
        uc("MIDDLE is lost", "9.8.2.2", lambda t: [
            t.write(0, MTU, "FIRST", announced=2 * MTU + 16), t.write(2, 16, "LAST"), t.write(3, at=4096)]),
        uc("SEND LAST is lost, then SEND ONLY", "9.8.2.2", lambda t: [
            "receive n=2 length=2048", t.send(0, MTU, "FIRST"), t.send(2, 16)]),
        uc("SEND FIRST within a SEND, PSN in order", "9.8.2.2", lambda t: [
            "receive n=2 length=2048", t.send(0, MTU, "FIRST"), t.send(1, MTU, "FIRST", seed=9), t.send(2, 16, "LAST")]),
        uc("SEND LAST without FIRST", "9.8.2.2", lambda t: [RECEIVE, t.send(0, part="LAST"), t.send(1, seed=9)]),
        uc("SEND LAST within a WRITE", "9.8.2.2", lambda t: [
            "receive n=1 length=2048", t.write(0, MTU, "FIRST", announced=2 * MTU), t.send(1, 16, "LAST"), t.send(2, seed=9)]),
        uc("unknown key", "9.8.2.2", lambda t: [RECEIVE, t.write(0, key=t.key ^ 0x10), t.write(1, at=4096), t.send(2)]),
        uc("WRITE beyond the region", "9.8.2.2", lambda t: [RECEIVE, t.write(0, at=REGION - 8), t.write(1, at=4096), t.send(2)]),
        uc("RETH longer than the payload", "9.8.2.2", lambda t: [RECEIVE, t.write(0, announced=20), t.write(1, at=4096), t.send(2)]),
        uc("WRITE, queue pair without remote write", "9.8.2.2", lambda t: [RECEIVE, t.write(0), t.send(1)], access="r"),
        uc("SEND without a receive request", "9.8.2.2", lambda t: [t.send(0), RECEIVE, t.send(1, seed=9)]),
        uc("SEND longer than the receive buffer", "9.9.3", lambda t: [
            "receive n=1 length=8", RECEIVE, t.send(0), t.send(1, 8, seed=9)]),
        uc("SEND ONLY longer than the path MTU", "9.8.2.2", lambda t: ["receive n=1 length=2048", t.send(0, MTU + 4), t.send(1, seed=9)]),
        uc("SEND FIRST shorter than the path MTU", "9.8.2.2", lambda t: [
            "receive n=1 length=2048", t.send(0, 512, "FIRST"), t.send(1, 16, "LAST"), t.send(2, seed=9)]),
        uc("opcode of a READ", "9.8.1", lambda t: [
            RECEIVE, t.raw(UC | 0x0c, 0, headers=t.reth(0, 16), ack=True), t.send(0)]),
        uc("opcode of RC", "9.6.1.1", lambda t: [RECEIVE, t.raw(OPCODES["SEND_ONLY"], 0, payload=data_of(16), ack=True), t.send(0, seed=9)]),
        uc("SEND with immediate and the solicited bit", "9.2.3", lambda t: [RECEIVE, t.send(0, immediate=4, solicited=True)]),
        uc("WRITE with immediate without a receive request", "9.8.2.2", lambda t: [
            t.write(0, immediate=4), RECEIVE, t.write(1, immediate=5, seed=9)]),
        uc("another source address", "9.6.1.4", lambda t: [RECEIVE, t.send(0, source=raw_sender.OTHER_ADDRESS), t.send(0, seed=9)]),
    ]


def datagrams():
    ud = group_of("UD receiver", kind="ud")
    return [
        ud("SEND with immediate, correct", "9.8.3", lambda t: [RECEIVE, t.datagram(immediate=4)]),
        ud("wrong Q_Key", "9.6.1.3", lambda t: [RECEIVE, t.datagram(qkey=QKEY + 1), t.datagram(seed=9)]),
        ud("Q_Key with the upper bit", "9.6.1.3", lambda t: [RECEIVE, t.datagram(qkey=QKEY | 1 << 31), t.datagram(seed=9)]),
        ud("no receive request", "9.8.3", lambda t: [t.datagram(), RECEIVE, t.datagram(seed=9)]),
        ud("receive buffer too small", "9.9.3", lambda t: ["receive n=1 length=48", RECEIVE, t.datagram(), t.datagram(8, seed=9)]),
        ud("receive buffer too small for the network header", "9.9.3", lambda t: [
            "receive n=1 length=32", RECEIVE, t.datagram(), t.datagram(0)]),
        ud("0 bytes", "9.8.3", lambda t: [RECEIVE, t.datagram(0)]),
        ud("13 bytes with pad", "9.2.4", lambda t: [RECEIVE, t.datagram(13)]),
        ud("13 bytes with pad count 0", "9.2.4", lambda t: [RECEIVE, t.datagram(13, pad=0), t.datagram(seed=9)]),
        ud("pad count 3 without payload", "9.2.4", lambda t: [RECEIVE, t.datagram(0, pad=3, pad_bytes=0), t.datagram(seed=9)]),
        ud("longer than the MTU of the port", "9.8.3", lambda t: ["receive n=1 length=2048", t.datagram(MTU + 4), t.datagram(seed=9)]),
        ud("AckReq", "9.8.3", lambda t: [RECEIVE, t.datagram(ack=True)]),
        ud("solicited bit", "9.2.3", lambda t: [RECEIVE, t.datagram(solicited=True)]),
        ud("source queue pair 0", "9.3.3", lambda t: [RECEIVE, t.datagram(source=0)]),
        ud("reserved bits before the source QPN", "9.3.3", lambda t: [RECEIVE, t.datagram(source=0xff000077)]),
        ud("another source address", "9.8.3", lambda t: [RECEIVE, t.datagram(source_mac=raw_sender.OTHER_MAC), t.datagram(seed=9)]),
        ud("P_Key 1234", "9.6.1.1.3", lambda t: [RECEIVE, t.datagram(pkey=0x1234), t.datagram(seed=9)]),
        ud("TVer 1", "9.6.1.1.2", lambda t: [RECEIVE, t.datagram(version=1), t.datagram(seed=9)]),
        ud("same PSN twice", "9.8.3", lambda t: ["receive n=2 length=1024", t.datagram(), t.datagram(seed=9)]),
        ud("opcode SEND FIRST", "9.6.1.1", lambda t: [RECEIVE, t.datagram(MTU, name="SEND_FIRST"), t.datagram(seed=9)]),
        ud("opcode WRITE ONLY", "9.6.1.1", lambda t: [RECEIVE, t.datagram(name="WRITE_ONLY"), t.datagram(seed=9)]),
        ud("opcode of RC", "9.6.1.1", lambda t: [
            RECEIVE, t.raw(OPCODES["SEND_ONLY"], 0, headers=struct.pack(">II", QKEY, 0x77), payload=data_of(16)), t.datagram(seed=9)]),
        ud("datagram that ends within its DETH", "9.6.1.1", lambda t: [RECEIVE, t.datagram(0, truncate=4), t.datagram(seed=9)]),
        ud("wrong ICRC", "A17.3.3", lambda t: [RECEIVE, t.datagram(icrc_error=1), t.datagram(seed=9)]),
    ]


WRITE, TWO, THREE = post("write"), post("write", n=2), post("write", length=3 * MTU)


def acknowledgements():
    rc = group_of("RC requester")
    return [
        rc("ACK, correct", "9.7.5", lambda t: [WRITE, t.ack(0)]),
        rc("no response, retry count 1, timeout of 134 ms", "9.7.6.1.3", lambda t: [(TWO, 1.5)], timeout=15, retry=1),
        rc("no response, retry count 0, timeout of 134 ms", "9.7.6.1.3", lambda t: [(WRITE, 1.0)], timeout=15, retry=0),
        rc("one ACK for two requests", "9.7.5.1.2", lambda t: [TWO, t.ack(1, msn=2)]),
        rc("ACK in the middle of a message", "9.7.5.1.2", lambda t: [THREE, t.ack(1, msn=0), t.ack(2)]),
        rc("ACK of a PSN that was never sent", "9.7.5.1.1", lambda t: [WRITE, t.ack(5), t.ack(0)]),
        rc("ACK of the next PSN to be sent", "9.7.5.1.1", lambda t: [WRITE, t.ack(1), t.ack(0)]),
        rc("ACK 2^22 ahead", "9.7.5.1.1", lambda t: [WRITE, t.ack(1 << 22), t.ack(0)]),
        rc("ACK of the PSN before the first request", "9.7.5.1.1", lambda t: [WRITE, t.ack(-1, msn=0), t.ack(0)]),
        rc("ACK with nothing posted", "9.7.5.1.1", lambda t: [t.ack(0), WRITE, t.ack(0)]),
        rc("duplicate ACK", "9.7.5.1.1", lambda t: [TWO, t.ack(0), t.ack(0), t.ack(1, msn=2)]),
        rc("NAK sequence error of the oldest", "9.7.5.1.1", lambda t: [TWO, t.nak(0, SEQUENCE), t.ack(1, msn=2)]),
        rc("NAK sequence error of the second request", "9.7.5.1.1", lambda t: [TWO, t.nak(1, SEQUENCE, msn=1), t.ack(1, msn=2)]),
        rc("NAK sequence error within a message", "9.7.5.1.1", lambda t: [THREE, t.nak(1, SEQUENCE), t.ack(2)]),
        rc("NAK sequence error twice", "9.7.5.1.1", lambda t: [TWO, t.nak(0, SEQUENCE), t.nak(0, SEQUENCE), t.ack(1, msn=2)]),
        rc("NAK sequence error of an old PSN", "9.7.5.1.1", lambda t: [TWO, t.nak(-1, SEQUENCE), t.ack(1, msn=2)]),
        rc("NAK sequence error of the next PSN to be sent", "9.7.5.1.1", lambda t: [WRITE, t.nak(1, SEQUENCE, msn=1), t.ack(0)]),
        rc("NAK sequence error of a PSN that was never sent", "9.7.5.1.1", lambda t: [WRITE, t.nak(5, SEQUENCE), t.ack(0)]),
        rc("NAK sequence error with nothing posted", "9.7.5.1.1", lambda t: [t.nak(0, SEQUENCE), WRITE, t.ack(0)]),
        rc("NAK sequence error, retry count 0", "9.7.6.1.2", lambda t: [WRITE, t.nak(0, SEQUENCE), t.ack(0)], retry=0),
        rc("NAK invalid request", "9.7.5.2", lambda t: [TWO, t.nak(0, INVALID)]),
        rc("NAK remote access error", "9.7.5.2", lambda t: [TWO, t.nak(0, ACCESS)]),
        rc("NAK remote operational error", "9.7.5.2", lambda t: [TWO, t.nak(0, OPERATIONAL)]),
        rc("NAK invalid RD request", "9.7.5.2", lambda t: [TWO, t.nak(0, INVALID_RD), t.ack(1, msn=2)]),
        rc("NAK of reserved code 5", "9.7.5.2", lambda t: [TWO, t.nak(0, 5), t.ack(1, msn=2)]),
        rc("NAK of reserved code 31", "9.7.5.2", lambda t: [TWO, t.nak(0, 31), t.ack(1, msn=2)]),
        rc("NAK remote access error of the second request", "9.7.5.2", lambda t: [TWO, t.nak(1, ACCESS, msn=1)]),
        rc("NAK remote access error within a message", "9.7.5.2", lambda t: [THREE, t.nak(1, ACCESS)]),
        rc("NAK remote access error of an old PSN", "9.7.5.1.1", lambda t: [WRITE, t.nak(-1, ACCESS), t.ack(0)]),
        rc("NAK remote access error of a PSN that was never sent", "9.7.5.1.1", lambda t: [WRITE, t.nak(5, ACCESS), t.ack(0)]),
        rc("NAK remote access error with nothing posted", "9.7.5.1.1", lambda t: [t.nak(0, ACCESS), WRITE, t.ack(0)]),
        rc("RNR NAK of the shortest time", "9.7.5.2.8", lambda t: [post("send"), t.rnr(0), t.ack(0)]),
        rc("RNR NAK of a WRITE", "9.7.5.2.8", lambda t: [WRITE, t.rnr(0), t.ack(0)]),
        rc("RNR NAK of 655 ms (timer 0)", "9.7.5.2.8", lambda t: [post("send"), t.rnr(0, 0), t.ack(0)]),
        rc("RNR NAK of the second request", "9.7.5.2.8", lambda t: [post("send", n=2), t.rnr(1, msn=1), t.ack(1, msn=2)]),
        rc("RNR NAK within a message", "9.7.5.2.8", lambda t: [post("send", length=3 * MTU), t.rnr(1), t.ack(2)]),
        rc("RNR NAK of an old PSN", "9.7.5.1.1", lambda t: [post("send"), t.rnr(-1), t.ack(0)]),
        rc("RNR NAK of a PSN that was never sent", "9.7.5.1.1", lambda t: [post("send"), t.rnr(5), t.ack(0)]),
        rc("RNR NAK, RNR retry count 0", "9.7.6.1.2", lambda t: [post("send", n=2), t.rnr(0)], rnr_retry=0),
        rc("RNR NAK twice, RNR retry count 1", "9.7.6.1.2", lambda t: [post("send"), t.rnr(0), t.rnr(0)], rnr_retry=1),
        rc("syndrome of the reserved kind (40)", "9.7.5.2", lambda t: [TWO, t.ack(0, 0x40), t.ack(1, msn=2)]),
        rc("syndrome with the reserved upper bit (9f)", "9.7.5.2", lambda t: [TWO, t.ack(0, 0x9f), t.ack(1, msn=2)]),
        rc("syndrome e1", "9.7.5.2", lambda t: [TWO, t.ack(0, 0xe1), t.ack(1, msn=2)]),
        rc("ACK with 0 credits", "9.7.7.2", lambda t: [WRITE, t.ack(0, 0x00), WRITE, t.ack(1, 0x00, msn=2)]),
        rc("ACK with credits", "9.7.7.2", lambda t: [WRITE, t.ack(0, 0x0a)]),
        rc("ACK with MSN 0", "9.7.7.1", lambda t: [WRITE, t.ack(0, msn=0)]),
        rc("ACK with MSN ffffff", "9.7.7.1", lambda t: [WRITE, t.ack(0, msn=0xffffff)]),
        rc("ACK with MSN of a request that was not sent", "9.7.7.1", lambda t: [TWO, t.ack(0, msn=9), t.ack(1, msn=2)]),
        rc("ACK with payload", "9.7.5", lambda t: [WRITE, t.ack(0, payload=data_of(16)), t.ack(0)]),
        rc("ACK with a pad count", "9.7.5", lambda t: [WRITE, t.ack(0, pad=3, pad_bytes=0), t.ack(0)]),
        rc("ACK without AETH", "9.6.1.1", lambda t: [WRITE, t.answer("ACK", 0), t.ack(0)]),
        rc("ACK with AckReq", "9.2", lambda t: [WRITE, t.ack(0, ack=True)]),
        rc("ACK with the solicited bit", "9.2.3", lambda t: [WRITE, t.ack(0, solicited=True)]),
        rc("ACK with BECN", "A17.9.3", lambda t: [WRITE, t.ack(0, reserved8=0x40)]),
        rc("ACK with P_Key 1234", "9.6.1.1.3", lambda t: [WRITE, t.ack(0, pkey=0x1234), t.ack(0)]),
        rc("ACK with TVer 1", "9.6.1.1.2", lambda t: [WRITE, t.ack(0, version=1), t.ack(0)]),
        rc("ACK with a wrong ICRC", "A17.3.3", lambda t: [WRITE, t.ack(0, icrc_error=1), t.ack(0)]),
        rc("ACK of another source address", "9.6.1.4", lambda t: [WRITE, t.ack(0, source=raw_sender.OTHER_ADDRESS), t.ack(0)]),
        rc("ACK with an opcode of UC", "9.6.1.1", lambda t: [
            WRITE, t.raw(UC | 0x11, SQ_PSN - RQ_PSN, headers=struct.pack(">I", 0x1f000001)), t.ack(0)]),
        rc("CNP", "A17.9.3", lambda t: [WRITE, t.raw(0x81, 0, reserved8=0x40, payload=bytes(16)), t.ack(0)]),
        rc("ACK in SQD", "10.3.1.5", lambda t: [WRITE, "state to=sqd", t.ack(0)]),
        rc("request posted in SQD", "10.3.1.5", lambda t: ["state to=sqd", WRITE, "state to=rts", t.ack(0)]),
        rc("ACK in the error state", "10.3.1.7", lambda t: [TWO, "state to=error", t.ack(1, msn=2)]),
        rc("ACK whose PSN wraps", "9.7.2", lambda t: [THREE, t.ack(2)], sq_psn=0xffffff),
    ]


def responses():
    rc = group_of("RC requester")
    read, three, add, swap = post("read"), post("read", length=2500), post("add"), post("swap")
    return [
        rc("READ of one packet, correct", "9.7.5", lambda t: [read, t.data("ONLY", 0, 16)]),
        rc("READ of three packets, correct", "9.7.5", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("MIDDLE", 1, MTU), t.data("LAST", 2, 452)]),
        rc("READ of 0 bytes, correct", "9.7.5", lambda t: [post("read", length=0), t.data("ONLY", 0, 0)]),
        rc("ADD and SWAP, correct", "9.7.5", lambda t: [add, t.result(0), swap, t.result(1, msn=2)]),
        rc("ACK at the PSN of a READ", "9.7.5.1.1", lambda t: [read, t.ack(0), t.data("ONLY", 0, 16)]),
        rc("ACK of a later WRITE in place of a READ's response", "9.7.6.1", lambda t: [read, WRITE, t.ack(1, msn=2), t.data("ONLY", 0, 16)]),
        rc("READ ONLY in place of FIRST", "9.7.5.1.1", lambda t: [three, t.data("ONLY", 0, MTU)]),
        rc("READ FIRST in place of ONLY", "9.7.5.1.1", lambda t: [read, t.data("FIRST", 0, MTU)]),
        rc("READ LAST in place of FIRST", "9.7.5.1.1", lambda t: [three, t.data("LAST", 0, MTU)]),
        rc("READ MIDDLE in place of FIRST", "9.7.5.1.1", lambda t: [
            three, t.data("MIDDLE", 0, MTU), t.data("MIDDLE", 1, MTU), t.data("LAST", 2, 452)]),
        rc("READ FIRST in place of MIDDLE", "9.7.5.1.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("FIRST", 1, MTU), t.data("LAST", 2, 452)]),
        rc("READ LAST in place of MIDDLE", "9.7.5.1.1", lambda t: [three, t.data("FIRST", 0, MTU), t.data("LAST", 1, 452)]),
        rc("READ MIDDLE in place of LAST", "9.7.5.1.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("MIDDLE", 1, MTU), t.data("MIDDLE", 2, MTU)]),
        rc("READ ONLY longer than requested", "9.7.5.1.1", lambda t: [read, t.data("ONLY", 0, 20)]),
        rc("READ ONLY shorter than requested", "9.7.5.1.1", lambda t: [read, t.data("ONLY", 0, 12)]),
        rc("READ ONLY without payload", "9.7.5.1.1", lambda t: [read, t.data("ONLY", 0, 0)]),
        rc("READ FIRST shorter than the path MTU", "9.7.5.1.1", lambda t: [three, t.data("FIRST", 0, 512)]),
        rc("READ LAST longer than requested", "9.7.5.1.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("MIDDLE", 1, MTU), t.data("LAST", 2, 456)]),
        rc("READ LAST shorter than requested", "9.7.5.1.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("MIDDLE", 1, MTU), t.data("LAST", 2, 448)]),
        rc("READ response with a wrong pad count", "9.2.4", lambda t: [read, t.data("ONLY", 0, 16, pad=1, pad_bytes=0)]),
        rc("READ response with the syndrome of a NAK", "9.7.5.2", lambda t: [read, t.data("ONLY", 0, 16, syndrome=0x62)]),
        rc("READ response with the syndrome of an RNR NAK", "9.7.5.2", lambda t: [read, t.data("ONLY", 0, 16, syndrome=0x21)]),
        rc("READ response twice", "9.7.5.1.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("FIRST", 0, MTU, seed=9), t.data("MIDDLE", 1, MTU), t.data("LAST", 2, 452)]),
        rc("READ response missing, LAST arrives", "9.7.6.1", lambda t: [
            three, t.data("FIRST", 0, MTU), t.data("LAST", 2, 452), t.data("FIRST", 1, MTU), t.data("LAST", 2, 452)]),
        rc("READ response missing, response of the next READ arrives", "9.7.6.1", lambda t: [
            read, post("read", at=64), t.data("ONLY", 1, 16, msn=2), t.data("ONLY", 0, 16), t.data("ONLY", 1, 16, msn=2)]),
        rc("READ response beyond the request", "9.7.5.1.1", lambda t: [read, t.data("ONLY", 1, 16), t.data("ONLY", 0, 16)]),
        rc("READ response with nothing posted", "9.7.5.1.1", lambda t: [t.data("ONLY", 0, 16), read, t.data("ONLY", 0, 16)]),
        rc("READ response to a WRITE", "9.7.5.1.1", lambda t: [WRITE, t.data("ONLY", 0, 16), t.ack(0)]),
        rc("READ response to an ADD", "9.7.5.1.1", lambda t: [add, t.data("ONLY", 0, 8)]),
        rc("ATOMIC ACK to a WRITE", "9.7.5.1.1", lambda t: [WRITE, t.result(0), t.ack(0)]),
        rc("ATOMIC ACK to a READ", "9.7.5.1.1", lambda t: [read, t.result(0)]),
        rc("ATOMIC ACK with nothing posted", "9.7.5.1.1", lambda t: [t.result(0), add, t.result(0)]),
        rc("ACK to an ADD", "9.7.5.1.1", lambda t: [add, t.ack(0), t.result(0)]),
        rc("ATOMIC ACK twice", "9.7.5.1.1", lambda t: [add, t.result(0), t.result(0, 5)]),
        rc("ATOMIC ACK with the syndrome of a NAK", "9.7.5.2", lambda t: [add, t.result(0, syndrome=0x62)]),
        rc("ATOMIC ACK with payload", "9.4.5", lambda t: [add, t.result(0, payload=data_of(8)), t.result(0)]),
        rc("ATOMIC ACK that ends within its result", "9.6.1.1", lambda t: [
            add, t.answer("ATOMIC_ACK", 0, struct.pack(">II", 0x1f000001, 5)), t.result(0)]),
        rc("NAK remote access error of a READ", "9.7.5.2", lambda t: [three, t.nak(0, ACCESS)]),
        rc("NAK remote access error within a READ", "9.7.5.2", lambda t: [three, t.data("FIRST", 0, MTU), t.nak(1, ACCESS)]),
        rc("NAK remote access error of a WRITE after an open READ", "9.7.5.2", lambda t: [read, WRITE, t.nak(1, ACCESS, msn=1)]),
        rc("NAK sequence error within a READ", "9.7.5.1.1", lambda t: [three, t.nak(1, SEQUENCE), t.data("FIRST", 0, MTU)]),
        rc("NAK invalid request of an ADD", "9.7.5.2", lambda t: [add, t.nak(0, INVALID)]),
        rc("RNR NAK of a READ", "9.7.5.2.8", lambda t: [read, t.rnr(0), t.data("ONLY", 0, 16)]),
    ]
