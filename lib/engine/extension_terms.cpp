#include "engine/extension_terms.hpp"

#include <algorithm>
#include <bit>

namespace roci {

ExtensionTerms make_terms(const PeerKnowledge& peer, const ExtensionConfig& config, const QueuePairConfig& qp,
                          const QueuePairAttributes& attributes, uint16_t port_mtu) {
  using enum ExtensionType;
  const CapabilityAgreement& agreed = peer.agreement;
  ExtensionTerms terms;
  terms.capabilities = agreed.capabilities;
  terms.may_send = peer.confirmed;
  terms.peer_time_unit = peer.time_unit;
  constexpr uint16_t kFeedback = bit_of(kCeEcho) | bit_of(kLsn) | bit_of(kTimestampEcho) | bit_of(kRxWindow) |
                                 bit_of(kFlows) | bit_of(kSack) | bit_of(kAuth);
  terms.on_feedback = agreed.extensions() & kFeedback;
  if (agreed.has(Capability::kDataBlocks)) {
    const auto wanted = static_cast<uint16_t>((config.source_qpn ? bit_of(kSourceQp) : 0) |
                                              (config.data_lsn ? bit_of(kLsn) : 0) |
                                              (config.timestamps ? bit_of(kTimestamp) : 0));
    const uint32_t full = attributes.path_mtu + kMaxIpOverhead;
    const uint32_t room = std::min<uint32_t>(agreed.mtu_extra, port_mtu > full ? port_mtu - full : 0);
    const auto types = static_cast<uint16_t>(wanted & agreed.extensions());
    if (fixed_block_bytes(types) <= room) terms.on_data = types;
  }
  if (agreed.has(Capability::kSelectiveRepeat)) {
    terms.keeps = kReorderWindow;
    // What we remember of the peer's packets is bounded, whatever it says it keeps.
    terms.peer_keeps = std::bit_floor(std::min(peer.window, 4 * kReorderWindow));
  }
  if ((agreed.extensions() & bit_of(kAuth)) != 0) {
    terms.authenticate = true;
    terms.send_key = derive_auth_key(peer.theirs, attributes.remote_qp, qp.number);
    terms.receive_key = derive_auth_key(peer.ours, qp.number, attributes.remote_qp);
  }
  return terms;
}

}  // namespace roci
