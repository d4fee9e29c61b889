// Keyed MAC of the AUTH extension. It authenticates feedback that makes a sender slow down, retransmit or speed up.
//
// The MAC is SipHash-2-4 over these bytes, in this order:
//
//   16 + 16  source and destination IP address; IPv4 in the mapped form ::ffff:a.b.c.d
//         2  UDP source port, big-endian (protocol and destination port are constants)
//        12  BTH, with byte 4 (FECN, BECN and 6 reserved bits, which switches change) as 0
//         8  sequence, big-endian: the 64-bit number of the packet among those authenticated in this direction, from 0
//         n  the extended headers of the opcode and the extension block, without the MAC
//
// Payload and pad are not covered, since AUTH protects control information and not data. The BTH binds the opcode, the
// queue pair and the PSN; the extended headers bind the content of an AETH or a probe. The sequence prevents replays.
// The PSN does not: it wraps after 2^24 packets, which takes 6 s at 100 Gb/s.
#pragma once

#include "wire/extensions/extensions.hpp"
#include "wire/extensions/siphash.hpp"

namespace roci {

// Key material that the receiver of a direction sends to its peer in the capability exchange.
using AuthMaterial = std::array<uint8_t, 16>;

// Derives the key for packets from queue pair `sender` to queue pair `receiver`, from the key material of the receiving
// host.
SipKey derive_auth_key(const AuthMaterial& of_receiver, Qpn receiver, Qpn sender);

// Computes the correct MAC of a packet. The packet must be contiguous up to the end of its block, which must contain
// AUTH.
uint64_t compute_auth(const SipKey& key, const FrameView& view, const ExtensionView& block,
                      uint64_t sequence);

// Writes sequence and MAC into a packet that is complete except for its ICRC. `block` is the view of its extension
// block.
void sign(const SipKey& key, const FrameView& view, const ExtensionView& block, uint64_t sequence);

enum class AuthOutcome : uint8_t {
  kRight,
  kMissing,   // no AUTH in the block
  kReplayed,  // correct MAC, but not newer than the last accepted packet
  kWrongMac,
};
inline constexpr unsigned kAuthOutcomeCount = 4;
std::string_view auth_outcome_name(AuthOutcome outcome);

// Validates the packets of one direction at their receiver. A packet is accepted only if it is newer than all accepted
// before: feedback that was overtaken is stale, and repeated feedback is a replay. A rejected packet changes nothing.
class AuthReceiver {
 public:
  explicit AuthReceiver(const SipKey& key) : key_(key) {}
  AuthOutcome check(const FrameView& view, const ExtensionView& block);
  [[nodiscard]] uint64_t next() const { return next_; }  // the lowest sequence that is accepted

 private:
  SipKey key_;
  uint64_t next_ = 0;
};

}  // namespace roci
