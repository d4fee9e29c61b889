// Interface through which librdmacm.so.1 uses the device in libibverbs.so.1. The libraries are built together. All
// functions are virtual, since neither library exports its internal symbols to the other.
#pragma once

#include "cm/agent.hpp"
#include "roci/result.hpp"

namespace roci::cm {

// Resolution of a next hop's address. Owned by its user, which may cancel it until the handler is called.
class AddressQuery : private Timer {
 public:
  AddressQuery() = default;
  virtual ~AddressQuery() = default;
  // Called once, in the same context as events. Errors: no response in time, or no network for the address.
  virtual void on_resolved(Status found) = 0;

 private:
  friend class Manager;
  IpAddress address_;
  Nanos give_up_{0};
};

inline constexpr uint8_t kPacketLifetime = 16;  // time code of 0.27 s, as the Linux kernel uses for Ethernet

// Timeouts and retransmissions for peers.
struct TimeoutSettings {
  uint8_t response_timeout = 20;  // time code
  uint8_t retries = 15;
};

// Any thread, but not from handlers.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  [[nodiscard]] virtual TimeoutSettings timeouts() const = 0;

  // The caller calls it before it blocks for an event, and stops polling.
  virtual void expect_block() = 0;

  // As in Agent. `made` is set before the first event.
  virtual Status listen(Listener& listener) = 0;
  virtual void ignore(Listener& listener) = 0;
  virtual Status connect(const Route& route, const CmRequest& request, uint32_t options,
                         EventHandler& handler, Connection*& made) = 0;
  virtual Status accept(Connection& connection, const CmReply& reply, uint32_t options) = 0;
  virtual Status ready(Connection& connection, const CmReady& message) = 0;
  virtual Status reject(Connection& connection, const CmRejected& message) = 0;
  virtual Status established(Connection& connection) = 0;
  virtual Status disconnect(Connection& connection, const CmDisconnect& message) = 0;
  virtual Status reply_disconnect(Connection& connection, const CmDisconnected& message) = 0;
  virtual Status request_service(const Route& route, const CmServiceRequest& request, EventHandler& handler,
                                 Connection*& made) = 0;
  virtual Status reply_service(Connection& connection, const CmServiceReply& reply, uint32_t options) = 0;
  virtual void destroy(Connection& connection) = 0;

  // Resolves the next hop to this address.
  virtual void resolve(AddressQuery& query, const IpAddress& address, Nanos timeout) = 0;
  virtual void give_up(AddressQuery& query) = 0;
};

}  // namespace roci::cm
