// Several shared-memory ports on one segment, in one process.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "port/packets.hpp"
#include "port/shm/shm_port.hpp"
#include "support/ports/frames.hpp"
#include "wire/net/arp.hpp"

namespace roci::test {

class ShmNetworkTest : public testing::Test {
 protected:
  static constexpr uint16_t kMtu = 4400;
  using Bytes = std::vector<uint8_t>;

  void SetUp() override {
    pool_ = make_pool(600, 4600);
    auto segment = ShmSegment::create();
    ASSERT_TRUE(segment) << segment.error().message;
    segment_ = std::move(*segment);
  }
  void TearDown() override {
    ports_.clear();
    EXPECT_EQ(pool_->in_use(), 0U) << "a frame was lost";
  }

  static MacAddress mac(uint64_t slot) { return MacAddress::local(100 + slot); }
  static IpAddress ip4(uint32_t slot) { return IpAddress::from_v4(0x0a000001 + slot); }
  static IpAddress ip6(uint32_t slot) { return *IpAddress::parse("fd00::" + std::to_string(slot + 1)); }

  ShmPortConfig config(uint32_t slot, uint32_t slots) const {
    ShmPortConfig config;
    config.name = "shm" + std::to_string(slot);
    config.slot = slot;
    config.mtu = kMtu;
    config.pool = pool_;
    for (uint32_t i = 0; i < slots; ++i)
      config.slots.push_back({mac(i), {ip4(i), ip6(i), IpAddress::link_local(mac(i))}});
    return config;
  }
  std::unique_ptr<ShmPort> open(ShmPortConfig config) const {
    auto port = ShmPort::open(segment_, std::move(config));
    EXPECT_TRUE(port) << port.error().message;
    return port ? std::move(*port) : nullptr;
  }
  // Opens ports for the first `count` of `slots` slots.
  void open_ports(uint32_t count, uint32_t slots) {
    for (uint32_t slot = 0; slot < count; ++slot) ports_.push_back(open(config(slot, slots)));
  }

  rte_mbuf* roce_to(uint32_t from, const MacAddress& to, uint32_t payload, uint32_t number = 0,
                    uint8_t traffic_class = 0) const {
    FrameSpec spec;
    spec.source = mac(from);
    spec.destination = to;
    spec.payload = payload & ~3U;
    spec.number = number;
    spec.traffic_class = traffic_class;
    return roce_mbuf(*pool_, spec);
  }
  // An ARP request for the IPv4 address of `target`.
  rte_mbuf* arp_request(uint32_t from, const IpAddress& target) const {
    Bytes frame(kMaxArpFrame);
    const ArpMessage message{ArpOperation::kRequest, mac(from), ip4(from), MacAddress{}, target};
    frame.resize(build_arp({MacAddress::broadcast(), mac(from)}, message, frame));
    return test::to_mbuf(*pool_, frame);
  }
  // Returns the number of accepted frames. A rejected frame is freed.
  uint16_t send(uint32_t from, rte_mbuf* frame, Nanos now) const { return send(*ports_[from], frame, now); }
  static uint16_t send(Port& port, rte_mbuf* frame, Nanos now) {
    const uint16_t sent = port.tx_burst({&frame, 1}, now);
    if (sent == 0) rte_pktmbuf_free(frame);
    return sent;
  }
  // Polls until no frame is returned.
  std::vector<Bytes> receive_all(uint32_t port, Nanos now) const { return receive_all(*ports_[port], now); }
  static std::vector<Bytes> receive_all(Port& port, Nanos now) {
    std::vector<Bytes> all;
    std::array<rte_mbuf*, 32> burst{};
    while (const uint16_t got = port.rx_burst(burst, now)) {
      for (uint16_t i = 0; i < got; ++i) all.push_back(roci::bytes_of(burst[i]));
      rte_pktmbuf_free_bulk(burst.data(), got);
    }
    return all;
  }
  // Polls once.
  std::vector<Bytes> receive(uint32_t port, size_t most, Nanos now) {
    std::vector<rte_mbuf*> burst(most);
    const uint16_t got = ports_[port]->rx_burst(burst, now);
    std::vector<Bytes> all;
    for (uint16_t i = 0; i < got; ++i) all.push_back(roci::bytes_of(burst[i]));
    rte_pktmbuf_free_bulk(burst.data(), got);
    return all;
  }

  std::shared_ptr<MbufPool> pool_;
  std::shared_ptr<ShmSegment> segment_;
  std::vector<std::unique_ptr<ShmPort>> ports_;
};

}  // namespace roci::test
