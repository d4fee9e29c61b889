#include "cm/manager.hpp"

#include <gtest/gtest.h>

#include "support/captured_mads.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/request_flood.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/process/folder.hpp"
#include "transport/messages/datagram.hpp"

namespace roci::cm {
namespace {

using test::TwoHosts;

constexpr uint64_t kStorage = cm_service_id(CmPortSpace::kTcp, 4420);

struct RecordedEvent {
  EventKind kind;
  Connection* connection;
  CmMad mad;
};

class Notes final : public EventHandler {
 public:
  bool on_event(Connection& connection, const Event& event) override {
    events.push_back({event.kind, &connection, event.mad == nullptr ? CmMad{} : *event.mad});
    return true;
  }
  std::vector<RecordedEvent> events;
};

Route route(const test::Side& from, const test::Side& to) {
  Route out;
  out.local.bytes = std::bit_cast<std::array<uint8_t, 16>>(*from.device->query_gid(1));
  out.remote.bytes = std::bit_cast<std::array<uint8_t, 16>>(*to.device->query_gid(1));
  return out;
}

class CmManager : public testing::TestWithParam<bool> {
 protected:
  CmManager() {
    listener.service = kStorage;
    listener.handler = &server;
    EXPECT_TRUE(b.with([&](Agent& agent, Nanos) { return agent.listen(listener); }));
    net.watch = [this](const Packet& packet, char direction) {
      if (packet.bth.destination_qp == kManagementQp) mads.push_back({packet, direction});
      return SimVerdict{};
    };
  }

  static test::TwoHostsOptions options() {
    test::TwoHostsOptions out;
    out.ipv6 = GetParam();
    return out;
  }

  TwoHosts net{options()};
  Manager a{net.a.device->host()}, b{net.b.device->host()};
  Notes client, server;
  Listener listener;
  std::vector<std::pair<Packet, char>> mads;
};

// Two programs, each with a queue pair, establish a connection and use it.
TEST_P(CmManager, connects_queue_pairs_of_two_hosts) {
  CmRequest request{
      .service_id = kStorage, .queue_pair = Qpn{net.a.qp->qp_num()}, .starting_psn = Psn{0x123456}};
  request.remote_response_timeout = request.local_response_timeout = 20;
  request.primary.ack_timeout = 17;
  Connection* connection = nullptr;
  a.with([&](Agent& agent, Nanos now) {
    connection = *agent.connect(route(net.a, net.b), request, 0, client, now);
  });
  net.run(1s);
  ASSERT_EQ(server.events.size(), 1U);
  ASSERT_EQ(server.events[0].kind, EventKind::kRequest);
  const auto heard = std::get<CmRequest>(server.events[0].mad.message);
  EXPECT_EQ(heard.queue_pair.value(), net.a.qp->qp_num());
  Connection* other = server.events[0].connection;
  EXPECT_EQ(other->route().remote, route(net.a, net.b).local);

  net.to_rts(net.b, net.a, 0x654321, heard.starting_psn.value());
  ASSERT_TRUE(b.with([&](Agent& agent, Nanos now) {
    return agent.accept(*other, {.queue_pair = Qpn{net.b.qp->qp_num()}, .starting_psn = Psn{0x654321}}, 0,
                        now);
  }));
  net.run(100ms);
  ASSERT_EQ(client.events.size(), 1U);
  const auto reply = std::get<CmReply>(client.events[0].mad.message);
  EXPECT_EQ(reply.queue_pair.value(), net.b.qp->qp_num());
  net.to_rts(net.a, net.b, heard.starting_psn.value(), reply.starting_psn.value());
  ASSERT_TRUE(a.with([&](Agent& agent, Nanos now) { return agent.ready(*connection, {}, now); }));
  net.run(100ms);
  ASSERT_EQ(server.events.size(), 2U);
  EXPECT_EQ(server.events[1].kind, EventKind::kReady);

  ASSERT_EQ(net.write(7, 0, 5000), 0);
  net.run(100ms);
  const auto completions = net.a.completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].status, IBV_WC_SUCCESS);

  ASSERT_TRUE(a.with([&](Agent& agent, Nanos now) { return agent.disconnect(*connection, {}, now); }));
  net.run(100ms);
  ASSERT_EQ(server.events.back().kind, EventKind::kDisconnect);
  ASSERT_TRUE(b.with([&](Agent& agent, Nanos now) { return agent.reply_disconnect(*other, {}, now); }));
  net.run(5s);
  EXPECT_EQ(client.events.back().kind, EventKind::kTimeWaitExpired);
  EXPECT_EQ(server.events.back().kind, EventKind::kTimeWaitExpired);
}

// Expects equal bytes, except for addresses, IPv4 identification, PSN and payload.
void expect_as_heard(Packet packet, const ByteVector& frame) {
  const auto heard = decode_packet(frame);
  ASSERT_TRUE(heard);
  packet.between(heard->source_mac, heard->source, heard->destination_mac, heard->destination);
  if (!packet.ipv6()) packet.v4().id = heard->v4().id;
  packet.bth.psn = heard->bth.psn;
  packet.with_payload(heard->payload);
  EXPECT_EQ(encode_packet(packet.finish()), frame);
}

// The crash notification is the message that the process would have sent.
TEST_P(CmManager, stores_dreq_frame_as_crash_notification) {
  const test::Folder root;
  auto words = CrashNoticeFile::open(root.path(), "slot0.17");
  ASSERT_TRUE(words) << words.error().message;
  a.store_crash_notices_in(std::move(*words));
  Connection* connection = nullptr;
  CmRequest request{.service_id = kStorage, .queue_pair = Qpn{17}};
  request.remote_response_timeout = request.local_response_timeout = 20;
  a.with([&](Agent& agent, Nanos now) {
    connection = *agent.connect(route(net.a, net.b), request, 0, client, now);
  });
  net.run(100ms);
  ASSERT_EQ(server.events.size(), 1U);
  ASSERT_TRUE(b.with([&](Agent& agent, Nanos now) {
    return agent.accept(*server.events[0].connection, {.queue_pair = Qpn{18}}, 0, now);
  }));
  net.run(100ms);
  ASSERT_TRUE(a.with([&](Agent& agent, Nanos now) { return agent.ready(*connection, {}, now); }));
  net.run(100ms);

  a.store_crash_notices_in(nullptr);
  auto left = CrashNoticeReader::take(root.path() / "slot0.17");
  ASSERT_TRUE(left && *left);
  const auto bytes = (*left)->next();
  const ByteVector frame(bytes.begin(), bytes.end());
  EXPECT_TRUE((*left)->next().empty());
  ASSERT_TRUE(a.with([&](Agent& agent, Nanos now) { return agent.disconnect(*connection, {}, now); }));
  net.run(1ms);
  const auto said = std::find_if(mads.begin(), mads.end(), [](const auto& one) {
    return std::holds_alternative<CmDisconnect>(parse_cm_mad(one.first.payload).mad.message);
  });
  ASSERT_NE(said, mads.end());
  const auto heard = decode_packet(frame);
  ASSERT_TRUE(heard) << "its ICRC too is right";
  EXPECT_EQ(heard->payload, said->first.payload);
  expect_as_heard(said->first, frame);
}

// A GUID that can be computed from the MAC address would permit a third party to end connections with stale requests.
TEST_P(CmManager, guid_is_random_for_each_process_also_with_the_same_address) {
  std::vector<uint64_t> guids;
  const auto note = [&](const Packet& packet, char direction) {
    const ParsedCm parsed = parse_cm_mad(packet.payload);
    if (packet.bth.destination_qp == kManagementQp && direction == '>')
      guids.push_back(std::get<CmRequest>(parsed.mad.message).ca_guid);
    return SimVerdict{.drop = true};
  };
  for (unsigned i = 0; i < 3; ++i) {
    test::TwoHostsOptions as_programs = options();
    as_programs.seeded = false;
    TwoHosts again{as_programs};
    again.watch = note;
    Manager process{again.a.device->host()};
    process.with([&](Agent& agent, Nanos now) {
      const CmRequest request{.service_id = kStorage, .queue_pair = Qpn{17}};
      EXPECT_TRUE(agent.connect(route(again.a, again.b), request, 0, client, now));
    });
    again.run(1ms);
    ASSERT_EQ(guids.size(), i + 1);
    EXPECT_EQ(guids.back() >> 56 & 3, 2U) << "locally administered, of one host";
  }
  EXPECT_NE(guids[0], guids[1]);
  EXPECT_NE(guids[0], guids[2]);
  EXPECT_NE(guids[1], guids[2]);
}

// tests/pcaps/rping.pcap: the headers that a Linux host uses for its MADs.
TEST_P(CmManager, frames_match_those_of_the_linux_kernel) {
  for (unsigned i = 0; i < 3; ++i) {
    a.with([&](Agent& agent, Nanos now) {
      EXPECT_TRUE(agent.request_service(route(net.a, net.b), {.service_id = 1}, 16, 20, 15, client, now));
    });
    net.run(100ms);
  }
  ASSERT_EQ(mads.size(), 6U);
  uint32_t questions = 0;
  for (const auto& [packet, direction] : mads) {
    EXPECT_EQ(packet.bth.opcode, Opcode::kUdSendOnly);
    EXPECT_TRUE(packet.bth.ack_request);
    EXPECT_EQ(packet.udp_source_port, 55410);
    EXPECT_EQ(packet.deth->qkey, kManagementQKey);
    EXPECT_EQ(packet.deth->source_qp, kManagementQp);
    EXPECT_EQ(packet.payload.size(), kMadBytes);
    if (!packet.ipv6()) {
      for (const auto& heard : test::heard_in("rping.pcap")) expect_as_heard(packet, heard.frame);
    }
    if (direction == '>') {
      EXPECT_EQ(packet.bth.psn, Psn{questions++});
    }
  }
}

// A response is not retransmitted by itself, only after a repeated request.
TEST(CmManagerWithFullPort, queues_responses_and_sends_them_later_in_order) {
  test::LoneHost host;
  const Manager manager(host.side.device->host());
  test::RequestFlood flood({.from_mac = MacAddress::local(2),
                            .to_mac = host.port().mac(),
                            .to = IpAddress::from_v4(0x0a000001),
                            .service = kStorage});
  constexpr size_t kQuestions = 500;
  std::vector<uint32_t> asked, answered;
  host.port().blocked = true;
  for (size_t i = 0; i < kQuestions; ++i) {
    const ByteVector frame = flood.next();
    asked.push_back(std::get<CmRequest>(parse_cm_mad(decode_packet(frame)->payload).mad.message).local_id);
    EXPECT_TRUE(host.receive_bytes(frame).empty());
  }
  host.port().blocked = false;
  for (const Packet& packet : host.work_for_packets()) {
    const ParsedCm answer = parse_cm_mad(packet.payload);
    const auto& rejected = std::get<CmRejected>(answer.mad.message);
    EXPECT_EQ(rejected.reason, CmRejected::kInvalidServiceId);
    answered.push_back(rejected.remote_id);
    EXPECT_EQ(packet.bth.psn, Psn{static_cast<uint32_t>(answered.size() - 1)});
  }
  EXPECT_EQ(answered, asked);
}

INSTANTIATE_TEST_SUITE_P(IpVersions, CmManager, testing::Bool(),
                         [](const auto& which) { return which.param ? "v6" : "v4"; });

}  // namespace
}  // namespace roci::cm
