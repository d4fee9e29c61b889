// A RoCEv2 frame as values in host byte order: all header fields, the payload, and the fields that a sender may compute
// incorrectly (pad, checksums, ICRC). For tests, packet scripts and tools; the data path reads frames in place
// (frame.hpp).
//
// Lengths are not fields: encode_packet() computes them from the structure. A frame that decode_packet() accepts is
// encoded to the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/extensions/extension_block.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

using ByteVector = std::vector<uint8_t>;

struct Ipv4Values {
  static constexpr uint16_t kDontFragment = 0x4000;

  uint8_t tos = 0;  // DSCP 6 | ECN 2
  uint16_t id = 0;
  uint16_t flags_fragment = kDontFragment;
  uint8_t ttl = 64;
  uint16_t checksum = 0;  // as stored in the frame
  ByteVector options;     // a multiple of 4, at most 40 bytes
  friend bool operator==(const Ipv4Values&, const Ipv4Values&) = default;
};

struct Ipv6Values {
  uint8_t traffic_class = 0;  // DSCP 6 | ECN 2
  uint32_t flow_label = 0;    // 20 bits
  uint8_t hop_limit = 64;
  friend bool operator==(const Ipv6Values&, const Ipv6Values&) = default;
};

// The pad count is the size of Packet::pad.
struct BthValues {
  // may be missing in the opcode table, to build packets that a receiver rejects
  Opcode opcode = Opcode::kRcSendOnly;
  bool solicited = false;
  bool mig_req = false;
  uint8_t version = 0;  // 4 bits
  PKey pkey = kDefaultPKey;
  bool fecn = false;
  bool becn = false;
  uint8_t reserved6 = 0;  // the 6 bits after BECN
  Qpn destination_qp;
  bool ack_request = false;
  uint8_t reserved7 = 0;  // the 7 bits after AckReq, including Bth::kExtensions
  Psn psn;
  friend bool operator==(const BthValues&, const BthValues&) = default;
};

struct DethValues {
  QKey qkey;
  uint8_t reserved = 0;
  Qpn source_qp;
  friend bool operator==(const DethValues&, const DethValues&) = default;
};
struct XrcEthValues {
  uint8_t reserved = 0;
  Srqn srq;
  friend bool operator==(const XrcEthValues&, const XrcEthValues&) = default;
};
struct FethValues {
  uint8_t type = 0;       // placement type
  uint8_t level = 0;      // selectivity level
  uint32_t reserved = 0;  // 26 bits
  friend bool operator==(const FethValues&, const FethValues&) = default;
};
struct RethValues {
  uint64_t va = 0;
  MemoryKey rkey;
  uint32_t length = 0;  // of the complete message
  friend bool operator==(const RethValues&, const RethValues&) = default;
};
struct AtomicEthValues {
  uint64_t va = 0;
  MemoryKey rkey;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
  friend bool operator==(const AtomicEthValues&, const AtomicEthValues&) = default;
};
struct AethValues {
  uint8_t syndrome = 0;
  Msn msn;
  friend bool operator==(const AethValues&, const AethValues&) = default;
};
struct ProbeValues {
  uint32_t id = 0;
  uint16_t flags = 0;
  uint16_t reserved = 0;
  uint64_t sent = 0;
  Lsn lsn;
  friend bool operator==(const ProbeValues&, const ProbeValues&) = default;
};
struct ProbeTimesValues {
  uint64_t received = 0;
  uint64_t answered = 0;
  std::array<uint8_t, 12> raw{};
  friend bool operator==(const ProbeTimesValues&, const ProbeTimesValues&) = default;
};
struct IntReportValues {
  uint16_t flags = 0;
  uint16_t reserved = 0;
  Lsn lsn;
  IntHopValues hop;
  std::array<uint8_t, sizeof(Bth)> sampled{};
  friend bool operator==(const IntReportValues&, const IntReportValues&) = default;
};

struct Packet {
  MacAddress destination_mac;
  MacAddress source_mac;
  std::vector<VlanTag> vlan_tags;     // outermost first, at most 2
  std::optional<uint16_t> cn_flow{};  // of the CN-TAG after the VLAN tags
  IpAddress source;                   // IPv4-mapped if `ip` is Ipv4Values
  IpAddress destination;
  std::variant<Ipv4Values, Ipv6Values> ip;
  uint16_t udp_source_port = 0xc000;
  uint16_t udp_destination_port = kRoceUdpPort;
  uint16_t udp_checksum = 0;  // as stored; 0: no checksum, which RoCEv2 allows on IPv6 too
  BthValues bth;
  // Extended headers. encode_packet() writes those present in this order and ignores the opcode table.
  std::optional<DethValues> deth;
  std::optional<XrcEthValues> xrc_eth;
  std::optional<FethValues> feth;
  std::optional<RethValues> reth;
  std::optional<AtomicEthValues> atomic_eth;
  std::optional<AethValues> aeth;
  std::optional<uint64_t> atomic_ack;  // original data
  std::optional<uint32_t> imm;
  std::optional<MemoryKey> ieth;
  std::optional<std::array<uint8_t, 16>> cnp_reserved;
  std::optional<ProbeValues> probe;
  std::optional<ProbeTimesValues> probe_times;
  std::optional<IntReportValues> int_report;
  // Decoded if the BTH indicates a block and the block is complete and valid. Otherwise its bytes are in `payload`.
  std::optional<ExtensionBlock> extensions;
  ByteVector payload;
  ByteVector pad;       // at most 3 bytes
  uint32_t icrc = 0;    // as stored: the number whose little-endian bytes end the packet
  ByteVector trailing;  // bytes after the IP packet, such as Ethernet padding

  [[nodiscard]] bool ipv6() const { return std::holds_alternative<Ipv6Values>(ip); }
  [[nodiscard]] Ipv4Values& v4() { return std::get<Ipv4Values>(ip); }
  [[nodiscard]] const Ipv4Values& v4() const { return std::get<Ipv4Values>(ip); }
  [[nodiscard]] Ipv6Values& v6() { return std::get<Ipv6Values>(ip); }
  [[nodiscard]] const Ipv6Values& v6() const { return std::get<Ipv6Values>(ip); }
  [[nodiscard]] uint8_t traffic_class() const { return ipv6() ? v6().traffic_class : v4().tos; }
  [[nodiscard]] Ecn ecn() const { return static_cast<Ecn>(traffic_class() & 3); }

  // Builders for tests, for a packet in one expression: make_packet(Opcode::kRcWriteOnly).to(qpn, psn).with_payload(…).
  // None of them updates checksums or ICRC, so finish() must be last.
  Packet& to(Qpn destination_qp, Psn psn);
  Packet& between(const MacAddress& from_mac, const IpAddress& from, const MacAddress& to_mac,
                  const IpAddress& to);
  // Appends a tag as the innermost one.
  Packet& with_vlan(uint16_t tci, uint16_t tpid = kEtherTypeVlan);
  Packet& with_cn_tag(uint16_t flow);
  Packet& with_traffic_class(uint8_t value);
  Packet& with_payload(std::span<const uint8_t> bytes);  // and matching zero pad bytes
  Packet& requesting_ack();
  Packet& with_xrc_srq(Srqn srq);
  Packet& with_reth(uint64_t va, MemoryKey rkey, uint32_t length);
  Packet& with_aeth(uint8_t syndrome, Msn msn);
  Packet& with_imm(uint32_t data);
  Packet& with_extensions(const ExtensionBlock& block);  // also sets the BTH bit

  // Computes the IPv4 checksum, the UDP checksum (only if it is not 0) and the ICRC over the other fields.
  Packet& finish();

  friend bool operator==(const Packet&, const Packet&) = default;
};

// Returns a packet from 10.0.0.1 to 10.0.0.2 (fd00::1 to fd00::2) with all headers of the opcode's table row. The AETH
// is an ACK, a CNP has BECN set, and all other fields are 0. finish() has not been called.
Packet make_packet(Opcode opcode, bool ipv6 = false);

// Accepts private opcodes. The error specifies the kind of a frame that is not RoCEv2, or the defect.
Result<Packet> decode_packet(std::span<const uint8_t> frame);

// Writes checksums and ICRC as stored in `packet`.
ByteVector encode_packet(const Packet& packet);

// Computes the UDP checksum of the frame; never 0. The frame must be contiguous and RoCEv2.
uint16_t compute_udp_checksum(const FrameView& view);

}  // namespace roci
