// Two agents in virtual time, each with a user that behaves like a program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cm/agent.hpp"
#include "cm/cm_network.hpp"

namespace roci::cm::agents {

using test::CmNetwork;
using Names = std::vector<std::string>;

inline const IpAddress kClient = *IpAddress::parse("10.0.0.2"), kServer = *IpAddress::parse("10.0.0.1");
inline constexpr uint64_t kService = cm_service_id(CmPortSpace::kTcp, 7174);

// User of an agent: records events, and reacts to them like a program.
class AgentUser final : public EventHandler {
 public:
  AgentUser(CmNetwork& network, Agent& agent, uint32_t first_qpn)
      : network_(network), agent_(agent), next_qpn_(first_qpn) {}

  bool on_event(Connection& connection, const Event& event) override {
    events.push_back(event.kind);
    last = event.mad == nullptr ? CmMad{} : *event.mad;
    connections.insert(&connection);
    const Nanos now = network_.now;
    if (does) does(event.kind);
    switch (event.kind) {
      case EventKind::kRequest:
        if (answers) {
          EXPECT_TRUE(agent_.accept(connection, {.queue_pair = Qpn{next_qpn_++}}, 0, now));
        }
        return true;
      case EventKind::kReply:
        if (!answers_replies) return true;
        EXPECT_TRUE(agent_.ready(connection, {}, now));
        ++established;
        return true;
      case EventKind::kReady:
        ++established;
        return true;
      case EventKind::kDisconnect:
        EXPECT_TRUE(agent_.reply_disconnect(connection, {}, now));
        return true;
      case EventKind::kServiceRequest:
        EXPECT_TRUE(agent_.reply_service(connection, {.queue_pair = Qpn{77}, .qkey = 0x01234567}, 0, now));
        connections.erase(&connection);
        return false;
      case EventKind::kRequestTimeout:
      case EventKind::kReplyTimeout:
      case EventKind::kRejected:
      case EventKind::kTimeWaitExpired:
      case EventKind::kServiceReply:
      case EventKind::kServiceTimeout:
        connections.erase(&connection);
        return !forgets;
      case EventKind::kDisconnected:
      case EventKind::kDisconnectTimeout:
        return true;
    }
    return true;
  }

  Connection* connect(const IpAddress& to, uint8_t retries = 15) {
    CmRequest request{.service_id = kService, .queue_pair = Qpn{next_qpn_++}};
    request.remote_response_timeout = request.local_response_timeout = 20;
    request.max_cm_retries = retries;
    request.primary.ack_timeout = 17;
    auto made = agent_.connect({.local = kClient, .remote = to}, request, 0, *this, network_.now);
    EXPECT_TRUE(made);
    connections.insert(*made);
    return *made;
  }

  std::function<void(EventKind)> does = nullptr;  // called for each event in addition

  [[nodiscard]] bool has_event(EventKind kind) const {
    return std::find(events.begin(), events.end(), kind) != events.end();
  }

  bool answers = true;  // answers connection requests
  bool answers_replies = true;
  bool forgets = true;  // destroys connections that have ended
  std::vector<EventKind> events;
  CmMad last;
  std::set<Connection*> connections;
  unsigned established = 0;

 private:
  CmNetwork& network_;
  Agent& agent_;
  uint32_t next_qpn_;
};

class CmAgent : public testing::Test {
 protected:
  explicit CmAgent(uint64_t seed = 1) : network(seed) {
    listener.service = kService;
    listener.handler = &server;
    EXPECT_TRUE(server_agent.listen(listener));
  }

  CmNetwork network;
  Agent& client_agent = network.add(kClient);
  Agent& server_agent = network.add(kServer);
  AgentUser client{network, client_agent, 100}, server{network, server_agent, 200};
  Listener listener;
};

}  // namespace roci::cm::agents
