// Model of the capability exchange and of AUTH: two hosts with one queue pair each, and an attacker who drops, replays,
// reorders and forges. All states within small bounds are visited. The decisions are those of the hosts: the rules of
// peer_knowledge.hpp, decide() and make_terms() of extension_terms.hpp, AuthState and AuthSequences of auth_history.hpp,
// and AuthReceiver.
//
// The attacker holds every datagram and packet that was ever sent, and delivers any of them at any time, any number of
// times or never. So the model has no network: order, loss and duplication are the attacker's choice.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "engine/management/extension_terms.hpp"
#include "engine/management/peer_knowledge.hpp"
#include "support/sanitizer.hpp"
#include "transport/queue_pair/auth_history.hpp"

namespace roci::test {
namespace {

// With ASan or TSan the model is ten times slower, and covers nothing more.
constexpr bool kSmall = kSanitized;

constexpr uint8_t kIncarnations = 2;  // starts of a host
constexpr uint8_t kQuestions = 2;     // most requests of an incarnation
constexpr uint8_t kSigned = 3;        // most signed packets of a host

constexpr SipKey kNetworkKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// Rules that the hosts follow, and those of earlier revisions.
struct Rules {
  static PeerChange on_request(const PeerKnowledge& before, bool in_use, const PeerKnowledge& offered,
                               const ExtensionConfig& config) {
    return on_capability_request(before, in_use, offered, config);
  }
  static constexpr bool kKeepsSequences = true;
};
// S1: a request replaces what was agreed.
struct RequestsChangeAgreements : Rules {
  static PeerChange on_request(const PeerKnowledge& before, bool /*in_use*/, const PeerKnowledge& offered,
                               const ExtensionConfig& /*config*/) {
    PeerChange change{true, before.incarnation != offered.incarnation, offered};
    change.knowledge.confirmed = offered.status == PeerStatus::kAgreed && before.confirmed &&
                                 before.incarnation == offered.incarnation;
    return change;
  }
};
// S3: each session starts at sequence 0.
struct SessionsStartAnew : Rules {
  static constexpr bool kKeepsSequences = false;
};

struct SignedPacket {
  SipKey key;
  uint64_t sequence = 0;
};

// Any bytes that the key and the sequence determine.
uint64_t mac_of(const SipKey& key, uint64_t sequence) {
  uint64_t low = 0, high = 0;
  std::memcpy(&low, key.data(), 8);
  std::memcpy(&high, key.data() + 8, 8);
  return (low ^ sequence * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd ^ high;
}

struct Host {
  uint8_t incarnation = 1;
  uint8_t connected_to =
      0;  // incarnation of the peer whose queue pair this one is connected to; 0: not connected
  uint8_t questions = 0;  // of this incarnation
  bool asking = false;    // the last question is unanswered
  bool may_lose_authentication = false;
  uint8_t sent = 0;         // signed packets
  uint8_t accepted = 0;     // bit n: the peer's signed packet n
  bool has_signed = false;  // the peer, in this connection or an earlier one with the same key
  PeerKnowledge known;
  bool has_session = false;
  ExtensionTerms terms;
  AuthState auth{SipKey{}, SipKey{}, false, static_cast<const AuthHistory*>(nullptr)};
  AuthSequences<1, 6> history;
  std::array<SignedPacket, kSigned> packets;
};

struct State {
  std::array<Host, 2> hosts;
  uint8_t connections = 0, restarts = 0;
  // Questions and answers that were sent, one bit for each: see bit_of_question() and bit_of_answer().
  uint32_t asked = 0;
  uint64_t answered = 0;
};

struct Bounds {
  const char* name;
  ExtensionConfig config;
  // The attacker reads the exchange, so that forged responses have the right transaction.
  bool on_path = false;
  uint8_t connections = 2;  // times that the queue pairs are connected
  uint8_t packets = 2;      // signed packets of each host
  uint8_t restarts = 1;     // of both hosts together
  uint8_t questions = 1;    // requests of an incarnation
};

template <class R>
class Model {
 public:
  explicit Model(const Bounds& bounds) : bounds_(bounds), visited_(size_t{1} << 23) {
    if (bounds.config.network_key) network_ = derive_network_keys(*bounds.config.network_key);
    for (size_t host = 0; host < 2; ++host) {
      for (uint8_t i = 1; i <= kIncarnations; ++i) {
        for (uint8_t peer = 1; peer <= kIncarnations; ++peer) {
          honest_[host][i][peer] =
              knowledge_of(offer_of(host, i), offer_of(1 - host, peer), network_.has_value(), network());
        }
      }
    }
  }

  // Visits all states, up to the first violation.
  void run() {
    const auto begin = std::chrono::steady_clock::now();
    visit(State{});
    while (!pending_.empty() && violation_.empty()) {
      const State state = pending_.back();
      pending_.pop_back();
      check(state);
      expand(state);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %zu states, %zu transitions, %.1f s%s%s\n", bounds_.name, states_, transitions_,
                took.count(), violation_.empty() ? "" : "; violation: ", violation_.c_str());
    std::fflush(stdout);
  }
  [[nodiscard]] size_t states() const { return states_; }
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  static constexpr uint64_t kForgedIncarnation = 0x666;

  [[nodiscard]] const NetworkKeys* network() const { return network_ ? &*network_ : nullptr; }
  static uint64_t number_of(size_t host, uint8_t incarnation) { return 100 * (host + 1) + incarnation; }
  static Qpn queue_pair_of(size_t host, uint8_t incarnation) {
    return Qpn{static_cast<uint32_t>(number_of(host, incarnation))};
  }

  [[nodiscard]] CapabilityOffer offer_of(size_t host, uint8_t incarnation) const {
    CapabilityOffer offer;
    offer.capabilities = bit_of(ExtensionType::kCeEcho) | bit_of(ExtensionType::kLsn);
    offer.incarnation = number_of(host, incarnation);
    const auto material = static_cast<uint8_t>(offer.incarnation);
    if (!bounds_.config.require_authentication) {
      offer.capabilities |= bit_of(ExtensionType::kAuth);
      offer.auth.fill(material);
    }
    if (network_) {
      offer.version = kSignedCapabilityVersion;
      offer.capabilities |= static_cast<uint32_t>(Capability::kNetworkAuth);
      offer.network_auth.fill(material);
    }
    return offer;
  }
  // Variant of an offer that the attacker makes up.
  [[nodiscard]] CapabilityOffer forged_offer(const State& state, size_t claimed, unsigned variant) const {
    CapabilityOffer offer;
    offer.incarnation =
        (variant & 1) != 0 ? kForgedIncarnation : number_of(claimed, state.hosts[claimed].incarnation);
    offer.capabilities = bit_of(ExtensionType::kLsn);
    if ((variant & 2) == 0) return offer;
    offer = offer_of(claimed, state.hosts[claimed].incarnation);
    if ((variant & 1) != 0) offer.incarnation = kForgedIncarnation;
    if (network_) {
      offer.network_auth.fill(0x66);
    } else {
      offer.auth.fill(0x66);
    }
    return offer;
  }
  static uint32_t bit_of_question(size_t from, uint8_t incarnation, uint8_t number) {
    return 1U << ((from * kIncarnations + incarnation - 1U) * kQuestions + number - 1U);
  }
  // An answer of the peer's `incarnation` to that question.
  static uint64_t bit_of_answer(size_t from, uint8_t incarnation, uint8_t number, uint8_t answering) {
    return uint64_t{1} << (((from * kIncarnations + incarnation - 1U) * kQuestions + number - 1U) *
                               kIncarnations +
                           answering - 1U);
  }

  // The queue pair follows the knowledge about its peer, as PeerExtensions does.
  void adopt(State& state, size_t at) {
    Host& host = state.hosts[at];
    if (host.connected_to == 0) return;
    if (decide(host.known, bounds_.config) != PeerDecision::kSession) return end_session(host);
    QueuePairConfig config;
    config.number = queue_pair_of(at, host.incarnation);
    QueuePairAttributes attributes;
    attributes.remote_qp = queue_pair_of(1 - at, host.connected_to);
    const ExtensionTerms terms = make_terms(host.known, bounds_.config, {}, config, attributes, 4200);
    if (host.has_session && differs_in_may_send_only(terms, host.terms)) {
      host.terms = terms;
      return;
    }
    end_session(host);
    host.has_session = true;
    if (terms.receive_key != host.terms.receive_key) host.has_signed = false;
    host.terms = terms;
    host.auth = AuthState(terms.send_key, terms.receive_key, terms.require_signed,
                          terms.authenticate && R::kKeepsSequences ? &host.history : nullptr);
  }
  static void end_session(Host& host) {
    if (host.has_session && host.terms.authenticate) host.auth.store(host.terms.send_key, host.history);
    host.has_session = false;
  }

  void ask(State& state, size_t at) {
    Host& host = state.hosts[at];
    if (host.asking || host.questions == bounds_.questions) return;
    host.asking = true;
    host.may_lose_authentication = host.connected_to == 0 && !bounds_.config.require_authentication;
    ++host.questions;
    state.asked |= bit_of_question(at, host.incarnation, host.questions);
  }

  void change_knowledge(State& state, size_t at, const PeerKnowledge& knowledge) {
    state.hosts[at].known = knowledge;
    adopt(state, at);
  }

  // A request, authentic or forged, arrives at host `at`.
  // Returns whether anything changed.
  bool deliver_request(State& state, size_t at, const CapabilityOffer& offer, bool is_signed) {
    Host& host = state.hosts[at];
    const bool established = host.connected_to != 0 && host.known.confirmed;
    const PeerKnowledge before = host.known;
    const bool had_session = host.has_session;
    const ExtensionTerms terms = host.terms;
    const PeerChange change = R::on_request(
        host.known, host.connected_to != 0,
        knowledge_of(offer_of(at, host.incarnation), offer, is_signed, network()), bounds_.config);
    if (change.known) change_knowledge(state, at, change.knowledge);
    const uint8_t questions = host.questions;
    if (change.ask) ask(state, at);
    if (established && (host.known != before || host.has_session != had_session || host.terms != terms))
      fail("a request changed the state of an established peer");
    return change.known || host.questions != questions;
  }

  bool deliver_response(State& state, size_t at, const CapabilityOffer& offer, bool is_signed) {
    Host& host = state.hosts[at];
    const bool established = host.connected_to != 0 && host.known.confirmed;
    const PeerChange change = on_capability_response(
        host.known, host.may_lose_authentication,
        knowledge_of(offer_of(at, host.incarnation), offer, is_signed, network()), bounds_.config);
    if (!change.known) return false;
    if (network_ && established && !is_signed)
      fail("an unauthenticated response changed an established peer");
    host.asking = false;
    change_knowledge(state, at, change.knowledge);
    return true;
  }

  void connect(State& state) {
    ++state.connections;
    for (size_t at = 0; at < 2; ++at) {
      Host& host = state.hosts[at];
      end_session(host);
      host.connected_to = state.hosts[1 - at].incarnation;
    }
    for (size_t at = 0; at < 2; ++at) {
      adopt(state, at);
      ask(state, at);
    }
  }

  void restart(State& state, size_t at) {
    ++state.restarts;
    Host& host = state.hosts[at];
    const auto incarnation = static_cast<uint8_t>(host.incarnation + 1);
    const auto packets = host.packets;
    const uint8_t sent = host.sent, accepted = host.accepted;
    host = Host{};
    host.incarnation = incarnation;
    host.packets = packets;  // recorded by the attacker
    host.sent = sent;
    host.accepted = accepted;
  }

  void send_signed(State& state, size_t at) {
    Host& host = state.hosts[at];
    const SignedPacket packet{host.terms.send_key, host.auth.take_sequence()};
    for (const Host& other : state.hosts) {
      for (uint8_t i = 0; i < other.sent; ++i) {
        if (other.packets[i].key == packet.key && other.packets[i].sequence == packet.sequence)
          fail("two packets were signed with one key and sequence");
      }
    }
    host.packets[host.sent++] = packet;
  }

  bool deliver_signed(State& state, size_t at, uint8_t number) {
    Host& host = state.hosts[at];
    const SignedPacket& packet = state.hosts[1 - at].packets[number];
    const AuthOutcome outcome = host.auth.receiver().check(static_cast<uint32_t>(packet.sequence),
                                                           mac_of(packet.key, packet.sequence), mac_of);
    if (!host.auth.accepts(outcome)) return false;
    if ((host.accepted & 1U << number) != 0) fail("a recorded packet was accepted again");
    host.accepted = static_cast<uint8_t>(host.accepted | 1U << number);
    host.has_signed = true;
    return true;
  }

  // Changes no state.
  void deliver_unsigned(const State& state, size_t at) {
    Host host = state.hosts[at];
    if (!host.auth.accepts(AuthOutcome::kMissing)) return;
    if (host.has_signed) fail("unsigned feedback was accepted from a peer that signs");
    if (bounds_.config.require_authentication)
      fail("unsigned feedback was accepted, although AUTH is required");
  }

  // Properties of each state.
  void check(const State& state) {
    for (size_t at = 0; at < 2; ++at) {
      const Host& host = state.hosts[at];
      const Host& peer = state.hosts[1 - at];
      if (bounds_.config.require_authentication && host.has_session &&
          (!host.terms.authenticate || !host.known.confirmed || !host.known.authenticated))
        fail("a session exists without authentication, which is required");
      if (host.known.confirmed) {
        bool is_honest = false;
        for (uint8_t i = 1; i <= peer.incarnation; ++i) {
          PeerKnowledge honest = honest_[at][host.incarnation][i];
          honest.confirmed = true;
          is_honest = is_honest || host.known == honest;
        }
        if (!is_honest) fail("a host confirmed terms that its peer did not offer");
      }
      // The connection works: the next signed packet of the peer is accepted.
      if (!settled(host, peer) || !settled(peer, host)) continue;
      AuthState sender = peer.auth, receiver = host.auth;
      const uint64_t sequence = sender.take_sequence();
      const SipKey& key = peer.terms.send_key;
      if (receiver.receiver().check(static_cast<uint32_t>(sequence), mac_of(key, sequence), mac_of) !=
          AuthOutcome::kRight)
        fail("feedback of a confirmed peer is refused");
    }
  }
  // Whether the host has confirmed the present incarnation of the peer, and is connected to it.
  static bool settled(const Host& host, const Host& peer) {
    return host.has_session && host.terms.may_send && host.terms.authenticate &&
           host.connected_to == peer.incarnation && host.known.incarnation % 100 == peer.incarnation;
  }

  template <class F>
  void step(const State& from, F&& action) {
    if (!violation_.empty()) return;
    State next = from;
    action(next);
    ++transitions_;
    visit(next);
  }
  // The same for an action that returns whether it changed anything.
  template <class F>
  void try_step(const State& from, F&& action) {
    if (!violation_.empty()) return;
    State next = from;
    ++transitions_;
    if (action(next)) visit(next);
  }

  void expand(const State& state) {
    if (state.connections < bounds_.connections) step(state, [&](State& s) { connect(s); });
    for (size_t at = 0; at < 2; ++at) {
      const Host& host = state.hosts[at];
      const size_t other = 1 - at;
      if (!host.asking && host.questions < bounds_.questions) step(state, [&](State& s) { ask(s, at); });
      if (host.asking) {  // no response in time
        step(state, [&](State& s) {
          s.hosts[at].asking = false;
          PeerKnowledge known = s.hosts[at].known;
          if (known.status != PeerStatus::kUnknown) return;
          known.status = PeerStatus::kStandard;
          change_knowledge(s, at, known);
        });
      }
      if (host.incarnation < kIncarnations && state.restarts < bounds_.restarts)
        step(state, [&](State& s) { restart(s, at); });
      if (host.has_session && host.terms.authenticate && host.terms.may_send && host.sent < bounds_.packets)
        step(state, [&](State& s) { send_signed(s, at); });
      deliver_requests(state, at, other);
      deliver_responses(state, at, other);
      if (!host.has_session || !host.terms.authenticate) continue;
      for (uint8_t i = 0; i < state.hosts[other].sent; ++i)
        try_step(state, [&](State& s) { return deliver_signed(s, at, i); });
      deliver_unsigned(state, at);
    }
  }

  void deliver_requests(const State& state, size_t at, size_t from) {
    for (uint8_t i = 1; i <= kIncarnations; ++i) {
      for (uint8_t number = 1; number <= kQuestions; ++number) {
        if ((state.asked & bit_of_question(from, i, number)) == 0) continue;
        try_step(state, [&](State& s) {
          s.answered |= bit_of_answer(from, i, number, s.hosts[at].incarnation);
          const bool changed = deliver_request(s, at, offer_of(from, i), network_.has_value());
          return changed || s.answered != state.answered;
        });
      }
    }
    for (unsigned variant = 0; variant < 4; ++variant)
      try_step(state,
               [&](State& s) { return deliver_request(s, at, forged_offer(s, from, variant), false); });
  }

  // Responses to another question, or of another transaction, are refused by their transaction.
  void deliver_responses(const State& state, size_t at, size_t from) {
    const Host& host = state.hosts[at];
    if (!host.asking) return;
    for (uint8_t i = 1; i <= kIncarnations; ++i) {
      if ((state.answered & bit_of_answer(at, host.incarnation, host.questions, i)) == 0) continue;
      try_step(state,
               [&](State& s) { return deliver_response(s, at, offer_of(from, i), network_.has_value()); });
    }
    if (!bounds_.on_path) return;
    for (unsigned variant = 0; variant < 4; ++variant)
      try_step(state,
               [&](State& s) { return deliver_response(s, at, forged_offer(s, from, variant), false); });
    step(state, [&](State& s) {
      Host& refused = s.hosts[at];
      const bool established = refused.connected_to != 0 && refused.known.confirmed;
      const PeerChange change = on_capability_refusal(refused.known, refused.may_lose_authentication);
      if (!change.known) return;
      if (established) fail("a refusal changed an established peer");
      refused.asking = false;
      change_knowledge(s, at, change.knowledge);
    });
  }

  void fail(const char* what) {
    if (violation_.empty()) violation_ = what;
  }

  // Adds the state unless it was visited. States are compared by 64-bit hashes of all their members.
  void visit(const State& state) {
    const uint64_t hash = hash_of(state);
    for (size_t at = hash & (visited_.size() - 1);; at = (at + 1) & (visited_.size() - 1)) {
      if (visited_[at] == hash) return;
      if (visited_[at] != 0) continue;
      visited_[at] = hash;
      break;
    }
    ++states_;
    if (states_ > visited_.size() * 3 / 4) fail("more states than the table has space for");
    pending_.push_back(state);
  }

  static uint64_t hash_of(const State& state) {
    uint64_t hash = 0x243f6a8885a308d3;
    const auto add = [&hash](uint64_t value) {
      hash = (hash ^ value) * 0x9fb21c651e98df25;
      hash ^= hash >> 32;
    };
    const auto add_key = [&add](const std::array<uint8_t, 16>& key) { add(mac_of(key, 1)); };
    add(state.connections | uint64_t{state.restarts} << 4 | uint64_t{state.asked} << 8);
    add(state.answered);
    for (const Host& h : state.hosts) {
      add(h.incarnation | uint64_t{h.connected_to} << 4 | uint64_t{h.questions} << 8 |
          uint64_t{h.sent} << 12 | uint64_t{h.accepted} << 16 | uint64_t{h.asking} << 24 |
          uint64_t{h.may_lose_authentication} << 25 | uint64_t{h.has_signed} << 26 |
          uint64_t{h.has_session} << 27 | uint64_t{h.known.confirmed} << 28 |
          uint64_t{h.known.authenticated} << 29 | static_cast<uint64_t>(h.known.status) << 30);
      add(h.known.incarnation << 32 | h.known.agreement.capabilities);
      add_key(h.known.remote_auth);
      add_key(h.known.local_auth);
      add_key(h.terms.receive_key);
      if (h.has_session) {
        add_key(h.terms.send_key);
        add(h.terms.capabilities | uint64_t{h.terms.may_send} << 32 | uint64_t{h.auth.peer_signs()} << 33);
        add(h.auth.send_sequence() << 32 | h.auth.receiver().next());
      }
      uint64_t history = 0;  // the order of the entries has no effect within the bounds
      h.history.for_each([&](const SipKey& key, uint64_t next) { history += mac_of(key, next); });
      add(history);
      for (uint8_t i = 0; i < h.sent; ++i) add(mac_of(h.packets[i].key, h.packets[i].sequence));
    }
    return hash | 1;
  }

  const Bounds& bounds_;
  std::optional<NetworkKeys> network_;
  PeerKnowledge honest_[2][kIncarnations + 1][kIncarnations + 1];
  std::vector<uint64_t> visited_;
  std::vector<State> pending_;
  size_t states_ = 0, transitions_ = 0;
  std::string violation_;
};

constexpr ExtensionConfig kPrefer{.mode = ExtensionMode::kAuto, .authenticate = true};
constexpr ExtensionConfig kRequire{.mode = ExtensionMode::kAuto,
                                   .authenticate = true,
                                   .require_authentication = true,
                                   .network_key = kNetworkKey};
// Without a network key the attacker cannot see the transactions. With one it may.
constexpr Bounds kPreferred{"prefer, with a restart", kPrefer, false, 2, 2, 1, 1};
constexpr Bounds kPreferredLonger{"prefer, three connections", kPrefer, false, 3, 2, 0, 2};
constexpr Bounds kRequired{"require, with a restart", kRequire, true, 2, 2, 1, 1};
constexpr Bounds kRequiredLonger{"require, three connections", kRequire, true, 3, 3, 0, 2};

TEST(SessionModel, no_attack_succeeds_in_any_state) {
  size_t states = 0;
  for (const Bounds& bounds : {kPreferred, kPreferredLonger, kRequired, kRequiredLonger}) {
    if (kSmall && bounds.connections > 2) continue;
    Model<Rules> model(bounds);
    model.run();
    EXPECT_EQ(model.violation(), "") << bounds.name;
    states += model.states();
  }
  EXPECT_GE(states, kSmall ? 1000U : 1'000'000U);
}

// The model finds the attacks that the rules prevent.
TEST(SessionModel, finds_attacks_on_earlier_rules) {
  Model<RequestsChangeAgreements> s1(kPreferred);
  s1.run();
  EXPECT_NE(s1.violation(), "");
  Model<SessionsStartAnew> s3(kPreferred);
  s3.run();
  EXPECT_NE(s3.violation(), "");
}

}  // namespace
}  // namespace roci::test
