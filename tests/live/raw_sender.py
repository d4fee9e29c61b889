"""Sends hand-made RoCEv2 frames from a packet socket, answers ARP requests and neighbor solicitations, and parses
received frames."""

import select
import socket
import struct
import time
import zlib

import guest

ADDRESS = f"{guest.PREFIX}.9"
OTHER_ADDRESS = f"{guest.PREFIX}.8"  # No host has this address.
ADDRESS6, OTHER_ADDRESS6 = f"{guest.PREFIX6}:9", f"{guest.PREFIX6}:8"
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
# Transports: the upper three bits of an opcode. CNP is a complete opcode.
RC, UC, RD, UD, CNP = 0x00, 0x20, 0x40, 0x60, 0x81


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def icrc(ip, udp, transport):
    """Returns the ICRC: the headers with variant fields masked (IBTA A17.3.3), and the payload."""
    masked_ip, masked = bytearray(ip), bytearray(transport)
    if ip[0] >> 4 == 6:
        masked_ip[0] |= 0x0f
        masked_ip[1] = masked_ip[2] = masked_ip[3] = masked_ip[7] = 0xff
    else:
        masked_ip[1] = masked_ip[8] = masked_ip[10] = masked_ip[11] = 0xff
    masked[4] = 0xff
    return struct.pack("<I", zlib.crc32(bytes(8 * [0xff]) + masked_ip + udp[:6] + b"\xff\xff" + masked))


def transport_of(opcode, qpn, psn, *, headers=b"", payload=b"", ack=False, solicited=False, migrated=False, pad=None, pad_bytes=None,
                 version=0, pkey=0xffff, reserved8=0, reserved7=0, truncate=0):
    """Returns BTH, extended headers, payload and pad. A pad count of None gives the correct one."""
    if pad is None:
        pad = -len(payload) % 4
    padding = bytes(pad if pad_bytes is None else pad_bytes)
    whole = struct.pack(">BBHII", opcode, solicited << 7 | migrated << 6 | pad << 4 | version, pkey, reserved8 << 24 | qpn,
                        ack << 31 | reserved7 << 24 | psn & 0xffffff) + headers + payload + padding
    return whole[:len(whole) - truncate]


def ipv4_header(length, source, destination, *, ttl=64, tos=0, options=b"", fragment=0x4000, ip_version=4, ip_length_error=0,
                ip_checksum_error=0, protocol=17):
    """Returns an IPv4 header with its checksum."""
    words = 5 + len(options) // 4
    ip = struct.pack(">BBHHHBBH4s4s", ip_version << 4 | words, tos, 4 * words + length + ip_length_error, 1, fragment, ttl, protocol, 0,
                     packed(source), packed(destination)) + options
    return ip[:10] + struct.pack(">H", checksum(ip) ^ ip_checksum_error) + ip[12:]


def ipv6_header(length, source, destination, *, ttl=64, tos=0, flow_label=0, extensions=b"", ip_version=6, ip_length_error=0, protocol=17):
    """Returns an IPv6 header with extension headers; the first one has the number `protocol`."""
    return struct.pack(">IHBB16s16s", ip_version << 28 | tos << 20 | flow_label, len(extensions) + length + ip_length_error, protocol, ttl,
                       packed(source), packed(destination)) + extensions


NETWORK_FIELDS = ("ttl", "tos", "options", "fragment", "flow_label", "extensions", "ip_version", "ip_length_error", "ip_checksum_error", "protocol")


def frame(destination_mac, destination, opcode, qpn, psn, *, source=None, source_mac=MAC, source_port=0xc123, destination_port=ROCE, vlan=None,
          trailer=b"", udp_checksum=0, icrc_error=0, udp_length_error=0, ethernet_type=None, **fields):
    """Returns an Ethernet frame with the IP version of the destination. The fields `*_error` are XORed with or added to
    the correct value."""
    network = {name: fields.pop(name) for name in NETWORK_FIELDS if name in fields}
    transport = transport_of(opcode, qpn, psn, **fields)
    length = 8 + len(transport) + 4
    is_ipv6 = ":" in destination
    source = source or (ADDRESS6 if is_ipv6 else ADDRESS)
    ip = (ipv6_header if is_ipv6 else ipv4_header)(length, source, destination, **network)
    udp = struct.pack(">HHHH", source_port, destination_port, length + udp_length_error, 0)
    tail = bytearray(icrc(ip, udp, transport))
    tail[0] ^= icrc_error
    if udp_checksum:
        pseudo = packed(source) + packed(destination) + (struct.pack(">II", length, 17) if is_ipv6 else struct.pack(">HH", 17, length))
        right = checksum(pseudo + udp + transport + tail) or 0xffff
        udp = udp[:6] + struct.pack(">H", right if udp_checksum == "right" else right ^ 0x5555)
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    ethernet_type = ethernet_type or (0x86dd if is_ipv6 else 0x0800)
    return destination_mac + source_mac + tag + struct.pack(">H", ethernet_type) + ip + udp + transport + tail + trailer


def fragments(whole, at):
    """Returns two IPv4 fragments of a frame, split after `at` bytes of the datagram."""
    ethernet, ip, data = whole[:14], whole[14:34], whole[34:]

    def part(field, piece):
        header = ip[:2] + struct.pack(">H", 20 + len(piece)) + ip[4:6] + struct.pack(">H", field) + ip[8:10] + b"\0\0" + ip[12:]
        return ethernet + header[:10] + struct.pack(">H", checksum(header)) + header[12:] + piece

    return part(0x2000, data[:at]), part(at // 8, data[at:])


class Packet:
    """A received RoCEv2 packet, without VLAN tag and IPv4 options."""

    def __init__(self, data):
        is_ipv6 = data[12:14] == b"\x86\xdd"
        at = 54 if is_ipv6 else 34
        ip, udp = data[14:at], data[at:at + 8]
        self.source = socket.inet_ntop(socket.AF_INET6, ip[8:24]) if is_ipv6 else socket.inet_ntoa(ip[12:16])
        end = at + struct.unpack(">H", udp[4:6])[0]
        transport, tail = data[at + 8:end - 4], data[end - 4:end]
        self.has_right_icrc = icrc(ip, udp, transport) == tail
        self.opcode, flags, self.pkey, qp, psn = struct.unpack(">BBHII", transport[:12])
        self.solicited, self.migrated, self.pad, self.version = flags >> 7, flags >> 6 & 1, flags >> 4 & 3, flags & 15
        self.qpn, self.reserved8 = qp & 0xffffff, qp >> 24
        self.psn, self.ack, self.reserved7 = psn & 0xffffff, psn >> 31, psn >> 24 & 0x7f
        self.rest = transport[12:]


class RawSender:
    """A veth port of the bridge with its own address."""

    def __init__(self, mtu):
        guest.run("ip", "link", "add", INTERFACE, "mtu", mtu, "type", "veth", "peer", "name", BRIDGE_INTERFACE, "mtu", mtu)
        guest.run("ip", "link", "set", BRIDGE_INTERFACE, "master", guest.BRIDGE, "up")
        guest.run("ip", "link", "set", INTERFACE, "up")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
        index = socket.if_nametoindex(INTERFACE)
        self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("iHH8s", index, PROMISCUOUS, 0, b""))
        self.socket.bind((INTERFACE, 0))
        self.macs = {}  # By address.
        self.received = []  # Packets that were not yet read.

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
        """Receives for `seconds`, or until the condition holds, or until the socket `also` is readable."""
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
        elif data[12:14] == b"\x86\xdd" and data[20] == 58 and data[54] == 135 and data[62:78] == packed(ADDRESS6):
            self.advertise(data[6:12], data[22:38])
        elif data[:6] == MAC and is_roce(data):
            self.received.append(Packet(data))

    def advertise(self, mac, address):
        """Sends a neighbor advertisement in answer to a solicitation."""
        message = struct.pack(">BBHI16sBB6s", 136, 0, 0, 0x60000000, packed(ADDRESS6), 2, 1, MAC)
        pseudo = packed(ADDRESS6) + address + struct.pack(">II", len(message), 58)
        message = message[:2] + struct.pack(">H", checksum(pseudo + message)) + message[4:]
        header = ipv6_header(len(message), ADDRESS6, socket.inet_ntop(socket.AF_INET6, address), ttl=255, protocol=58)
        self.send(mac + MAC + b"\x86\xdd" + header + message)


def is_roce(data):
    at = {b"\x08\x00": 34, b"\x86\xdd": 54}.get(data[12:14])
    return at is not None and data[23 if at == 34 else 20] == 17 and data[at + 2:at + 4] == struct.pack(">H", ROCE)
