"""Sends hand-made RoCEv2 frames from a packet socket, answers ARP, and parses the frames that come back. IPv4 only."""

import select
import socket
import struct
import time
import zlib

import guest

ADDRESS = f"{guest.PREFIX}.9"
OTHER_ADDRESS = f"{guest.PREFIX}.8"  # of no host
MAC = bytes.fromhex("020000000009")
OTHER_MAC = bytes.fromhex("020000000008")
INTERFACE, BRIDGE_INTERFACE = "raw0", "raw1"
ROCE = 4791
SOL_PACKET, IGNORE_OUTGOING, ADD_MEMBERSHIP, PROMISCUOUS = 263, 23, 1, 1

OPERATIONS = ["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE",
              "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST", "READ_RESPONSE_FIRST",
              "READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY", "ACK", "ATOMIC_ACK", "SWAP", "ADD", "RESYNC",
              "SEND_LAST_INV", "SEND_ONLY_INV"]
OPCODES = {name: value for value, name in enumerate(OPERATIONS)}
RC, UC, RD, UD, CNP = 0x00, 0x20, 0x40, 0x60, 0x81  # transport, in the upper three bits of an opcode; CNP is whole


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icrc(ip, udp, transport):
    """Over the headers with the fields masked that may change on the way (IBTA A17.3.3)."""
    masked_ip, masked = bytearray(ip), bytearray(transport)
    masked_ip[1] = masked_ip[8] = masked_ip[10] = masked_ip[11] = 0xff
    masked[4] = 0xff
    return struct.pack("<I", zlib.crc32(bytes(8 * [0xff]) + masked_ip + udp[:6] + b"\xff\xff" + masked))


def frame(destination_mac, destination, opcode, qpn, psn, *, headers=b"", payload=b"", ack=False, solicited=False, migrated=False,
          pad=None, pad_bytes=None, version=0, pkey=0xffff, reserved8=0, reserved7=0, ttl=64, tos=0, options=b"", fragment=0x4000,
          source=ADDRESS, source_mac=MAC, source_port=0xc123, destination_port=ROCE, vlan=None, trailer=b"", udp_checksum=0,
          ip_checksum_error=0, icrc_error=0, udp_length_error=0, ip_length_error=0, ip_version=4, truncate=0, protocol=17,
          ethernet_type=0x0800):
    """An Ethernet frame. A pad count of None is the right one; the fields `*_error` are XORed into or added to the right value."""
    if pad is None:
        pad = -len(payload) % 4
    padding = bytes(pad if pad_bytes is None else pad_bytes)
    transport = struct.pack(">BBHII", opcode, solicited << 7 | migrated << 6 | pad << 4 | version, pkey, reserved8 << 24 | qpn,
                            ack << 31 | reserved7 << 24 | psn & 0xffffff) + headers + payload + padding
    if truncate:
        transport = transport[:-truncate]
    length = len(transport) + 4
    header_words = 5 + len(options) // 4
    ip = struct.pack(">BBHHHBBH4s4s", ip_version << 4 | header_words, tos, 4 * header_words + 8 + length + ip_length_error, 1, fragment, ttl,
                     protocol, 0, socket.inet_aton(source), socket.inet_aton(destination)) + options
    udp = struct.pack(">HHHH", source_port, destination_port, 8 + length + udp_length_error, 0)
    tail = bytearray(icrc(ip, udp, transport))
    tail[0] ^= icrc_error
    ip = ip[:10] + struct.pack(">H", checksum(ip) ^ ip_checksum_error) + ip[12:]
    if udp_checksum:
        pseudo = ip[12:20] + struct.pack(">HH", 17, 8 + length)
        right = checksum(pseudo + udp + transport + tail) or 0xffff
        udp = udp[:6] + struct.pack(">H", right if udp_checksum == "right" else right ^ 0x5555)
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return destination_mac + source_mac + tag + struct.pack(">H", ethernet_type) + ip + udp + transport + tail + trailer


def fragments(whole, at):
    """Two IPv4 fragments of a frame, cut behind `at` bytes of the datagram."""
    ethernet, ip, data = whole[:14], whole[14:34], whole[34:]

    def part(field, piece):
        header = ip[:2] + struct.pack(">H", 20 + len(piece)) + ip[4:6] + struct.pack(">H", field) + ip[8:10] + b"\0\0" + ip[12:]
        return ethernet + header[:10] + struct.pack(">H", checksum(header)) + header[12:] + piece

    return part(0x2000, data[:at]), part(at // 8, data[at:])


class Packet:
    """A received RoCEv2 packet over IPv4."""

    def __init__(self, data):
        ip, udp = data[14:34], data[34:42]
        self.source = socket.inet_ntoa(ip[12:16])
        self.tos = ip[1]
        end = 34 + struct.unpack(">H", udp[4:6])[0]
        transport, tail = data[42:end - 4], data[end - 4:end]
        self.has_right_icrc = icrc(ip, udp, transport) == tail
        self.opcode, flags, self.pkey, qp, psn = struct.unpack(">BBHII", transport[:12])
        self.solicited, self.migrated, self.pad, self.version = flags >> 7, flags >> 6 & 1, flags >> 4 & 3, flags & 15
        self.qpn, self.reserved8 = qp & 0xffffff, qp >> 24
        self.psn, self.ack, self.reserved7 = psn & 0xffffff, psn >> 31, psn >> 24 & 0x7f
        self.rest = transport[12:]


class RawSender:
    """The end of a cable to the bridge, with an address of its own."""

    def __init__(self, mtu):
        guest.run("ip", "link", "add", INTERFACE, "mtu", mtu, "type", "veth", "peer", "name", BRIDGE_INTERFACE, "mtu", mtu)
        guest.run("ip", "link", "set", BRIDGE_INTERFACE, "master", guest.BRIDGE, "up")
        guest.run("ip", "link", "set", INTERFACE, "up")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
        index = socket.if_nametoindex(INTERFACE)
        self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("iHH8s", index, PROMISCUOUS, 0, b""))
        self.socket.bind((INTERFACE, 0))
        self.macs = {}  # by address
        self.received = []  # packets that nobody has taken

    def send(self, data):
        self.socket.send(data)

    def arp(self, operation, destination_mac, target_mac, target):
        self.send(destination_mac + MAC + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation) + MAC +
                  socket.inet_aton(ADDRESS) + target_mac + socket.inet_aton(target) + bytes(18))

    def resolve(self, address, limit=10):
        deadline = time.monotonic() + limit
        while address not in self.macs:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{address} does not answer ARP")
            self.arp(1, b"\xff" * 6, bytes(6), address)
            self.pump(0.3, lambda: address in self.macs)
        return self.macs[address]

    def pump(self, seconds, until=lambda: False, also=None):
        """Receives for that time, or until the condition holds, or until the socket `also` is readable."""
        deadline = time.monotonic() + seconds
        sockets = [self.socket] if also is None else [self.socket, also]
        while not until():
            left = deadline - time.monotonic()
            ready = select.select(sockets, [], [], max(left, 0))[0]
            if self.socket in ready:
                self.take(self.socket.recv(65536))
            elif also in ready or left <= 0:
                return

    def take(self, data):
        if data[12:14] == b"\x08\x06":
            operation, mac, address, target = data[20:22], data[22:28], data[28:32], data[38:42]
            if target == socket.inet_aton(ADDRESS):
                self.macs[socket.inet_ntoa(address)] = mac
                if operation == b"\0\1":
                    self.arp(2, mac, mac, socket.inet_ntoa(address))
        elif data[:6] == MAC and data[12:14] == b"\x08\x00" and data[23] == 17 and data[36:38] == struct.pack(">H", ROCE):
            self.received.append(Packet(data))
