// Connection manager of a host (IBTA 12.9): listeners, connections with their states, retransmission and timeouts. The
// agent has no access to queue pairs and program addresses. The user of the agent modifies queue pairs on events.
//
//   active    connect() ─REQ─► kRequestSent ─REP─► kReply ── ready() ─RTU─► kEstablished
//   passive   listen()  ◄─REQ─ kRequest ── accept() ─REP─► kReplySent ◄─RTU─ kReady, kEstablished
//   either    disconnect() ─DREQ─► kDisconnectSent ─DREP─► kDisconnected, kTimeWait ──► kTimeWaitExpired
//             ◄─DREQ─ kDisconnect ── reply_disconnect() ─DREP─► kTimeWait ──► kTimeWaitExpired
//   datagrams request_service() ─SIDR_REQ─► ◄─SIDR_REP─ kServiceReply
//             listen() ◄─SIDR_REQ─ kServiceRequest ── reply_service() ─SIDR_REP─►
//
// Received messages are not trusted. Tables are bounded, responses to unknown peers are rate limited, and a message
// that does not match the state of its connection changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/containers/id_table.hpp"
#include "base/id_source.hpp"
#include "base/result.hpp"
#include "base/time/rate_limit.hpp"
#include "base/time/timing_wheel.hpp"
#include "base/types.hpp"
#include "wire/extensions/siphash.hpp"
#include "wire/mad/cm_messages.hpp"

namespace roci::cm {

using Route = MadRoute;

// Transmission of messages, implemented by the user of the agent.
class Sender {
 public:
  Sender() = default;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  virtual ~Sender() = default;
  // Sends a datagram from queue pair 1 to queue pair 1. False: not possible now; the agent retransmits soon
  // (kSendRetryDelay).
  virtual bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) = 0;

  // Stores a crash notification, which the peer receives if this process exits without sending it. The storage must
  // outlive the process. `kept` is the entry to replace, or kNotStored. Returns the entry, or kNotStored if the message
  // cannot be stored.
  static constexpr uint32_t kNotStored = ~0U;
  [[nodiscard]] virtual bool stores() const = 0;  // whether crash notifications are stored at all
  virtual uint32_t store(uint32_t kept, const Route& route, std::span<const uint8_t, kMadBytes> mad) = 0;
  virtual void remove(uint32_t kept) = 0;
};

enum class State : uint8_t {
  kIdle,
  kRequestSent,      // REQ was sent; an MRA may have been received
  kRequestReceived,  // until the user calls accept() or reject()
  kReplySent,        // REP was sent; an MRA may have been received
  kReplyReceived,    // until the user calls ready() or reject()
  kEstablished,
  kDisconnectSent,          // DREQ
  kDisconnectReceived,      // until the user calls reply_disconnect()
  kTimeWait,                // until its IDs and queue pair may be reused
  kServiceRequestSent,      // SIDR_REQ was sent
  kServiceRequestReceived,  // SIDR_REQ was received; until the user calls reply_service()
  kServiceReplySent,        // SIDR_REP was sent; retransmitted for a repeated SIDR_REQ
};

enum class EventKind : uint8_t {
  kRequest,            // message: CmRequest; event of a listener, with a new connection
  kReply,              // CmReply
  kReady,              // CmReady, or null after established()
  kRejected,           // CmRejected
  kRequestTimeout,     // no response to REQ
  kReplyTimeout,       // no response to REP
  kDisconnect,         // CmDisconnect
  kDisconnected,       // CmDisconnected, or null: the peer gave up, or it reused its queue pair
  kDisconnectTimeout,  // no response to DREQ
  kTimeWaitExpired,    // the connection is kIdle, its numbers can be reused
  kServiceRequest,     // CmServiceRequest; event of a listener, with a new connection
  kServiceReply,       // CmServiceReply
  kServiceTimeout,     // no response to SIDR_REQ
};

class Connection;
struct Listener;

struct Event {
  EventKind kind;
  const CmMad* mad = nullptr;  // valid during the call
};

// Called from calls of the agent. A handler may call the agent, but must not destroy the connection of the event. It
// returns false instead, and the agent destroys the connection.
class EventHandler {
 public:
  EventHandler() = default;
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;
  virtual ~EventHandler() = default;
  virtual bool on_event(Connection& connection, const Event& event) = 0;
};

struct Limits {
  uint32_t connections = 1U << 20;  // in all states
  uint32_t unanswered = 4096;       // requested by peers, and neither accepted nor rejected by users
  uint32_t unready = 16384;         // accepted or answered by users, without a message from the peer since
  uint32_t answers_per_second = 10'000;  // to messages without a connection
  // Doubles with each retransmission, up to the response time of the message.
  Nanos first_retry{128'000'000};
  // Of all connections without RTU together, after the first three repetitions of each REP.
  uint32_t reply_repetitions_per_second = 100;
};

// Duration of a time code: 4.096 us x 2^code.
inline constexpr uint8_t kMaxTimeCode = 31;
constexpr Nanos duration_of(uint8_t code) {
  return Nanos{int64_t{4096} << (code < kMaxTimeCode ? code : kMaxTimeCode)};
}

// Limits of the times that a peer can specify.
inline constexpr Nanos kMinResponseTime{10'000'000}, kMaxResponseTime{60'000'000'000};
inline constexpr Nanos kMaxDelay{600'000'000'000};  // sum of the delays by MRAs of a REQ or a REP
inline constexpr Nanos kMaxTimeWait{60'000'000'000};
// Repetitions of each REP that Limits::reply_repetitions_per_second does not count. Until RTU arrives the REQ may be forged,
// and its times and number of retries must not make the agent an amplifier.
inline constexpr uint8_t kFreeReplyRepetitions = 3;
inline constexpr Nanos kMaxReplyWait =
    duration_of(20);  // 4.3 s between two REPs, or the response time of a slower peer

class Agent;

// Local end of a connection, or of a service resolution (SIDR). Owned by its agent.
class Connection final : private Timer {
 public:
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] uint32_t local_id() const { return local_id_; }
  [[nodiscard]] uint32_t remote_id() const { return remote_id_; }
  [[nodiscard]] const Route& route() const { return route_; }
  [[nodiscard]] Qpn local_queue_pair() const { return local_qp_; }
  [[nodiscard]] Qpn remote_queue_pair() const { return remote_qp_; }

  void* user = nullptr;  // not used by the agent

 private:
  friend class Agent;
  explicit Connection(uint32_t id) : local_id_(id) {}
  [[nodiscard]] Qpn queue_pair_of(const CmReply& reply) const {
    return xrc_ ? Qpn{reply.local_eecn} : reply.queue_pair;
  }
  // Time to wait for a response: the round trip and the response time of the peer (IBTA 12.9.8). Limited, because the
  // peer specifies the codes.
  [[nodiscard]] Nanos response_time() const {
    return std::clamp(2 * duration_of(lifetime_) + duration_of(response_timeout_), kMinResponseTime,
                      kMaxResponseTime);
  }

  State state_ = State::kIdle;
  bool active_ = false;           // sent the REQ
  bool xrc_ = false;              // its REP contains the queue pair as EE context number
  bool orphan_ = false;           // destroyed by its user; the agent frees it after the disconnection
  uint8_t tries_ = 0;             // retransmissions of a message
  uint8_t repetitions_ = 0;       // of the REP
  uint8_t lifetime_ = 0;          // packet lifetime, a time code
  uint8_t response_timeout_ = 0;  // of the peer, a time code
  uint32_t local_id_ = 0, remote_id_ = 0;  // of a SIDR: request ID
  Qpn local_qp_, remote_qp_;
  uint64_t remote_guid_ = 0;  // CA GUID in the REQ or the REP of the peer
  uint64_t transaction_ = 0;
  Route route_;
  Nanos wait_{0};            // time until the next retransmission
  Nanos give_up_{0};         // time of the timeout without a response
  Nanos final_deadline_{0};  // upper limit of give_up_, independent of delays that the peer requests
  // End of the delay that the peer requested with an MRA. Until then the timeout does not run.
  Nanos resumes_{0};
  EventHandler* handler_ = nullptr;
  Listener* listener_ = nullptr;  // while the user has not answered the request
  uint32_t crash_notice_ = Sender::kNotStored;
  // The message to retransmit: REQ, REP, RTU, DREQ, DREP, SIDR_REQ or SIDR_REP.
  std::array<uint8_t, kMadBytes> message_{};
};

// Listener for REQ or SIDR_REQ. Owned by its user, which removes it with Agent::ignore().
struct Listener {
  uint64_t service = 0;
  IpAddress address;  // zero: all local addresses of the IP versions below
  bool ipv4 = true, ipv6 = true;
  // Limit of unanswered connections. Further requests are dropped, and the peer retransmits them.
  uint32_t backlog = 1024;
  EventHandler* handler = nullptr;
  void* user = nullptr;
  uint32_t unanswered = 0;  // maintained by the agent
};

// Event counters since the start.
struct Counts {
  uint64_t received = 0;
  uint64_t refused = 0;     // malformed or not CM
  uint64_t unexpected = 0;  // no matching connection, or wrong state
  uint64_t repeated = 0;    // received again
  uint64_t overflowed = 0;  // REQ and SIDR_REQ dropped because of a limit
  uint64_t retries = 0;     // retransmissions
};

// Not thread-safe: one thread at a time.
class Agent {
 public:
  Agent(Sender& sender, IdSource& ids, uint64_t ca_guid, const Limits& limits = {});
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  // EADDRINUSE: another listener has an overlapping service and address.
  Status listen(Listener& listener);
  void ignore(Listener& listener);

  // In all messages below, the agent sets the IDs, the transaction and the GUID. A call in the wrong state fails with
  // EINVAL and changes nothing.

  // ENOMEM: the limit of connections is reached.
  Result<Connection*> connect(const Route& route, CmRequest request, uint32_t options, EventHandler& handler,
                              Nanos now);
  Status accept(Connection& connection, CmReply reply, uint32_t options, Nanos now);
  Status ready(Connection& connection, const CmReady& message, Nanos now);
  Status delay(Connection& connection, CmAcknowledged message, Nanos now);
  // The connection is then kIdle.
  Status reject(Connection& connection, CmRejected message, Nanos now);
  // Reports that a packet of the connection arrived before RTU; the handler gets kReady. EISCONN: already established.
  Status established(Connection& connection, Nanos now);
  Status disconnect(Connection& connection, CmDisconnect message, Nanos now);
  Status reply_disconnect(Connection& connection, const CmDisconnected& message, Nanos now);

  // `lifetime` and `response_timeout` are time codes; `tries` is the number of retransmissions.
  Result<Connection*> request_service(const Route& route, CmServiceRequest request, uint8_t lifetime,
                                      uint8_t response_timeout, uint8_t tries, EventHandler& handler,
                                      Nanos now);
  Status reply_service(Connection& connection, CmServiceReply reply, uint32_t options, Nanos now);

  // The pointer becomes invalid, and no further events occur. The agent still sends the message that the state requires
  // (REJ, DREQ, DREP or SIDR_REP).
  void destroy(Connection& connection, Nanos now);

  // The process exits. Sends the message that ends each connection (REJ, DREQ, DREP or SIDR_REP). All pointers stay valid,
  // because destructors of the program may use them later, and the crash notifications stay stored, in case a message is lost.
  void leave(Nanos now);
  // Whether a connection waits for the DREP.
  [[nodiscard]] bool is_disconnecting() const { return disconnecting_ > 0; }

  // `payload` is the payload of a datagram to queue pair 1. `route` is the route of the response.
  void on_mad(const Route& route, std::span<const uint8_t> payload, Nanos now);
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return timers_.next_deadline(); }

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] size_t connections() const { return by_id_.size(); }
  [[nodiscard]] uint32_t unanswered() const { return unanswered_; }
  [[nodiscard]] uint32_t unready() const { return unready_; }

 private:
  // A connection, queue pair or request number of a peer. Queue pair numbers are unique per channel adapter, so their
  // keys also have its GUID.
  struct RemoteKey {
    IpAddress address;
    uint32_t number = 0;
    uint64_t guid = 0;
    friend bool operator==(const RemoteKey&, const RemoteKey&) = default;
  };
  struct RemoteKeyHash {
    SipKey secret{};  // prevents collisions, since peers choose the numbers
    size_t operator()(const RemoteKey& key) const;
  };
  using RemoteTable = std::unordered_map<RemoteKey, Connection*, RemoteKeyHash>;

  // Transaction ID of an exchange that this host initiates: connection or disconnection.
  [[nodiscard]] uint64_t transaction_of(uint32_t local_id) const {
    return uint64_t{transactions_} << 32 | local_id;
  }
  Connection* make(const Route& route, EventHandler* handler);
  void free(Connection& connection);
  void set_state(Connection& connection, State state);
  // Message for the peer if the connection ends now, as a kernel sends it for a process that has exited.
  [[nodiscard]] std::optional<CmMad> crash_notice(const Connection& connection) const;
  void store_crash_notice(Connection& connection);
  void enter_time_wait(Connection& connection, Nanos now);
  // Reports an event to the user, unless the connection is an orphan. False: the connection was destroyed.
  bool report(Connection& connection, EventKind kind, const CmMad* mad, Nanos now);
  // Reports the last event of the connection, which becomes kIdle. Frees an orphan.
  void end(Connection& connection, EventKind kind, const CmMad* mad, Nanos now);

  void set_message(Connection& connection, const CmMessage& message, uint32_t options);
  bool send(Connection& connection, Nanos now);
  // Sends the message set by set_message(), and retransmits it until a response or the timeout.
  void send_until_answered(Connection& connection, uint8_t tries, Nanos now);
  // Longest time between two transmissions of a message.
  static Nanos longest_wait(const Connection& connection) {
    return connection.state_ == State::kReplySent ? std::max(connection.response_time(), kMaxReplyWait)
                                                  : connection.response_time();
  }
  void send_once(Connection& connection, const CmMessage& message, Nanos now);
  void reply_unknown_peer(const Route& route, uint64_t transaction, const CmMessage& message, Nanos now);
  void on_timer(Connection& connection, Nanos now);
  void mark_answered(Connection& connection);  // the connection is no longer unanswered

  [[nodiscard]] Connection* find(uint32_t local_id, const Route& route) const;
  [[nodiscard]] Connection* find_remote(const RemoteTable& table, const Route& route, uint32_t number) const;
  bool claim_queue_pair(Connection& connection, Nanos now);
  Listener* find_listener(uint64_t service, const IpAddress& address);
  bool has_space_for(const Listener& listener);
  [[nodiscard]] bool is_overloaded() const { return unready_ > limits_.unready / 2; }
  void accept_into(Listener& listener, Connection& connection);

  void on(const Route& route, const CmMad& mad, const CmRequest& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmAcknowledged& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmRejected& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmReply& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmReady& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmDisconnect& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmDisconnected& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmServiceRequest& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmServiceReply& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmLoadPath& message, Nanos now);
  void on(const Route& route, const CmMad& mad, const CmPathAnswer& message, Nanos now);
  void on_repeated_request(Connection& connection, Nanos now);

  Sender& sender_;
  IdSource& ids_;
  const uint64_t ca_guid_;
  const Limits limits_;
  const uint32_t transactions_;  // upper half of the transaction IDs
  const RemoteKeyHash hash_;
  Counts counts_;
  TimingWheel timers_;
  IdTable<Connection> by_id_;
  RemoteTable by_remote_id_;                                // of received REQs
  RemoteTable by_remote_qp_;                                // of connections after REQ or REP was received
  RemoteTable services_;                                    // of received SIDR_REQs, by request ID
  std::unordered_multimap<uint64_t, Listener*> listeners_;  // by service ID
  uint32_t unanswered_ = 0, unready_ = 0, disconnecting_ = 0;
  RateLimit answers_, reply_repetitions_;
};

}  // namespace roci::cm
