// Retries and timeouts of the connection manager's agent.
#include "cm/agent_user.hpp"

namespace roci::cm::agents {
namespace {

// Each message of connection establishment and release is lost once, in separate runs.
TEST_F(CmAgent, retransmits_lost_messages) {
  for (const char* victim : {"REQ", "REP", "RTU", "DREQ", "DREP"}) {
    network.sent.clear();
    bool lost = false;
    network.loses = [&](const CmNetwork::Sent& one) {
      return cm_message_name(one.mad.message) == victim && !std::exchange(lost, true);
    };
    const unsigned before = server.established;
    Connection* connection = client.connect(kServer);
    network.run_for(Nanos{1'000'000'000});
    EXPECT_EQ(connection->state(), State::kEstablished) << victim;
    EXPECT_EQ(server.established, before + 1) << victim;
    EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
    network.run_to_the_end();
    EXPECT_TRUE(lost) << victim;
    EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U) << victim;
  }
}

TEST_F(CmAgent, times_out_without_reply_after_all_retries) {
  network.remove(kServer);
  const Nanos begun = network.now;
  client.connect(kServer);
  network.run_to_the_end();
  EXPECT_EQ(client.events, std::vector{EventKind::kRequestTimeout});
  EXPECT_EQ(network.said().back(), "REJ");
  const Nanos whole = 2 * duration_of(16) + duration_of(20);
  EXPECT_EQ(network.sent.back().at - begun, 16 * whole);
  EXPECT_EQ(client_agent.connections(), 0U);
}

TEST_F(CmAgent, disconnect_from_dead_peer_completes_in_bounded_time) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  network.remove(kServer);
  const Nanos begun = network.now;
  EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  network.run_to_the_end();
  EXPECT_TRUE(client.has_event(EventKind::kDisconnectTimeout));
  EXPECT_LT(network.now - begun, Nanos{12'000'000'000});
}

TEST_F(CmAgent, sends_mra_while_user_delays_the_reply) {
  server.answers = false;
  client.connect(kServer);
  network.run_for(Nanos{60'000'000'000});
  EXPECT_EQ(client.events.size(), 0U);
  EXPECT_EQ(server.events.size(), 1U) << "the request is reported once";
  const auto said = network.said();
  EXPECT_GT(std::count(said.begin(), said.end(), "MRA"), 3);
  EXPECT_TRUE(server_agent.accept(**server.connections.begin(), {.queue_pair = Qpn{9}}, 0, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server.established, 1U);
}

TEST_F(CmAgent, times_out_after_maximum_mra_delay) {
  server.answers = false;
  client.connect(kServer);
  const Nanos begun = network.now;
  network.run_for(Nanos{3'600'000'000'000});
  EXPECT_EQ(client.events, std::vector{EventKind::kRequestTimeout});
  const Nanos tries = 16 * (2 * duration_of(16) + duration_of(20));
  const auto late = std::find_if(network.sent.begin(), network.sent.end(), [](const CmNetwork::Sent& one) {
    return cm_message_name(one.mad.message) == "REJ";
  });
  ASSERT_NE(late, network.sent.end());
  EXPECT_EQ(late->at - begun, tries + kMaxDelay);
}

// One MRA requests ten minutes, a later one none: the agent retries and gives up as without MRAs.
TEST_F(CmAgent, second_mra_does_not_extend_retries) {
  CmRequest request{.local_id = 77, .service_id = kService, .queue_pair = Qpn{5}};
  request.max_cm_retries = 15;
  network.forge({.local = kClient, .remote = kServer}, {1, 0, request});
  network.run_for(Nanos{100'000});
  ASSERT_EQ(network.said(), (Names{"REP"}));
  const auto reply = std::get<CmReply>(network.sent[0].mad.message);
  CmAcknowledged more{.local_id = 77, .remote_id = reply.local_id, .answered = CmAnswered::kReply};
  for (const uint8_t time : {uint8_t{31}, uint8_t{0}}) {
    more.service_timeout = time;
    network.forge({.local = kClient, .remote = kServer}, {1, 0, more});
    network.run_for(Nanos{100'000});
  }
  network.remove(kClient);
  network.run_to_the_end();
  const auto said = network.said();
  EXPECT_LE(std::count(said.begin(), said.end(), "REP"), 18);
  EXPECT_EQ(server_agent.unready(), 0U);
}

TEST_F(CmAgent, limits_timeouts_requested_by_peer) {
  CmRequest request{.local_id = 77, .service_id = kService, .queue_pair = Qpn{5}};
  request.local_response_timeout = request.remote_response_timeout = 31;
  request.max_cm_retries = 15;
  request.primary.ack_timeout = 31;
  network.forge({.local = kClient, .remote = kServer}, {1, 0, request});
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server_agent.unready(), 1U);
  network.remove(kClient);
  network.run_for(17 * kMaxResponseTime);
  EXPECT_EQ(server_agent.unready(), 0U);
  EXPECT_TRUE(server.has_event(EventKind::kReplyTimeout));
}

// The REQ specifies the shortest times and the most retries. The agent must not send its sender, whose address may be
// forged, a REP every 10 ms.
TEST_F(CmAgent, request_with_the_shortest_times_obtains_two_replies) {
  CmRequest request{.local_id = 77, .service_id = kService, .queue_pair = Qpn{5}};
  request.max_cm_retries = 15;
  network.forge({.local = kClient, .remote = kServer}, {1, 0, request});
  network.run_to_the_end();
  EXPECT_EQ(network.said(), (Names{"REP", "REP", "REJ"}));
  EXPECT_EQ(network.sent[1].at - network.sent[0].at, Nanos{128'000'000});
  EXPECT_EQ(server_agent.connections(), 0U);
}

TEST_F(CmAgent, repeated_replies_of_all_connections_without_rtu_are_rate_limited) {
  constexpr uint32_t kRequests = 1000;
  listener.backlog = kRequests;
  CmRequest request{.service_id = kService};
  request.local_response_timeout = request.remote_response_timeout = 20;
  request.max_cm_retries = 15;
  const Nanos begun = network.now;
  for (uint32_t i = 1; i <= kRequests; ++i) {
    request.local_id = i;
    request.queue_pair = Qpn{i};
    network.forge({.local = IpAddress::from_v4(0x0b000000 + i), .remote = kServer}, {i, 0, request});
  }
  network.run_to_the_end();
  const auto said = network.said();
  const auto replies = std::count(said.begin(), said.end(), "REP");
  const auto seconds = (network.now - begun) / Nanos{1'000'000'000};
  EXPECT_GE(replies, 4 * kRequests) << "three repetitions of each are sent in any case";
  EXPECT_LE(replies, 4 * kRequests + 100 * (seconds + 1));
  EXPECT_EQ(std::count(said.begin(), said.end(), "REJ"), kRequests);
}

}  // namespace
}  // namespace roci::cm::agents
