// In-band network telemetry: what switches write into packets on their way (INT-MD of the P4.org specification "In-band
// Network Telemetry (INT) Dataplane", v2.1). Behind the UDP header of a packet, whose destination port then says INT:
//
//   shim 4 | INT-MD header 12 | a stack of hops, the newest first | what was behind the UDP header
//
// A source begins it, each switch pushes a hop (telemetry_edit.hpp), a sink takes everything out again. The packet
// without it, the canonical one, is what its sender computed the ICRC of: the ICRC covers the UDP port and the lengths,
// and no switch computes one anew. So a host that knows INT takes it out before it checks the ICRC.
//
// A source asks for metadata with a bitmap, and every hop writes the same number of words. Two sets are our own, as
// domain-specific instructions, since the standard's own have neither the bytes that a port has sent nor its rate:
//
//   compact   the IntHop of int_hop.hpp, 16 bytes; what INT-ECHO carries back, so a receiver copies it as it is
//   full      FullHop, 32 bytes: nothing wraps within hours, and both ports
//
// HPCC packs a hop into 8 bytes, with link rates out of a table of 16: there a link of 3 Gb/s, as emulated ones have,
// reads as one of another speed, and its 24 bits of ns and 20 bits of 128 bytes wrap within pauses that flows make.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/int_hop.hpp"
#include "wire/udp_location.hpp"

namespace roci {

// The shim in UDP (INT v2.1, "INT over TCP/UDP").
struct IntShim {
  static constexpr uint8_t kTypeMd = 1;
  static constexpr uint8_t kOriginalPort =
      1;  // NPT: `next` is the UDP port, and what was behind UDP follows the stack

  uint8_t type_next = kTypeMd << 4 | kOriginalPort << 2;  // type 4 | NPT 2 | reserved 2
  uint8_t words = 0;                                      // of INT-MD header and stack, without the shim
  Be16 next;

  [[nodiscard]] constexpr uint8_t type() const { return type_next >> 4; }
  [[nodiscard]] constexpr uint8_t next_type() const { return type_next >> 2 & 3; }
};
static_assert(sizeof(IntShim) == 4);

// The INT-MD header (INT v2.1, "INT-MD Metadata Header Format").
struct IntMdHeader {
  static constexpr uint8_t kVersion = 2;
  static constexpr uint32_t kDiscard = 1U << 27;       // a copy: the sink is to drop it
  static constexpr uint32_t kHopsExceeded = 1U << 26;  // a switch had no hop left to push
  static constexpr uint32_t kMtuExceeded = 1U << 25;   // a switch had no room to push

  Be32 flags;         // version 4 | D E M | reserved 12 | words a hop 5 | hops left 8
  Be16 instructions;  // the standard's bitmap, its bit 0 the highest
  Be16 domain;        // whose domain_instructions they are
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
inline constexpr uint32_t kMaxIntWords = 255;  // that a shim can say

// The standard's instructions that we can follow with something better than "not known".
namespace int_instruction {
inline constexpr uint16_t kNodeId = 0x8000;         // 4 bytes
inline constexpr uint16_t kLevel1Ports = 0x4000;    // ingress 2, egress 2
inline constexpr uint16_t kHopLatency = 0x2000;     // 4, ns
inline constexpr uint16_t kQueue = 0x1000;          // number 1, occupancy 3 in bytes
inline constexpr uint16_t kIngressTime = 0x0800;    // 8, ns
inline constexpr uint16_t kEgressTime = 0x0400;     // 8, ns
inline constexpr uint16_t kLevel2Ports = 0x0200;    // 8; we have no second level
inline constexpr uint16_t kTxUtilisation = 0x0100;  // 4; left to the reader, who has counters and times
inline constexpr uint16_t kChecksumComplement =
    0x0001;  // 4, last; not used, since we update the checksum itself
}  // namespace int_instruction

// Domain-specific ones of ours, of which a source sets one.
namespace int_domain_instruction {
inline constexpr uint16_t kCompactHop = 0x8000;
inline constexpr uint16_t kFullHop = 0x4000;
}  // namespace int_domain_instruction

// Domain-specific flags of ours.
namespace int_domain_flag {
// Switches that are congested may tell the sender of this packet so themselves (HPCC++ 6.3).
inline constexpr uint16_t kWantsResponse = 0x8000;
}  // namespace int_domain_flag

// Bytes a hop takes: all the standard's instructions but the checksum complement, and ours. The first counts reserved
// bits too, for which 4 bytes are to be written.
uint32_t int_baseline_bytes(uint16_t instructions);
uint32_t int_domain_bytes(uint16_t domain_instructions);

struct FullHop {
  Be32 switch_id;
  Be16 ingress_port;
  Be16 egress_port;
  Be64 time;         // ns of the switch's clock when the packet left the queue
  Be64 tx_bytes;     // everything that the port has sent
  Be32 queue_bytes;  // behind the packet
  Be32 rate_mbps;    // of the link, 0 for unknown
};
static_assert(sizeof(FullHop) == 32);

// What a switch knows when it puts a packet onto a link, taken in one go (HPCC++ 6.1).
struct HopReport {
  uint32_t switch_id = 0;
  uint16_t ingress_port = 0;
  uint16_t egress_port = 0;
  uint8_t queue = 0;
  uint64_t ingress_time = 0;  // ns of the switch's clock
  uint64_t egress_time = 0;
  uint64_t tx_bytes = 0;     // that the egress port has sent, this packet always or never among them
  uint64_t queue_bytes = 0;  // in the egress queue behind this packet
  BitsPerSec rate;           // of the egress link, 0 for unknown
};
// Values beyond a field are cut to its low bits where the field wraps or names something, and said as the most where it
// is an amount.
IntHopValues compact_hop(const HopReport& report);
FullHop full_hop(const HopReport& report);

// What parse_int() made of a frame.
enum class IntOutcome : uint8_t {
  kAccepted,
  kNotInt,        // no UDP packet to the port of INT
  kTruncated,     // the front with the stack is cut, or the frame is shorter than IP says
  kBadIp,         // as UdpOutcome has it
  kFragment,      // as UdpOutcome has it
  kBadUdp,        // as UdpOutcome has it
  kUnknownType,   // of INT header: not INT-MD
  kUnknownNext,   // NPT: not the original UDP packet
  kBadVersion,    // of INT-MD: not 2
  kTooShort,      // fewer words than an INT-MD header
  kBeyondPacket,  // more words than the packet has
  kUnevenStack,   // no whole number of hops
};
inline constexpr unsigned kIntOutcomeCount = 12;
std::string_view int_outcome_name(IntOutcome outcome);

// The INT of a frame in place; valid as long as the frame is as it was.
struct IntView {
  const uint8_t* frame = nullptr;
  UdpLocation udp;
  IntOutcome outcome = IntOutcome::kNotInt;
  uint32_t hop_bytes = 0;  // of each, 0 only when there are none
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
  // Hop `i`, 0 the newest, as a compact one: null when this domain's hops are neither compact nor full ones, or when
  // the switch could not say. `domain` is the reader's.
  [[nodiscard]] std::optional<IntHopValues> hop(uint32_t i, uint16_t domain) const;
  // The same for full ones, with nothing lost.
  [[nodiscard]] const FullHop* full(uint32_t i, uint16_t domain) const;

 private:
  [[nodiscard]] const uint8_t* domain_part(uint32_t i, uint16_t domain, uint16_t instruction) const;
};

// `head` is the first segment of a frame of `frame_length` bytes; the stack must lie in it. `port` is the UDP port of
// INT, which has no assigned number. Reserved bits are not looked at.
IntView parse_int(std::span<const uint8_t> head, uint32_t frame_length, uint16_t port);

}  // namespace roci
