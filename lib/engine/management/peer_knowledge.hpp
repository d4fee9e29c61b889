// Knowledge about a peer's extensions, and the rules by which capability datagrams change it. The rules are functions
// of values only, so that a test can explore them exhaustively (tests/transport/queue_pair/session_model_test.cpp).
#pragma once

#include <cstdint>

#include "roci/extension_config.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci {

enum class PeerStatus : uint8_t { kUnknown, kStandard, kAgreed };

// Written by the first worker, read by all workers.
struct PeerKnowledge {
  PeerStatus status = PeerStatus::kUnknown;
  bool confirmed = false;      // the peer accepts extensions from this host
  bool authenticated = false;  // from a datagram that was signed with the network key
  CapabilityAgreement agreement;
  uint32_t window = 0;        // number of packets that the peer buffers beyond a gap
  uint32_t time_unit = 1000;  // unit of the peer's timestamps, ps
  uint64_t incarnation = 0;   // of the peer
  // `remote_auth` derives keys of packets to the peer, `local_auth` keys of packets from it.
  AuthMaterial remote_auth{}, local_auth{};
  friend bool operator==(const PeerKnowledge&, const PeerKnowledge&) = default;
};

// Knowledge that follows from the offers of both hosts. `network`: null without a network key. `is_signed`: the peer's
// datagram has a correct MAC under the network key.
PeerKnowledge knowledge_of(const CapabilityOffer& local, CapabilityOffer remote, bool is_signed,
                           const NetworkKeys* network);

struct PeerChange {
  bool known = false;  // `knowledge` replaces the previous knowledge
  bool ask = false;    // the host must send a request to the peer, if none is outstanding
  PeerKnowledge knowledge;
};

// A request arrived. It has no proof of freshness and possibly none of origin, so it never changes what sessions use:
// an agreement of a record in use. Another incarnation than the known one may be a restarted peer. Then the host sends
// a request, and only the response to that request changes the agreement.
PeerChange on_capability_request(const PeerKnowledge& before, bool in_use, const PeerKnowledge& offered,
                                 const ExtensionConfig& config);

// A response to the outstanding request arrived. `may_lose_authentication`: no queue pair used the record when the
// request was made. Nothing changes if an unauthenticated response must not replace the knowledge.
PeerChange on_capability_response(const PeerKnowledge& before, bool may_lose_authentication,
                                  const PeerKnowledge& offered, const ExtensionConfig& config);

// The peer refused the outstanding request as a host without extensions does. Refusals are never signed.
PeerChange on_capability_refusal(const PeerKnowledge& before, bool may_lose_authentication);

// Whether queue pairs do not work with peers without extensions.
inline bool needs_extensions(const ExtensionConfig& config) {
  return config.mode == ExtensionMode::kOn || config.require_authentication;
}

}  // namespace roci
