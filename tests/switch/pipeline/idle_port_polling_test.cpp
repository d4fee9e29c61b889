// Poll frequency of physical ports without traffic.
#include <deque>

#include "switch/switch_bench.hpp"

namespace roci {
namespace {

// Models a physical port: the time of its next frame is unknown.
class AskedPort final : public Port {
 public:
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos) override {
    ++asked;
    if (waiting_frames.empty()) return 0;
    out[0] = waiting_frames.front();
    waiting_frames.pop_front();
    return 1;
  }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos) override {
    for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
    sent += frames.size();
    return static_cast<uint16_t>(frames.size());
  }
  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return MacAddress::local(1); }
  [[nodiscard]] std::string_view name() const override { return "asked"; }
  [[nodiscard]] PortStats stats() const override { return {}; }

  uint64_t asked = 0;
  uint64_t sent = 0;
  std::deque<rte_mbuf*> waiting_frames;

 private:
  PortCapabilities capabilities_;
};

class IdlePortPolling : public SwitchTest {
 protected:
  void SetUp() override {
    SwitchTest::SetUp();
    std::vector<Port*> ends;
    for (AskedPort& port : ports_) ends.push_back(&port);
    auto made = Switch::create(ports(ports_.size()), ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    switch_ = std::move(*made);
  }
  void rounds(unsigned count) {
    for (unsigned i = 0; i < count; ++i) switch_->poll(now_ += 1us);
  }
  void arrive(size_t port) {
    ports_[port].waiting_frames.push_back(test::to_mbuf(
        *pool_, test::roce_bytes({.destination = MacAddress::broadcast(), .source = host_mac(port)})));
  }

  std::array<AskedPort, 4> ports_;
  Nanos now_{0};
};

TEST_F(IdlePortPolling, idle_ports_are_polled_every_eighth_round_while_others_are_active) {
  rounds(200);
  arrive(3);
  rounds(56);
  for (const AskedPort& port : ports_) EXPECT_EQ(port.asked, 256U);
  for (int i = 0; i < 8; ++i) {
    arrive(3);
    rounds(100);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ports_[i].asked, 356U);
  EXPECT_EQ(ports_[3].asked, 1056U);
}

// With idle ports the runner may sleep after each round.
TEST_F(IdlePortPolling, all_ports_are_polled_every_round_when_all_are_idle) {
  rounds(1000);
  for (const AskedPort& port : ports_) EXPECT_EQ(port.asked, 1000U);
}

TEST_F(IdlePortPolling, port_is_polled_every_round_again_after_a_frame_arrives) {
  rounds(1000);
  arrive(2);
  rounds(8);
  EXPECT_TRUE(ports_[2].waiting_frames.empty());
  EXPECT_EQ(ports_[0].sent, 1U);
  const uint64_t before = ports_[2].asked, other = ports_[1].asked;
  rounds(160);
  EXPECT_EQ(ports_[2].asked - before, 160U);
  EXPECT_EQ(ports_[1].asked - other, 20U) << "the others rest";
}

}  // namespace
}  // namespace roci
