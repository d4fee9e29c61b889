// What switches and hosts do to the INT of a packet, in place: a source begins it, every switch pushes its hop, a sink
// takes it out (telemetry_header.hpp draws it). The front of the frame moves; IP and UDP lengths, the IPv4 checksum and
// the UDP port follow.
//
// A UDP checksum of 0 stays 0. Any other is updated for what went in or out, for IPv4 as for IPv6 (INT v2.1, "Checksum
// Update"): that costs as many bytes as the edit touches, needs no payload in reach, and a packet that came in damaged
// goes out damaged, which a checksum set to 0 or computed anew would hide. Beginning and taking out again gives the same
// bytes back, an IPv4 checksum that was written as ffff instead of 0 excepted (RFC 1624 writes 0).
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/frame_front.hpp"
#include "wire/telemetry_header.hpp"

namespace roci {

// What an INT source asks for.
struct IntSource {
  uint16_t port = 0;          // UDP port of INT; not that of RoCEv2
  uint16_t instructions = 0;  // the standard's
  uint16_t domain = 0;
  uint16_t domain_instructions = int_domain_instruction::kCompactHop;  // ours
  uint16_t domain_flags = 0;
  uint8_t hops = 16;     // that may be pushed; fewer when a shim cannot say so many
  bool discard = false;  // the packet is a copy for the sink alone
};
// Words a hop takes; more than kMaxIntHopWords, or none, cannot be begun.
uint32_t int_hop_words(const IntSource& source);

// What became of an edit. The frame has changed with kDone, and in one bit with kHopsExceeded, kMtuExceeded and
// kStackFull.
enum class IntEdit : uint8_t {
  kDone,
  kHopsExceeded,  // no hop left: nothing pushed, E set
  kStackFull,     // the shim cannot say a longer stack: the same
  kMtuExceeded,   // too long for the link with it: nothing pushed, M set, or INT not begun
  kSkipped,       // the hop's length is not that of its instructions, so it cannot be written
  kNotRoce,       // to begin on, and no RoCEv2 packet
  kBadSource,     // an IntSource that cannot be begun
  kNoHeadroom,
};
inline constexpr unsigned kIntEditCount = 8;
std::string_view int_edit_name(IntEdit edit);

// `mtu` is the largest IP packet of the link that the frame leaves by, in bytes. Every edit leaves views of the frame
// behind it out of date.

// Puts a header without hops into a RoCEv2 packet. A source pushes its own hop afterwards; that this may not fit any more
// is then for M to say (INT v2.1, "MTU Settings").
IntEdit begin_int(FrameFront& frame, const IntSource& source, uint32_t mtu);
// The same where the UDP header has been found already: `where` is what find_udp() says of the frame. With kDone `begun` is
// what parse_int() would say of it now.
IntEdit begin_int(FrameFront& frame, const UdpLocation& where, const IntSource& source, uint32_t mtu,
                  IntView& begun);

// `view` is what parse_int() accepted. Instructions that we cannot follow get ones, those of another domain than
// `domain` too.
IntEdit push_int_hop(FrameFront& frame, const IntView& view, const HopReport& report, uint16_t domain,
                     uint32_t mtu);

// Back to the canonical packet. Copy the hops first; what kDiscard says is the caller's to do.
void strip_int(FrameFront& frame, const IntView& view);

}  // namespace roci
