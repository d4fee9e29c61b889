#include "cm/agent.hpp"

#include "cm/agent_user.hpp"

namespace roci::cm::agents {
namespace {

TEST_F(CmAgent, connects_and_disconnects_with_message_sequence_of_linux) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(network.said(), (Names{"REQ", "REP", "RTU"}));
  ASSERT_EQ(server.connections.size(), 1U);
  Connection* other = *server.connections.begin();
  EXPECT_EQ(connection->state(), State::kEstablished);
  EXPECT_EQ(other->state(), State::kEstablished);
  EXPECT_EQ(connection->remote_queue_pair(), other->local_queue_pair());
  EXPECT_EQ(other->remote_queue_pair(), connection->local_queue_pair());
  EXPECT_EQ(connection->remote_id(), other->local_id());

  EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(network.said(), (Names{"REQ", "REP", "RTU", "DREQ", "DREP"}));
  for (const auto& sent : network.sent) EXPECT_EQ(sent.mad.transaction, network.sent[0].mad.transaction);
  EXPECT_EQ(connection->state(), State::kTimeWait);
  EXPECT_EQ(other->state(), State::kTimeWait);
  network.run_to_the_end();
  EXPECT_EQ(client.events,
            (std::vector{EventKind::kReply, EventKind::kDisconnected, EventKind::kTimeWaitExpired}));
  EXPECT_EQ(server.events, (std::vector{EventKind::kRequest, EventKind::kReady, EventKind::kDisconnect,
                                        EventKind::kTimeWaitExpired}));
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, rejects_request_without_listener) {
  server_agent.ignore(listener);
  client.connect(kServer);
  network.run_to_the_end();
  EXPECT_EQ(network.said(), (Names{"REQ", "REJ"}));
  EXPECT_EQ(client.events, std::vector{EventKind::kRejected});
  const auto& rejected = std::get<CmRejected>(client.last.message);
  EXPECT_EQ(rejected.reason, CmRejected::kInvalidServiceId);
  EXPECT_EQ(rejected.local_id, 0U);
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, delivers_private_data_of_a_rejection) {
  server.answers = false;
  client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  CmRejected no{.reason = CmRejected::kConsumer};
  no.private_data[0] = 42;
  EXPECT_TRUE(server_agent.reject(**server.connections.begin(), no, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(client.events, std::vector{EventKind::kRejected});
  EXPECT_EQ(std::get<CmRejected>(client.last.message).private_data[0], 42);
  EXPECT_EQ(server_agent.unanswered(), 0U);
}

TEST_F(CmAgent, ipv4_and_ipv6_listeners_share_a_service) {
  server_agent.ignore(listener);
  Listener four{.service = kService, .address = {}, .ipv6 = false, .handler = &server};
  Listener six{.service = kService, .address = {}, .ipv4 = false, .handler = &server};
  Listener both{.service = kService, .address = {}, .handler = &server};
  Listener here{.service = kService, .address = kServer, .handler = &server};
  EXPECT_TRUE(server_agent.listen(six));
  client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(network.said().back(), "REJ") << "it came over IPv4";
  EXPECT_TRUE(server_agent.listen(here));
  EXPECT_FALSE(server_agent.listen(both));
  EXPECT_FALSE(server_agent.listen(four));
  server_agent.ignore(here);
  EXPECT_TRUE(server_agent.listen(four));
  client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server.established, 1U);
  EXPECT_EQ(four.unanswered + six.unanswered, 0U);
}

TEST_F(CmAgent, first_data_packet_replaces_rtu) {
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "RTU"; };
  client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  Connection* connection = *server.connections.begin();
  EXPECT_EQ(connection->state(), State::kReplySent);
  EXPECT_TRUE(server_agent.established(*connection, network.now));
  EXPECT_EQ(connection->state(), State::kEstablished);
  EXPECT_EQ(server.established, 1U);
  const Status again = server_agent.established(*connection, network.now);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, EISCONN);
  network.loses = nullptr;
  network.run_for(Nanos{1'000'000'000});
  EXPECT_EQ(server.established, 1U) << "a late RTU is not reported";
}

TEST_F(CmAgent, repeats_lost_sidr_rep_without_second_event) {
  unsigned lost = 0;
  network.loses = [&](const CmNetwork::Sent& one) {
    return cm_message_name(one.mad.message) == "SIDR_REP" && lost++ < 2;
  };
  CmServiceRequest question{.pkey = 0xffff, .service_id = kService};
  EXPECT_TRUE(client_agent.request_service({.local = kClient, .remote = kServer}, question, 16, 20, 15,
                                           client, network.now));
  network.run_to_the_end();
  EXPECT_EQ(lost, 3U);
  EXPECT_EQ(client.events, std::vector{EventKind::kServiceReply});
  EXPECT_EQ(server.events, std::vector{EventKind::kServiceRequest}) << "reported once";
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, handles_simultaneous_disconnect) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  EXPECT_TRUE(server_agent.disconnect(**server.connections.begin(), {}, network.now));
  network.run_to_the_end();
  EXPECT_TRUE(client.has_event(EventKind::kDisconnected));
  EXPECT_TRUE(server.has_event(EventKind::kDisconnected));
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, restarted_peer_receives_stale_connection_reject_and_reconnects) {
  Connection* old = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  const Qpn reused = old->local_queue_pair();
  // The host restarts, and its queue pair gets the same number.
  network.remove(kClient);
  Agent& again = network.add(kClient);
  AgentUser second(network, again, reused.value());
  second.connect(kServer);
  network.run_for(Nanos{1'000'000});
  ASSERT_TRUE(second.has_event(EventKind::kRejected));
  EXPECT_EQ(std::get<CmRejected>(second.last.message).reason, CmRejected::kStaleConnection);
  EXPECT_TRUE(server.has_event(EventKind::kDisconnected))
      << "by the answer of one that knows no such connection";
  AgentUser third(network, again, reused.value());
  third.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(third.established, 1U);
}

// The sender of a forged REQ can guess the queue pair number, but not the GUID.
TEST_F(CmAgent, request_with_queue_pair_number_in_use_and_another_guid_ends_no_connection) {
  for (const bool accepted : {true, false}) {
    Connection* connection = client.connect(kServer);
    network.run_for(Nanos{1'000'000});
    ASSERT_EQ(connection->state(), State::kEstablished);
    server.answers = accepted;
    server.events.clear();
    CmRequest forged{.local_id = accepted ? 77U : 78U, .service_id = kService};
    forged.queue_pair = connection->local_queue_pair();
    forged.ca_guid = CmNetwork::guid_of(kClient) ^ 1;
    network.forge({.local = kClient, .remote = kServer}, {1, 0, forged});
    network.run_for(Nanos{1'000'000});
    EXPECT_EQ(connection->state(), State::kEstablished);
    EXPECT_EQ(server.events, std::vector{EventKind::kRequest}) << "a request like any other";
  }
  // The GUID of the connection: the peer has lost its state.
  CmRequest stale{.local_id = 79, .service_id = kService, .ca_guid = CmNetwork::guid_of(kClient)};
  stale.queue_pair = (*client.connections.begin())->local_queue_pair();
  network.forge({.local = kClient, .remote = kServer}, {1, 0, stale});
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(server.has_event(EventKind::kDisconnected));
}

// The same at the active side, with a REP: its sender knows the random ID of the request, so it is the peer, and names a
// queue pair of another host with its address.
TEST_F(CmAgent, reply_with_queue_pair_number_in_use_and_another_guid_ends_no_connection) {
  Connection* first = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(first->state(), State::kEstablished);
  network.loses = [](const CmNetwork::Sent& one) { return one.route.local == kServer; };
  Connection* second = client.connect(kServer);
  const CmReply reply{.local_id = 4711,
                      .remote_id = second->local_id(),
                      .queue_pair = first->remote_queue_pair(),
                      .ca_guid = CmNetwork::guid_of(kServer) ^ 1};
  network.forge({.local = kServer, .remote = kClient}, {1, 0, reply});
  network.run_for(Nanos{100'000});
  EXPECT_EQ(first->state(), State::kEstablished);
  EXPECT_EQ(second->state(), State::kEstablished);
}

TEST_F(CmAgent, resolves_queue_pair_of_datagram_service) {
  auto asked = client_agent.request_service({.local = kClient, .remote = kServer}, {.service_id = kService},
                                            16, 20, 15, client, network.now);
  ASSERT_TRUE(asked);
  network.run_to_the_end();
  EXPECT_EQ(network.said(), (Names{"SIDR_REQ", "SIDR_REP"}));
  EXPECT_EQ(client.events, std::vector{EventKind::kServiceReply});
  EXPECT_EQ(std::get<CmServiceReply>(client.last.message).queue_pair, Qpn{77});
  ASSERT_TRUE(client_agent.request_service({.local = kClient, .remote = kServer},
                                           {.service_id = kService + 1}, 16, 20, 15, client, network.now));
  network.run_to_the_end();
  EXPECT_EQ(std::get<CmServiceReply>(client.last.message).status, CmServiceReply::kUnsupported);
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, rejects_alternate_path_with_apr) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  network.forge({.local = kClient, .remote = kServer},
                {1, 0, CmLoadPath{.local_id = connection->local_id(), .remote_id = connection->remote_id()}});
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(network.said().back(), "APR");
  EXPECT_EQ(std::get<CmPathAnswer>(network.sent.back().mad.message).status, CmPathAnswer::kUnsupported);
  EXPECT_EQ(connection->state(), State::kEstablished);
}

TEST_F(CmAgent, request_flood_is_limited_by_backlog) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  server.answers = false;
  listener.backlog = 100;
  for (uint32_t i = 0; i < 100'000; ++i) {
    CmRequest request{.local_id = i + 1, .service_id = kService, .queue_pair = Qpn{1000 + i % 5000}};
    network.forge({.local = IpAddress::from_v4(0x0b000000 + i % 20'000), .remote = kServer}, {i, 0, request});
    if (i % 64 == 0) network.run_for(Nanos{100'000});
  }
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server_agent.connections(), 101U);
  EXPECT_EQ(server_agent.unanswered(), 100U);
  EXPECT_GT(server_agent.counts().overflowed, 90'000U);
  // An established connection stays, and can be released.
  EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(client.has_event(EventKind::kDisconnected));
  // A free slot is used by the next request.
  Connection* victim = nullptr;
  for (Connection* one : server.connections) {
    if (one->state() == State::kRequestReceived) victim = one;
  }
  ASSERT_NE(victim, nullptr);
  server_agent.destroy(*victim, network.now);
  server.answers = true;
  client.connect(kServer);
  const unsigned before = server.established;
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server.established, before + 1);
}

TEST_F(CmAgent, responses_to_unknown_peers_are_rate_limited) {
  server_agent.ignore(listener);
  for (uint32_t i = 0; i < 20'000; ++i)
    network.forge({.local = kClient, .remote = kServer},
                  {i, 0, CmRequest{.local_id = i + 1, .service_id = kService}});
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server_agent.counts().received, 20'000U);
  EXPECT_GE(network.sent.size(), 1000U);
  EXPECT_LE(network.sent.size(), 1100U);
}

TEST_F(CmAgent, connection_destroyed_in_any_state_leaves_no_state) {
  // Number of messages until the connection is destroyed: REQ, REP and RTU, or all of these and DREQ.
  for (unsigned messages = 0; messages < 5; ++messages) {
    for (const bool by_client : {true, false}) {
      network.sent.clear();
      network.loses = [&](const CmNetwork::Sent&) { return network.sent.size() >= messages; };
      Connection* connection = client.connect(kServer, 2);
      network.run_for(Nanos{50'000'000});
      if (messages == 4 && connection->state() == State::kEstablished) {
        EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
        network.run_for(Nanos{50'000'000});
      }
      network.loses = nullptr;
      Agent& agent = by_client ? client_agent : server_agent;
      AgentUser& party = by_client ? client : server;
      const auto all = std::exchange(party.connections, {});
      for (Connection* one : all) agent.destroy(*one, network.now);
      network.run_for(Nanos{1'000'000});
      // The peer is notified, or detects it by a timeout.
      AgentUser& other = by_client ? server : client;
      Agent& others = by_client ? server_agent : client_agent;
      network.run_for(Nanos{100'000'000'000});
      const auto left = std::exchange(other.connections, {});
      for (Connection* one : left) others.destroy(*one, network.now);
      network.run_to_the_end();
      EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U) << messages << by_client;
      EXPECT_EQ(server_agent.unanswered(), 0U);
    }
  }
}

// As when the crash notifications of a killed process are sent.
TEST_F(CmAgent, crash_notification_reaches_peer_in_every_state) {
  struct Case {
    const char* when;
    bool server_dies;
    std::function<void()> set;
    EventKind event;
  };
  const std::vector<Case> cases{
      {"REQ sent", false, [&] { server.answers = false; }, EventKind::kRejected},
      {"REQ received", true, [&] { server.answers = false; }, EventKind::kRejected},
      {"REP sent", true, [&] { client.answers_replies = false; }, EventKind::kRejected},
      {"REP received", false, [&] { client.answers_replies = false; }, EventKind::kRejected},
      {"established", false, [] {}, EventKind::kDisconnect},
      {"established", true, [] {}, EventKind::kDisconnect},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string{one.when} + (one.server_dies ? ", the server dies" : ", the client dies"));
    CmNetwork net{7};
    Agent& of_client = net.add(kClient);
    Agent& of_server = net.add(kServer);
    AgentUser at_client{net, of_client, 100}, at_server{net, of_server, 200};
    Listener there;
    there.service = kService;
    there.handler = &at_server;
    ASSERT_TRUE(of_server.listen(there));
    server.answers = client.answers_replies = true;
    one.set();
    at_server.answers = server.answers;
    at_client.answers_replies = client.answers_replies;
    at_client.connect(kServer);
    net.run_for(Nanos{1'000'000});
    EXPECT_EQ(net.crash_notices_of(kClient), 1U);
    EXPECT_EQ(net.crash_notices_of(kServer), 1U);
    net.kill(one.server_dies ? kServer : kClient);
    net.run_for(Nanos{1'000'000});
    const AgentUser& survivor = one.server_dies ? at_client : at_server;
    ASSERT_FALSE(survivor.events.empty());
    EXPECT_EQ(survivor.events.back(), one.event);
  }
}

// Each crash notification has a cost, and requests of a flood cost their sender nothing.
TEST_F(CmAgent, flood_requests_store_limited_crash_notifications) {
  server.answers = false;
  listener.backlog = 4096;
  for (int i = 0; i < 2000; ++i) client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(server_agent.unanswered(), 2000U);
  EXPECT_GE(network.crash_notices_of(kServer), 1024U);
  EXPECT_LE(network.crash_notices_of(kServer), 1025U);
  EXPECT_EQ(network.crash_notices_of(kClient), 2000U)
      << "connections that the host requested itself are not limited";
}

TEST_F(CmAgent, ended_connection_leaves_no_crash_notification) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(network.crash_notices_of(kClient), 1U);
  ASSERT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  EXPECT_EQ(network.crash_notices_of(kClient), 1U) << "until the DREP arrives";
  network.run_for(Nanos{1'000'000});
  EXPECT_EQ(network.crash_notices_of(kClient), 0U);
  network.run_to_the_end();
  EXPECT_EQ(network.crash_notices_of(kServer), 0U);
}

// A program may exit right after rdma_disconnect(). Nobody repeats its DREQ then.
TEST_F(CmAgent, crash_notification_replaces_lost_dreq_of_exited_process) {
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "DREQ"; };
  ASSERT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  network.run_for(Nanos{1'000'000});
  ASSERT_FALSE(server.has_event(EventKind::kDisconnect));
  network.loses = nullptr;
  network.kill(kClient);
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(server.has_event(EventKind::kDisconnect));
}

TEST_F(CmAgent, leave_disconnects_and_keeps_crash_notifications_until_the_peer_has_answered) {
  client.forgets = false;
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "DREQ"; };
  client_agent.leave(network.now);
  EXPECT_TRUE(client_agent.is_disconnecting());
  EXPECT_EQ(network.crash_notices_of(kClient), 1U) << "the DREQ may be lost";
  network.loses = nullptr;
  network.run_for(Nanos{1'000'000'000});
  EXPECT_TRUE(server.has_event(EventKind::kDisconnect)) << "it is repeated while the process runs";
  EXPECT_FALSE(client_agent.is_disconnecting());
  EXPECT_EQ(network.crash_notices_of(kClient), 0U);
  network.run_to_the_end();
  client_agent.destroy(*connection, network.now);
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

// Destructors of global objects of the program run after leave().
TEST_F(CmAgent, connections_stay_valid_after_leave_in_every_state) {
  client.forgets = server.forgets = false;
  for (const bool answers : {false, true}) {
    for (const bool answers_replies : {false, true}) {
      server.answers = answers;
      client.answers_replies = answers_replies;
      client.connect(kServer);
      network.run_for(Nanos{1'000'000});
    }
  }
  const std::set<Connection*> at_client = client.connections, at_server = server.connections;
  ASSERT_EQ(at_client.size(), 4U);
  client_agent.leave(network.now);
  server_agent.leave(network.now);
  network.run_for(Nanos{1'000'000});
  for (Connection* one : at_client) client_agent.destroy(*one, network.now);
  for (Connection* one : at_server) server_agent.destroy(*one, network.now);
  network.run_to_the_end();
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

// A request that its sender has withdrawn still occupies memory until the program fetches it.
TEST_F(CmAgent, withdrawn_requests_count_towards_the_backlog) {
  server.answers = server.forgets = false;
  listener.backlog = 8;
  std::set<Connection*> kept;
  server.does = [&](EventKind kind) {
    if (kind == EventKind::kRequest) kept.insert(server.connections.begin(), server.connections.end());
  };
  for (uint32_t i = 1; i <= 100; ++i) {
    CmRequest request{.service_id = kService, .queue_pair = Qpn{i}};
    request.local_id = i;
    network.forge({.local = kClient, .remote = kServer}, {i, 0, request});
    network.forge({.local = kClient, .remote = kServer},
                  {i, 0, CmRejected{.local_id = i, .reason = CmRejected::kTimeout}});
    network.run_for(Nanos{1'000'000});
  }
  EXPECT_EQ(kept.size(), 8U);
  EXPECT_EQ(server_agent.connections(), 8U);
  EXPECT_EQ(server_agent.counts().overflowed, 92U);
  for (Connection* one : kept) server_agent.destroy(*one, network.now);
  EXPECT_EQ(server_agent.unanswered(), 0U);
}

// The peer specifies the packet lifetime.
TEST_F(CmAgent, time_wait_lasts_a_minute_at_most) {
  CmRequest request{.service_id = kService, .queue_pair = Qpn{7}};
  request.primary.ack_timeout = kMaxTimeCode;
  auto made = client_agent.connect({.local = kClient, .remote = kServer}, request, 0, client, network.now);
  ASSERT_TRUE(made);
  network.run_for(Nanos{1'000'000});
  ASSERT_TRUE(client_agent.disconnect(**made, {}, network.now));
  network.run_for(kMaxTimeWait + Nanos{1'000'000'000});
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

TEST_F(CmAgent, disconnect_is_reported_before_ready) {
  client.answers_replies = false;
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(connection->state(), State::kReplyReceived);
  EXPECT_TRUE(server_agent.disconnect(**server.connections.begin(), {}, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(client.has_event(EventKind::kDisconnect));
  EXPECT_TRUE(server.has_event(EventKind::kDisconnected));
  EXPECT_FALSE(client_agent.ready(*connection, {}, network.now)) << "the connection has no peer";
  network.run_to_the_end();
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

// If all RTUs are lost, the peer's notification ends the connection before local timeouts.
TEST_F(CmAgent, passive_side_timeout_without_rtu_disconnects_active_side) {
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "RTU"; };
  Connection* connection = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(connection->state(), State::kEstablished);
  network.run_to_the_end();
  EXPECT_TRUE(server.has_event(EventKind::kReplyTimeout));
  EXPECT_TRUE(client.has_event(EventKind::kDisconnected));
  EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U);
}

// A user may keep a connection object after its end. For the peer it is an unknown connection, and its DREQ is
// answered.
TEST_F(CmAgent, dreq_for_ended_connection_is_answered) {
  server.forgets = false;
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "RTU"; };
  Connection* connection = client.connect(kServer, 0);
  network.run_for(Nanos{1'000'000});
  network.loses = [](const CmNetwork::Sent& one) { return cm_message_name(one.mad.message) == "REJ"; };
  network.faults.lost = 1;
  network.run_for(Nanos{20'000'000'000});
  network.faults.lost = 0;
  ASSERT_TRUE(server.has_event(EventKind::kReplyTimeout));
  ASSERT_EQ(server_agent.connections(), 1U);
  ASSERT_EQ(connection->state(), State::kEstablished);
  EXPECT_TRUE(client_agent.disconnect(*connection, {}, network.now));
  network.run_for(Nanos{1'000'000});
  EXPECT_TRUE(client.has_event(EventKind::kDisconnected));
}

// The REP names a queue pair of a connection in time-wait, which ends that connection. In this event the user rejects
// the new one.
TEST_F(CmAgent, connection_rejected_in_event_handler_is_not_established) {
  Connection* first = client.connect(kServer);
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(first->state(), State::kEstablished);
  EXPECT_TRUE(client_agent.disconnect(*first, {}, network.now));
  network.run_for(Nanos{1'000'000});
  ASSERT_EQ(first->state(), State::kTimeWait);
  network.loses = [](const CmNetwork::Sent& one) { return one.route.local == kServer; };
  Connection* second = client.connect(kServer);
  network.run_for(Nanos{100'000});
  client.does = [&](EventKind kind) {
    if (kind == EventKind::kTimeWaitExpired) {
      EXPECT_TRUE(client_agent.reject(*second, {}, network.now));
    }
  };
  const CmReply reply{.local_id = 4711,
                      .remote_id = second->local_id(),
                      .queue_pair = first->remote_queue_pair(),
                      .ca_guid = CmNetwork::guid_of(kServer)};
  network.forge({.local = kServer, .remote = kClient}, {1, 0, reply});
  network.run_for(Nanos{100'000});
  EXPECT_EQ(second->state(), State::kIdle);
  EXPECT_EQ(client.established, 1U);
  client_agent.destroy(*second, network.now);
}

// Random loss, duplication and reordering: finally both agents agree about the connections, and no state remains.
TEST(CmAgents, agree_after_loss_duplication_and_reordering) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CmNetwork network(seed);
    network.faults = {.lost = 0.2, .doubled = 0.2, .jitter = Nanos{400'000'000}};
    Agent& client_agent = network.add(kClient);
    Agent& server_agent = network.add(kServer);
    AgentUser client(network, client_agent, 100), server(network, server_agent, 1000);
    Listener listener{.service = kService, .address = {}, .handler = &server};
    ASSERT_TRUE(server_agent.listen(listener));
    std::vector<Connection*> connections;
    for (unsigned i = 0; i < 10; ++i) connections.push_back(client.connect(kServer));
    network.run_for(Nanos{100'000'000'000});
    EXPECT_EQ(client.established, 10U) << "seed " << seed;
    EXPECT_EQ(server.established, 10U) << "seed " << seed;
    for (unsigned i = 0; i < 10; ++i) {
      if (i % 2 == 0) {
        EXPECT_TRUE(client_agent.disconnect(*connections[i], {}, network.now));
      } else {
        for (Connection* one : server.connections) {
          if (one->local_id() == connections[i]->remote_id()) {
            EXPECT_TRUE(server_agent.disconnect(*one, {}, network.now));
          }
        }
      }
    }
    network.run_to_the_end();
    // An agent that sent DREQ and got no response has ended its connection. An agent that never received a DREQ still
    // has one.
    const auto left_at_client = client.connections, left_at_server = server.connections;
    for (Connection* one : left_at_client) client_agent.destroy(*one, network.now);
    for (Connection* one : left_at_server) server_agent.destroy(*one, network.now);
    network.run_to_the_end();
    EXPECT_EQ(client_agent.connections() + server_agent.connections(), 0U) << "seed " << seed;
    EXPECT_EQ(server_agent.unanswered(), 0U);
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace roci::cm::agents
