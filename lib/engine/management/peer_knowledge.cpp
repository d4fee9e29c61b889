#include "engine/management/peer_knowledge.hpp"

namespace roci {

PeerKnowledge knowledge_of(const CapabilityOffer& local, CapabilityOffer remote, bool is_signed,
                           const NetworkKeys* network) {
  PeerKnowledge known;
  known.authenticated = network != nullptr && is_signed;
  if (!known.authenticated) remote.capabilities &= ~static_cast<uint32_t>(Capability::kNetworkAuth);
  const auto agreement = agree(local, remote);
  known.status = agreement ? PeerStatus::kAgreed : PeerStatus::kStandard;
  known.agreement = agreement.value_or(CapabilityAgreement{});
  known.window = remote.window;
  known.time_unit = remote.time_unit;
  known.incarnation = remote.incarnation;
  if (known.authenticated && known.agreement.has(Capability::kNetworkAuth)) {
    known.remote_auth = mix_network_key(*network, remote.network_auth, remote.incarnation, local.incarnation);
    known.local_auth = mix_network_key(*network, local.network_auth, local.incarnation, remote.incarnation);
  } else {
    known.remote_auth = remote.auth;
    known.local_auth = local.auth;
  }
  return known;
}

PeerChange on_capability_request(const PeerKnowledge& before, bool in_use, const PeerKnowledge& offered,
                                 const ExtensionConfig& config) {
  PeerChange change;
  const bool other_incarnation = before.incarnation != offered.incarnation;
  if (before.status == PeerStatus::kAgreed && (in_use || !other_incarnation)) {
    change.ask = in_use && (other_incarnation || !before.confirmed);
    return change;
  }
  if (config.require_authentication && !offered.authenticated) return change;
  change.known = true;
  change.knowledge = offered;
  change.knowledge.confirmed = false;
  change.ask = in_use;
  return change;
}

PeerChange on_capability_response(const PeerKnowledge& before, bool may_lose_authentication,
                                  const PeerKnowledge& offered, const ExtensionConfig& config) {
  PeerChange change;
  if (!offered.authenticated &&
      (config.require_authentication || (before.authenticated && !may_lose_authentication)))
    return change;
  change.known = true;
  change.knowledge = offered;
  change.knowledge.confirmed = offered.status == PeerStatus::kAgreed;
  return change;
}

PeerChange on_capability_refusal(const PeerKnowledge& before, bool may_lose_authentication) {
  PeerChange change;
  if (before.authenticated && !may_lose_authentication) return change;
  change.known = true;
  change.knowledge.status = PeerStatus::kStandard;
  return change;
}

}  // namespace roci
