// Adapter of ports that a program implements.
#include "port/external_port.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "support/must.hpp"

namespace roci::test {
namespace {

struct Record {
  std::vector<rte_mbuf*> incoming;
  std::vector<uint32_t> sent;  // lengths
  size_t space = SIZE_MAX;     // frames that transmit() still accepts
};

class RecordingPort final : public ExternalPort {
 public:
  explicit RecordingPort(std::shared_ptr<Record> record) : record_(std::move(record)) {}
  uint16_t receive(rte_mbuf** frames, uint16_t count) override {
    uint16_t there = 0;
    while (there < count && !record_->incoming.empty()) {
      frames[there++] = record_->incoming.front();
      record_->incoming.erase(record_->incoming.begin());
    }
    return there;
  }
  uint16_t transmit(rte_mbuf** frames, uint16_t count) override {
    for (uint16_t i = 0; i < count; ++i) {
      if (record_->space-- == 0) return i;
      record_->sent.push_back(frames[i]->pkt_len);
      rte_pktmbuf_free(frames[i]);
    }
    return count;
  }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.mtu = 1500, .link_rate = 40'000'000'000, .needs_icrc = false};
  }
  [[nodiscard]] std::array<uint8_t, 6> mac() const override { return {2, 0, 0, 0, 0, 7}; }
  [[nodiscard]] bool link_up() const override { return false; }

 private:
  std::shared_ptr<Record> record_;
};

class AdaptedPortTest : public testing::Test {
 protected:
  void SetUp() override {
    must(start_eal());
    pool_ = must(MbufPool::create("adapted", 64, 2048));
    port_ = must(adapt_port(std::make_unique<RecordingPort>(record_), "own"));
  }
  rte_mbuf* frame(uint16_t bytes) {
    rte_mbuf* made = rte_pktmbuf_alloc(pool_->get());
    std::fill_n(rte_pktmbuf_append(made, bytes), bytes, char{0});
    return made;
  }
  [[nodiscard]] unsigned in_use() const { return rte_mempool_in_use_count(pool_->get()); }

  std::shared_ptr<MbufPool> pool_;
  std::shared_ptr<Record> record_ = std::make_shared<Record>();
  std::unique_ptr<Port> port_;
};

TEST_F(AdaptedPortTest, has_the_properties_of_the_programs_port) {
  EXPECT_EQ(port_->name(), "own");
  EXPECT_EQ(port_->mac().to_string(), "02:00:00:00:00:07");
  EXPECT_EQ(port_->capabilities().mtu, 1500);
  EXPECT_EQ(port_->capabilities().link_rate, 40_Gbps);
  EXPECT_FALSE(port_->capabilities().needs_icrc);
  EXPECT_FALSE(port_->link_up());
}

TEST_F(AdaptedPortTest, frames_above_the_mtu_are_dropped_and_counted) {
  record_->incoming = {frame(64), frame(1600), frame(1514)};
  std::vector<rte_mbuf*> out(8);
  ASSERT_EQ(port_->rx_burst(out, 0ns), 2);
  EXPECT_EQ(out[0]->pkt_len, 64U);
  EXPECT_EQ(out[1]->pkt_len, 1514U);
  for (uint16_t i = 0; i < 2; ++i) rte_pktmbuf_free(out[i]);
  std::vector<rte_mbuf*> frames{frame(1600), frame(100), frame(1600), frame(200)};
  EXPECT_EQ(port_->tx_burst(frames, 0ns), 4);
  EXPECT_EQ(record_->sent, (std::vector<uint32_t>{100, 200}));
  const PortStats stats = port_->stats();
  EXPECT_EQ(stats.rx_packets, 2U);
  EXPECT_EQ(stats.rx_bytes, 1578U);
  EXPECT_EQ(stats.rx_dropped, 1U);
  EXPECT_EQ(stats.tx_packets, 2U);
  EXPECT_EQ(stats.tx_bytes, 300U);
  EXPECT_EQ(stats.tx_dropped, 2U);
  EXPECT_EQ(stats.tx_refused, 0U);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(AdaptedPortTest, refused_frames_remain_with_the_caller) {
  record_->space = 2;
  std::vector<rte_mbuf*> frames{frame(100), frame(200), frame(300), frame(1600)};
  ASSERT_EQ(port_->tx_burst(frames, 0ns), 2);
  EXPECT_EQ(port_->stats().tx_refused, 2U);
  EXPECT_EQ(port_->stats().tx_bytes, 300U);
  EXPECT_EQ(port_->stats().tx_dropped, 0U);
  record_->space = 2;
  EXPECT_EQ(port_->tx_burst(std::span(frames).subspan(2), 0ns), 2);
  EXPECT_EQ(record_->sent, (std::vector<uint32_t>{100, 200, 300}));
  EXPECT_EQ(in_use(), 0U);
}

}  // namespace
}  // namespace roci::test
