#include "roci-switch/endpoints.hpp"

#include "port/sim/borrowed_port.hpp"
#include "support/process/telemetry_socket.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

class SwitchEndpointsTest : public SwitchTest {
 protected:
  void SetUp() override {
    test::start_with_telemetry();
    make_pool();
  }
  void TearDown() override {
    endpoints_.reset();
    switch_.reset();
    faulty_.clear();
    SwitchTest::TearDown();
  }

  void make_switch(SwitchConfig config, bool faults = false) {
    std::vector<Port*> ends;
    WatchedSwitch watched;
    for (size_t i = 0; i < config.ports.size(); ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.seed = i + 1}, pool_));
      runner_.add(*links_.back());
      Port* end = &links_.back()->b();
      if (faults) {
        faulty_.push_back(
            std::make_unique<FaultyPort>(std::make_unique<BorrowedPort>(*end), PortFaults{}, i, pool_));
        end = faulty_.back().get();
        watched.faults.push_back(faulty_.back().get());
      }
      ends.push_back(end);
      watched.ports.push_back(end);
    }
    auto made = Switch::create(config, ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    switch_ = std::move(*made);
    runner_.add(*switch_);
    watched.sw = switch_.get();
    watched.set_faults = [this](size_t port, const PortFaults& wanted) -> Status {
      faulty_[port]->set_faults(wanted);
      return {};
    };
    auto endpoints = SwitchEndpoints::open({watched});
    ASSERT_TRUE(endpoints) << endpoints.error().message;
    endpoints_ = std::move(*endpoints);
  }

  static uint64_t number(const Result<TelemetryAnswer>& answer, const std::string& name) {
    EXPECT_TRUE(answer) << answer.error().message;
    for (const auto& [key, value] : std::get<TelemetryMap>(*answer)) {
      if (key == name) return std::get<uint64_t>(value);
    }
    ADD_FAILURE() << "there is no " << name;
    return UINT64_MAX;
  }
  static std::string text(const Result<TelemetryAnswer>& answer, const std::string& name) {
    EXPECT_TRUE(answer) << answer.error().message;
    for (const auto& [key, value] : std::get<TelemetryMap>(*answer)) {
      if (key == name) return std::get<std::string>(value);
    }
    return "there is none";
  }
  static TelemetryList list(const Result<TelemetryAnswer>& answer) {
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? std::get<TelemetryList>(*answer) : TelemetryList{};
  }

  std::vector<std::unique_ptr<FaultyPort>> faulty_;
  std::unique_ptr<SwitchEndpoints> endpoints_;
};

TEST_F(SwitchEndpointsTest, endpoints_report_the_counters_of_the_switch) {
  SwitchConfig config = ports(3);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].queue = 3_KiB;
  make_switch(config);
  introduce({0, 1, 2});
  for (uint32_t i = 0; i < 40; ++i)
    send(0, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .traffic_class = 3 << 5}));
  send(0, std::vector<uint8_t>(20, 0));
  settle();
  const auto p1 = endpoints_->port("s1,p1");
  const SwitchPortCounters& c = switch_->counters(1);
  EXPECT_GT(c.dropped(DropReason::kQueueFull), 0U);
  EXPECT_EQ(number(p1, "drops/queue_full"), c.dropped(DropReason::kQueueFull));
  EXPECT_EQ(number(p1, "dropped"), c.dropped());
  EXPECT_EQ(number(p1, "tx_packets"), c.tx_packets);
  EXPECT_EQ(number(p1, "queue_bytes"), c.queue_bytes);
  EXPECT_EQ(number(p1, "routed"), c.routed);
  EXPECT_EQ(number(p1, "rerouted"), c.rerouted);
  EXPECT_GT(number(p1, "queue_peak_bytes"), 2000U);
  EXPECT_EQ(number(p1, "queue_limit"), 3072U);
  EXPECT_EQ(number(p1, "rate"), 1'000'000'000U);
  EXPECT_EQ(number(p1, "link_up"), 1U);
  EXPECT_EQ(text(p1, "name"), "p1");
  EXPECT_EQ(text(p1, "faults"), "there is none");
  EXPECT_EQ(number(p1, "used_classes"), 1U << 3);
  EXPECT_EQ(number(endpoints_->port("p0"), "rx_packets"), switch_->counters(0).rx_packets);
  EXPECT_EQ(number(endpoints_->port("p0"), "dropped"), switch_->counters(0).dropped());
  const auto third = endpoints_->traffic_class("s1,p1,3");
  EXPECT_EQ(number(third, "queue_bytes"), c.classes[3].queue_bytes);
  EXPECT_EQ(number(third, "tx_packets"), c.classes[3].tx_packets);
  EXPECT_EQ(number(endpoints_->info(""), "ports"), 3U);
  EXPECT_EQ(number(endpoints_->info("s1"), "faults_enabled"), 0U);
  for (unsigned i = 0; i < kCnmEventCount; ++i)
    EXPECT_EQ(number(endpoints_->cnm(""), std::string{cnm_event_name(static_cast<CnmEvent>(i))}), 0U);
  EXPECT_EQ(number(endpoints_->cnp("s1"), "suppressed"), 0U);
  EXPECT_EQ(number(endpoints_->responses("s1"), "no_route"), 0U);
  EXPECT_EQ(std::get<TelemetryMap>(*endpoints_->senders("s1")).size(), size_t{kSenderEventCount});
  links_[1]->set_up(false);
  EXPECT_EQ(number(endpoints_->port("p1"), "link_up"), 0U);
}

TEST_F(SwitchEndpointsTest, port_report_contains_each_drop_reason) {
  make_switch(ports(1));
  const auto answer = endpoints_->port("p0");
  for (unsigned i = 1; i < kDropReasonCount; ++i)
    EXPECT_EQ(number(answer, "drops/" + std::string{drop_reason_name(static_cast<DropReason>(i))}), 0U);
}

TEST_F(SwitchEndpointsTest, telemetry_socket_returns_the_reports_of_the_endpoints) {
  make_switch(ports(2));
  introduce({0, 1});
  test::TelemetrySocket socket;
  EXPECT_EQ(socket.ask("/roci/switch/list"), R"({"/roci/switch/list":["s1"]})");
  EXPECT_EQ(socket.ask("/roci/switch/ports,s1"), R"({"/roci/switch/ports":["p0","p1"]})");
  EXPECT_EQ(socket.ask("/roci/switch/port,s9,p0"),
            R"({"/roci/switch/port":"switch 's1' has no port 's9'; /roci/switch/ports lists the ports"})");
  EXPECT_NE(socket.ask("/roci/switch/port,p0").find(R"("rx_packets":1,)"), std::string::npos);
  // Dozens of entries fit into one answer, including the last one.
  EXPECT_NE(socket.ask("/roci/switch/port,p0").find(R"("drops/no_buffer":0)"), std::string::npos);
  endpoints_.reset();
  switch_.reset();
  EXPECT_EQ(socket.ask("/roci/switch/list"), R"({"/roci/switch/list":"this endpoint was removed"})");
}

TEST_F(SwitchEndpointsTest, names_may_contain_commas_and_share_prefixes) {
  SwitchConfig config = ports(3);
  config.name = "s,1";
  config.ports[0].name = "a";
  config.ports[1].name = "a,b";
  config.ports[2].name = "ab";
  make_switch(config);
  EXPECT_EQ(text(endpoints_->port("s,1,ab"), "name"), "ab");
  EXPECT_EQ(text(endpoints_->port("ab"), "name"), "ab");
  EXPECT_EQ(text(endpoints_->port("a"), "name"), "a");
  EXPECT_EQ(text(endpoints_->info("s,1"), "name"), "s,1");
  EXPECT_EQ(text(endpoints_->port("s,1,a,b"), "name"), "a,b");
}

TEST_F(SwitchEndpointsTest, switch_may_be_omitted_if_a_port_has_its_name) {
  SwitchConfig config = ports(2);
  config.name = config.ports[0].name = "a";
  config.ports[1].name = "b";
  make_switch(config);
  EXPECT_EQ(text(endpoints_->port("a"), "name"), "a");
  EXPECT_EQ(text(endpoints_->port("a,a"), "name"), "a");
  EXPECT_EQ(text(endpoints_->port("a,b"), "name"), "b");
  EXPECT_EQ(number(endpoints_->traffic_class("a,3"), "tx_packets"), 0U);
  const auto unknown = endpoints_->port("a,c");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "switch 'a' has no port 'c'; /roci/switch/ports lists the ports");
}

TEST_F(SwitchEndpointsTest, port_list_is_returned_in_pages) {
  make_switch(ports(700));
  TelemetryList all;
  for (;;) {
    const TelemetryList page = list(endpoints_->ports("s1," + std::to_string(all.size())));
    if (page.empty()) break;
    all.insert(all.end(), page.begin(), page.end());
  }
  ASSERT_EQ(all.size(), 700U);
  EXPECT_EQ(all.front(), "p0");
  EXPECT_EQ(all.back(), "p699");
  EXPECT_FALSE(endpoints_->ports("s1,x"));
}

TEST_F(SwitchEndpointsTest, faults_are_rejected_unless_enabled) {
  make_switch(ports(2));
  const auto refused = endpoints_->set_faults("s1,p0,loss=1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "fault injection requires 'faults: {enabled: true}' of the switch");
}

TEST_F(SwitchEndpointsTest, enabled_faults_can_be_set_and_are_counted) {
  make_switch(ports(2), true);
  introduce({0, 1});
  EXPECT_EQ(text(endpoints_->port("p0"), "faults"), "none");
  EXPECT_EQ(text(endpoints_->set_faults("s1,p0,loss=1,delay=5us"), "faults"), "loss 1, delay 5us");
  for (int i = 0; i < 7; ++i) say(0, 1);
  EXPECT_EQ(number(endpoints_->port("p0"), "injected/lost"), 7U);
  EXPECT_TRUE(heard(1).empty());
  EXPECT_EQ(text(endpoints_->set_faults("p1,down=true"), "faults"), "down");
  EXPECT_EQ(number(endpoints_->port("p1"), "link_up"), 0U);
  EXPECT_EQ(text(endpoints_->set_faults("p0"), "faults"), "none") << "those that are not named are off";
  say(0, 1);
  EXPECT_EQ(number(endpoints_->port("p1"), "injected/down_tx"), 1U);
  EXPECT_EQ(number(endpoints_->info(""), "faults_enabled"), 1U);
  const auto wrong = endpoints_->set_faults("p0,loss=7");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "faults:1: loss: '7' is not a number from 0 to 1");
  EXPECT_FALSE(endpoints_->set_faults("p0,{"));
  EXPECT_EQ(text(endpoints_->port("p0"), "faults"), "none");
}

}  // namespace
}  // namespace roci
