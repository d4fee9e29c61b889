#include "fuzz/cm_user.hpp"

namespace roci::test {
namespace {

using cm::Connection;
using cm::EventKind;
using cm::Listener;
using cm::State;

template <class Message>
constexpr size_t index_of() {
  return CmMessage(Message{}).index();
}

// Permitted states before an event, and the state after it.
struct Rule {
  uint32_t before;  // one bit per state
  State after;
  size_t message;
  bool may_be_silent;  // may be reported without a message
};
constexpr size_t kNoMessage = std::variant_npos;

constexpr uint32_t any(std::initializer_list<State> states) {
  uint32_t out = 0;
  for (const State state : states) out |= 1U << static_cast<unsigned>(state);
  return out;
}

Rule rule_of(EventKind kind) {
  using enum State;
  switch (kind) {
    case EventKind::kRequest:
      return {any({kIdle}), kRequestReceived, index_of<CmRequest>(), false};
    case EventKind::kReply:
      return {any({kRequestSent}), kReplyReceived, index_of<CmReply>(), false};
    case EventKind::kReady:
      return {any({kReplySent}), kEstablished, index_of<CmReady>(), true};
    case EventKind::kRejected:
      return {any({kRequestSent, kRequestReceived, kReplySent, kReplyReceived}), kIdle,
              index_of<CmRejected>(), false};
    case EventKind::kRequestTimeout:
      return {any({kRequestSent}), kIdle, kNoMessage, true};
    case EventKind::kReplyTimeout:
      return {any({kReplySent}), kIdle, kNoMessage, true};
    case EventKind::kDisconnect:
      return {any({kReplySent, kReplyReceived, kEstablished}), kDisconnectReceived, index_of<CmDisconnect>(),
              false};
    case EventKind::kDisconnected:
      return {any({kEstablished, kDisconnectSent}), kTimeWait, index_of<CmDisconnected>(), true};
    case EventKind::kDisconnectTimeout:
      return {any({kDisconnectSent}), kTimeWait, kNoMessage, true};
    case EventKind::kTimeWaitExpired:
      return {any({kTimeWait}), kIdle, kNoMessage, true};
    case EventKind::kServiceRequest:
      return {any({kIdle}), kServiceRequestReceived, index_of<CmServiceRequest>(), false};
    case EventKind::kServiceReply:
      return {any({kServiceRequestSent}), kIdle, index_of<CmServiceReply>(), false};
    case EventKind::kServiceTimeout:
      return {any({kServiceRequestSent}), kIdle, kNoMessage, true};
  }
  return {any({}), kIdle, kNoMessage, true};
}

bool is_one_of(State state, std::initializer_list<State> states) {
  return (any(states) >> static_cast<unsigned>(state) & 1) != 0;
}
bool is_unanswered(State state) {
  return is_one_of(state, {State::kRequestReceived, State::kServiceRequestReceived});
}
// States in which a destroyed connection remains in the agent, because it must send a message or wait.
bool outlives_its_user(State state) {
  return is_one_of(state, {State::kEstablished, State::kDisconnectSent, State::kDisconnectReceived,
                           State::kTimeWait, State::kServiceRequestReceived, State::kServiceReplySent});
}

// State changes without an event: the peer has lost the connection, so the agent disconnects; or the agent discards
// an answer.
State without_a_word(State from, State to) {
  const bool may_be =
      (to == State::kDisconnectSent && is_one_of(from, {State::kEstablished, State::kReplySent})) ||
      (to == State::kIdle && from == State::kServiceReplySent);
  return may_be ? to : from;
}

}  // namespace

struct CmUser::InCall {
  explicit InCall(CmUser& u) : user(u) { ++user.calling_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() { --user.calling_; }
  CmUser& user;
};

CmUser::CmUser(CmNetwork& network, const IpAddress& address, const cm::Limits& limits, Input& input,
               uint32_t first_qpn)
    : network_(network),
      address_(address),
      limits_(limits),
      input_(input),
      agent_(network.add(address, limits)),
      next_qpn_(first_qpn) {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    listeners_[i].service = kServices[i == 1 ? 1 : 0];
    if (i > 0) listeners_[i].address = address;
    listeners_[i].backlog = 3;
    listeners_[i].handler = this;
    listeners_[i].user = &listeners_[i];
  }
}

// ---------------------------------------------------------------------------------------------- Events

bool CmUser::on_event(Connection& connection, const cm::Event& event) {
  ++told;
  const bool is_new = event.kind == EventKind::kRequest || event.kind == EventKind::kServiceRequest;
  require((find(connection) == nullptr) == is_new, "events are of connections that their user has");
  if (is_new) {
    auto* asked = static_cast<Listener*>(connection.user);
    require(listening_[static_cast<size_t>(asked - listeners_.data())], "only who listens is asked");
    hold(connection, State::kIdle, asked);
  }
  Held& held = *find(connection);
  const Rule rule = rule_of(event.kind);
  require((rule.before >> static_cast<unsigned>(held.state) & 1) != 0, "an event fits the state");
  require(connection.state() == rule.after, "the state is what the event says");
  require(event.mad == nullptr ? rule.may_be_silent : event.mad->message.index() == rule.message,
          "an event has its message");
  held.state = rule.after;
  if (!is_unanswered(rule.after)) held.asked = nullptr;
  busy_.push_back(&connection);
  const bool keeps = react(connection);
  busy_.pop_back();
  if (!keeps) forget(connection);
  return keeps;
}

bool CmUser::react(Connection& connection) {
  if (odd_events == 0) return behave(connection);
  --odd_events;
  const uint8_t how = input_.byte();
  switch (how % 8) {
    case 1:
      return true;
    case 2:
      call();
      return behave(connection);
    case 3:
      do_something_with(*find(connection), input_.byte());
      return true;
    case 4:
      call();
      call();
      return true;
    case 5:
      return is_busy_further_out(connection);
    default:
      return behave(connection);
  }
}

// Reacts as a correct program. Returns false when the program no longer needs the connection.
bool CmUser::behave(Connection& connection) {
  const InCall in_call(*this);
  switch (find(connection)->state) {
    case State::kRequestReceived:
      moves(connection, agent_.accept(connection, {.queue_pair = Qpn{next_qpn_++}}, 0, network_.now),
            {State::kRequestReceived}, State::kReplySent);
      return true;
    case State::kReplyReceived:
      moves(connection, agent_.ready(connection, {}, network_.now), {State::kReplyReceived},
            State::kEstablished);
      return true;
    case State::kDisconnectReceived:
      moves(connection, agent_.reply_disconnect(connection, {}, network_.now), {State::kDisconnectReceived},
            State::kTimeWait);
      return true;
    case State::kServiceRequestReceived:
      answer(connection);
      break;
    case State::kServiceReplySent:
    case State::kIdle:
      break;
    default:
      return true;
  }
  return is_busy_further_out(connection);
}

// ---------------------------------------------------------------------------------------------- Calls

void CmUser::call() {
  const uint8_t what = input_.byte();
  switch (what % 16) {
    case 0:
      return connect(somebody(), kServices[what >> 7]);
    case 1:
      return ask();
    case 2:
      return listen(listeners_[input_.byte() % listeners_.size()]);
    case 3:
      return ignore(listeners_[input_.byte() % listeners_.size()]);
    default:
      if (held_.empty()) return;
      return do_something_with(held_[input_.byte() % held_.size()], what);
  }
}

void CmUser::do_something_with(Held held, uint8_t what) {
  const InCall in_call(*this);
  Connection& one = *held.connection;
  const Nanos now = network_.now;
  using enum State;
  switch (what % 16) {
    case 4:
      return moves(one, agent_.accept(one, {.queue_pair = Qpn{next_qpn_++}}, 0, now), {kRequestReceived},
                   kReplySent);
    case 5:
      return moves(one, agent_.ready(one, {}, now), {kReplyReceived}, kEstablished);
    case 6:
    case 7:
      return moves(one, agent_.reject(one, {.reason = CmRejected::kConsumer}, now),
                   {kRequestSent, kRequestReceived, kReplySent, kReplyReceived}, kIdle);
    case 8:
      return moves(one, agent_.delay(one, {.service_timeout = input_.byte()}, now),
                   {kRequestReceived, kReplyReceived}, held.state);
    case 9:
      return establish(one);
    case 10:
    case 11:
      return moves(one, agent_.disconnect(one, {}, now), {kEstablished, kReplySent}, kDisconnectSent);
    case 12:
      return moves(one, agent_.reply_disconnect(one, {}, now), {kDisconnectReceived}, kTimeWait);
    case 13:
      return answer(one);
    default:
      return destroy(one);
  }
}

void CmUser::moves(Connection& connection, const Status& did, std::initializer_list<State> from, State to) {
  Held& held = *find(connection);
  require(did.has_value() == is_one_of(held.state, from), "a call succeeds in the states that it is for");
  if (did) held.state = to;
  require(connection.state() == held.state, "a call leads where it says, or changes nothing");
  if (!is_unanswered(held.state)) held.asked = nullptr;
}

// The agent does not keep an answer if many peers are silent.
void CmUser::answer(Connection& connection) {
  const bool crowded = 2 * agent_.unready() > limits_.unready;
  moves(connection, agent_.reply_service(connection, {.queue_pair = Qpn{77}}, 0, network_.now),
        {State::kServiceRequestReceived}, crowded ? State::kIdle : State::kServiceReplySent);
}

// The only call that reports an event to its user before it returns, so the user may destroy the connection in it.
void CmUser::establish(Connection& connection) {
  const bool fits = find(connection)->state == State::kReplySent;
  const unsigned before = told;
  require(agent_.established(connection, network_.now).has_value() == fits,
          "a call succeeds in the states that it is for");
  require((told != before) == fits, "who is established is told so");
}

void CmUser::destroy(Connection& connection) {
  const InCall in_call(*this);
  if (is_busy(connection)) return;
  forget(connection);
  agent_.destroy(connection, network_.now);
}

IpAddress CmUser::somebody() { return IpAddress::from_v4(0x0a000001U + input_.byte() % 4); }

void CmUser::connect(const IpAddress& to, uint64_t service) {
  const InCall in_call(*this);
  CmRequest request{.service_id = service, .queue_pair = Qpn{next_qpn_++}};
  const uint8_t times = input_.byte();  // 0: default timeouts
  request.remote_response_timeout = request.local_response_timeout = times == 0 ? 20 : times & 0x1f;
  request.primary.ack_timeout = times == 0 ? 17 : times >> 3;
  request.max_cm_retries = times == 0 ? 15 : times & 0xf;
  const bool has_room = agent_.connections() < limits_.connections;
  const auto made = agent_.connect({.local = address_, .remote = to}, request, 0, *this, network_.now);
  require(made.has_value() == has_room, "there are as many connections as may be, and no more");
  if (made) hold(**made, State::kRequestSent, nullptr);
}

void CmUser::ask() {
  const InCall in_call(*this);
  const IpAddress to = somebody();
  const uint8_t times = input_.byte();
  const bool has_room = agent_.connections() < limits_.connections;
  const auto made =
      agent_.request_service({.local = address_, .remote = to}, {.service_id = kServices[times & 1]},
                             times & 0x1f, times >> 3, times & 0xf, *this, network_.now);
  require(made.has_value() == has_room, "there are as many connections as may be, and no more");
  if (made) hold(**made, State::kServiceRequestSent, nullptr);
}

void CmUser::listen(Listener& listener) {
  const auto place = static_cast<size_t>(&listener - listeners_.data());
  if (listening_[place]) return;  // a user adds a listener only once
  const bool taken = place != 1 && listening_[2 - place];
  require(agent_.listen(listener).has_value() == !taken, "one listens at a place");
  listening_[place] = !taken;
}

void CmUser::ignore(Listener& listener) {
  agent_.ignore(listener);
  listening_[static_cast<size_t>(&listener - listeners_.data())] = false;
  for (Held& held : held_) {
    if (held.asked == &listener) held.asked = nullptr;
  }
}

void CmUser::listen_to_all() {
  for (Listener& listener : listeners_) ignore(listener);
  listen(listeners_[0]);
}

void CmUser::leave() {
  const InCall in_call(*this);
  agent_.leave(network_.now);
  // Destructors of the program may still destroy its connections.
  while (!held_.empty()) {
    Connection& connection = *held_.back().connection;
    forget(connection);
    agent_.destroy(connection, network_.now);
  }
}

void CmUser::settle() {
  const std::vector<Held> all = held_;
  for (const Held& held : all) {
    if (!behave(*held.connection)) destroy(*held.connection);
  }
}

void CmUser::disconnect_all() {
  const InCall in_call(*this);
  for (const Held& held : held_) {
    if (is_one_of(held.state, {State::kEstablished, State::kReplySent}))
      moves(*held.connection, agent_.disconnect(*held.connection, {}, network_.now),
            {State::kEstablished, State::kReplySent}, State::kDisconnectSent);
  }
}

// ---------------------------------------------------------------------------------------------- State

CmUser::Held* CmUser::find(const Connection& connection) {
  const auto found = std::find_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.connection == &connection; });
  return found == held_.end() ? nullptr : &*found;
}

void CmUser::hold(Connection& connection, State state, Listener* asked) {
  require(find(connection) == nullptr, "a connection is made once");
  held_.push_back({&connection, state, asked});
}

void CmUser::forget(const Connection& connection) {
  const auto place = find(connection) - held_.data();
  if (outlives_its_user(held_[static_cast<size_t>(place)].state)) ++orphans_;
  held_.erase(held_.begin() + place);
}

bool CmUser::is_busy(const Connection& connection) const {
  return std::find(busy_.begin(), busy_.end(), &connection) != busy_.end();
}

// An event of the connection was reported during another event of the same connection.
bool CmUser::is_busy_further_out(const Connection& connection) const {
  return std::count(busy_.begin(), busy_.end(), &connection) > 1;
}

void CmUser::notice() {
  for (Held& held : held_) held.state = without_a_word(held.state, held.connection->state());
}

void CmUser::check() {
  notice();
  uint32_t unanswered = 0, unready = 0;
  std::array<uint32_t, 3> of_listener{};
  for (Held& held : held_) {
    require(held.connection->state() == held.state, "no state changes without an event");
    if (is_one_of(held.state, {State::kReplySent, State::kServiceReplySent})) ++unready;
    if (held.asked == nullptr) continue;
    ++unanswered;
    ++of_listener[static_cast<size_t>(held.asked - listeners_.data())];
  }
  require(agent_.unanswered() == unanswered, "what is unanswered is counted");
  require(unanswered <= limits_.unanswered, "what is unanswered is limited");
  require(agent_.unready() >= unready && agent_.unready() <= unready + orphans_,
          "whose peers are silent is counted");
  for (size_t i = 0; i < listeners_.size(); ++i) {
    require(listeners_[i].unanswered == of_listener[i], "what is unanswered is counted for who listens");
    require(of_listener[i] <= listeners_[i].backlog, "a backlog is a limit");
  }
  require(agent_.connections() >= held_.size() && agent_.connections() <= held_.size() + orphans_,
          "connections are those of users, and those that end by themselves");
  require(agent_.connections() <= limits_.connections, "connections are limited");
}

}  // namespace roci::test
