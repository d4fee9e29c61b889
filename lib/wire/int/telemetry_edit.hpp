// In-place edits of the INT headers of a packet: a source inserts the headers, each switch pushes its hop, and a sink
// removes them (format: telemetry_header.hpp). An edit moves the front of the frame and updates IP and UDP lengths,
// IPv4 checksum and UDP port.
//
// A UDP checksum of 0 remains 0. Any other checksum is updated by the inserted or removed bytes, for IPv4 and IPv6 (INT
// v2.1, "Checksum Update"). The cost depends only on the edited bytes, and the payload need not be in the first
// segment. A damaged packet stays detectable, which a checksum of 0 or a recomputed one would prevent.
//
// Insertion and removal restore the original bytes. Exception: an IPv4 checksum of ffff becomes 0 (RFC 1624).
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/int/telemetry_header.hpp"
#include "wire/net/frame_front.hpp"

namespace roci {

// Parameters of an INT source.
struct IntSource {
  uint16_t port = 0;          // UDP port of INT; must differ from the RoCEv2 port
  uint16_t instructions = 0;  // standard instructions
  uint16_t domain = 0;
  // Instructions of this project.
  uint16_t domain_instructions = int_domain_instruction::kCompactHop;
  uint16_t domain_flags = 0;
  uint8_t hops = 16;     // maximum number of hops, limited further by the shim's length field
  bool discard = false;  // the packet is a copy; the sink drops it
};
// Returns the words per hop. begin_int() rejects 0 and more than kMaxIntHopWords.
uint32_t int_hop_words(const IntSource& source);

// Result of an edit. kDone changes the frame. kHopsExceeded, kStackFull and, in push_int_hop(), kMtuExceeded set one
// flag bit. All others leave the frame unchanged.
enum class IntEdit : uint8_t {
  kDone,
  kHopsExceeded,  // no hops left: hop not pushed, E set
  kStackFull,     // longer than the shim can specify: hop not pushed, E set
  kMtuExceeded,   // would exceed the MTU of the link: hop not pushed and M set, or INT not inserted
  kSkipped,       // the hop length does not match the instructions, so no hop is pushed
  kNotRoce,       // insertion into a packet that is not RoCEv2
  kBadSource,     // invalid IntSource
  kNoHeadroom,
};
inline constexpr unsigned kIntEditCount = 8;
std::string_view int_edit_name(IntEdit edit);

// `mtu` is the largest IP packet, in bytes, of the link on which the frame is transmitted. Edits invalidate all views
// of the frame.

// Inserts INT headers without hops into a RoCEv2 packet. The source pushes its own hop afterwards. If that exceeds the
// MTU, push_int_hop() sets the M flag (INT v2.1, "MTU Settings").
IntEdit begin_int(FrameFront& frame, const IntSource& source, uint32_t mtu);
// As above, for a UDP header that the caller has located: `where` is the result of find_udp() for the frame. With
// kDone, `inserted` is set to the result of parse_int() for the new frame.
IntEdit begin_int(FrameFront& frame, const UdpLocation& where, const IntSource& source, uint32_t mtu,
                  IntView& inserted);

// `view` must be accepted by parse_int(). Values of unsupported instructions and of domains other than `domain` are all
// ones.
IntEdit push_int_hop(FrameFront& frame, const IntView& view, const HopReport& report, uint16_t domain,
                     uint32_t mtu);

// Restores the canonical packet. The caller copies the hops first and evaluates kDiscard.
void strip_int(FrameFront& frame, const IntView& view);

}  // namespace roci
