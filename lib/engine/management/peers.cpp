#include "engine/management/peers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

namespace roci {
namespace {

constexpr Nanos kNeighborWait{1'000'000};  // poll interval for the peer's MAC address

uint32_t bit(Capability c) { return static_cast<uint32_t>(c); }

uint32_t capabilities_of(const ExtensionConfig& config, bool telemetry) {
  using enum ExtensionType;
  uint32_t all = bit_of(kSourceQp) | bit_of(kCeEcho) | bit_of(kLsn) | bit_of(kTimestamp) |
                 bit_of(kTimestampEcho) | bit_of(kRxWindow) | bit_of(kFlows) | bit(Capability::kDataBlocks) |
                 bit(Capability::kProbes) | bit(Capability::kReadAcks) | bit(Capability::kWindowMessages);
  if (config.selective_repeat) all |= bit_of(kSack) | bit(Capability::kSelectiveRepeat);
  if (config.authenticate && !config.require_authentication) all |= bit_of(kAuth);
  if (config.network_key) all |= bit(Capability::kNetworkAuth);
  if (telemetry) all |= bit_of(kIntEcho) | bit(Capability::kIntResponses);
  return all;
}

}  // namespace

Peers::Peers(const ExtensionConfig& config, uint32_t window, uint16_t extra, uint8_t int_hops, IdSource& ids,
             Management& management, Counters& counters)
    : config_(config),
      window_(window),
      extra_(extra),
      int_hops_(int_hops),
      ids_(ids),
      management_(management),
      counters_(counters) {
  if (!enabled()) return;
  management_.set_class(kCapabilityClass, this);
  incarnation_ = uint64_t{ids_.next32()} << 32 | ids_.next32() | 1;  // never 0
  for (uint8_t& byte : secret_) byte = static_cast<uint8_t>(ids_.next32() >> 24);
  if (config_.network_key) network_ = derive_network_keys(*config_.network_key);
}

Peers::~Peers() {
  if (enabled()) management_.set_class(kCapabilityClass, nullptr);
  for (auto& [address, peer] : peers_) timers_.cancel(peer);  // a request may be outstanding
}

std::shared_ptr<const PeerRecord> Peers::request_capabilities(const RocePath& path, Nanos now) {
  if (!enabled()) return nullptr;
  Peer* peer = find_or_make(path.destination_ip, now);
  if (peer == nullptr) {
    if (!needs_extensions(config_)) return nullptr;
    auto standard = std::make_shared<PeerRecord>();  // receives no request, so the queue pair fails
    PeerKnowledge knowledge;
    knowledge.status = PeerStatus::kStandard;
    standard->write(knowledge);
    return standard;
  }
  peer->route = {.local = path.source_ip, .remote = path.destination_ip, .hop_limit = path.hop_limit};
  if (!peer->is_requesting() && now - peer->answered_at >= kFresh) {
    // The peer may have been absent at the last request. A queue pair that needs extensions waits for the response.
    if (needs_extensions(config_) && peer->record->read().status == PeerStatus::kStandard)
      peer->record->write(PeerKnowledge{});
    send_request(*peer, now);
    peer->may_lose_authentication = !in_use(*peer) && !config_.require_authentication;
  }
  return peer->record;
}

Peers::Peer* Peers::find_or_make(const IpAddress& address, Nanos now) {
  const auto known = peers_.find(address);
  if (known != peers_.end()) return &known->second;
  if (peers_.size() >= kMax) {
    // Limits how often unknown peers can cause a full scan.
    if (now - swept_at_ < kFresh) return nullptr;
    swept_at_ = now;
    std::erase_if(peers_, [](const auto& entry) {
      return entry.second.record.use_count() == 1 && !entry.second.is_requesting();
    });
    if (peers_.size() >= kMax) return nullptr;
  }
  return &peers_.try_emplace(address).first->second;
}

size_t Peers::longest_chain() const {
  size_t longest = 0;
  for (size_t bucket = 0; bucket < peers_.bucket_count(); ++bucket)
    longest = std::max(longest, peers_.bucket_size(bucket));
  return longest;
}

// The key material differs per peer, so that a peer cannot forge packets of another peer.
CapabilityOffer Peers::offer_for(const IpAddress& peer) const {
  CapabilityOffer offer;
  offer.capabilities = capabilities_of(config_, int_hops_ > 0);
  offer.mtu_extra = extra_;
  offer.int_hops = int_hops_;
  offer.window = config_.selective_repeat ? window_ : 0;
  offer.incarnation = incarnation_;
  const auto derive = [&](uint8_t first, AuthMaterial& material) {
    for (uint8_t half = 0; half < 2; ++half) {
      const auto number = static_cast<uint8_t>(first + half);
      SipHash hash(secret_);
      hash.update(peer.bytes);
      hash.update({&number, 1});
      const uint64_t bits = hash.finish();
      std::memcpy(&material[8U * half], &bits, sizeof bits);
    }
  };
  if (config_.authenticate && !config_.require_authentication) derive(0, offer.auth);
  if (network_) {
    offer.version = kSignedCapabilityVersion;
    derive(2, offer.network_auth);
  }
  return offer;
}

void Peers::send_request(Peer& peer, Nanos at) {
  peer.request = {};
  peer.request.transaction = uint64_t{ids_.next32()} << 32 | ids_.next32();
  peer.request.offer = offer_for(peer.route.remote);
  peer.attempts = 0;
  peer.may_lose_authentication = false;
  timers_.schedule(peer, at);
  management_.wake();
}

void Peers::step(Peer& peer, Nanos now) {
  PeerKnowledge knowledge = peer.record->read();
  // A peer that has sent a request is running, and its responses were lost:
  // a queue pair that requires extensions waits for a response.
  const bool waits = knowledge.status == PeerStatus::kAgreed && !knowledge.confirmed &&
                     needs_extensions(config_) && in_use(peer);
  if (peer.attempts >= (waits ? kMaxAttempts : kAttempts)) {
    peer.answered_at = now;  // by time-out
    if (knowledge.status != PeerStatus::kUnknown && !waits) return;
    knowledge.status = PeerStatus::kStandard;
    peer.record->write(knowledge);
    return;
  }
  // An unreachable peer is treated like one that does not respond.
  if (send(peer.route, peer.request, now) == MadSent::kLater) {
    timers_.schedule(peer, now + kNeighborWait);
    return;
  }
  timers_.schedule(peer, now + kFirstWait * (1 << std::min(peer.attempts, kAttempts - 1)));
  ++peer.attempts;
}

bool Peers::poll(Nanos now) {
  return timers_.advance(now, [&](Timer& timer) { step(static_cast<Peer&>(timer), now); }) > 0;
}

MadSent Peers::send(const MadRoute& route, const CapabilityMessage& message, Nanos now) {
  CapabilityMad mad = build_capability_mad(message);
  if (network_) sign_capability_mad(network_->datagrams, route.local, route.remote, mad);
  return management_.send(route, std::bit_cast<std::array<uint8_t, kMadBytes>>(mad), now);
}

void Peers::on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) {
  const ParsedMad parsed = parse_capability_mad(mad);
  const bool is_signed = network_ && parsed.outcome == MadOutcome::kAccepted &&
                         roci::is_signed(network_->datagrams, back.remote, back.local, mad);
  if (parsed.outcome == MadOutcome::kAccepted && !parsed.message.response) {
    on_request(back, parsed.message, is_signed, now);
  } else if (parsed.outcome == MadOutcome::kAccepted || parsed.outcome == MadOutcome::kRefused) {
    on_response(back, parsed, is_signed, now);
  } else {
    counters_.add(Counter::kMadsRefused);
  }
}

void Peers::on_request(const MadRoute& back, const CapabilityMessage& message, bool is_signed, Nanos now) {
  const IpAddress& address = back.remote;
  Peer* peer = answers_.allow(now) ? find_or_make(address, now) : nullptr;
  if (peer == nullptr) {
    counters_.add(Counter::kMadsRefused);
    return;
  }
  CapabilityMessage response;
  response.response = true;
  response.transaction = message.transaction;
  response.peer_incarnation = message.offer.incarnation;
  response.offer = offer_for(address);
  if (send(back, response, now) != MadSent::kYes) return;  // the peer retries
  const PeerChange change =
      on_capability_request(peer->record->read(), in_use(*peer),
                            knowledge_of(response.offer, message.offer, is_signed, network()), config_);
  if (change.known) {
    peer->record->write(change.knowledge);
    peer->answered_at = -kFresh;  // the next queue pair sends a request
  }
  if (!change.ask || peer->is_requesting()) return;
  peer->caused_at = std::max(now, peer->caused_at + kCausedInterval);
  send_request(*peer, peer->caused_at);
}

void Peers::on_response(const MadRoute& back, const ParsedMad& parsed, bool is_signed, Nanos now) {
  const auto known = peers_.find(back.remote);
  if (known == peers_.end() || !known->second.is_requesting() ||
      parsed.message.transaction != known->second.request.transaction) {
    counters_.add(Counter::kMadsRefused);
    return;
  }
  Peer& peer = known->second;
  PeerChange change;
  if (parsed.outcome == MadOutcome::kRefused) {
    change = on_capability_refusal(peer.record->read(), peer.may_lose_authentication);
  } else if (answers(parsed.message, peer.request)) {
    change = on_capability_response(
        peer.record->read(), peer.may_lose_authentication,
        knowledge_of(peer.request.offer, parsed.message.offer, is_signed, network()), config_);
  }
  if (!change.known) {
    counters_.add(Counter::kMadsRefused);
    return;
  }
  peer.record->write(change.knowledge);
  timers_.cancel(peer);
  peer.answered_at = now;
}

}  // namespace roci
