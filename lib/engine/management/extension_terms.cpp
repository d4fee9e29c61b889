#include "engine/management/extension_terms.hpp"

#include <algorithm>
#include <bit>

#include "base/log.hpp"

namespace roci {

ExtensionTerms make_terms(const PeerKnowledge& peer, const ExtensionConfig& config,
                          const HostTelemetryConfig& telemetry, const QueuePairConfig& qp,
                          const QueuePairAttributes& attributes, uint16_t port_mtu) {
  using enum ExtensionType;
  const CapabilityAgreement& agreed = peer.agreement;
  ExtensionTerms terms;
  terms.capabilities = agreed.capabilities;
  terms.may_send = peer.confirmed;
  terms.peer_time_unit = peer.time_unit;
  constexpr uint16_t kFeedback = bit_of(kCeEcho) | bit_of(kLsn) | bit_of(kTimestampEcho) | bit_of(kRxWindow) |
                                 bit_of(kFlows) | bit_of(kIntEcho) | bit_of(kSack) | bit_of(kAuth);
  terms.on_feedback = agreed.extensions() & kFeedback;
  const uint32_t full = attributes.path_mtu + kMaxIpOverhead;
  const uint32_t space = std::min<uint32_t>(agreed.mtu_extra, port_mtu > full ? port_mtu - full : 0);
  if (agreed.has(Capability::kDataBlocks)) {
    const auto wanted = static_cast<uint16_t>((config.source_qpn ? bit_of(kSourceQp) : 0) |
                                              (config.data_lsn ? bit_of(kLsn) : 0) |
                                              (config.timestamps ? bit_of(kTimestamp) : 0));
    const auto types = static_cast<uint16_t>(wanted & agreed.extensions());
    if (fixed_block_bytes(types) <= space) terms.on_data = types;
  }
  if (telemetry.enabled() && (agreed.extensions() & bit_of(kIntEcho)) != 0) {
    terms.int_hops = agreed.int_hops;
    const auto hops = static_cast<uint32_t>(telemetry.hops * sizeof(IntHop));
    terms.longest_int = full + space > hops ? full + space - hops : 0;
  }
  if (agreed.has(Capability::kSelectiveRepeat)) {
    terms.reorder_window = kReorderWindow;
    // The state per queue pair is bounded, regardless of the window that the peer advertises.
    terms.peer_reorder_window = std::bit_floor(std::min(peer.window, 4 * kReorderWindow));
  }
  if ((agreed.extensions() & bit_of(kAuth)) != 0) {
    terms.authenticate = true;
    terms.require_signed = config.require_authentication;
    // READ acknowledgments report the marks of READ responses.
    terms.ignore_cnps = config.ignore_cnps && peer.confirmed && (terms.on_feedback & bit_of(kCeEcho)) != 0 &&
                        agreed.has(Capability::kReadAcks);
    terms.send_key = derive_auth_key(peer.remote_auth, attributes.remote_qp, qp.number);
    terms.receive_key = derive_auth_key(peer.local_auth, qp.number, attributes.remote_qp);
  }
  return terms;
}

uint8_t int_echo_hops(uint16_t port_mtu) {
  // The maximum size of feedback without hops; the response to a probe is shorter.
  constexpr uint32_t kWithoutHops = 40 + 8 + sizeof(Bth) + sizeof(Aeth) + kIcrcBytes + kExtensionHeaderBytes +
                                    sizeof(CeEcho) + sizeof(LsnValue) + sizeof(TimestampEcho) +
                                    sizeof(RxWindow) + sizeof(Flows) + sizeof(IntEchoHeader) + sizeof(Sack) +
                                    sizeof(Auth);
  const uint32_t space = port_mtu > kWithoutHops ? port_mtu - kWithoutHops : 0;
  return static_cast<uint8_t>(std::min<size_t>(space / sizeof(IntHop), kMaxIntHops));
}

uint16_t PeerExtensions::extra_bytes() const {
  const uint32_t mtu = largest_path_mtu(port_mtu_, kMaxIpOverhead);
  return mtu == 0 ? 0 : static_cast<uint16_t>(port_mtu_ - mtu - kMaxIpOverhead);
}

void PeerExtensions::set_peer(AttachedQueuePair& qp, std::shared_ptr<const PeerRecord> peer) {
  qp.peer = std::move(peer);
  qp.session_due = false;
  qp.core.session.reset();
  qp.core.extensions_undecided = false;
  if (qp.peer != nullptr) adopt(qp);
}

void PeerExtensions::adopt(AttachedQueuePair& qp) {
  qp.peer_version = qp.peer->version();
  const PeerKnowledge known = qp.peer->read();
  const std::unique_ptr<ExtensionSession>& session = qp.core.session;
  const PeerDecision decision = decide(known, config_);
  qp.core.extensions_undecided = decision == PeerDecision::kUndecided;
  qp.session_due = false;
  if (decision != PeerDecision::kSession) {
    qp.core.session.reset();
    return;
  }
  if (session != nullptr) {
    const ExtensionTerms terms =
        make_terms(known, config_, telemetry_, qp.core.config, qp.core.attributes, port_mtu_);
    if (differs_in_may_send_only(terms, session->terms)) {
      session->terms = terms;
      return;
    }
    make_session(qp, known);
    return;
  }
  qp.session_due = true;
  if (needs_extensions(config_) || config_.receive_window != 0) make_session(qp, known);
}

PeerDecision decide(const PeerKnowledge& known, const ExtensionConfig& config) {
  if (known.status == PeerStatus::kUnknown) return PeerDecision::kUndecided;
  if (known.status == PeerStatus::kStandard) return PeerDecision::kStandard;
  if (!config.require_authentication) return PeerDecision::kSession;
  if (!known.authenticated || (known.agreement.extensions() & bit_of(ExtensionType::kAuth)) == 0)
    return PeerDecision::kStandard;
  return known.confirmed ? PeerDecision::kSession : PeerDecision::kUndecided;
}

bool differs_in_may_send_only(const ExtensionTerms& terms, ExtensionTerms current) {
  current.may_send = terms.may_send;
  return terms == current;
}

// Without memory for a session, the queue pair refuses packets with extensions as if it
// did not know the peer yet, and retries with the next packet.
void PeerExtensions::make_session(AttachedQueuePair& qp, const PeerKnowledge& known) {
  std::unique_ptr<ExtensionSession>& session = qp.core.session;
  const ExtensionTerms terms =
      make_terms(known, config_, telemetry_, qp.core.config, qp.core.attributes, port_mtu_);
  session.reset();  // stores its sequences, which the next session may continue
  if (!terms.authenticate || auth_history_.prepare())
    session.reset(new (qp.core.arena())
                      ExtensionSession(terms, buffer_budget_, terms.authenticate ? &auth_history_ : nullptr));
  qp.session_due = qp.core.extensions_undecided = session == nullptr;
  if (session == nullptr) return;
  if (config_.receive_window != 0) session->set_receiver_window(config_.receive_window);
  if (terms.int_hops > 0)
    session->telemetry.reset(new (qp.core.arena())
                                 TelemetrySession(telemetry_, terms.int_hops, terms.longest_int));
}

PeerExtensions::Negotiation PeerExtensions::negotiation_of(const AttachedQueuePair& qp) const {
  if (!needs_extensions(config_)) return Negotiation::kYes;
  const ibv_qp_state state = qp.core.state();
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS) return Negotiation::kYes;
  // Only RC queue pairs have a peer, which is set after the transition to RTR.
  if (qp.peer == nullptr) return qp.core.config.type == IBV_QPT_RC ? Negotiation::kNotYet : Negotiation::kYes;
  if (qp.core.extensions_undecided) return Negotiation::kNotYet;
  if (qp.core.session != nullptr)
    return qp.core.session->terms.may_send ? Negotiation::kYes : Negotiation::kNotYet;
  log().warn("device {}: queue pair {:#x}: peer {} does not {}", device_, qp.core.number().value(),
             qp.core.attributes.path.destination_ip.to_string(),
             config_.require_authentication
                 ? "authenticate with the network key, which is required (authenticate: require)"
                 : "support extensions, which are required (mode: on)");
  return Negotiation::kRefused;
}

}  // namespace roci
