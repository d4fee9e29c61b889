// Hosts with in-band telemetry, connected by chains of switches that add it: telemetry returns to the sender, and
// other packets are unchanged.
#include <algorithm>
#include <array>
#include <map>

#include "base/rng.hpp"
#include "support/ports/frames.hpp"
#include "through_switch/fabric.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {
namespace {

constexpr uint16_t kPort = 5201;
constexpr uint16_t kDomain = 7;
constexpr BitsPerSec kLineRate = 10_Gbps;

HostTelemetryConfig knows(TelemetryBegin begin = TelemetryBegin::kNone) {
  HostTelemetryConfig config;
  config.udp_port = kPort;
  config.domain = kDomain;
  config.begin = begin;
  return config;
}

struct RowOptions {
  size_t switches = 3;
  HostTelemetryConfig a = knows(), b = knows();
  TelemetryRole at_a = TelemetryRole::kSource, at_b = TelemetryRole::kSource;
  bool full_hops = false;
  uint16_t mtu = 4400;
  TelemetryConfig::Respond respond{};
  uint32_t workers_of_b = 1;
  ExtensionConfig extensions{.mode = ExtensionMode::kAuto};
  ConnectOptions connection{.path_mtu = IBV_MTU_1024};
  ibv_qp_type type = IBV_QPT_RC;
};

// host a - s0 - s1 - ... - host b. Port 0 of each switch is toward a, port 1 toward b.
class Row : public Fabric {
 public:
  explicit Row(const RowOptions& options = {}) {
    for (size_t i = 0; i <= options.switches; ++i) {
      SimLinkConfig link;
      link.mtu = options.mtu;
      link.a_to_b.delay = link.b_to_a.delay = 1us;
      if (i == options.switches) link.queues[1] = static_cast<uint16_t>(options.workers_of_b);
      add_link(link);
    }
    for (size_t i = 0; i < options.switches; ++i) {
      SwitchConfig config{.name = "s" + std::to_string(i)};
      for (const char* name : {"to_a", "to_b"}) config.ports.push_back({.name = name, .rate = kLineRate});
      if (i == 0) config.ports[0].telemetry = options.at_a;
      if (i + 1 == options.switches) config.ports[1].telemetry = options.at_b;
      config.telemetry.enabled = true;
      config.telemetry.udp_port = kPort;
      config.telemetry.domain = kDomain;
      config.telemetry.full = options.full_hops;
      config.telemetry.respond = options.respond;
      config.telemetry.switch_id = static_cast<uint32_t>(100 + i);
      add_switch(config, {&link(i).b(), &link(i + 1).a()});
    }
    a = &add_host(link(0).a(), device(options, options.a, 1));
    b = &add_host(link(links() - 1).b(), device(options, options.b, options.workers_of_b));
    poll_host(*a);
    poll_host(*b);
    for (auto [at, direction] : {std::pair{links() - 1, SimLink::kAToB}, {size_t{0}, SimLink::kBToA}}) {
      link(at).set_script(direction, [this, direction = direction](const rte_mbuf& frame, uint64_t) {
        return watch(frame, direction);
      });
    }
    if (options.type != IBV_QPT_UD) connect(*a, *b, options.connection, options.type);
  }

  [[nodiscard]] const TelemetrySession* telemetry(const Side& side) const {
    const auto& session = TwoHosts::core(side).session;
    return session == nullptr ? nullptr : session->telemetry.get();
  }
  int write(uint64_t id, size_t length) {
    return a->post(IBV_WR_RDMA_WRITE, id, 0, length, b->address(0), b->region->rkey());
  }
  int read(uint64_t id, size_t length) {
    return a->post(IBV_WR_RDMA_READ, id, 0, length, b->address(0), b->region->rkey());
  }

  Side* a = nullptr;
  Side* b = nullptr;
  // Last packet with telemetry for each opcode on the last link, toward b and toward a.
  std::array<std::map<Opcode, std::vector<IntHopValues>>, 2> carried;
  size_t with_telemetry = 0;
  std::function<SimVerdict(const Packet&, SimLink::Direction)> meddle;

 private:
  static DeviceConfig device(const RowOptions& options, const HostTelemetryConfig& telemetry,
                             uint32_t workers) {
    DeviceConfig config;
    config.tx_buffers = 2048;
    config.extensions = options.extensions;
    config.telemetry = telemetry;
    config.workers = workers;
    return config;
  }
  SimVerdict watch(const rte_mbuf& frame, SimLink::Direction direction) {
    std::vector<uint8_t> bytes = bytes_of(&frame);
    const IntView view = parse_int(bytes, static_cast<uint32_t>(bytes.size()), kPort);
    std::vector<IntHopValues> hops;
    if (view.accepted()) {
      for (uint32_t i = 0; i < view.hop_count; ++i) hops.push_back(*view.hop(i, kDomain));
      FrameFront front{bytes.data(), static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(bytes.size()),
                       0};
      strip_int(front, view);
      bytes.assign(front.data, front.data + front.length);
      ++with_telemetry;
    }
    const auto packet = decode_packet(bytes);
    if (!packet) return {};
    if (view.accepted()) carried[direction][packet->bth.opcode] = hops;
    return meddle ? meddle(*packet, direction) : SimVerdict{};
  }
};

std::vector<IntHopValues> values_of(const EchoedHops& echo) {
  std::vector<IntHopValues> out;
  for (const IntHop& hop : echo.path.all()) out.push_back(read_hop(hop));
  return out;
}

TEST(HostTelemetry, hops_of_a_packet_are_echoed_to_its_sender) {
  Row net;
  for (uint64_t i = 0; i < 20; ++i) {
    std::array<uint64_t, 3> sent{};
    for (size_t s = 0; s < 3; ++s) sent[s] = net.at(s).counters(1).tx_bytes;
    const Nanos begin = net.runner.now();
    ASSERT_EQ(net.write(i, 64), 0);
    net.run(100us);
    ASSERT_EQ(successes(*net.a), 1U);
    ASSERT_NE(net.telemetry(*net.a), nullptr);
    const EchoedHops& echo = net.telemetry(*net.a)->echoed(HopsOf::kRequests);
    EXPECT_EQ(echo.echoes, i + 1);
    EXPECT_EQ(echo.flags, 0) << "of one packet, and all of its way";
    EXPECT_EQ(echo.age, Nanos{0});
    const auto hops = values_of(echo);
    ASSERT_EQ(hops.size(), 3U);
    // Without other traffic the packet leaves each switch when it arrives, one link delay after the previous one.
    for (uint32_t s = 0; s < 3; ++s) {
      const IntHopValues& hop = hops[2 - s];  // the most recent hop first
      EXPECT_EQ(hop.switch_id, 100 + s);
      EXPECT_EQ(hop.port, 1);
      EXPECT_EQ(hop.rate(), kLineRate);
      EXPECT_EQ(hop.queue_bytes.value(), 0U);
      EXPECT_EQ(hop.time, static_cast<uint32_t>((begin + (s + 1) * Nanos{1us}).count()));
      EXPECT_EQ(hop.tx_units, sent[s] / IntHopValues::kTxUnit);
    }
    EXPECT_EQ(hops, net.carried[SimLink::kAToB][Opcode::kRcWriteOnly]);
  }
  EXPECT_EQ(net.b->counter("rx_icrc_errors"), 0U);
  EXPECT_EQ(net.b->counter("int_malformed"), 0U);
  EXPECT_GE(net.b->counter("int_stripped"), 20U);
  EXPECT_EQ(net.a->counter("int_echoes_received"), 20U);
}

TEST(HostTelemetry, five_hops_fit_into_packets_of_the_largest_path_mtu) {
  for (const bool full : {false, true}) {
    Row net({.switches = 5, .full_hops = full, .connection = {.path_mtu = IBV_MTU_4096}});
    fill(*net.a, 0, 500'000, 3);
    ASSERT_EQ(net.write(1, 500'000), 0);
    net.run(10ms);
    ASSERT_EQ(successes(*net.a), 1U);
    EXPECT_TRUE(holds(*net.b, 0, 500'000, 3));
    const EchoedHops& echo = net.telemetry(*net.a)->echoed(HopsOf::kRequests);
    EXPECT_GT(echo.echoes, 10U);
    EXPECT_EQ(echo.path.count, 5);
    EXPECT_FALSE(echo.path.incomplete);
    EXPECT_EQ(values_of(echo), net.carried[SimLink::kAToB][Opcode::kRcWriteLast]);
    EXPECT_EQ(net.a->counter("packets_retransmitted"), 0U);
    EXPECT_EQ(net.b->counter("rx_icrc_errors"), 0U);
  }
}

TEST(HostTelemetry, coalesced_acknowledgment_echoes_the_hops_of_the_last_packet) {
  Row net;
  const Nanos together = net.runner.now() + Nanos{50us};  // time at which all of them arrive at b
  net.meddle = [&](const Packet& packet, SimLink::Direction direction) {
    SimVerdict verdict;
    if (direction == SimLink::kAToB && opcode_info(packet.bth.opcode).is_request())
      verdict.extra_delay = together - net.runner.now();
    return verdict;
  };
  ASSERT_EQ(net.write(1, 8 * 1024), 0);
  net.run(1ms);
  ASSERT_EQ(successes(*net.a), 1U);
  const EchoedHops& echo = net.telemetry(*net.a)->echoed(HopsOf::kRequests);
  EXPECT_EQ(echo.echoes, 1U);
  EXPECT_NE(echo.flags & IntEchoHeader::kDelayed, 0);
  EXPECT_EQ(values_of(echo), net.carried[SimLink::kAToB][Opcode::kRcWriteLast]);
}

TEST(HostTelemetry, host_inserts_telemetry_when_switches_do_not) {
  Row net({.a = knows(TelemetryBegin::kAll),
           .at_a = TelemetryRole::kTransit,
           .at_b = TelemetryRole::kTransit,
           .connection = {.path_mtu = IBV_MTU_4096}});
  ASSERT_EQ(net.write(1, 30'000), 0);
  ASSERT_EQ(net.read(2, 30'000), 0);
  net.run(10ms);
  ASSERT_EQ(successes(*net.a), 2U);
  EXPECT_EQ(net.a->counter("int_inserted"), 9U) << "eight packets and a READ request";
  EXPECT_EQ(net.a->counter("int_too_long"), 0U);
  EXPECT_EQ(net.b->counter("int_inserted"), 0U) << "b does not begin any";
  EXPECT_EQ(net.b->counter("rx_icrc_errors"), 0U);
  EXPECT_EQ(net.telemetry(*net.a)->echoed(HopsOf::kRequests).path.count, 3);
}

TEST(HostTelemetry, host_inserts_no_telemetry_that_would_exceed_the_mtu) {
  // 4200 bytes: 36 more than a packet of the path MTU over IPv4, less than a header and five hops.
  Row net({.a = knows(TelemetryBegin::kAll),
           .at_a = TelemetryRole::kTransit,
           .at_b = TelemetryRole::kTransit,
           .mtu = 4200,
           .connection = {.path_mtu = IBV_MTU_4096}});
  ASSERT_EQ(net.write(1, 8 * 4096 + 100), 0);
  net.run(10ms);
  ASSERT_EQ(successes(*net.a), 1U);
  EXPECT_EQ(net.a->counter("int_too_long"), 8U);
  EXPECT_EQ(net.a->counter("int_inserted"), 1U) << "the last one is short";
  EXPECT_EQ(net.a->counter("packets_retransmitted"), 0U);
}

TEST(HostTelemetry, hops_of_read_responses_are_echoed_to_the_responder) {
  Row net;
  ASSERT_EQ(net.read(1, 20'000), 0);
  net.run(10ms);
  ASSERT_EQ(successes(*net.a), 1U);
  const EchoedHops& echo = net.telemetry(*net.b)->echoed(HopsOf::kResponses);
  EXPECT_GT(echo.echoes, 0U);
  const auto hops = values_of(echo);
  ASSERT_EQ(hops.size(), 3U);
  EXPECT_EQ(hops[0].switch_id, 100U) << "the last switch on the way to a";
  EXPECT_EQ(hops[0].port, 0);
  EXPECT_EQ(hops, net.carried[SimLink::kBToA][Opcode::kRcReadResponseLast]);
}

TEST(HostTelemetry, probe_returns_the_hops_of_its_path) {
  for (const bool by_host : {false, true}) {
    const auto role = by_host ? TelemetryRole::kTransit : TelemetryRole::kSource;
    Row net(
        {.a = knows(by_host ? TelemetryBegin::kProbe : TelemetryBegin::kNone), .at_a = role, .at_b = role});
    TwoHosts::wake(*net.a, net.runner.now());
    TwoHosts::wake(*net.b, net.runner.now());
    const uint64_t before = net.a->counter("int_inserted");
    ASSERT_TRUE(TwoHosts::core(*net.a).requester.request_probe(net.runner.now()));
    TwoHosts::wake(*net.a, net.runner.now());
    net.run(1ms);
    const EchoedHops& echo = net.telemetry(*net.a)->echoed(HopsOf::kRequests);
    EXPECT_EQ(echo.echoes, 1U);
    EXPECT_EQ(echo.flags, IntEchoHeader::kProbe);
    EXPECT_EQ(values_of(echo), net.carried[SimLink::kAToB][Opcode::kCcProbe]);
    EXPECT_EQ(values_of(echo).size(), 3U);
    EXPECT_EQ(net.a->counter("int_inserted") - before, by_host ? 1U : 0U);
  }
}

TEST(HostTelemetry, host_without_telemetry_communicates_through_a_sink) {
  Row net({.b = {}, .at_b = TelemetryRole::kEdge});
  fill(*net.a, 0, 50'000, 9);
  ASSERT_EQ(net.write(1, 50'000), 0);
  ASSERT_EQ(net.read(2, 50'000), 0);
  net.run(10ms);
  EXPECT_EQ(successes(*net.a), 2U);
  EXPECT_TRUE(holds(*net.b, 0, 50'000, 9));
  EXPECT_EQ(net.b->counter("int_stripped"), 0U);
  EXPECT_EQ(net.b->counter("rx_other_protocol"), 0U);
  EXPECT_EQ(net.telemetry(*net.a), nullptr) << "there is nobody to return anything";
}

TEST(HostTelemetry, host_without_telemetry_drops_packets_with_telemetry) {
  Row net({.a = {}, .b = {}});
  ASSERT_EQ(net.write(1, 100), 0);
  net.run(3ms);
  EXPECT_EQ(net.a->completions().size(), 0U);
  EXPECT_GT(net.b->counter("rx_other_protocol"), 0U);
  EXPECT_EQ(net.b->counter("requests_received"), 0U);
}

TEST(HostTelemetry, telemetry_is_stripped_without_wire_extensions) {
  Row net({.extensions = {.mode = ExtensionMode::kOff}});
  ASSERT_EQ(net.write(1, 10'000), 0);
  net.run(10ms);
  EXPECT_EQ(successes(*net.a), 1U);
  EXPECT_EQ(net.b->counter("int_stripped"), 10U);
  EXPECT_EQ(net.b->counter("int_echoes_sent"), 0U);
}

TEST(HostTelemetry, old_acknowledgments_do_not_overwrite_newer_hops) {
  Row net({.connection = {.path_mtu = IBV_MTU_256, .timeout = 12}});
  SimFaults faults;
  faults.loss = 0.1;
  faults.reordering = 0.4;
  faults.reordering_delay = 30us;
  net.link(1).set_faults(SimLink::kBToA, faults);
  uint32_t newest = 0;
  uint64_t completed = 0;
  for (uint64_t i = 0; i < 40; ++i) ASSERT_EQ(net.write(i, 20'000), 0);
  for (int step = 0; step < 20'000 && completed < 40; ++step) {
    net.run(10us);
    completed += successes(*net.a);
    if (net.telemetry(*net.a) == nullptr) continue;
    const auto hops = values_of(net.telemetry(*net.a)->echoed(HopsOf::kRequests));
    if (hops.empty()) continue;
    EXPECT_GE(static_cast<int32_t>(hops[0].time - newest), 0);
    newest = hops[0].time;
  }
  EXPECT_EQ(completed, 40U);
  EXPECT_GT(net.a->counter("int_echoes_received"), 100U);
  EXPECT_EQ(net.a->counter("feedback_impossible"), 0U);
  EXPECT_EQ(net.a->counter("extensions_refused"), 0U);
  net.run(1ms);  // packets in flight arrive
}

TEST(HostTelemetry, workers_hand_over_packets_with_their_hops) {
  Row net({.workers_of_b = 2});
  net.run(1ms);
  for (uint64_t i = 0; i < 8;
       // Half of the queue pairs belong to another worker than the queue of their flow.
       ++i) {
    net.connect(*net.a, *net.b, {.path_mtu = IBV_MTU_1024});
    ASSERT_EQ(net.write(i, 5000), 0);
    net.run(1ms);
    ASSERT_EQ(successes(*net.a), 1U);
    const EchoedHops& echo = net.telemetry(*net.a)->echoed(HopsOf::kRequests);
    EXPECT_EQ(values_of(echo), net.carried[SimLink::kAToB][Opcode::kRcWriteLast]);
  }
  EXPECT_GT(net.b->counter("rx_handed_over"), 0U);
  EXPECT_EQ(net.b->counter("rx_unknown_qp"), 0U);
}

TEST(HostTelemetry, telemetry_is_stripped_for_uc_and_ud) {
  {
    Row net({.type = IBV_QPT_UC});
    fill(*net.a, 0, 10'000, 5);
    ASSERT_EQ(net.write(1, 10'000), 0);
    net.run(1ms);
    EXPECT_TRUE(holds(*net.b, 0, 10'000, 5));
    EXPECT_EQ(net.b->counter("int_stripped"), 10U);
  }
  {
    Row net({.type = IBV_QPT_UD});
    const auto from = make_service(*net.a, IBV_QPT_UD), to = make_service(*net.b, IBV_QPT_UD);
    open_datagrams(*from);
    open_datagrams(*to);
    const auto where = must(net.a->pd->create_address_handle(address_of(must(net.b->device->query_gid(1)))));
    ASSERT_EQ(receive(*net.b, *to, 1, 0, 1100), 0);
    fill(*net.a, 0, 1000, 5);
    ASSERT_EQ(send(*net.a, *from, {.length = 1000, .to = where.get(), .remote_qp = to->qp_num()}), 0);
    net.run(10ms);
    EXPECT_EQ(successes(*net.b), 1U);
    EXPECT_TRUE(holds(*net.b, 40, 1000, 5));
    EXPECT_EQ(net.b->counter("int_stripped"), 1U);
  }
}

TEST(HostTelemetry, int_response_arrives_before_the_acknowledgment) {
  HostTelemetryConfig asks = knows(TelemetryBegin::kAll);
  asks.wants_response = true;
  TelemetryConfig::Respond respond;
  respond.to = TelemetryConfig::Respond::To::kSender;
  respond.above = 10_KiB;
  Row net({.a = asks,
           .at_a = TelemetryRole::kTransit,
           .at_b = TelemetryRole::kTransit,
           .respond = respond,
           .extensions = {.mode = ExtensionMode::kAuto, .source_qpn = true}});
  ASSERT_EQ(net.write(0, 64), 0);
  net.run(1ms);
  ASSERT_EQ(successes(*net.a), 1U);
  ASSERT_EQ(net.write(1, 60'000), 0);  // all packets at once, since the first link has no rate
  Nanos told = kNever;
  for (int step = 0; step < 10'000 && net.a->counter("responses_received") < 2; ++step) {
    net.run(100ns);
    if (told == kNever && net.a->counter("int_responses_taken") > 0) told = net.runner.now();
  }
  EXPECT_LT(told, net.runner.now()) << "before the first acknowledgement";
  const SwitchReport& report = net.telemetry(*net.a)->report();
  EXPECT_EQ(report.hop.switch_id, 100U) << "the first switch has the queue";
  EXPECT_EQ(report.hop.port, 1);
  EXPECT_EQ(report.hop.rate(), kLineRate);
  EXPECT_GT(report.hop.queue_bytes.value(), 10'000U);
  net.run(10ms);
  EXPECT_EQ(successes(*net.a), 1U);
  EXPECT_EQ(net.a->counter("int_responses_refused"), 0U);
}

// An INT response of a congested switch about this host's packet with this PSN, in b's name.
Packet switch_response(const Row& net, Psn psn, Opcode sampled = Opcode::kRcWriteOnly) {
  Packet packet = make_packet(Opcode::kCcIntResponse).to(Qpn{net.a->qp->qp_num()}, psn);
  packet.between(MacAddress::local(99), must(IpAddress::parse("10.0.0.2")), net.a->device->host().mac(),
                 must(IpAddress::parse("10.0.0.1")));
  IntReportValues& report = *packet.int_report;
  report.hop = {.switch_id = 101, .port = 1, .time = 5, .tx_units = 6, .rate_mbps = {}, .queue_bytes = {}};
  Bth bth;
  bth.opcode = static_cast<uint8_t>(sampled);
  bth.destination_qp.set(net.b->qp->qp_num());
  bth.psn.set(psn.value());
  std::memcpy(report.sampled.data(), &bth, sizeof bth);
  return packet;
}

class SwitchResponses : public testing::Test {
 protected:
  // a has three unacknowledged packets: PSNs 1001 to 1003.
  void SetUp() override {
    ASSERT_EQ(net_.write(0, 100), 0);
    net_.run(1ms);
    ASSERT_EQ(successes(*net_.a), 1U);
    SimFaults dead;
    dead.loss = 1;
    net_.link(net_.links() - 1).set_faults(SimLink::kAToB, dead);
    ASSERT_EQ(net_.write(1, 3000), 0);
    net_.run(100us);
  }
  void respond(Packet packet) {
    rte_mbuf* frame = to_mbuf(*net_.pool(), encode_packet(packet.finish()));
    ASSERT_EQ(net_.link(0).b().tx_burst({&frame, 1}, net_.runner.now()), 1);
    net_.run(10us);
  }
  [[nodiscard]] uint64_t taken() const { return net_.a->counter("int_responses_taken"); }
  [[nodiscard]] uint64_t refused() const { return net_.a->counter("int_responses_refused"); }
  Row net_;
};

TEST_F(SwitchResponses, response_about_an_unacknowledged_packet_is_accepted) {
  respond(switch_response(net_, Psn{1002}, Opcode::kRcWriteMiddle));
  EXPECT_EQ(taken(), 1U);
  const SwitchReport& report = net_.telemetry(*net_.a)->report();
  EXPECT_EQ(report.psn, Psn{1002});
  EXPECT_EQ(report.hop.switch_id, 101U);
  EXPECT_EQ(report.hop.tx_units, 6U);
  EXPECT_EQ(report.reports, 1U);
}

TEST_F(SwitchResponses, response_without_a_matching_unacknowledged_packet_is_rejected) {
  respond(switch_response(net_, Psn{1000}));
  respond(switch_response(net_, Psn{1004}));
  respond(switch_response(net_, Psn{1002}, Opcode::kRcAcknowledge));
  respond(switch_response(net_, Psn{1002}, Opcode::kCcProbe));
  respond(switch_response(net_, Psn{1002}, Opcode::kRcReadResponseMiddle));
  Packet other = switch_response(net_, Psn{1002});
  other.bth.psn = Psn{1001};
  respond(other);
  other = switch_response(net_, Psn{1002});
  other.int_report->flags = IntReport::kToReceiver;
  respond(other);
  other = switch_response(net_, Psn{1002});
  other.int_report->sampled[7] ^= 1;  // different queue pair
  respond(other);
  EXPECT_EQ(taken(), 0U);
  EXPECT_EQ(refused(), 8U);
  EXPECT_EQ(net_.telemetry(*net_.a)->report().reports, 0U);
  // From an address other than the peer's it is not processed.
  other = switch_response(net_, Psn{1002});
  other.source = must(IpAddress::parse("10.0.0.3"));
  respond(other);
  EXPECT_EQ(refused(), 8U);
  EXPECT_EQ(net_.a->counter("rx_wrong_source"), 1U);
}

TEST_F(SwitchResponses, host_without_telemetry_counts_responses_as_unknown_opcode) {
  Row net({.a = {}, .b = {}, .at_a = TelemetryRole::kEdge, .at_b = TelemetryRole::kEdge});
  ASSERT_EQ(net.write(0, 100), 0);
  net.run(1ms);
  Packet packet = switch_response(net, Psn{1000});
  rte_mbuf* frame = to_mbuf(*net.pool(), encode_packet(packet.finish()));
  ASSERT_EQ(net.link(0).b().tx_burst({&frame, 1}, net.runner.now()), 1);
  net.run(10us);
  EXPECT_EQ(net.a->counter("rx_unknown_opcode"), 1U);
}

// A frame for b with telemetry of two hops, on the last link.
class MalformedTelemetry : public testing::Test {
 protected:
  [[nodiscard]] std::vector<uint8_t> packet(bool discard = false) const {
    const auto* peer = net_.b;
    Packet write = make_packet(Opcode::kRcWriteOnly).to(Qpn{peer->qp->qp_num()}, Psn{1000});
    write.between(net_.a->device->host().mac(), must(IpAddress::parse("10.0.0.1")),
                  peer->device->host().mac(), must(IpAddress::parse("10.0.0.2")));
    write.with_reth(peer->address(0), MemoryKey{peer->region->rkey()}, 8)
        .with_payload(std::vector<uint8_t>(8, 0x77));
    rte_mbuf* mbuf = to_mbuf(*net_.pool(), encode_packet(write.finish()));
    FrameFront front = FrameFront::of(*mbuf);
    EXPECT_EQ(begin_int(front, {.port = kPort, .domain = kDomain, .discard = discard}, 4000), IntEdit::kDone);
    for (uint32_t i = 0; i < 2; ++i) {
      const IntView view = parse_int(front.head(), front.length, kPort);
      HopReport report;
      report.switch_id = 100 + i;
      EXPECT_EQ(push_int_hop(front, view, report, kDomain, 4000), IntEdit::kDone);
    }
    front.store(*mbuf);
    auto bytes = bytes_of(mbuf);
    rte_pktmbuf_free(mbuf);
    return bytes;
  }
  void deliver(const std::vector<uint8_t>& bytes) {
    rte_mbuf* frame = to_mbuf(*net_.pool(), bytes);
    ASSERT_EQ(net_.link(net_.links() - 1).a().tx_burst({&frame, 1}, net_.runner.now()), 1);
    net_.run(5us);
  }
  static constexpr size_t kShim = 14 + 20 + 8;
  Row net_{{.switches = 1}};
};

TEST_F(MalformedTelemetry, is_dropped_and_counted) {
  const auto whole = packet();
  const std::pair<size_t, uint8_t> changes[] = {{kShim, 0x24},       // type
                                                {kShim, 0x18},       // NPT
                                                {kShim + 1, 2},      // shorter than its header
                                                {kShim + 1, 10},     // not a whole number of hops
                                                {kShim + 1, 255},    // longer than the packet
                                                {kShim + 4, 0x30}};  // version
  uint64_t count = 0;
  for (const auto& [at, value] : changes) {
    auto bytes = whole;
    bytes[at] = value;
    deliver(bytes);
    EXPECT_EQ(net_.b->counter("int_malformed"), ++count) << at << " " << int{value};
  }
  EXPECT_EQ(net_.b->counter("requests_received"), 0U);
  deliver(packet(true));
  EXPECT_EQ(net_.b->counter("int_discarded"), 1U);
  EXPECT_EQ(net_.b->counter("requests_received"), 0U);
  auto bytes = whole;
  bytes[kShim + 3] ^= 1;  // the enclosed packet is for a port other than RoCEv2's
  deliver(bytes);
  EXPECT_EQ(net_.b->counter("requests_received"), 0U);
  deliver(whole);
  EXPECT_EQ(net_.b->counter("requests_received"), 1U);
  EXPECT_EQ(net_.b->memory[7], 0x77);
}

TEST_F(MalformedTelemetry, random_corruption_is_rejected_and_valid_packets_are_still_accepted) {
  Rng rng(5);
  const auto whole = packet();
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = whole;
    for (uint64_t changes = 1 + rng.next() % 3; changes > 0; --changes) {
      // Mostly in the INT header; sometimes in the lengths of IP and UDP.
      const size_t at = rng.next() % 8 == 0 ? 14 + rng.next() % 28 : kShim + rng.next() % 60;
      bytes[at] = static_cast<uint8_t>(rng.next());
    }
    if (rng.next() % 4 == 0) bytes.resize(kShim + rng.next() % (bytes.size() - kShim));
    deliver(bytes);
  }
  EXPECT_GT(net_.b->counter("int_malformed"), 1000U);
  EXPECT_GT(net_.b->counter("rx_icrc_errors"), 0U);
  // A valid packet is still accepted.
  const uint64_t before = net_.b->counter("requests_received") + net_.b->counter("requests_duplicate");
  deliver(whole);
  EXPECT_EQ(net_.b->counter("requests_received") + net_.b->counter("requests_duplicate"), before + 1);
}

}  // namespace
}  // namespace roci::test
