// Reception of CM messages. A message that matches the state of its connection changes the state; others change
// nothing.
#include <algorithm>
#include <utility>
#include <variant>

#include "cm/agent.hpp"

namespace roci::cm {
namespace {

constexpr uint8_t kMraTimeout = 20;  // time code of the MRA delay while a user has not answered: 4.3 s

}  // namespace

void Agent::on_mad(const Route& route, std::span<const uint8_t> payload, Nanos now) {
  ++counts_.received;
  const ParsedCm parsed = parse_cm_mad(payload);
  if (parsed.outcome != CmOutcome::kAccepted) {
    ++counts_.refused;
    return;
  }
  std::visit([&](const auto& message) { on(route, parsed.mad, message, now); }, parsed.mad.message);
}

Connection* Agent::find(uint32_t local_id, const Route& route) const {
  Connection* connection = by_id_.find(local_id);
  return connection != nullptr && connection->route_.remote == route.remote ? connection : nullptr;
}

Connection* Agent::find_remote(const RemoteTable& table, const Route& route, uint32_t number) const {
  const auto found = table.find({.address = route.remote, .number = number});
  return found == table.end() ? nullptr : found->second;
}

// Assigns the peer's queue pair to the connection. False: another connection has it, so the peer must have lost
// the state of that connection. It is disconnected, and the caller rejects the new one (IBTA 12.9.8.3.1). The queue pair
// number of another CA GUID is another queue pair. An unauthenticated sender must know the GUID to end a connection.
bool Agent::claim_queue_pair(Connection& connection, Nanos now) {
  const RemoteKey key{connection.route_.remote, connection.remote_qp_.value(), connection.remote_guid_};
  const auto [at, fresh] = by_remote_qp_.try_emplace(key, &connection);
  if (fresh || at->second == &connection) return true;
  Connection& other = *at->second;
  if (other.state_ == State::kTimeWait) {  // the peer reuses the number
    at->second = &connection;
    end(other, EventKind::kTimeWaitExpired, nullptr, now);
    return true;
  }
  static_cast<void>(disconnect(other, {}, now));
  return false;
}

void Agent::on(const Route& route, const CmMad& mad, const CmRequest& message, Nanos now) {
  if (Connection* known = find_remote(by_remote_id_, route, message.local_id))
    return on_repeated_request(*known, now);
  CmRejected refusal{.remote_id = message.local_id, .answered = CmAnswered::kRequest};
  Listener* listener = find_listener(message.service_id, route.local);
  if (listener == nullptr) {
    refusal.reason = CmRejected::kInvalidServiceId;
    return reply_unknown_peer(route, mad.transaction, refusal, now);
  }
  if (!has_space_for(*listener)) return;
  Connection* connection = make(route, nullptr);
  connection->transaction_ = mad.transaction;
  connection->remote_id_ = message.local_id;
  connection->remote_qp_ = message.queue_pair;
  connection->remote_guid_ = message.ca_guid;
  connection->xrc_ = message.transport == CmTransport::kExtended;
  connection->lifetime_ = message.primary.ack_timeout > 0 ? message.primary.ack_timeout - 1 : 0;
  connection->response_timeout_ = message.local_response_timeout;
  connection->tries_ = message.max_cm_retries;
  if (!claim_queue_pair(*connection, now)) {
    refusal.reason = CmRejected::kStaleConnection;
    reply_unknown_peer(route, mad.transaction, refusal, now);
    return free(*connection);
  }
  by_remote_id_.emplace(RemoteKey{.address = route.remote, .number = message.local_id}, connection);
  // An event handler may have removed the listener during claim_queue_pair().
  listener = find_listener(message.service_id, route.local);
  if (listener == nullptr) return free(*connection);
  connection->state_ = State::kRequestReceived;
  store_crash_notice(*connection);
  connection->handler_ = listener->handler;
  accept_into(*listener, *connection);
  connection->user = listener->user;
  report(*connection, EventKind::kRequest, &mad, now);
}

void Agent::on_repeated_request(Connection& connection, Nanos now) {
  ++counts_.repeated;
  switch (connection.state_) {
    case State::kRequestReceived: {
      CmAcknowledged delay_message;
      delay_message.service_timeout = kMraTimeout;
      static_cast<void>(delay(connection, delay_message, now));
      return;
    }
    case State::kReplySent:
      send(connection, now);
      return;
    default:
      return;
  }
}

void Agent::on(const Route& route, const CmMad&, const CmAcknowledged& message, Nanos now) {
  Connection* connection = find(message.remote_id, route);
  const bool fits =
      connection != nullptr &&
      ((message.answered == CmAnswered::kRequest && connection->state_ == State::kRequestSent) ||
       (message.answered == CmAnswered::kReply && connection->state_ == State::kReplySent));
  if (!fits) {
    ++counts_.unexpected;
    return;
  }
  // Extends the timeout by the requested delay plus the remaining time. MRAs add no retransmissions except one at the
  // end of each delay.
  const Nanos left =
      std::max(connection->give_up_ - std::max(now, connection->resumes_), connection->response_time());
  const Nanos end = connection->final_deadline_;
  const Nanos then =
      std::min(now + duration_of(message.service_timeout) + 2 * duration_of(connection->lifetime_), end);
  connection->resumes_ = then;
  connection->give_up_ = std::min(then + left, end);
  timers_.schedule(*connection, then);
}

void Agent::on(const Route& route, const CmMad& mad, const CmRejected& message, Nanos now) {
  // A peer that timed out before it received a message from this host knows only its own ID.
  Connection* connection = message.remote_id != 0 ? find(message.remote_id, route)
                                                  : find_remote(by_remote_id_, route, message.local_id);
  const bool matches = connection != nullptr && (connection->remote_id_ == message.local_id ||
                                                 message.local_id == 0 || connection->remote_id_ == 0);
  if (!matches) {
    ++counts_.unexpected;
    return;
  }
  switch (connection->state_) {
    case State::kRequestSent:
    case State::kRequestReceived:
    case State::kReplySent:
    case State::kReplyReceived:
      return end(*connection, EventKind::kRejected, &mad, now);
    case State::kEstablished:
      // The peer timed out before it received the RTU (IBTA 12.9.7.1).
      if (!connection->active_ || connection->remote_id_ != message.local_id) break;
      [[fallthrough]];
    case State::kDisconnectSent:
      enter_time_wait(*connection, now);
      report(*connection, EventKind::kDisconnected, nullptr, now);
      return;
    default:
      break;
  }
  ++counts_.unexpected;
}

void Agent::on(const Route& route, const CmMad& mad, const CmReply& message, Nanos now) {
  Connection* connection = find(message.remote_id, route);
  if (connection == nullptr) {
    ++counts_.unexpected;
    return;
  }
  switch (connection->state_) {
    case State::kRequestSent:
      break;
    case State::kReplyReceived:
    case State::kEstablished:
      ++counts_.repeated;
      if (connection->active_ && connection->remote_id_ == message.local_id &&
          connection->state_ == State::kEstablished)
        send(*connection, now);  // the RTU was lost
      return;
    default:
      ++counts_.unexpected;
      return;
  }
  connection->remote_id_ = message.local_id;
  connection->remote_qp_ = connection->queue_pair_of(message);
  connection->remote_guid_ = message.ca_guid;
  const bool claimed = claim_queue_pair(*connection, now);
  if (find(message.remote_id, route) != connection || connection->state_ != State::kRequestSent)
    return;  // the handler of the other connection has destroyed or rejected this one
  if (!claimed) {
    const CmRejected refusal{.local_id = connection->local_id_,
                             .remote_id = message.local_id,
                             .answered = CmAnswered::kReply,
                             .reason = CmRejected::kStaleConnection};
    send_once(*connection, refusal, now);
    const CmMad as_if_refused{mad.transaction, 0, refusal};
    return end(*connection, EventKind::kRejected, &as_if_refused, now);
  }
  set_state(*connection, State::kReplyReceived);
  report(*connection, EventKind::kReply, &mad, now);
}

void Agent::on(const Route& route, const CmMad& mad, const CmReady& message, Nanos now) {
  Connection* connection = find(message.remote_id, route);
  if (connection == nullptr || connection->remote_id_ != message.local_id) {
    ++counts_.unexpected;
    return;
  }
  if (connection->state_ == State::kEstablished) {
    ++counts_.repeated;
    return;
  }
  if (connection->state_ != State::kReplySent) {
    ++counts_.unexpected;
    return;
  }
  set_state(*connection, State::kEstablished);
  report(*connection, EventKind::kReady, &mad, now);
}

void Agent::on(const Route& route, const CmMad& mad, const CmDisconnect& message, Nanos now) {
  Connection* connection = find(message.remote_id, route);
  const bool matches = connection != nullptr && connection->remote_id_ == message.local_id &&
                       connection->state_ != State::kIdle;
  if (!matches) {
    // The connection may have existed before.
    ++counts_.unexpected;
    return reply_unknown_peer(route, mad.transaction,
                              CmDisconnected{.local_id = message.remote_id, .remote_id = message.local_id},
                              now);
  }
  if (message.remote_queue_pair != connection->local_qp_) {
    ++counts_.unexpected;
    return;
  }
  switch (connection->state_) {
    case State::kReplySent:
    case State::kReplyReceived:
    case State::kEstablished:
      connection->transaction_ = mad.transaction;
      set_state(*connection, State::kDisconnectReceived);
      if (connection->orphan_) {
        static_cast<void>(reply_disconnect(*connection, {}, now));
      } else {
        report(*connection, EventKind::kDisconnect, &mad, now);
      }
      return;
    case State::kDisconnectSent: {  // both peers disconnect at the same time
      const CmDisconnected answer{.local_id = connection->local_id_, .remote_id = connection->remote_id_};
      connection->transaction_ = mad.transaction;
      send_once(*connection, answer, now);
      enter_time_wait(*connection, now);
      report(*connection, EventKind::kDisconnected, nullptr, now);
      return;
    }
    case State::kTimeWait: {
      ++counts_.repeated;
      connection->transaction_ = mad.transaction;
      send_once(*connection,
                CmDisconnected{.local_id = connection->local_id_, .remote_id = connection->remote_id_}, now);
      return;
    }
    default:
      ++counts_.repeated;
      return;
  }
}

void Agent::on(const Route& route, const CmMad& mad, const CmDisconnected& message, Nanos now) {
  Connection* connection = find(message.remote_id, route);
  if (connection == nullptr || connection->remote_id_ != message.local_id ||
      connection->state_ != State::kDisconnectSent) {
    ++counts_.unexpected;
    return;
  }
  enter_time_wait(*connection, now);
  report(*connection, EventKind::kDisconnected, &mad, now);
}

void Agent::on(const Route& route, const CmMad& mad, const CmServiceRequest& message, Nanos now) {
  if (Connection* known = find_remote(services_, route, message.request_id)) {
    ++counts_.repeated;
    if (known->state_ == State::kServiceReplySent) send(*known, now);
    return;
  }
  Listener* listener = find_listener(message.service_id, route.local);
  if (listener == nullptr) {
    return reply_unknown_peer(route, mad.transaction,
                              CmServiceReply{.request_id = message.request_id,
                                             .status = CmServiceReply::kUnsupported,
                                             .service_id = message.service_id},
                              now);
  }
  if (!has_space_for(*listener)) return;
  Connection* connection = make(route, listener->handler);
  connection->transaction_ = mad.transaction;
  connection->remote_id_ = message.request_id;
  connection->state_ = State::kServiceRequestReceived;
  services_.emplace(RemoteKey{.address = route.remote, .number = message.request_id}, connection);
  accept_into(*listener, *connection);
  connection->user = listener->user;
  report(*connection, EventKind::kServiceRequest, &mad, now);
}

void Agent::on(const Route& route, const CmMad& mad, const CmServiceReply& message, Nanos now) {
  Connection* connection = find(message.request_id, route);
  if (connection == nullptr || connection->state_ != State::kServiceRequestSent) {
    ++counts_.unexpected;
    return;
  }
  end(*connection, EventKind::kServiceReply, &mad, now);
}

// Alternate paths are not supported, since IP routing changes paths without the connection manager.
void Agent::on(const Route& route, const CmMad& mad, const CmLoadPath& message, Nanos now) {
  ++counts_.unexpected;
  const Connection* connection = find(message.remote_id, route);
  if (connection == nullptr || connection->state_ != State::kEstablished) return;
  reply_unknown_peer(
      route, mad.transaction,
      CmPathAnswer{
          .local_id = message.remote_id, .remote_id = message.local_id, .status = CmPathAnswer::kUnsupported},
      now);
}

void Agent::on(const Route&, const CmMad&, const CmPathAnswer&, Nanos) { ++counts_.unexpected; }

}  // namespace roci::cm
