// Device under librdmacm without a network: verbs objects that only count and record, and a connection manager. The test is
// the network and all peers. It sends CM messages, writes memory that the program has registered, and completes requests.
// Linked instead of libibverbs.so.1. Not thread-safe.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cm/service.hpp"
#include "rdmacm/sockets/protocol.hpp"

namespace roci::rdmacm::fake {

inline const IpAddress kOwn = IpAddress::from_v4(0x0a000001), kPeer = IpAddress::from_v4(0x0a000002);

struct Channel;

struct Queue {
  ibv_cq verbs{};  // first member
  Channel* channel = nullptr;
  std::deque<ibv_wc> completions;
  bool armed = false;
};

struct AddressHandle {
  ibv_ah verbs{};  // first member
  IpAddress destination;
};

// A send request that was posted.
struct Sent {
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint32_t length = 0;
  uint64_t remote_address = 0;
  uint32_t immediate = 0;   // host byte order
  IpAddress destination{};  // of a datagram
  uint32_t destination_qpn = 0;
  std::vector<uint8_t> content{};
};

struct QueuePair {
  ibv_qp verbs{};  // first member
  uint32_t max_send = 0, max_receive = 0;
  std::deque<ibv_recv_wr> receives;  // sg_list is that of `entries`
  std::deque<ibv_sge> entries;
  std::deque<Sent> pending;  // not completed
  std::vector<Sent> sent;    // all requests
  unsigned refused = 0;      // requests that the program posted although the queue was full

  // The peer's RDMA WRITE with this immediate data arrives. False: no receive request was posted (RNR NAK).
  bool receive_immediate(uint32_t immediate, uint32_t bytes = 0);
  // A datagram arrives. `header` has 40 bytes.
  bool receive_datagram(std::span<const uint8_t, sockets::kNetworkHeader> header,
                        std::span<const uint8_t> content, uint32_t source_qpn);
  void complete_sends(size_t most = SIZE_MAX, ibv_wc_status status = IBV_WC_SUCCESS);
};

class Device final : public cm::Service, private cm::Sender {
 public:
  // The device of the process, because librdmacm opens a device once and keeps it.
  static Device& instance();

  // ---- Objects that exist.
  std::set<QueuePair*> queue_pairs;
  std::set<Queue*> queues;
  std::set<ibv_mr*> regions;
  std::set<AddressHandle*> address_handles;
  int channels = 0;
  std::vector<QueuePair*> made;  // queue pairs in the order of their creation; existing and destroyed ones

  // ---- Connection manager.
  struct Message {
    cm::Route route;
    CmMad mad;
  };
  std::vector<Message> messages;  // sent by librdmacm
  Nanos now{1'000'000'000};
  // Receives a message in the name of a host.
  void receive(const IpAddress& from, const CmMessage& message);
  // Advances the time and runs the timers of the connection manager.
  void pass(Nanos time);
  [[nodiscard]] cm::Agent& agent() { return agent_; }

  ibv_context context{};
  ibv_pd pd{};
  uint32_t next_number = 0x100;

  // ---- Service.
  [[nodiscard]] cm::TimeoutSettings timeouts() const override { return {}; }
  void expect_block() override {}
  Status listen(cm::Listener& listener) override { return agent_.listen(listener); }
  void ignore(cm::Listener& listener) override { agent_.ignore(listener); }
  Status connect(const cm::Route& route, const CmRequest& request, uint32_t options,
                 cm::EventHandler& handler, cm::Connection*& made_connection) override;
  Status accept(cm::Connection& connection, const CmReply& reply, uint32_t options) override {
    return agent_.accept(connection, reply, options, now);
  }
  Status ready(cm::Connection& connection, const CmReady& message) override {
    return agent_.ready(connection, message, now);
  }
  Status reject(cm::Connection& connection, const CmRejected& message) override {
    return agent_.reject(connection, message, now);
  }
  Status established(cm::Connection& connection) override { return agent_.established(connection, now); }
  Status disconnect(cm::Connection& connection, const CmDisconnect& message) override {
    return agent_.disconnect(connection, message, now);
  }
  Status reply_disconnect(cm::Connection& connection, const CmDisconnected& message) override {
    return agent_.reply_disconnect(connection, message, now);
  }
  Status request_service(const cm::Route& route, const CmServiceRequest& request, cm::EventHandler& handler,
                         cm::Connection*& made_connection) override;
  Status reply_service(cm::Connection& connection, const CmServiceReply& reply, uint32_t options) override {
    return agent_.reply_service(connection, reply, options, now);
  }
  void destroy(cm::Connection& connection) override { agent_.destroy(connection, now); }
  // Every address has a next hop.
  void resolve(cm::AddressQuery& query, const IpAddress&, Nanos) override { query.on_resolved({}); }
  void give_up(cm::AddressQuery&) override {}

 private:
  Device();
  bool send(const cm::Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos) override;
  [[nodiscard]] bool stores() const override { return false; }
  uint32_t store(uint32_t, const cm::Route&, std::span<const uint8_t, kMadBytes>) override {
    return kNotStored;
  }
  void remove(uint32_t) override {}

  IdSource ids_{1};
  cm::Agent agent_{*this, ids_, 1};
};

// The 40 bytes before a datagram from `source` to `destination`, both IPv4 or both IPv6.
std::array<uint8_t, sockets::kNetworkHeader> network_header(const IpAddress& source,
                                                            const IpAddress& destination);

// A peer that requests a connection of an rsockets stream.
struct StreamRequest {
  IpAddress from = kPeer;
  uint16_t port = 0;  // of the listener
  uint32_t id = 1, qpn = 0x999;
  uint16_t credits = 384, mappings = 0;
  uint32_t ring = 65536;  // bytes of the first grant
};
CmRequest request_of(const StreamRequest& wanted);

}  // namespace roci::rdmacm::fake
