// Test fixture: a switch with simulated links. The test takes the part of the hosts at the other ends.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/sim_link.hpp"
#include "support/ports/frames.hpp"
#include "support/ports/gated_port.hpp"
#include "switch/switch.hpp"

namespace roci {

class SwitchTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(start_eal());
    make_pool();
  }
  void make_pool() {
    auto pool = MbufPool::create("switch", 8191, 4400);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = *pool;
  }
  void TearDown() override {
    switch_.reset();
    gates_.clear();
    links_.clear();
    EXPECT_EQ(pool_->in_use(), 0U) << "leaked mbufs";
  }

  // Returns a configuration with `count` ports p0, p1, ...
  static SwitchConfig ports(size_t count) {
    SwitchConfig config{.name = "s1"};
    for (size_t i = 0; i < count; ++i) config.ports.push_back({.name = "p" + std::to_string(i)});
    return config;
  }
  void make(const SwitchConfig& config, const SimLinkConfig& link = {}) {
    std::vector<Port*> ends;
    for (size_t i = 0; i < config.ports.size(); ++i) {
      SimLinkConfig c = link;
      c.name = "link" + std::to_string(i);
      c.seed = i + 1;
      links_.push_back(std::make_unique<SimLink>(c, pool_));
      gates_.push_back(std::make_unique<test::GatedPort>(links_.back()->b()));
      ends.push_back(gates_.back().get());
      runner_.add(*links_.back());
    }
    auto made = Switch::create(config, ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    switch_ = std::move(*made);
    runner_.add(*switch_);
  }

  static constexpr uint8_t tos(uint8_t traffic_class, uint8_t ecn = 0) {
    return static_cast<uint8_t>(traffic_class << 5 | ecn);
  }
  // MAC address of host `i`.
  static MacAddress host_mac(size_t i) { return MacAddress{{2, 0, 0, 0, 1, static_cast<uint8_t>(i)}}; }

  void send(size_t host, rte_mbuf* frame) {
    ASSERT_NE(frame, nullptr);
    ASSERT_EQ(links_[host]->a().tx_burst({&frame, 1}, runner_.now()), 1);
  }
  void send(size_t host, const std::vector<uint8_t>& bytes) { send(host, test::to_mbuf(*pool_, bytes)); }
  // Sends an RC SEND and runs the switch until nothing more happens at this instant.
  void say(size_t from, const MacAddress& to, test::FrameSpec spec = {}) {
    spec.source = host_mac(from);
    spec.destination = to;
    send(from, test::roce_bytes(spec));
    settle();
  }
  void say(size_t from, size_t to, const test::FrameSpec& spec = {}) { say(from, host_mac(to), spec); }
  // Makes hosts known to the switch: each sends a frame to its own address.
  void introduce(std::initializer_list<size_t> hosts, std::optional<uint16_t> vlan = {}) {
    for (const size_t host : hosts) say(host, host, {.vlan = vlan});
    for (size_t i = 0; i < links_.size(); ++i) heard(i);
  }

  void settle() { ASSERT_TRUE(runner_.run_until(runner_.now())); }
  void wait(Nanos span) { ASSERT_TRUE(runner_.run_until(runner_.now() + span)); }

  // All frames that have arrived at a host.
  std::vector<std::vector<uint8_t>> heard(size_t host) {
    std::vector<std::vector<uint8_t>> out;
    rte_mbuf* frame = nullptr;
    while (links_[host]->a().rx_burst({&frame, 1}, runner_.now()) == 1) {
      out.push_back(test::bytes_of(frame));
      rte_pktmbuf_free(frame);
    }
    return out;
  }
  // Frees the frames that have arrived at a host, and returns their number.
  size_t discard(size_t host) {
    size_t number = 0;
    rte_mbuf* frame = nullptr;
    for (; links_[host]->a().rx_burst({&frame, 1}, runner_.now()) == 1; ++number) rte_pktmbuf_free(frame);
    return number;
  }
  // Number of frames that have arrived at each host.
  std::vector<size_t> counts() {
    std::vector<size_t> out;
    for (size_t i = 0; i < links_.size(); ++i) out.push_back(discard(i));
    return out;
  }
  static FrameView view(const std::vector<uint8_t>& bytes) {
    const auto length = static_cast<uint32_t>(bytes.size());
    return parse_frame(bytes.data(), length, length);
  }
  static bool icrc_is_right(const std::vector<uint8_t>& bytes) {
    const FrameView v = view(bytes);
    return v.kind == FrameKind::kRoce && compute_icrc(v) == stored_icrc(v);
  }

  uint64_t dropped(size_t port, DropReason reason) { return switch_->counters(port).dropped(reason); }

  std::shared_ptr<MbufPool> pool_;
  std::vector<std::unique_ptr<SimLink>> links_;
  std::vector<std::unique_ptr<test::GatedPort>> gates_;  // the switch's ports
  std::unique_ptr<Switch> switch_;
  VirtualRunner runner_;
};

using Counts = std::vector<size_t>;

}  // namespace roci
