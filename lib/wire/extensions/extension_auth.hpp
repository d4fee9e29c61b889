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

// Keys of a network whose hosts share a secret, the network key (ExtensionConfig::network_key).
struct NetworkKeys {
  SipKey datagrams{};  // signs capability datagrams
  SipKey sessions{};   // mixed into the key material of AUTH
};
NetworkKeys derive_network_keys(const SipKey& network_key);
// Key material of a direction that only holders of the network key can compute: from the material that the receiver
// sent, and from the incarnations of both hosts, so that no key outlives one of them.
AuthMaterial mix_network_key(const NetworkKeys& keys, const AuthMaterial& of_receiver, uint64_t receiver,
                             uint64_t sender);

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
  // `next`: the lowest sequence that is accepted.
  explicit AuthReceiver(const SipKey& key, uint64_t next = 0) : key_(key), next_(next) {}
  AuthOutcome check(const FrameView& view, const ExtensionView& block);
  // The same for any representation of a packet. `sequence` and `mac` are those in the packet; mac_of(key, sequence)
  // computes its correct MAC for a 64-bit sequence.
  template <class MacOf>
  AuthOutcome check(uint32_t sequence, uint64_t mac, MacOf&& mac_of) {
    // The lowest sequence that is not below next_ and has this low half.
    const uint64_t whole = next_ + static_cast<uint32_t>(sequence - static_cast<uint32_t>(next_));
    if (is_same_mac(mac_of(key_, whole), mac)) {
      next_ = whole + 1;
      return AuthOutcome::kRight;
    }
    // Distinguishes an old sequence with a correct MAC from a wrong MAC. Only the counters use the difference.
    const auto behind = static_cast<uint32_t>(static_cast<uint32_t>(next_) - sequence);
    const bool is_old = behind != 0 && behind <= next_ && is_same_mac(mac_of(key_, next_ - behind), mac);
    return is_old ? AuthOutcome::kReplayed : AuthOutcome::kWrongMac;
  }
  [[nodiscard]] uint64_t next() const { return next_; }
  [[nodiscard]] const SipKey& key() const { return key_; }

 private:
  SipKey key_;
  uint64_t next_ = 0;
};

}  // namespace roci
