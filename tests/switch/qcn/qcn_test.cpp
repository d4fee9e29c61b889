// The QCN congestion point and the flow table, and their configuration.
#include "base/congestion_point.hpp"

#include <gtest/gtest.h>

#include "switch/config_text.hpp"
#include "switch/qcn/cnm_bench.hpp"

#include "switch/qcn/tor_table.hpp"

namespace roci {
namespace {

using test::ip;
using test::read_switch_text;
using test::switch_text_error;

// --- congestion point

struct Vector {
  uint64_t queue, old_queue;
  int64_t offset, delta;
  uint8_t quantized;
};

// The previous sample found a queue of `old_queue` bytes.
QcnFeedback feedback_of(const QcnConfig& config, uint64_t queue, uint64_t old_queue) {
  CongestionPoint point{config.point(), 1};
  (void)point.sample(old_queue);
  return point.sample(queue);
}

TEST(CongestionPoint, feedback_matches_golden_vectors) {
  constexpr std::array<Vector, 6> kVectors{{{20000, 15000, -6000, 5000, 1},
                                            {26000, 26000, 0, 0, 0},
                                            {30000, 26000, 4000, 4000, 5},
                                            {50000, 40000, 24000, 10000, 21},
                                            {200000, 100000, 174000, 100000, 63},
                                            {60000, 90000, 34000, -30000, 0}}};
  for (const Vector& v : kVectors) {
    const auto feedback = feedback_of({}, v.queue, v.old_queue);
    EXPECT_EQ(feedback.is_congested(), v.quantized != 0) << v.queue << ": nothing is sent but on congestion";
    EXPECT_EQ(feedback.quantized, v.quantized) << v.queue;
    EXPECT_EQ(feedback.offset, v.offset) << v.queue;
    EXPECT_EQ(feedback.delta, v.delta) << v.queue;
  }
}

TEST(CongestionPoint, feedback_saturates_exactly_at_its_maximum) {
  // Qeq (2w + 1) = 130,000. A queue that does not grow reaches the maximum at Q = Qeq + 130,000.
  EXPECT_EQ(feedback_of({}, 156'000, 156'000).quantized, 63);
  EXPECT_EQ(feedback_of({}, 155'999, 155'999).quantized, 62);
  EXPECT_EQ(feedback_of({}, uint64_t{1} << 40, 0).quantized, 63);
  EXPECT_FALSE(feedback_of({}, 0, uint64_t{1} << 40).is_congested());
  // The smallest nonzero feedback is 1/63 of it: 2,063.5 bytes.
  EXPECT_FALSE(feedback_of({}, 28'063, 28'063).is_congested()) << "quantised to 0";
  EXPECT_EQ(feedback_of({}, 28'064, 28'064).quantized, 1);
}

TEST(CongestionPoint, growth_weight_can_be_any_power_of_two) {
  const auto heavy = feedback_of({.weight = 1024}, 36'000, 26'000);
  EXPECT_EQ(heavy.quantized, (10'000 + 1024 * 10'000) * 63 / (26'000 * 2049));
  const auto light = feedback_of({.weight = 1.0 / 1024}, 40'000, 0);
  EXPECT_EQ(light.quantized, (14'000 * 1024 + 40'000) * 63 / (26'000LL * 1026));
}

// Distances in bytes between samples that all find the same queue length.
std::vector<uint64_t> distances(uint64_t queue, uint64_t seed, size_t count) {
  CongestionPoint point{{}, seed};
  std::vector<uint64_t> found;
  uint64_t bytes = 0;
  while (found.size() < count + 2) {
    ++bytes;
    if (!point.is_due(1)) continue;
    (void)point.sample(queue);
    found.push_back(std::exchange(bytes, 0));
  }
  found.erase(found.begin(), found.begin() + 2);  // the first sample saw the queue grow
  return found;
}

TEST(CongestionPoint, sampling_interval_shrinks_with_congestion) {
  // Feedback of a constant queue, and the mean distance of samples (802.1Q table 30-1).
  constexpr std::array<std::pair<uint64_t, uint64_t>, 8> kMeans{{{26'000, 150'000},
                                                                 {26'000 + 8 * 2064, 75'000},
                                                                 {26'000 + 16 * 2064, 50'000},
                                                                 {26'000 + 24 * 2064, 37'500},
                                                                 {26'000 + 32 * 2064, 30'000},
                                                                 {26'000 + 40 * 2064, 25'000},
                                                                 {26'000 + 48 * 2064, 21'500},
                                                                 {200'000, 18'500}}};
  for (const auto& [queue, mean] : kMeans) {
    const auto found = distances(queue, 7, 200);
    double sum = 0;
    for (const uint64_t d : found) {
      EXPECT_GE(d, mean * 85 / 100);
      EXPECT_LE(d, mean * 115 / 100 + 1);
      sum += static_cast<double>(d);
    }
    EXPECT_NEAR(sum / 200, static_cast<double>(mean), static_cast<double>(mean) * 0.02) << queue;
    EXPECT_LT(*std::min_element(found.begin(), found.end()), mean * 90 / 100) << "there is jitter";
    EXPECT_GT(*std::max_element(found.begin(), found.end()), mean * 110 / 100);
  }
}

TEST(CongestionPoint, same_seed_samples_the_same_frames) {
  EXPECT_EQ(distances(30'000, 3, 20), distances(30'000, 3, 20));
  EXPECT_NE(distances(30'000, 3, 20), distances(30'000, 4, 20));
}

// --- flow table

FiveTuple flow_number(uint32_t n) {
  return {IpAddress::from_v4(0x0a000000 + n), ip("10.9.9.9"), 17, 1000, 4791};
}
TorFlow sent_by(uint8_t host) {
  return {.source = {{2, 0, 0, 0, 0, host}}, .destination = {}, .vlan = 1, .tags = {}};
}

TEST(TorTable, full_table_learns_again_when_flows_expire) {
  TorTable table{2, 10ms};
  EXPECT_EQ(table.learn(flow_number(1), sent_by(1), 0ms), TorTable::Learned::kNew);
  EXPECT_EQ(table.learn(flow_number(2), sent_by(2), 1ms), TorTable::Learned::kNew);
  EXPECT_EQ(table.learn(flow_number(3), sent_by(3), 2ms), TorTable::Learned::kFull);
  EXPECT_EQ(table.learn(flow_number(1), sent_by(9), 5ms), TorTable::Learned::kKnown);
  ASSERT_NE(table.find(flow_number(1), 5ms), nullptr);
  EXPECT_EQ(table.find(flow_number(1), 5ms)->source.bytes[5], 9) << "how it was sent last";
  EXPECT_EQ(table.find(flow_number(3), 5ms), nullptr);
  EXPECT_EQ(table.find(flow_number(2), 11ms), nullptr) << "too old, though it is still there";
  EXPECT_EQ(table.learn(flow_number(3), sent_by(3), 11ms), TorTable::Learned::kNew);
  EXPECT_NE(table.find(flow_number(1), 11ms), nullptr);
  EXPECT_EQ(table.size(), 2U);
}

TEST(TorTable, table_of_size_0_stores_no_flow) {
  TorTable table{0, 1s};
  EXPECT_EQ(table.learn(flow_number(1), sent_by(1), 0ms), TorTable::Learned::kFull);
  EXPECT_EQ(table.find(flow_number(1), 0ms), nullptr);
}

TEST(TorTable, matches_reference_model_under_random_flows) {
  constexpr uint32_t kSize = 64;
  TorTable table{kSize, 50ns};
  std::vector<std::pair<uint32_t, Nanos>> model;  // flow and time of its last frame
  Rng rng{11};
  for (int64_t t = 0; t < 20'000; ++t) {
    const Nanos now{t};
    const auto n = static_cast<uint32_t>(rng.below(200));
    const auto known = std::find_if(model.begin(), model.end(), [&](auto& m) { return m.first == n; });
    const bool fresh = known != model.end() && now - known->second < 50ns;
    EXPECT_EQ(table.find(flow_number(n), now) != nullptr, fresh);
    if (rng.chance(0.3)) continue;
    const auto learned = table.learn(flow_number(n), sent_by(static_cast<uint8_t>(n)), now);
    if (known != model.end()) {
      EXPECT_EQ(learned, fresh ? TorTable::Learned::kKnown : TorTable::Learned::kNew);
      known->second = now;
      continue;
    }
    std::erase_if(model, [&](auto& m) { return now - m.second >= 50ns; });
    EXPECT_EQ(learned, model.size() < kSize ? TorTable::Learned::kNew : TorTable::Learned::kFull);
    if (model.size() < kSize) model.emplace_back(n, now);
    EXPECT_EQ(table.size(), model.size());
  }
}

// --- configuration

TEST(QcnConfig, reads_settings_with_lengths_at_the_rate_of_each_port) {
  const auto config = read_switch_text(
      "cnm_port: 4999\ncnm_rate: 5000\ntor: {size: 100, ageing: 2s}\n"
      "interfaces: [{name: i, addresses: [10.0.0.1/24]}]\n"
      "classes: [{class: 5, notify: qcn, qcn: {qeq: 20us, weight: 0.5, sample: 75KB, l3: true}}]\n"
      "ports: [{name: a, rate: 10Gbps}, {name: b, rate: 100Gbps, cn_tag: remove, "
      "classes: [{class: 5, notify: none}]}]\n");
  ASSERT_TRUE(config) << config.error().message;
  const ClassConfig& a = config->ports[0].classes[5];
  EXPECT_EQ(a.notify, ClassConfig::Notify::kQcn);
  EXPECT_EQ(a.qcn.qeq, Bytes{25'000});
  EXPECT_EQ(a.qcn.weight, 0.5);
  EXPECT_EQ(a.qcn.sample, Bytes{75'000});
  EXPECT_TRUE(a.qcn.l3);
  EXPECT_TRUE(config->ports[0].keeps_cn_tags);
  EXPECT_FALSE(config->ports[1].keeps_cn_tags);
  EXPECT_EQ(config->ports[1].classes[5].notify, ClassConfig::Notify::kNone);
  EXPECT_EQ(config->ports[1].classes[5].qcn.qeq, Bytes{250'000});
  EXPECT_EQ(config->ports[0].classes[4].notify, ClassConfig::Notify::kNone);
  EXPECT_EQ(config->notify.port, 4999);
  EXPECT_EQ(config->notify.rate, 5000U);
  EXPECT_EQ(config->notify.tor_size, 100U);
  EXPECT_EQ(config->notify.tor_ageing, 2s);
}

TEST(QcnConfig, invalid_settings_are_rejected_with_the_reason) {
  const std::string kPorts = "ports: [{name: a}]\n";
  const auto of_class = [&](const std::string& qcn) {
    return switch_text_error(kPorts + "classes: [{class: 5, notify: qcn, qcn: {" + qcn + "}}]\n");
  };
  EXPECT_NE(of_class("weight: 3").find("power of two"), std::string::npos);
  EXPECT_NE(of_class("qeq: 0").find("qeq must be 1 byte"), std::string::npos);
  EXPECT_NE(of_class("qeq: 20us").find("requires a rate"), std::string::npos);
  EXPECT_NE(of_class("sample: 10").find("sample must be 1 KB"), std::string::npos);
  EXPECT_NE(of_class("l3: true").find("cnm_port"), std::string::npos);
  EXPECT_NE(of_class("threshold: 1").find("unknown key"), std::string::npos);
  EXPECT_NE(
      switch_text_error(kPorts + "cnm_port: 4999\nclasses: [{class: 5, notify: qcn, qcn: {l3: true}}]\n")
          .find("requires an interface"),
      std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "tor: {size: 4}\n").find("cnm_port"), std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "cnm_port: 4999\ntor: {ageing: 0}\n")
                .find("tor: ageing must be at least 1 ms"),
            std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "cnm_port: 4791\n")
                .find("cnm_port: 4791 is the port of RoCEv2; use a different port"),
            std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "cnm_port: 5201\ntelemetry: {udp_port: 5201, switch_id: 7}\n")
                .find("cnm_port: 5201 is telemetry's udp_port; use a different port"),
            std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "cnm_key: 000102030405060708090a0b0c0d0e0f\n")
                .find("cnm_key requires cnm_port"),
            std::string::npos);
  EXPECT_NE(switch_text_error(kPorts + "classes: [{class: 5, notify: ecn}]\n").find("none, qcn, cnp"),
            std::string::npos);
}

}  // namespace
}  // namespace roci
