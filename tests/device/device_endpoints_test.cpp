// Responses of a device on DPDK's telemetry socket, without the socket.
#include "device/monitoring/device_endpoints.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/hosts/two_hosts.hpp"

namespace roci {
namespace {

using test::must;
using test::TwoHosts;
using test::TwoHostsOptions;

using Numbers = std::vector<uint64_t>;
using Texts = std::vector<std::string>;

TelemetryMap map_of(const Result<TelemetryAnswer>& answer) {
  return std::get<TelemetryMap>(must(Result<TelemetryAnswer>(answer)));
}
TelemetryTable table_of(const Result<TelemetryAnswer>& answer) {
  return std::get<TelemetryTable>(must(Result<TelemetryAnswer>(answer)));
}
uint64_t number_in(const TelemetryMap& map, const std::string& name) {
  for (const auto& [key, value] : map) {
    if (key == name) return std::get<uint64_t>(value);
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}
std::string text_in(const TelemetryMap& map, const std::string& name) {
  for (const auto& [key, value] : map) {
    if (key == name) return std::get<std::string>(value);
  }
  ADD_FAILURE() << "no " << name;
  return "";
}
template <class Values>
Values column(const TelemetryTable& table, const std::string& name) {
  for (const auto& [key, values] : table.columns()) {
    if (key == name) return std::get<Values>(values);
  }
  if (table.rows() > 0) ADD_FAILURE() << "no " << name;
  return {};
}

class DeviceEndpointsTest : public testing::Test {
 protected:
  void open(const TwoHostsOptions& options = {}) {
    hosts_ = std::make_unique<TwoHosts>(options);
    endpoints_ = must(DeviceEndpoints::open({hosts_->a.device.get(), hosts_->b.device.get()}));
  }

  // Creates queue pairs on a until it has `count`, including that of TwoHosts.
  void make_queue_pairs(size_t count) {
    while (many_.size() + 1 < count) many_.push_back(make_queue_pair(IBV_QPT_RC));
  }
  std::unique_ptr<QueuePair> make_queue_pair(ibv_qp_type type) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.cap.max_send_wr = init.cap.max_recv_wr = 1;
    return must(hosts_->a.pd->create_qp(&init, *hosts_->a.cq, *hosts_->a.cq));
  }
  [[nodiscard]] std::vector<uint64_t> numbers_there() const {
    std::vector<uint64_t> numbers{hosts_->a.qp->qp_num()};
    for (const auto& qp : many_) numbers.push_back(qp->qp_num());
    std::ranges::sort(numbers);
    return numbers;
  }

  using Answer = Result<TelemetryAnswer> (DeviceEndpoints::*)(std::string_view) const;
  // All pages. Calls between() after each.
  template <class Between>
  Numbers all_pages(Answer answer, size_t* pages, Between&& between) const {
    Numbers all;
    uint64_t next = 0;
    do {
      const TelemetryTable page = table_of((*endpoints_.*answer)("a," + std::to_string(next)));
      for (const uint64_t number : column<Numbers>(page, "qpn")) all.push_back(number);
      next = number_in(page.facts, "next");
      ++*pages;
      between();
    } while (next != 0 && *pages < 10'000);
    return all;
  }

  std::unique_ptr<TwoHosts> hosts_;
  std::unique_ptr<DeviceEndpoints> endpoints_;
  std::vector<std::unique_ptr<QueuePair>> many_;
};

TEST_F(DeviceEndpointsTest, info_contains_the_attributes_of_a_host) {
  open({.workers = {2, 1}, .queues = {2, 1}});
  const TelemetryMap info = map_of(endpoints_->info("a"));
  EXPECT_EQ(text_in(info, "name"), "a");
  EXPECT_EQ(text_in(info, "addresses"), "10.0.0.1/24");
  EXPECT_EQ(text_in(info, "gid/1"), hosts_->a.device->host().gids()[1].to_string());
  EXPECT_EQ(number_in(info, "mtu"), 4200U);
  EXPECT_EQ(number_in(info, "path_mtu"), 4096U);
  EXPECT_EQ(number_in(info, "link_up"), 1U);
  EXPECT_EQ(number_in(info, "workers"), 2U);
  EXPECT_EQ(number_in(info, "queue_pairs"), 1U);
  EXPECT_EQ(std::get<TelemetryList>(*endpoints_->list()), (TelemetryList{"a", "b"}));
  EXPECT_FALSE(endpoints_->info("c"));
}

TEST_F(DeviceEndpointsTest, statistic_uses_the_counter_names_of_rdma_statistic) {
  open();
  hosts_->connect();
  ASSERT_EQ(hosts_->write(1, 0, 10'000), 0);
  hosts_->run();
  const TelemetryMap statistic = map_of(endpoints_->statistic("b"));
  const TelemetryMap counters = map_of(endpoints_->counters("b"));
  EXPECT_GT(number_in(statistic, "rcvd_pkts"), 0U);
  EXPECT_EQ(number_in(statistic, "rcvd_pkts"), number_in(counters, "rx_roce"));
  EXPECT_EQ(number_in(statistic, "sent_pkts"), number_in(counters, "tx_frames"));
  EXPECT_EQ(number_in(statistic, "out_of_buffer"), 0U);
  std::set<std::string> names;
  for (const auto& [name, value] : statistic) names.insert(name);
  EXPECT_EQ(names.size(), statistic.size()) << "a name is there twice";
  EXPECT_FALSE(endpoints_->statistic("nobody"));
}

TEST_F(DeviceEndpointsTest, row_contains_state_peer_and_counters_of_a_queue_pair) {
  open();
  hosts_->connect();
  ASSERT_EQ(hosts_->write(1, 0, 10'000), 0);
  ASSERT_EQ(hosts_->read(2, 0, 5'000), 0);
  hosts_->run();
  const uint32_t a = hosts_->a.qp->qp_num(), b = hosts_->b.qp->qp_num();

  const TelemetryTable of_a = table_of(endpoints_->queue_pair("a," + std::to_string(a)));
  ASSERT_EQ(of_a.rows(), 1U) << "it sends no READ responses";
  EXPECT_EQ(column<Numbers>(of_a, "qpn"), Numbers{a});
  EXPECT_EQ(column<Texts>(of_a, "type"), Texts{"RC"});
  EXPECT_EQ(column<Texts>(of_a, "state"), Texts{"RTS"});
  EXPECT_EQ(column<Texts>(of_a, "peer"), Texts{"10.0.0.2"});
  EXPECT_EQ(column<Numbers>(of_a, "peer_qpn"), Numbers{b});
  EXPECT_EQ(column<Numbers>(of_a, "sent_packets"), Numbers{11}) << "ten of the WRITE, one READ";
  EXPECT_EQ(column<Numbers>(of_a, "acked_bytes"), Numbers{10'016}) << "a READ counts 16 (RETH)";
  EXPECT_EQ(column<Numbers>(of_a, "received_packets"), Numbers{5});
  EXPECT_EQ(column<Numbers>(of_a, "received_bytes"), Numbers{5'000});
  EXPECT_EQ(column<Texts>(of_a, "profile"), Texts{"window"});
  EXPECT_EQ(column<Numbers>(of_a, "rate"), Numbers{0}) << "no limit";

  const TelemetryTable of_b = table_of(endpoints_->queue_pairs("b"));
  EXPECT_EQ(column<Numbers>(of_b, "qpn"), (Numbers{b, b}));
  EXPECT_EQ(column<Numbers>(of_b, "responses"), (Numbers{0, 1}));
  EXPECT_EQ(column<Numbers>(of_b, "sent_packets"), (Numbers{0, 5}));
  EXPECT_EQ(column<Numbers>(of_b, "received_packets"), (Numbers{11, 0}));
  EXPECT_EQ(number_in(of_b.facts, "next"), 0U);
}

TEST_F(DeviceEndpointsTest, activity_increases_by_the_transferred_packets) {
  open();
  hosts_->connect();
  const auto psns = [this](const char* device) {
    return column<Numbers>(table_of(endpoints_->activity(device)), "psns").at(0);
  };
  const uint64_t a = psns("a"), b = psns("b");
  ASSERT_EQ(hosts_->write(1, 0, 10'000), 0);
  ASSERT_EQ(hosts_->read(2, 0, 5'000), 0);
  hosts_->run();
  EXPECT_EQ((psns("a") - a) & 0xffffff, 15U);
  EXPECT_EQ((psns("b") - b) & 0xffffff, 15U);
}

TEST_F(DeviceEndpointsTest, ud_queue_pair_has_no_peer_and_reports_its_send_psn) {
  open();
  const auto qp = make_queue_pair(IBV_QPT_UD);
  test::open_datagrams(*qp, test::kQkey, 77);
  const TelemetryTable row = table_of(endpoints_->queue_pair("a," + std::to_string(qp->qp_num())));
  EXPECT_EQ(column<Texts>(row, "type"), Texts{"UD"});
  EXPECT_EQ(column<Texts>(row, "peer"), Texts{""});
  EXPECT_EQ(column<Numbers>(row, "send_psn"), Numbers{77});
  const TelemetryMap states = map_of(endpoints_->states("a"));
  EXPECT_EQ(number_in(states, "RC"), 1U);
  EXPECT_EQ(number_in(states, "UD"), 1U);
  EXPECT_EQ(number_in(states, "RTS"), 1U);
  EXPECT_EQ(number_in(states, "RESET"), 1U);
}

// Scale that a live view must support.
TEST_F(DeviceEndpointsTest, pages_contain_each_of_ten_thousand_queue_pairs_once) {
  open({.workers = {4, 1}, .queues = {4, 1}});
  make_queue_pairs(10'000);
  const Numbers there = numbers_there();
  for (const Answer answer : {&DeviceEndpoints::activity, &DeviceEndpoints::queue_pairs}) {
    size_t pages = 0;
    EXPECT_EQ(all_pages(answer, &pages, [] {}), there) << "in order, all, and once";
    EXPECT_LE(pages, answer == &DeviceEndpoints::activity ? 32U : 200U);
  }
  EXPECT_EQ(number_in(map_of(endpoints_->info("a")), "queue_pairs"), 10'000U);
  EXPECT_EQ(number_in(map_of(endpoints_->states("a")), "RESET"), 10'000U);
}

TEST_F(DeviceEndpointsTest, pages_contain_all_remaining_queue_pairs_during_changes) {
  open({.workers = {3, 1}, .queues = {3, 1}});
  make_queue_pairs(2'000);
  std::vector<std::unique_ptr<QueuePair>> going;
  for (int i = 0; i < 500; ++i) going.push_back(make_queue_pair(IBV_QPT_RC));
  const Numbers stay = numbers_there();
  size_t pages = 0;
  const Numbers seen = all_pages(&DeviceEndpoints::queue_pairs, &pages, [&] {
    for (int i = 0; i < 10 && !going.empty(); ++i) going.pop_back();
    make_queue_pairs(many_.size() + 31);  // enlarges the tables
  });
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::set<uint64_t>(seen.begin(), seen.end()).size(), seen.size()) << "none twice";
  EXPECT_TRUE(std::ranges::includes(seen, stay));
}

// DPDK silently drops a response above 16 KiB. (endpoint_test checks that full tables arrive completely.)
TEST_F(DeviceEndpointsTest, responses_contain_many_rows_within_the_dpdk_limit) {
  open();
  make_queue_pairs(1'500);
  const auto bytes_of = [](const TelemetryTable& table) {
    size_t bytes = 0;
    for (const auto& [name, values] : table.columns()) {
      bytes += name.size() + 6;
      if (const auto* numbers = std::get_if<Numbers>(&values)) {
        for (const uint64_t number : *numbers) bytes += std::to_string(number).size() + 1;
      } else {
        for (const std::string& text : std::get<Texts>(values)) bytes += text.size() + 3;
      }
      EXPECT_EQ(std::visit([](const auto& v) { return v.size(); }, values), table.rows()) << name;
    }
    return bytes;
  };
  const TelemetryTable little = table_of(endpoints_->activity("a")),
                       all = table_of(endpoints_->queue_pairs("a"));
  EXPECT_LT(bytes_of(little), 14'000U);
  EXPECT_LT(bytes_of(all), 14'000U);
  EXPECT_GT(little.rows(), 350U);
  EXPECT_GT(all.rows(), 60U);
}

// Of a hundred named queue pairs the response contains those that exist. The rest can be requested again.
TEST_F(DeviceEndpointsTest, named_queue_pairs_are_returned_in_request_order) {
  open();
  make_queue_pairs(150);
  Numbers named = numbers_there();
  std::ranges::reverse(named);
  std::string question = "a,1";  // no queue pair has this number
  for (const uint64_t number : named) question += "," + std::to_string(number);
  const TelemetryTable first = table_of(endpoints_->queue_pair(question));
  const uint64_t next = number_in(first.facts, "next");
  ASSERT_GT(next, 50U);
  ASSERT_LE(next, named.size());
  EXPECT_EQ(column<Numbers>(first, "qpn"),
            Numbers(named.begin(), named.begin() + static_cast<ptrdiff_t>(next) - 1));
  EXPECT_EQ(table_of(endpoints_->queue_pair("a")).rows(), 0U);
  EXPECT_FALSE(endpoints_->queue_pair("a,x"));
  EXPECT_FALSE(endpoints_->queue_pair("a,16777216"));
  EXPECT_FALSE(endpoints_->queue_pairs("a,-1"));
  EXPECT_FALSE(endpoints_->activity("a,99999999999999999999"));
}

TEST_F(DeviceEndpointsTest, flow_is_found_by_its_name) {
  open();
  must(hosts_->a.qp->set_congestion_control("dcqcn"));
  hosts_->connect();
  ASSERT_EQ(hosts_->write(1, 0, 10'000), 0);
  hosts_->run();
  const std::string name = std::to_string(hosts_->a.qp->qp_num());
  const auto flows = std::get<TelemetryList>(*endpoints_->flows("a"));
  EXPECT_NE(std::ranges::find(flows, name), flows.end());
  const TelemetryMap flow = map_of(endpoints_->flow("a," + name));
  EXPECT_EQ(text_in(flow, "algorithm"), "dcqcn");
  EXPECT_EQ(number_in(flow, "sent_packets"), 10U);
  const TelemetryTable row = table_of(endpoints_->queue_pair("a," + name));
  EXPECT_EQ(column<Texts>(row, "algorithm").at(0), "dcqcn");
  EXPECT_EQ(column<Texts>(row, "cc_state").at(0), text_in(flow, "state"));
  EXPECT_GT(column<Numbers>(row, "rate").at(0), 0U);
  for (const char* none : {"a,5", "a,5/responses", "a,/responses", "a,", "a,99999999999"})
    EXPECT_FALSE(endpoints_->flow(none)) << none;
}

}  // namespace
}  // namespace roci
