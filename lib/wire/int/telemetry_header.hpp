// In-band network telemetry (INT): metadata that switches write into packets in transit. The format is INT-MD of the
// P4.org specification "In-band Network Telemetry (INT) Dataplane", v2.1. It follows the UDP header of a packet, whose
// destination port is then the UDP port of INT:
//
//   shim 4 | INT-MD header 12 | stack of hops, newest first | original UDP payload
//
// An INT source inserts the header, each switch pushes a hop (telemetry_edit.hpp), and a sink removes header and stack.
// The packet without INT is the canonical one. Its sender computed the ICRC, which covers the UDP port and the lengths.
// No switch recomputes the ICRC, so a host that supports INT removes the header before it checks the ICRC.
//
// A source requests metadata with a bitmap, and each hop writes the same number of words. The standard instructions
// include neither the bytes that a port has sent nor its rate. Two domain-specific instructions of this project add
// them:
//
//   compact   IntHop of int_hop.hpp, 16 bytes; the format of INT-ECHO, so that a receiver copies it unchanged
//   full      FullHop, 32 bytes; no value wraps within hours, and both ports are present
//
// The format of HPCC is not used. It has 8 bytes per hop, with a link rate from a table of 16 rates. A link of 3 Gb/s,
// as in emulated networks, would be reported with another rate. Its 24 bits of ns and 20 bits of 128-byte units wrap
// within the pauses of ordinary flows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/int/int_hop.hpp"
#include "wire/net/udp_location.hpp"

namespace roci {

// The shim in UDP (INT v2.1, "INT over TCP/UDP").
struct IntShim {
  static constexpr uint8_t kTypeMd = 1;
  // NPT: `next` is the original UDP destination port, and the original UDP payload follows the stack.
  static constexpr uint8_t kOriginalPort = 1;

  uint8_t type_next = kTypeMd << 4 | kOriginalPort << 2;  // type 4 | NPT 2 | reserved 2
  uint8_t words = 0;  // length of INT-MD header and stack in 4-byte words, without the shim
  Be16 next;

  [[nodiscard]] constexpr uint8_t type() const { return type_next >> 4; }
  [[nodiscard]] constexpr uint8_t next_type() const { return type_next >> 2 & 3; }
};
static_assert(sizeof(IntShim) == 4);

// The INT-MD header (INT v2.1, "INT-MD Metadata Header Format").
struct IntMdHeader {
  static constexpr uint8_t kVersion = 2;
  static constexpr uint32_t kDiscard = 1U << 27;       // the packet is a copy; the sink drops it
  static constexpr uint32_t kHopsExceeded = 1U << 26;  // a switch could not push: no hops left
  // a switch could not push: the packet would exceed the MTU
  static constexpr uint32_t kMtuExceeded = 1U << 25;

  Be32 flags;         // version 4 | D E M | reserved 12 | words per hop 5 | hops left 8
  Be16 instructions;  // standard instructions; bit 0 is the highest bit
  Be16 domain;        // domain that defines domain_instructions
  Be16 domain_instructions;
  Be16 domain_flags;

  [[nodiscard]] constexpr uint8_t version() const { return static_cast<uint8_t>(flags.get() >> 28); }
  [[nodiscard]] constexpr bool has(uint32_t flag) const { return (flags.get() & flag) != 0; }
  [[nodiscard]] constexpr uint32_t hop_words() const { return flags.get() >> 8 & 0x1f; }
  [[nodiscard]] constexpr uint8_t hops_left() const { return static_cast<uint8_t>(flags.get()); }
};
static_assert(sizeof(IntMdHeader) == 12);

inline constexpr uint32_t kIntHeaderBytes = sizeof(IntShim) + sizeof(IntMdHeader);
inline constexpr uint32_t kMaxIntHopWords = 31;
inline constexpr uint32_t kMaxIntWords = 255;  // limit of the shim's length field

// Standard instructions. A switch writes values for these and "not known" (all ones) for all others. The numbers are
// lengths in bytes.
namespace int_instruction {
inline constexpr uint16_t kNodeId = 0x8000;       // 4 bytes
inline constexpr uint16_t kLevel1Ports = 0x4000;  // ingress 2, egress 2
inline constexpr uint16_t kHopLatency = 0x2000;   // 4, ns
inline constexpr uint16_t kQueue = 0x1000;        // queue number 1, occupancy 3 (in bytes)
inline constexpr uint16_t kIngressTime = 0x0800;  // 8, ns
inline constexpr uint16_t kEgressTime = 0x0400;   // 8, ns
inline constexpr uint16_t kLevel2Ports = 0x0200;  // 8; not supported, since ports have one level
// 4; not supported, computed by the reader from counters and times
inline constexpr uint16_t kTxUtilization = 0x0100;
// 4 bytes, last; not used, since switches update the UDP checksum.
inline constexpr uint16_t kChecksumComplement = 0x0001;
}  // namespace int_instruction

// Domain-specific instructions of this project. A source sets one of them.
namespace int_domain_instruction {
inline constexpr uint16_t kCompactHop = 0x8000;
inline constexpr uint16_t kFullHop = 0x4000;
}  // namespace int_domain_instruction

// Domain-specific flags of this project.
namespace int_domain_flag {
// A congested switch may send an INT response to the sender of this packet (HPCC++ 6.3).
inline constexpr uint16_t kWantsResponse = 0x8000;
}  // namespace int_domain_flag

// Bytes per hop of the standard instructions without the checksum complement, and of the domain-specific ones. For a
// reserved instruction bit a hop has 4 bytes too.
uint32_t int_baseline_bytes(uint16_t instructions);
uint32_t int_domain_bytes(uint16_t domain_instructions);

struct FullHop {
  Be32 switch_id;
  Be16 ingress_port;
  Be16 egress_port;
  Be64 time;         // ns of the switch's clock when the packet left the queue
  Be64 tx_bytes;     // bytes that the port has sent
  Be32 queue_bytes;  // bytes in the queue behind the packet
  Be32 rate_mbps;    // of the link; 0: unknown
};
static_assert(sizeof(FullHop) == 32);

// State of a switch when it transmits a packet, read at one point in time (HPCC++ 6.1).
struct HopReport {
  uint32_t switch_id = 0;
  uint16_t ingress_port = 0;
  uint16_t egress_port = 0;
  uint8_t queue = 0;
  uint64_t ingress_time = 0;  // ns of the switch's clock
  uint64_t egress_time = 0;
  // Bytes that the egress port has sent, consistently with or without this packet.
  uint64_t tx_bytes = 0;
  uint64_t queue_bytes = 0;  // in the egress queue behind this packet
  BitsPerSec rate;           // of the egress link; 0: unknown
};
// Counters, times and IDs that exceed their field are truncated to its low bits. Rates and queue lengths are limited to
// the largest value of the field.
IntHopValues compact_hop(const HopReport& report);
FullHop full_hop(const HopReport& report);

// Result of parse_int().
enum class IntOutcome : uint8_t {
  kAccepted,
  kNotInt,        // not a UDP packet to the UDP port of INT
  kTruncated,     // the first segment ends within the stack, or the frame is shorter than its IP length
  kBadIp,         // see UdpOutcome
  kFragment,      // see UdpOutcome
  kBadUdp,        // see UdpOutcome
  kUnknownType,   // the INT header is not INT-MD
  kUnknownNext,   // NPT is not that of an original UDP packet
  kBadVersion,    // the version of INT-MD is not 2
  kTooShort,      // fewer words than an INT-MD header
  kBeyondPacket,  // more words than the packet has
  kUnevenStack,   // the stack is not a whole number of hops
};
inline constexpr unsigned kIntOutcomeCount = 12;
std::string_view int_outcome_name(IntOutcome outcome);

// View of the INT headers in a frame. Valid until the frame changes.
struct IntView {
  const uint8_t* frame = nullptr;
  UdpLocation udp;
  IntOutcome outcome = IntOutcome::kNotInt;
  uint32_t hop_bytes = 0;  // of each hop; 0 only without hops
  uint32_t hop_count = 0;

  [[nodiscard]] bool accepted() const { return outcome == IntOutcome::kAccepted; }
  [[nodiscard]] uint32_t shim_offset() const {
    return udp.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  }
  [[nodiscard]] uint32_t stack_offset() const { return shim_offset() + kIntHeaderBytes; }
  // Bytes that INT adds to the packet.
  [[nodiscard]] uint32_t bytes() const { return kIntHeaderBytes + hop_bytes * hop_count; }
  [[nodiscard]] const IntShim& shim() const {
    return *reinterpret_cast<const IntShim*>(frame + shim_offset());
  }
  [[nodiscard]] const IntMdHeader& header() const {
    return *reinterpret_cast<const IntMdHeader*>(frame + shim_offset() + sizeof(IntShim));
  }
  [[nodiscard]] bool wants_response(uint16_t domain) const {
    return header().domain.get() == domain &&
           (header().domain_flags.get() & int_domain_flag::kWantsResponse) != 0;
  }
  // Returns hop `i` (0: the newest) in compact form. Null if the hops are neither compact nor full hops of `domain`,
  // the domain of the caller, or if the switch wrote "not known".
  [[nodiscard]] std::optional<IntHopValues> hop(uint32_t i, uint16_t domain) const;
  // Returns hop `i` in full form, without loss of precision. Null as above, and for compact hops.
  [[nodiscard]] const FullHop* full(uint32_t i, uint16_t domain) const;

 private:
  [[nodiscard]] const uint8_t* domain_part(uint32_t i, uint16_t domain, uint16_t instruction) const;
};

// Parses the INT headers of a frame of `frame_length` bytes. `head` is its first segment and must contain the stack.
// `port` is the UDP port of INT, which has no assigned number. Reserved bits are ignored.
IntView parse_int(std::span<const uint8_t> head, uint32_t frame_length, uint16_t port);

}  // namespace roci
