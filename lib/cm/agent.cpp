#include "cm/agent.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace roci::cm {
namespace {

constexpr uint8_t kDisconnectTries = 1;  // a peer that does not answer DREQ is regarded as disconnected
constexpr Nanos kOverloadTimeout{5'000'000'000};
constexpr uint32_t kMaxUnknownPeersAnswered = 1024;  // more unanswered connections get no crash notification
constexpr Nanos kSendRetryDelay{1'000'000};          // retransmission after a send that was not possible
// Time for which SIDR_REPs are kept. A peer that did not receive one retransmits every 4.3 s, as Linux does.
constexpr Nanos kAnswerMemory = 2 * duration_of(20);

SipKey secret_from(IdSource& ids) {
  SipKey out;
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(ids.next24());
  return out;
}

bool accepts_address(const Listener& listener, const IpAddress& to) {
  if (!listener.address.is_zero()) return listener.address == to;
  return to.is_v4() ? listener.ipv4 : listener.ipv6;
}

// Returns true if a request could match both listeners.
bool overlap(const Listener& a, const Listener& b) {
  if (!a.address.is_zero()) return accepts_address(b, a.address);
  if (!b.address.is_zero()) return accepts_address(a, b.address);
  return (a.ipv4 && b.ipv4) || (a.ipv6 && b.ipv6);
}

// Message to which a REJ in this state refers.
CmAnswered rejected_message(State state) {
  if (state == State::kRequestReceived) return CmAnswered::kRequest;
  if (state == State::kReplyReceived) return CmAnswered::kReply;
  return CmAnswered::kOther;
}

Error wrong_state() { return Error{"the connection's state does not permit this operation", EINVAL}; }

}  // namespace

size_t Agent::RemoteKeyHash::operator()(const RemoteKey& key) const {
  SipHash hash(secret);
  hash.update(key.address.bytes);
  hash.update({reinterpret_cast<const uint8_t*>(&key.number), sizeof key.number});
  hash.update({reinterpret_cast<const uint8_t*>(&key.guid), sizeof key.guid});
  return hash.finish();
}

Agent::Agent(Sender& sender, IdSource& ids, uint64_t ca_guid, const Limits& limits)
    : sender_(sender),
      ids_(ids),
      ca_guid_(ca_guid),
      limits_(limits),
      transactions_(ids.next32()),
      hash_{secret_from(ids)},
      by_remote_id_(0, hash_),
      by_remote_qp_(0, hash_),
      services_(0, hash_),
      answers_(limits.answers_per_second),
      reply_repetitions_(limits.reply_repetitions_per_second) {}

Agent::~Agent() {
  by_id_.for_each([&](uint32_t, Connection& connection) {
    timers_.cancel(connection);
    delete &connection;
  });
}

// ---------------------------------------------------------------------------------------------- Listeners

Status Agent::listen(Listener& listener) {
  const auto [first, last] = listeners_.equal_range(listener.service);
  for (auto at = first; at != last; ++at) {
    if (overlap(*at->second, listener)) return fail("service ID already in use", EADDRINUSE);
  }
  listeners_.emplace(listener.service, &listener);
  return {};
}

void Agent::ignore(Listener& listener) {
  const auto [first, last] = listeners_.equal_range(listener.service);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == &listener; });
  if (found != last) listeners_.erase(found);
  if (listener.unanswered == 0) return;
  by_id_.for_each([&](uint32_t, Connection& connection) {
    if (connection.listener_ == &listener) mark_answered(connection);
  });
}

Listener* Agent::find_listener(uint64_t service, const IpAddress& address) {
  const auto [first, last] = listeners_.equal_range(service);
  for (auto at = first; at != last; ++at) {
    if (accepts_address(*at->second, address)) return at->second;
  }
  return nullptr;
}

bool Agent::has_space_for(const Listener& listener) {
  if (listener.unanswered < listener.backlog && unanswered_ < limits_.unanswered &&
      unready_ < limits_.unready && by_id_.size() < limits_.connections)
    return true;
  ++counts_.overflowed;
  return false;
}

void Agent::accept_into(Listener& listener, Connection& connection) {
  connection.listener_ = &listener;
  ++listener.unanswered;
  ++unanswered_;
}

void Agent::mark_answered(Connection& connection) {
  if (connection.listener_ == nullptr) return;
  --connection.listener_->unanswered;
  --unanswered_;
  connection.listener_ = nullptr;
}

// ---------------------------------------------------------------------------------------------- Connections

Connection* Agent::make(const Route& route, EventHandler* handler) {
  uint32_t id = 0;
  do {
    id = ids_.next32();
  } while (id == 0 || by_id_.find(id) != nullptr);
  auto* connection = new Connection(id);
  connection->route_ = route;
  connection->handler_ = handler;
  connection->transaction_ = transaction_of(id);
  by_id_.insert(id, connection);
  return connection;
}

void Agent::free(Connection& connection) {
  mark_answered(connection);
  set_state(connection, State::kIdle);
  by_id_.erase(connection.local_id_);
  delete &connection;
}

// Removes the connection from the tables that its new state does not use.
void Agent::set_state(Connection& connection, State state) {
  const auto is_unready = [](State s) { return s == State::kReplySent || s == State::kServiceReplySent; };
  if (is_unready(connection.state_)) --unready_;
  if (is_unready(state)) ++unready_;
  if (connection.state_ == State::kDisconnectSent) --disconnecting_;
  if (state == State::kDisconnectSent) ++disconnecting_;
  connection.state_ = state;
  timers_.cancel(connection);
  store_crash_notice(connection);
  if (state != State::kIdle) return;
  const auto erase_entry = [&](RemoteTable& table, uint32_t number, uint64_t guid = 0) {
    const auto found = table.find({connection.route_.remote, number, guid});
    if (found != table.end() && found->second == &connection) table.erase(found);
  };
  erase_entry(by_remote_id_, connection.remote_id_);
  erase_entry(services_, connection.remote_id_);
  erase_entry(by_remote_qp_, connection.remote_qp_.value(), connection.remote_guid_);
}

std::optional<CmMad> Agent::crash_notice(const Connection& connection) const {
  const uint32_t local = connection.local_id_, remote = connection.remote_id_;
  switch (connection.state_) {
    case State::kRequestSent:
      return CmMad{connection.transaction_, 0, CmRejected{.local_id = local, .reason = CmRejected::kTimeout}};
    case State::kRequestReceived:
    case State::kReplySent:
    case State::kReplyReceived:
      return CmMad{connection.transaction_, 0,
                   CmRejected{.local_id = local,
                              .remote_id = remote,
                              .answered = rejected_message(connection.state_),
                              .reason = CmRejected::kConsumer}};
    case State::kEstablished:
    case State::kDisconnectSent:  // the DREQ may be lost, and this process exit before it is repeated
      return CmMad{
          transaction_of(local), 0,
          CmDisconnect{.local_id = local, .remote_id = remote, .remote_queue_pair = connection.remote_qp_}};
    case State::kDisconnectReceived:
      return CmMad{connection.transaction_, 0, CmDisconnected{.local_id = local, .remote_id = remote}};
    default:
      return std::nullopt;
  }
}

void Agent::store_crash_notice(Connection& connection) {
  if (!sender_.stores()) {
    connection.crash_notice_ = Sender::kNotStored;
    return;
  }
  // Connections of a flood of requests get no crash notification: their peers may not exist, and each requires writing
  // a frame.
  const bool from_unknown_peer =
      connection.state_ == State::kRequestReceived || connection.state_ == State::kReplySent;
  const bool is_flooded = unanswered_ + unready_ > kMaxUnknownPeersAnswered;
  if (const auto mad = from_unknown_peer && is_flooded ? std::nullopt : crash_notice(connection); mad) {
    connection.crash_notice_ = sender_.store(connection.crash_notice_, connection.route_, build_cm_mad(*mad));
  } else if (connection.crash_notice_ != Sender::kNotStored) {
    sender_.remove(connection.crash_notice_);
    connection.crash_notice_ = Sender::kNotStored;
  }
}

void Agent::enter_time_wait(Connection& connection, Nanos now) {
  set_state(connection, State::kTimeWait);
  timers_.schedule(connection, now + std::min(2 * duration_of(connection.lifetime_), kMaxTimeWait));
}

bool Agent::report(Connection& connection, EventKind kind, const CmMad* mad, Nanos now) {
  if (connection.orphan_) return true;
  if (connection.handler_->on_event(connection, {kind, mad})) return true;
  destroy(connection, now);
  return false;
}

void Agent::end(Connection& connection, EventKind kind, const CmMad* mad, Nanos now) {
  set_state(connection, State::kIdle);
  if (connection.orphan_) return free(connection);
  report(connection, kind, mad, now);
}

// ---------------------------------------------------------------------------------------------- Transmission

void Agent::set_message(Connection& connection, const CmMessage& message, uint32_t options) {
  connection.message_ = build_cm_mad({connection.transaction_, options, message});
}

bool Agent::send(Connection& connection, Nanos now) {
  return sender_.send(connection.route_, connection.message_, now);
}

void Agent::send_until_answered(Connection& connection, uint8_t tries, Nanos now) {
  connection.give_up_ = now + (tries + 1) * connection.response_time();
  connection.final_deadline_ = connection.give_up_ + kMaxDelay;
  connection.resumes_ = now;
  connection.wait_ = std::min(limits_.first_retry, longest_wait(connection));
  timers_.schedule(connection, send(connection, now) ? now + connection.wait_ : now + kSendRetryDelay);
}

void Agent::send_once(Connection& connection, const CmMessage& message, Nanos now) {
  set_message(connection, message, 0);
  send(connection, now);
}

void Agent::reply_unknown_peer(const Route& route, uint64_t transaction, const CmMessage& message,
                               Nanos now) {
  if (!answers_.allow(now)) return;
  const auto mad = build_cm_mad({transaction, 0, message});
  sender_.send(route, mad, now);
}

bool Agent::poll(Nanos now) {
  return timers_.advance(now, [&](Timer& timer) { on_timer(static_cast<Connection&>(timer), now); }) > 0;
}

void Agent::on_timer(Connection& connection, Nanos now) {
  if (connection.state_ == State::kTimeWait)
    return end(connection, EventKind::kTimeWaitExpired, nullptr, now);
  if (connection.state_ == State::kServiceReplySent)
    return connection.orphan_ ? free(connection) : set_state(connection, State::kIdle);
  if (now < connection.give_up_) {
    const bool is_reply = connection.state_ == State::kReplySent;
    const bool is_limited = is_reply && connection.repetitions_ == kFreeReplyRepetitions;
    if (!is_limited || reply_repetitions_.allow(now)) {
      if (!send(connection, now)) return timers_.schedule(connection, now + kSendRetryDelay);
      ++counts_.retries;
      if (is_reply && !is_limited) ++connection.repetitions_;
    }
    connection.wait_ = std::min(2 * connection.wait_, longest_wait(connection));
    return timers_.schedule(connection, std::min(now + connection.wait_, connection.give_up_));
  }
  switch (connection.state_) {
    case State::kRequestSent: {
      // In case the peer has received the request and responds late (IBTA 12.9.7.1).
      CmRejected late{.local_id = connection.local_id_, .reason = CmRejected::kTimeout};
      send_once(connection, late, now);
      return end(connection, EventKind::kRequestTimeout, nullptr, now);
    }
    case State::kReplySent: {
      CmRejected late{.local_id = connection.local_id_,
                      .remote_id = connection.remote_id_,
                      .answered = CmAnswered::kReply,
                      .reason = CmRejected::kTimeout};
      send_once(connection, late, now);
      return end(connection, EventKind::kReplyTimeout, nullptr, now);
    }
    case State::kDisconnectSent:
      enter_time_wait(connection, now);
      report(connection, EventKind::kDisconnectTimeout, nullptr, now);
      return;
    case State::kServiceRequestSent:
      return end(connection, EventKind::kServiceTimeout, nullptr, now);
    default:
      return;  // no response is expected in other states
  }
}

// ---------------------------------------------------------------------------------------------- Calls of the user

Result<Connection*> Agent::connect(const Route& route, CmRequest request, uint32_t options,
                                   EventHandler& handler, Nanos now) {
  if (by_id_.size() >= limits_.connections) return fail("connection limit reached", ENOMEM);
  Connection* connection = make(route, &handler);
  connection->active_ = true;
  connection->xrc_ = request.transport == CmTransport::kExtended;
  connection->local_qp_ = request.queue_pair;
  connection->lifetime_ = request.primary.ack_timeout > 0 ? request.primary.ack_timeout - 1 : 0;
  connection->response_timeout_ = request.remote_response_timeout;
  connection->tries_ = request.max_cm_retries;
  request.local_id = connection->local_id_;
  request.ca_guid = ca_guid_;
  set_state(*connection, State::kRequestSent);
  set_message(*connection, request, options);
  send_until_answered(*connection, connection->tries_, now);
  return connection;
}

Status Agent::accept(Connection& connection, CmReply reply, uint32_t options, Nanos now) {
  if (connection.state_ != State::kRequestReceived) return fail(wrong_state());
  mark_answered(connection);
  connection.local_qp_ = connection.queue_pair_of(reply);
  reply.local_id = connection.local_id_;
  reply.remote_id = connection.remote_id_;
  reply.ca_guid = ca_guid_;
  set_state(connection, State::kReplySent);
  set_message(connection, reply, options);
  send_until_answered(connection, connection.tries_, now);
  // With many unready connections most peers do not exist. They also chose the timeout, so it is limited here.
  if (is_overloaded()) connection.give_up_ = std::min(connection.give_up_, now + kOverloadTimeout);
  return {};
}

Status Agent::ready(Connection& connection, const CmReady& message, Nanos now) {
  if (connection.state_ != State::kReplyReceived) return fail(wrong_state());
  CmReady ready = message;
  ready.local_id = connection.local_id_;
  ready.remote_id = connection.remote_id_;
  set_state(connection, State::kEstablished);
  send_once(connection, ready, now);
  return {};
}

Status Agent::delay(Connection& connection, CmAcknowledged message, Nanos now) {
  if (connection.state_ != State::kRequestReceived && connection.state_ != State::kReplyReceived)
    return fail(wrong_state());
  message.local_id = connection.local_id_;
  message.remote_id = connection.remote_id_;
  message.answered = connection.state_ == State::kRequestReceived ? CmAnswered::kRequest : CmAnswered::kReply;
  send_once(connection, message, now);
  return {};
}

Status Agent::reject(Connection& connection, CmRejected message, Nanos now) {
  switch (connection.state_) {
    case State::kRequestReceived:
    case State::kReplyReceived:
    case State::kRequestSent:
    case State::kReplySent:
      break;
    default:
      return fail(wrong_state());
  }
  mark_answered(connection);
  message.answered = rejected_message(connection.state_);
  message.local_id = connection.local_id_;
  message.remote_id = connection.remote_id_;
  send_once(connection, message, now);
  set_state(connection, State::kIdle);
  return {};
}

Status Agent::established(Connection& connection, Nanos now) {
  if (connection.state_ == State::kEstablished) return fail("the connection is already established", EISCONN);
  if (connection.state_ != State::kReplySent) return fail(wrong_state());
  set_state(connection, State::kEstablished);
  report(connection, EventKind::kReady, nullptr, now);
  return {};
}

Status Agent::disconnect(Connection& connection, CmDisconnect message, Nanos now) {
  if (connection.state_ != State::kEstablished && connection.state_ != State::kReplySent)
    return fail(wrong_state());
  message.local_id = connection.local_id_;
  message.remote_id = connection.remote_id_;
  message.remote_queue_pair = connection.remote_qp_;
  // also if the peer initiated the connection
  connection.transaction_ = transaction_of(connection.local_id_);
  set_state(connection, State::kDisconnectSent);
  set_message(connection, message, 0);
  send_until_answered(connection, std::min(kDisconnectTries, connection.tries_), now);
  return {};
}

Status Agent::reply_disconnect(Connection& connection, const CmDisconnected& message, Nanos now) {
  if (connection.state_ != State::kDisconnectReceived) return fail(wrong_state());
  CmDisconnected answer = message;
  answer.local_id = connection.local_id_;
  answer.remote_id = connection.remote_id_;
  send_once(connection, answer, now);
  enter_time_wait(connection, now);
  return {};
}

Result<Connection*> Agent::request_service(const Route& route, CmServiceRequest request, uint8_t lifetime,
                                           uint8_t response_timeout, uint8_t tries, EventHandler& handler,
                                           Nanos now) {
  if (by_id_.size() >= limits_.connections) return fail("connection limit reached", ENOMEM);
  Connection* connection = make(route, &handler);
  connection->active_ = true;
  connection->lifetime_ = lifetime;
  connection->response_timeout_ = response_timeout;
  connection->tries_ = tries;
  request.request_id = connection->local_id_;
  set_state(*connection, State::kServiceRequestSent);
  set_message(*connection, request, 0);
  send_until_answered(*connection, tries, now);
  return connection;
}

Status Agent::reply_service(Connection& connection, CmServiceReply reply, uint32_t options, Nanos now) {
  if (connection.state_ != State::kServiceRequestReceived) return fail(wrong_state());
  mark_answered(connection);
  reply.request_id = connection.remote_id_;
  set_message(connection, reply, options);
  send(connection, now);
  if (is_overloaded()) {  // if the reply is lost, the user gets the repeated request
    set_state(connection, State::kIdle);
  } else {
    set_state(connection, State::kServiceReplySent);
    timers_.schedule(connection, now + kAnswerMemory);
  }
  return {};
}

void Agent::destroy(Connection& connection, Nanos now) {
  connection.orphan_ = true;
  switch (connection.state_) {
    case State::kRequestSent: {
      const CmRejected timeout_reject{.local_id = connection.local_id_, .reason = CmRejected::kTimeout};
      send_once(connection, timeout_reject, now);
      return free(connection);
    }
    case State::kRequestReceived:
    case State::kReplySent:
    case State::kReplyReceived:
      static_cast<void>(reject(connection, {.reason = CmRejected::kConsumer}, now));
      return free(connection);
    case State::kEstablished:
      static_cast<void>(disconnect(connection, {}, now));
      return;
    case State::kDisconnectReceived:
      static_cast<void>(reply_disconnect(connection, {}, now));
      return;
    case State::kServiceRequestReceived:
      static_cast<void>(reply_service(connection, {.status = CmServiceReply::kRejected}, 0, now));
      if (connection.state_ == State::kIdle) free(connection);
      return;
    case State::kDisconnectSent:
    case State::kTimeWait:
    case State::kServiceReplySent:
      return;  // freed by a timer or after a response
    case State::kIdle:
    case State::kServiceRequestSent:
      return free(connection);
  }
}

void Agent::leave(Nanos now) {
  by_id_.for_each([&](uint32_t, Connection& connection) {
    switch (connection.state_) {
      case State::kEstablished:
        static_cast<void>(disconnect(connection, {}, now));
        return;
      case State::kDisconnectSent:
        return;
      case State::kServiceRequestReceived:
        static_cast<void>(reply_service(connection, {.status = CmServiceReply::kRejected}, 0, now));
        return;
      default:
        if (const auto mad = crash_notice(connection); mad)
          sender_.send(connection.route_, build_cm_mad(*mad), now);
    }
  });
}

}  // namespace roci::cm
