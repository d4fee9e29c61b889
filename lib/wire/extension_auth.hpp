// The keyed MAC of the AUTH extension: who may tell a sender to slow down, to go back, or to speed up.
//
// It is SipHash-2-4 over these bytes, in this order:
//
//   16 + 16  source and destination IP address; IPv4 in the mapped form ::ffff:a.b.c.d
//         2  UDP source port as on the wire (protocol and destination port are constants)
//        12  BTH, with byte 4 (FECN, BECN and 6 reserved bits, which switches change) as 0
//         8  sequence: the full 64-bit number of the packet among those authenticated in this direction, from 0
//         n  the extended headers of the opcode and the extension block, up to and without the MAC itself
//
// Payload and pad are not covered: this guards control, not data. The BTH binds the opcode, the queue pair and the
// PSN; the extended headers bind what an AETH or a probe says. The sequence is what stops replays: the PSN alone
// comes round again after 2^24 packets, 6 s at 100 Gb/s.
#pragma once

#include "wire/extensions.hpp"
#include "wire/siphash.hpp"

namespace roci {

// What the receiving side of a direction gives out in the capability exchange.
using AuthMaterial = std::array<uint8_t, 16>;

// The key for packets to queue pair `receiver` from queue pair `sender`, from the material that the receiving host
// gave the sending one.
SipKey derive_auth_key(const AuthMaterial& of_receiver, Qpn receiver, Qpn sender);

// The right MAC of a packet that lies in one piece up to the end of its block, which must hold AUTH.
uint64_t compute_auth(const SipKey& key, const FrameView& view, const ExtensionView& block,
                      uint64_t sequence);

// Puts sequence and MAC into a packet that is complete but for its ICRC. `block` is the view of its block.
void sign(const SipKey& key, const FrameView& view, const ExtensionView& block, uint64_t sequence);

enum class AuthOutcome : uint8_t {
  kRight,
  kMissing,   // no AUTH in the block
  kReplayed,  // not newer than what was accepted before
  kWrongMac,
};
inline constexpr unsigned kAuthOutcomeCount = 4;
std::string_view auth_outcome_name(AuthOutcome outcome);

// The receiving end of one direction. Takes a packet only if it is newer than all before it: feedback that was
// overtaken is stale and feedback that comes twice is forged or worthless. A packet that is refused changes nothing.
class AuthReceiver {
 public:
  explicit AuthReceiver(const SipKey& key) : key_(key) {}
  AuthOutcome check(const FrameView& view, const ExtensionView& block);
  [[nodiscard]] uint64_t next() const { return next_; }  // the lowest sequence that is still accepted

 private:
  SipKey key_;
  uint64_t next_ = 0;
};

}  // namespace roci
