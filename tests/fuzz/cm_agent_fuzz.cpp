// Fuzz target: two users of connection managers (cm_user.hpp). The input selects their calls, network faults, forged
// messages of a third party and the passing of time. After each step the events, call results, counts and deadlines
// must be valid. Once the network has no faults and the users behave correctly, no state remains and a new connection
// succeeds.
#include <cstdint>
#include <vector>

#include "fuzz/cm_user.hpp"

namespace roci::test {
namespace {

using cm::State;

class Session {
 public:
  explicit Session(Input& input) : input_(input) {
    const uint8_t sizes = input_.byte();
    limits_.connections = (sizes & 1) != 0 ? 5 : 24;
    limits_.unanswered = (sizes & 2) != 0 ? 2 : 24;
    if ((sizes & 4) != 0) limits_.first_retry = 1ms;
    if ((sizes & 8) != 0) limits_.unready = 4;
    network_.decides = [this] { return fate(); };
    network_.looks = [this](bool heard) { look(heard); };
    for (unsigned side : {0U, 1U}) start(side);
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 100; ++steps) {
      step();
      for (auto& user : users_) user->check();
    }
    become_good();
    for (unsigned side : {0U, 1U}) agree(side);
    require_nothing_left();
    connect_as_if_nothing_had_been();
    for (auto& user : users_) user->leave();
    network_.run_to_the_end();
    require_nothing_left();
  }

 private:
  static IpAddress address_of(unsigned n) { return IpAddress::from_v4(0x0a000001U + n); }

  void start(unsigned side) {
    users_[side] =
        std::make_unique<CmUser>(network_, address_of(side), limits_, input_, 16 + 0x1000 * ++lives_);
    users_[side]->listen_to_all();
  }

  // Ends a user: without or with crash notifications to its peers.
  void die(unsigned side, uint8_t how) {
    if (how > 1) return;
    how == 0 ? network_.remove(address_of(side)) : network_.kill(address_of(side));
    start(side);
  }

  void step() {
    const uint8_t what = input_.byte();
    const unsigned side = what >> 7;
    CmUser& user = *users_[side];
    switch (what % 16) {
      case 0:
        user.connect(address_of(1 - side), CmUser::kServices[0]);
        return;
      case 1:
      case 2:
      case 3:
        return user.call();
      case 4:
      case 5:
        // Up to nine minutes. While a user does not answer, its peer repeats the request every four seconds.
        return network_.run_for(Nanos{int64_t{1} << input_.byte() % 40});
      case 6:
        bad_messages_ = input_.byte() % 16;
        return;
      case 7:
        user.odd_events = input_.byte() % 8;
        return;
      case 8:
        user.leave();
        return;
      case 9:
        return die(side, input_.byte() % 8);
      case 10:
      case 11:
      case 12:
      case 13:
        return attack(side);
      default:
        return network_.run_for(20us);
    }
  }

  CmNetwork::Fate fate() {
    if (!users_[0]->is_calling() && !users_[1]->is_calling()) ++unasked_;
    CmNetwork::Fate out;
    if (bad_messages_ == 0) return out;
    --bad_messages_;
    const uint8_t how = input_.byte();
    switch (how % 8) {
      case 1:
      case 2:
        out.lost = true;
        break;
      case 3:
        out.doubled = true;
        break;
      case 4:
        out.doubled = true;
        out.late = Nanos{int64_t{1} << (how >> 3)};
        break;
      case 5:
        out.late = Nanos{int64_t{1'000'000} << (how >> 3) % 16};
        break;
      case 6:
        out.altered = {input_.byte(), input_.byte()};
        break;
      case 7:
        out.refused = true;
        break;
      default:
        break;
    }
    return out;
  }

  void look(bool heard) {
    for (auto& user : users_) {
      user->notice();
      if (heard) continue;  // too slow for every message; checked once per burst
      user->check();
      require(user->agent().next_deadline() > network_.now, "a poll does all that is due");
    }
    unsigned told = 0;
    for (auto& user : users_) told += std::exchange(user->told, 0);
    const unsigned unasked = std::exchange(unasked_, 0);
    if (heard) require(unasked <= 2 + told, "a message draws no more than two");
    network_.sent.clear();
  }

  // ---- Third party that sends well-formed messages with some of the numbers in use.

  uint32_t number() {
    const uint8_t choice = input_.byte();
    if ((choice & 0x80) == 0) return choice & 0x3f;
    std::vector<uint32_t> known;
    for (const auto& user : users_) {
      for (const auto& held : user->held()) {
        const cm::Connection& one = *held.connection;
        for (const uint32_t value : {one.local_id(), one.remote_id(), one.local_queue_pair().value()})
          known.push_back(value);
      }
    }
    return known.empty() ? 0 : known[(choice & 0x3f) % known.size()] ^ (choice & 0x40) >> 6;
  }

  template <size_t kIndex = 0>
  static CmMessage message_of(size_t index) {
    if constexpr (kIndex + 1 < std::variant_size_v<CmMessage>) {
      if (index != kIndex) return message_of<kIndex + 1>(index);
    }
    return std::variant_alternative_t<kIndex, CmMessage>{};
  }

  template <class Message>
  void fill(Message& m) {
    const uint8_t times = input_.byte();
    if constexpr (requires { m.local_id; }) m.local_id = number();
    if constexpr (requires { m.remote_id; }) m.remote_id = number();
    if constexpr (requires { m.request_id; }) m.request_id = number();
    if constexpr (requires { m.queue_pair; }) m.queue_pair = Qpn{number()};
    if constexpr (requires { m.remote_queue_pair; }) m.remote_queue_pair = Qpn{number()};
    if constexpr (requires { m.service_id; }) m.service_id = CmUser::kServices[times & 1];
    if constexpr (requires { m.answered; }) m.answered = static_cast<CmAnswered>(times & 3);
    if constexpr (requires { m.service_timeout; }) m.service_timeout = times >> 3;
    if constexpr (requires { m.max_cm_retries; }) {
      m.max_cm_retries = times & 0xf;
      m.local_response_timeout = times >> 3;
      m.primary.ack_timeout = times & 0x1f;
    }
  }

  void attack(unsigned side) {
    const uint8_t what = input_.byte();
    CmMad mad{
        .transaction = what, .modifier = 0, .message = message_of(what % std::variant_size_v<CmMessage>)};
    std::visit([this](auto& message) { fill(message); }, mad.message);
    network_.forge({.local = address_of(what / 64), .remote = address_of(side)}, mad);
  }

  // ---- End of the run.

  void become_good() {
    bad_messages_ = 0;
    for (auto& user : users_) {
      user->odd_events = 0;
      user->listen_to_all();
      user->settle();
    }
    network_.run_to_the_end();
  }

  // After one user disconnects, the connections of both users have ended.
  void agree(unsigned side) {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (const auto& mine : users_[side]->held()) {
      for (const auto& theirs : users_[1 - side]->held()) {
        if (belong_together(*mine.connection, *theirs.connection))
          pairs.emplace_back(mine.connection->local_id(), theirs.connection->local_id());
      }
    }
    users_[side]->disconnect_all();
    network_.run_to_the_end();
    for (const auto& [mine, theirs] : pairs) {
      require(!holds(side, mine), "who disconnects is rid of the connection");
      require(!holds(1 - side, theirs), "and so is the other side");
    }
  }

  bool belong_together(const cm::Connection& a, const cm::Connection& b) const {
    return a.local_id() == b.remote_id() && b.local_id() == a.remote_id() &&
           a.remote_queue_pair() == b.local_queue_pair() && b.remote_queue_pair() == a.local_queue_pair() &&
           a.route().remote == b.route().local && b.route().remote == a.route().local;
  }
  bool holds(unsigned side, uint32_t id) const {
    for (const auto& held : users_[side]->held()) {
      if (held.connection->local_id() == id) return true;
    }
    return false;
  }

  void require_nothing_left() {
    for (auto& user : users_) {
      require(user->held().empty() && user->agent().connections() == 0, "nothing is left");
      require(user->agent().unanswered() == 0, "nothing is unanswered");
      require(user->agent().next_deadline() == kNever, "nothing is waited for");
      require(network_.crash_notices_of(user->address()) == 0, "nothing is kept for later");
    }
  }

  void connect_as_if_nothing_had_been() {
    users_[0]->connect(users_[1]->address(), CmUser::kServices[0]);
    network_.run_for(1ms);
    for (auto& user : users_) {
      require(user->held().size() == 1 && user->held()[0].state == State::kEstablished,
              "who connects is connected");
    }
  }

  Input& input_;
  CmNetwork network_{1};
  cm::Limits limits_;
  std::array<std::unique_ptr<CmUser>, 2> users_;
  uint32_t lives_ = 0;  // users that were created so far
  unsigned bad_messages_ = 0;
  unsigned unasked_ = 0;  // messages sent outside of calls since the last check
};

}  // namespace
}  // namespace roci::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  Input input(data, size);
  Session(input).run();
  return 0;
}
