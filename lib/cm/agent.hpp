// The connection manager of a host (IBTA 12.9): who listens, which connections there are and in which state, what is said again when
// nothing is heard, and for how long. It knows no queue pairs and no addresses of programs: who uses it moves those as the events say.
//
//   active    connect() ─REQ─► kRequestSent ─REP─► kReply ── ready() ─RTU─► kEstablished
//   passive   listen()  ◄─REQ─ kRequest ── accept() ─REP─► kReplySent ◄─RTU─ kReady, kEstablished
//   either    disconnect() ─DREQ─► kDisconnectSent ─DREP─► kDisconnected, kTimeWait ──► kTimeWaitOver
//             ◄─DREQ─ kDisconnect ── answer_disconnect() ─DREP─► kTimeWait ──► kTimeWaitOver
//   datagrams ask() ─SIDR_REQ─► ◄─SIDR_REP─ kServiceReply          listen() ◄─SIDR_REQ─ kServiceRequest ── answer() ─SIDR_REP─►
//
// What arrives is never trusted: tables have sizes, answers to strangers a rate, and a message that does not fit the state of its
// connection changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/id_source.hpp"
#include "base/id_table.hpp"
#include "base/rate_limit.hpp"
#include "base/result.hpp"
#include "base/timing_wheel.hpp"
#include "base/types.hpp"
#include "wire/cm_messages.hpp"
#include "wire/siphash.hpp"

namespace roci::cm {

using Route = MadRoute;

// How messages leave.
class Sender {
 public:
  Sender() = default;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  virtual ~Sender() = default;
  // From queue pair 1 to queue pair 1. False: not now; the agent sends it again like one that was lost, only sooner.
  virtual bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) = 0;

  // What a peer is to hear when this process ends without a word, kept where it outlives the process, in the place of what
  // `kept` names. The name of it; kNotKept when it cannot be.
  static constexpr uint32_t kNotKept = ~0U;
  [[nodiscard]] virtual bool keeps() const = 0;  // whether it does that at all
  virtual uint32_t keep(uint32_t kept, const Route& route, std::span<const uint8_t, kMadBytes> mad) = 0;
  virtual void forget(uint32_t kept) = 0;
};

enum class State : uint8_t {
  kIdle,
  kRequestSent,      // REQ; MRA or not
  kRequestReceived,  // the user has to accept or reject
  kReplySent,        // REP; MRA or not
  kReplyReceived,    // the user has to say ready() or reject
  kEstablished,
  kDisconnectSent,      // DREQ
  kDisconnectReceived,  // the user has to answer_disconnect()
  kTimeWait,            // its numbers are not used again yet
  kServiceAsked,        // SIDR_REQ
  kServiceAskedOfUs,    // the user has to answer()
  kServiceAnswered,     // the answer is said again to who asks again
};

enum class EventKind : uint8_t {
  kRequest,         // message: CmRequest; of a listener, with a new connection
  kReply,           // CmReply
  kReady,           // CmReady, or none: the first packet came instead (established())
  kRejected,        // CmRejected
  kRequestTimeout,  // no answer to REQ
  kReplyTimeout,    // no answer to REP
  kDisconnect,      // CmDisconnect
  kDisconnected,  // CmDisconnected; or none: no answer to DREQ, or the peer has given up, or uses its numbers anew
  kTimeWaitOver,    // the connection is kIdle, its numbers are free
  kServiceRequest,  // CmServiceRequest; of a listener, with a new connection
  kServiceReply,    // CmServiceReply
  kServiceTimeout,  // no answer to SIDR_REQ
};

class Connection;
struct Listener;

struct Event {
  EventKind kind;
  const CmMad* mad = nullptr;  // for the time of the call
};

// Called from within calls of the agent. May call it, but not destroy the connection that the event is of: return false then, and
// the agent does.
class EventHandler {
 public:
  EventHandler() = default;
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;
  virtual ~EventHandler() = default;
  virtual bool on_event(Connection& connection, const Event& event) = 0;
};

struct Limits {
  uint32_t connections = 1U << 20;  // of all states
  uint32_t unanswered = 4096;       // that peers asked for and users have not accepted or rejected yet
  uint32_t unready = 16384;  // that users have accepted or answered, and whose peers have said nothing since
  uint32_t answers_per_second = 10'000;  // to messages that belong to nothing
  Nanos first_retry{
      128'000'000};  // doubles with each retry, up to what the message says that its answer may take
};

// How long 4.096 us x 2^code is.
inline constexpr uint8_t kMostTimeCode = 31;
constexpr Nanos duration_of(uint8_t code) {
  return Nanos{int64_t{4096} << (code < kMostTimeCode ? code : kMostTimeCode)};
}

// Whatever a peer says.
inline constexpr Nanos kShortestAnswer{10'000'000}, kLongestAnswer{60'000'000'000};
inline constexpr Nanos kLongestDelay{600'000'000'000};  // by MRAs, of a REQ or a REP, all in all

class Agent;

// One side of a connection, or of a question for a datagram service. Belongs to its agent.
class Connection final : private Timer {
 public:
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] uint32_t local_id() const { return local_id_; }
  [[nodiscard]] uint32_t remote_id() const { return remote_id_; }
  [[nodiscard]] const Route& route() const { return route_; }
  [[nodiscard]] Qpn local_queue_pair() const { return local_qp_; }
  [[nodiscard]] Qpn remote_queue_pair() const { return remote_qp_; }

  void* user = nullptr;  // whatever its user likes

 private:
  friend class Agent;
  explicit Connection(uint32_t id) : local_id_(id) {}
  [[nodiscard]] Qpn queue_pair_of(const CmReply& reply) const {
    return xrc_ ? Qpn{reply.local_eecn} : reply.queue_pair;
  }
  // What IBTA 12.9.8 has a side wait for an answer: there, back, and what the peer takes; but no more than is bearable, since
  // those codes are the peer's.
  [[nodiscard]] Nanos answer_time() const {
    return std::clamp(2 * duration_of(lifetime_) + duration_of(response_timeout_), kShortestAnswer,
                      kLongestAnswer);
  }

  State state_ = State::kIdle;
  bool xrc_ = false;                       // its REP says the queue pair as an EE context
  bool orphan_ = false;                    // destroyed by its user; goes when it has said what is to be said
  uint8_t tries_ = 0;                      // of messages beyond the first
  uint8_t lifetime_ = 0;                   // of packets, a code
  uint8_t response_timeout_ = 0;           // of the peer, a code
  uint32_t local_id_ = 0, remote_id_ = 0;  // of a question: request id
  Qpn local_qp_, remote_qp_;
  uint64_t transaction_ = 0;
  Route route_;
  Nanos wait_{0};          // for an answer, the next time
  Nanos give_up_{0};       // when nothing is heard
  Nanos patience_end_{0};  // however often the peer asks for more time
  Nanos resumes_{0};  // when the time that the peer has asked for is over, and the time to give up runs again
  EventHandler* handler_ = nullptr;
  Listener* listener_ = nullptr;  // as long as it is unanswered
  uint32_t last_words_ = Sender::kNotKept;
  std::array<uint8_t, kMadBytes>
      message_{};  // what is said again: REQ, REP, RTU, DREQ, DREP, SIDR_REQ or SIDR_REP
};

// Somebody who waits for REQ or SIDR_REQ. Belongs to its user, who takes it back with Agent::ignore().
struct Listener {
  uint64_t service = 0;
  IpAddress address;  // zero: any of ours, of the versions that follow
  bool ipv4 = true, ipv6 = true;
  uint32_t backlog =
      1024;  // of its connections may be unanswered at once; who comes then is not heard, and asks again
  EventHandler* handler = nullptr;
  void* user = nullptr;
  uint32_t unanswered = 0;  // the agent's
};

// What happened, since the start.
struct Counts {
  uint64_t received = 0;
  uint64_t refused = 0;     // malformed, or not CM
  uint64_t unexpected = 0;  // of no connection of ours, or not in its state
  uint64_t repeated = 0;    // received again
  uint64_t overflowed = 0;  // REQ and SIDR_REQ for which there was no room
  uint64_t retries = 0;     // sent again
};

// Used by one thread at a time.
class Agent {
 public:
  Agent(Sender& sender, IdSource& ids, uint64_t ca_guid, const Limits& limits = {});
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  // EADDRINUSE: somebody listens there.
  Status listen(Listener& listener);
  void ignore(Listener& listener);

  // In all of these messages the agent sets the ids, the transaction and its GUID. Calls that do not fit the state fail with
  // EINVAL and change nothing.

  // ENOMEM: there are as many connections as may be.
  Result<Connection*> connect(const Route& route, CmRequest request, uint32_t options, EventHandler& handler,
                              Nanos now);
  Status accept(Connection& connection, CmReply reply, uint32_t options, Nanos now);
  Status ready(Connection& connection, const CmReady& message, Nanos now);
  Status delay(Connection& connection, CmAcknowledged message, Nanos now);
  // Afterwards it is kIdle.
  Status reject(Connection& connection, CmRejected message, Nanos now);
  // A packet has come over the connection before RTU did: its handler is told kReady. EISCONN: it was told already.
  Status established(Connection& connection, Nanos now);
  Status disconnect(Connection& connection, CmDisconnect message, Nanos now);
  Status answer_disconnect(Connection& connection, const CmDisconnected& message, Nanos now);

  // `lifetime` and `response_timeout` are codes; `tries` beyond the first.
  Result<Connection*> ask(const Route& route, CmServiceRequest request, uint8_t lifetime,
                          uint8_t response_timeout, uint8_t tries, EventHandler& handler, Nanos now);
  Status answer(Connection& connection, CmServiceReply reply, uint32_t options, Nanos now);

  // No events come any more, and the pointer is no longer the user's. What the peer should hear it hears.
  void destroy(Connection& connection, Nanos now);

  // Destroys all connections.
  void leave(Nanos now);

  // The payload of a datagram to queue pair 1. `route` is the way back.
  void on_mad(const Route& route, std::span<const uint8_t> payload, Nanos now);
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return timers_.next_deadline(); }

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] size_t connections() const { return by_id_.size(); }
  [[nodiscard]] uint32_t unanswered() const { return unanswered_; }
  [[nodiscard]] uint32_t unready() const { return unready_; }

 private:
  // What a peer calls something.
  struct RemoteKey {
    IpAddress address;
    uint32_t number = 0;
    friend bool operator==(const RemoteKey&, const RemoteKey&) = default;
  };
  struct RemoteKeyHash {
    SipKey secret{};  // peers choose the numbers
    size_t operator()(const RemoteKey& key) const;
  };
  using RemoteTable = std::unordered_map<RemoteKey, Connection*, RemoteKeyHash>;

  // Of what we begin: a connection, or its end.
  [[nodiscard]] uint64_t transaction_of(uint32_t local_id) const {
    return uint64_t{transactions_} << 32 | local_id;
  }
  Connection* make(const Route& route, EventHandler* handler);
  void free(Connection& connection);
  void go(Connection& connection, State state);
  // What its peer should hear if it ends now; as a kernel says it for processes that are gone.
  [[nodiscard]] std::optional<CmMad> last_words(const Connection& connection) const;
  void keep_last_words(Connection& connection);
  void enter_time_wait(Connection& connection, Nanos now);
  // To the user, if there still is one. False: the connection is gone.
  bool tell(Connection& connection, EventKind kind, const CmMad* mad, Nanos now);
  // Tells, and is done with the connection: kIdle.
  void end(Connection& connection, EventKind kind, const CmMad* mad, Nanos now);

  void put(Connection& connection, const CmMessage& message, uint32_t options);
  bool send(Connection& connection, Nanos now);
  // Sends what was put, again and again until something is heard.
  void insist(Connection& connection, uint8_t tries, Nanos now);
  void send_once(Connection& connection, const CmMessage& message, Nanos now);
  void answer_stranger(const Route& route, uint64_t transaction, const CmMessage& message, Nanos now);
  void on_timer(Connection& connection, Nanos now);
  void settle(Connection& connection);  // it is not unanswered any more

  [[nodiscard]] Connection* find(uint32_t local_id, const Route& route) const;
  [[nodiscard]] Connection* find_remote(const RemoteTable& table, const Route& route, uint32_t number) const;
  bool claim_queue_pair(Connection& connection, Nanos now);
  Listener* find_listener(uint64_t service, const IpAddress& address);
  bool has_room_for(const Listener& listener);
  [[nodiscard]] bool is_crowded() const { return unready_ > limits_.unready / 2; }
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
  void on_request_again(Connection& connection, Nanos now);

  Sender& sender_;
  IdSource& ids_;
  const uint64_t ca_guid_;
  const Limits limits_;
  const uint32_t transactions_;  // the upper half of ours
  const RemoteKeyHash hash_;
  Counts counts_;
  TimingWheel timers_;
  IdTable<Connection> by_id_;
  RemoteTable by_remote_id_;                                // of REQs that came
  RemoteTable by_remote_qp_;                                // of connections from REP on
  RemoteTable services_;                                    // of SIDR_REQs that came, by request id
  std::unordered_multimap<uint64_t, Listener*> listeners_;  // by service
  uint32_t unanswered_ = 0, unready_ = 0;
  RateLimit answers_;
};

}  // namespace roci::cm
