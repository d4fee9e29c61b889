// Wire formats of the headers of RoCEv2 packets, with their constants. Each struct has the exact size and alignment 1,
// so a pointer into a frame may be cast to it.
#pragma once

#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/headers/address.hpp"
#include "wire/headers/endian.hpp"
#include "wire/headers/opcodes.hpp"
#include "wire/int/int_hop.hpp"

namespace roci {

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;   // C-TAG, 802.1Q
inline constexpr uint16_t kEtherTypeSTag = 0x88a8;   // S-TAG, 802.1ad
inline constexpr uint16_t kEtherTypeCnTag = 0x22e9;  // congestion notification tag, link_tags.hpp
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;
inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolIcmpv6 = 58;
inline constexpr uint8_t kProtocolIpv6Fragment = 44;
inline constexpr uint16_t kRoceUdpPort = 4791;
inline constexpr uint32_t kIcrcBytes = 4;

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  Be16 ether_type;
};
static_assert(sizeof(EthernetHeader) == 14);

struct VlanHeader {  // follows the TPID
  Be16 tci;          // PCP 3 | DEI 1 | VID 12
  Be16 ether_type;
};
static_assert(sizeof(VlanHeader) == 4);

// A VLAN tag as values.
struct VlanTag {
  uint16_t tpid = kEtherTypeVlan;
  uint16_t tci = 0;  // PCP 3 | DEI 1 | VID 12
  friend bool operator==(const VlanTag&, const VlanTag&) = default;
};

struct Ipv4Header {
  uint8_t version_ihl = 0x45;
  uint8_t tos = 0;  // DSCP 6 | ECN 2
  Be16 total_length;
  Be16 id;
  Be16 flags_fragment;  // DF 0x4000, MF 0x2000
  uint8_t ttl = 64;
  uint8_t protocol = kProtocolUdp;
  Be16 checksum;
  Be32 source;
  Be32 destination;
};
static_assert(sizeof(Ipv4Header) == 20);

struct Ipv6Header {
  Be32 version_class_flow;  // 4 | 8 | 20
  Be16 payload_length;
  uint8_t next_header = kProtocolUdp;
  uint8_t hop_limit = 64;
  std::array<uint8_t, 16> source;
  std::array<uint8_t, 16> destination;
};
static_assert(sizeof(Ipv6Header) == 40);

struct UdpHeader {
  Be16 source_port;
  Be16 destination_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);

// Base transport header (IBTA 9.2; FECN and BECN: RoCEv2 annex A17.9.3).
struct Bth {
  static constexpr uint8_t kSolicited = 0x80;
  static constexpr uint8_t kMigReq = 0x40;
  static constexpr uint8_t kFecn = 0x80;
  static constexpr uint8_t kBecn = 0x40;
  static constexpr uint8_t kAckReq = 0x80;
  // The highest of the 7 reserved bits after AckReq, which the ICRC covers. Between peers that negotiated it, an
  // extension block follows the headers (extensions.hpp). Other receivers ignore the bit (IBTA 9.2).
  static constexpr uint8_t kExtensions = 0x40;

  uint8_t opcode = 0;
  uint8_t flags = 0;  // SE 1 | MigReq 1 | PadCnt 2 | TVer 4
  Be16 pkey;
  uint8_t congestion = 0;  // FECN 1 | BECN 1 | reserved 6; not covered by the ICRC
  Be24 destination_qp;
  uint8_t ack_request = 0;  // AckReq 1 | reserved 7
  Be24 psn;

  [[nodiscard]] constexpr uint8_t pad_count() const { return flags >> 4 & 3; }
  [[nodiscard]] constexpr uint8_t version() const { return flags & 0xf; }
  [[nodiscard]] constexpr bool solicited() const { return (flags & kSolicited) != 0; }
  [[nodiscard]] constexpr bool ack_requested() const { return (ack_request & kAckReq) != 0; }
  [[nodiscard]] constexpr bool becn() const { return (congestion & kBecn) != 0; }
  [[nodiscard]] constexpr bool has_extensions() const { return (ack_request & kExtensions) != 0; }
};
static_assert(sizeof(Bth) == 12);

struct Deth {
  Be32 qkey;
  uint8_t reserved = 0;
  Be24 source_qp;
};
struct XrcEth {  // annex A14
  uint8_t reserved = 0;
  Be24 srq;  // number of the destination XRC SRQ
};
struct Feth {  // annex A19
  Be32 value;  // reserved 26 | selectivity level 2 | placement type 4

  [[nodiscard]] uint8_t type() const { return value.get() & 0xf; }
  [[nodiscard]] uint8_t level() const { return value.get() >> 4 & 3; }
};
struct Reth {
  Be64 va;
  Be32 rkey;
  Be32 length;
};
struct AtomicEth {
  Be64 va;
  Be32 rkey;
  Be64 swap_or_add;
  Be64 compare;
};
struct Aeth {
  uint8_t syndrome = 0;
  Be24 msn;
};
struct AtomicAckEth {
  Be64 original;
};
struct ImmDt {
  Be32 data;
};
struct Ieth {
  Be32 rkey;
};
struct CnpReserved {
  std::array<uint8_t, 16> zero{};
};
// Bodies of the private opcodes (docs/wire-extensions.md).
struct Probe {
  static constexpr uint16_t kRtt = 1;  // the response includes times
  static constexpr uint16_t kInt = 2;  // the response includes the telemetry of the probe

  Be32 id;  // chosen by the sender of the probe; repeated in the response
  Be16 flags;
  Be16 reserved;
  Be64 sent;  // t1, ns of the probe sender's clock; repeated in the response
  Be64 lsn;   // probe: next byte to send; response: all bytes below have arrived
};
struct ProbeTimes {
  Be64 received;                  // t2, arrival of the probe, in the responder's time unit
  Be64 answered;                  // t3, handover of the response to the port, in the same unit
  std::array<uint8_t, 12> raw{};  // opaque data between the congestion control algorithms of both peers
};
struct IntReport {
  static constexpr uint16_t kLsnKnown = 1;
  static constexpr uint16_t kToReceiver = 2;  // sent to the receiver of the data, not to its sender

  Be16 flags;
  Be16 reserved;
  Be64 lsn;  // of the sampled packet, if it has one
  IntHop hop;
  Bth sampled;  // BTH of the packet that met congestion: queue pair, opcode, PSN
};
static_assert(sizeof(Probe) == header_size(Header::kProbe));
static_assert(sizeof(ProbeTimes) == header_size(Header::kProbeTimes));
static_assert(sizeof(IntReport) == header_size(Header::kIntReport));

static_assert(sizeof(Deth) == header_size(Header::kDeth));
static_assert(sizeof(XrcEth) == header_size(Header::kXrcEth));
static_assert(sizeof(Feth) == header_size(Header::kFeth));
static_assert(sizeof(Reth) == header_size(Header::kReth));
static_assert(sizeof(AtomicEth) == header_size(Header::kAtomicEth));
static_assert(sizeof(Aeth) == header_size(Header::kAeth));
static_assert(sizeof(AtomicAckEth) == header_size(Header::kAtomicAckEth));
static_assert(sizeof(ImmDt) == header_size(Header::kImmDt));
static_assert(sizeof(Ieth) == header_size(Header::kIeth));
static_assert(sizeof(CnpReserved) == header_size(Header::kCnpReserved));

// Longest header chain of a standard RoCEv2 packet that this project sends: Ethernet, two tags, IPv6, UDP, BTH, XRCETH
// and AtomicETH. Private opcodes are longer.
inline constexpr uint32_t kMaxHeaderBytes = 14 + 8 + 40 + 8 + 12 + 4 + 28;
// Largest overhead of an IP packet beyond its path MTU (IPv6, with RETH and ImmDt). The port MTU must be larger than
// the path MTU by this number of bytes, and by another XRCETH for XRC.
inline constexpr uint32_t kMaxIpOverhead = 40 + 8 + 12 + 16 + 4 + kIcrcBytes;

// Returns the largest path MTU whose packets, with `overhead` bytes each, fit the MTU of a port; 0 if no path MTU fits.
constexpr uint32_t largest_path_mtu(uint32_t port_mtu, uint32_t overhead) {
  for (uint32_t mtu = 4096; mtu >= 256; mtu /= 2) {
    if (mtu + overhead <= port_mtu) return mtu;
  }
  return 0;
}

// ECN codepoints (RFC 3168).
enum class Ecn : uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

}  // namespace roci
