// What librdmacm.so.1 has of the device that is inside libibverbs.so.1: the interface between the two libraries, which are built
// together. Everything goes through virtual functions, since neither shows its insides to the other.
#pragma once

#include "cm/agent.hpp"
#include "roci/result.hpp"

namespace roci::cm {

// A wait for the next hop's address. Belongs to its user, who may give it up until its handler was called.
class AddressQuery : private Timer {
 public:
  AddressQuery() = default;
  virtual ~AddressQuery() = default;
  // Called once, like events: with an error when nobody has answered in time, or no network leads there.
  virtual void on_answer(Status found) = 0;

 private:
  friend class Manager;
  IpAddress address_;
  Nanos give_up_{0};
};

inline constexpr uint8_t kPacketLifetime = 16;  // 0.27 s, a code, as the Linux kernel has it for Ethernet

// With peers.
struct Patience {
  uint8_t response_timeout = 20;  // a code
  uint8_t retries = 15;
};

// Any thread, but not from within handlers.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  [[nodiscard]] virtual Patience patience() const = 0;

  // To be called before blocking until an event arrives: the calling thread stops polling.
  virtual void expect_block() = 0;

  // As of Agent. `made` is set before the first event.
  virtual Status listen(Listener& listener) = 0;
  virtual void ignore(Listener& listener) = 0;
  virtual Status connect(const Route& route, const CmRequest& request, uint32_t options,
                         EventHandler& handler, Connection*& made) = 0;
  virtual Status accept(Connection& connection, const CmReply& reply, uint32_t options) = 0;
  virtual Status ready(Connection& connection, const CmReady& message) = 0;
  virtual Status reject(Connection& connection, const CmRejected& message) = 0;
  virtual Status established(Connection& connection) = 0;
  virtual Status disconnect(Connection& connection, const CmDisconnect& message) = 0;
  virtual Status answer_disconnect(Connection& connection, const CmDisconnected& message) = 0;
  virtual Status ask(const Route& route, const CmServiceRequest& request, EventHandler& handler,
                     Connection*& made) = 0;
  virtual Status answer(Connection& connection, const CmServiceReply& reply, uint32_t options) = 0;
  virtual void destroy(Connection& connection) = 0;

  // Finds out who is the next hop to this address.
  virtual void resolve(AddressQuery& query, const IpAddress& address, Nanos timeout) = 0;
  virtual void give_up(AddressQuery& query) = 0;
};

}  // namespace roci::cm
