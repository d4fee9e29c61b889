// Test of AF_PACKET and tap ports. Runs inside tests/tools/netns.sh, which makes veth0 and veth1 with an MTU of 4200.
#include <gtest/gtest.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "port/dpdk/ethdev_port.hpp"
#include "port/packets.hpp"

namespace roci {
namespace {

constexpr uint16_t kInterfaceMtu = 4200;

Result<std::unique_ptr<EthdevPort>> open_on(const std::string& interface, int number,
                                            std::shared_ptr<MbufPool> pool, uint16_t mtu) {
  EthdevConfig config;
  config.device = "net_af_packet" + std::to_string(number) + ",iface=" + interface;
  config.pool = std::move(pool);
  config.mtu = mtu;
  return EthdevPort::open(config);
}

// Returns the next frame that the test has sent. The kernel may send frames to IPv6 multicast groups (33:33:…) at any
// time; they are skipped.
rte_mbuf* receive(Port& port) {
  for (int wait = 0; wait < 5000; ++wait) {
    rte_mbuf* frame = nullptr;
    if (port.rx_burst({&frame, 1}, Nanos{0}) == 0) {
      usleep(200);
      continue;
    }
    const auto* to = rte_pktmbuf_mtod(frame, const uint8_t*);
    if (to[0] != 0x33 || to[1] != 0x33) return frame;
    rte_pktmbuf_free(frame);
  }
  return nullptr;
}

class AfPacket : public ::testing::TestWithParam<uint16_t> {};

TEST_P(AfPacket, transfers_frames_up_to_the_mtu_over_veth) {
  const uint16_t mtu = GetParam();
  auto pool = make_pool(4000, EthdevPort::data_room_for("net_af_packet0", mtu));
  {
    auto left = open_on("veth0", 0, pool, mtu);
    ASSERT_TRUE(left) << left.error().message;
    auto right = open_on("veth1", 1, pool, mtu);
    ASSERT_TRUE(right) << right.error().message;
    EXPECT_TRUE((*left)->wait_for_link(5s));
    EXPECT_FALSE((*left)->mac().is_zero());
    EXPECT_NE((*left)->mac(), (*right)->mac());
    for (auto& [from, to] : {std::pair{left->get(), right->get()}, std::pair{right->get(), left->get()}}) {
      for (uint32_t i = 0; i < 40; ++i) {
        // The longest frame, without and with a VLAN tag, then shorter ones; in chains, as for payloads.
        const uint32_t length = i == 0 ? mtu + 14U : i == 1 ? mtu + 18U : 60 + i * 277 % (mtu - 60U);
        rte_mbuf* frame = make_frame(*pool, length, i, 700);
        if (i == 1) *rte_pktmbuf_mtod_offset(frame, Be16*, 12) = Be16{kEtherTypeVlan};
        const auto sent = bytes_of(frame);
        ASSERT_EQ(from->tx_burst({&frame, 1}, Nanos{0}), 1);
        rte_mbuf* received = receive(*to);
        ASSERT_NE(received, nullptr) << "frame " << i << " of " << length << " bytes was lost";
        EXPECT_EQ(bytes_of(received), sent) << i;
        rte_pktmbuf_free(received);
      }
      rte_mbuf* too_long = make_frame(*pool, mtu + 15U, 0, 700);
      EXPECT_EQ(from->tx_burst({&too_long, 1}, Nanos{0}), 1);
      EXPECT_EQ(from->stats().tx_dropped, 1U);
    }
  }
  EXPECT_EQ(pool->in_use(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Mtus, AfPacket, ::testing::Values(1280, 1500, 4200));

TEST(AfPacketErrors, mtu_above_the_interface_mtu_is_rejected_with_the_limit) {
  auto pool = make_pool(600);
  auto port = open_on("veth0", 0, pool, 9000);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().message.find("\"veth0\" has MTU " + std::to_string(kInterfaceMtu)),
            std::string::npos)
      << port.error().message;
}

TEST(AfPacketErrors, buffers_too_small_for_the_mtu_are_rejected_with_their_size) {
  auto pool = make_pool(600, 2048);
  auto port = open_on("veth0", 0, pool, 4200);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().message.find("the pool's buffers have 2048"), std::string::npos)
      << port.error().message;
}

// A tap port connects to the kernel as well, and creates its own interface.
TEST(Tap, opens_and_closes) {
  auto pool = make_pool(2000);
  EthdevConfig config;
  config.device = "net_tap0,iface=roci0";
  config.pool = pool;
  if (access("/dev/net/tun", R_OK | W_OK) != 0) {
    ASSERT_EQ(std::getenv("ROCI_REQUIRE_ALL"), nullptr)
        << "requires /dev/net/tun, and ROCI_REQUIRE_ALL is set";
    const auto port = EthdevPort::open(config);
    ASSERT_FALSE(port);
    EXPECT_NE(port.error().message.find("net_tap0"), std::string::npos) << port.error().message;
    return;
  }
  {
    auto port = EthdevPort::open(config);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_NE(if_nametoindex("roci0"), 0U);
    EXPECT_TRUE((*port)->wait_for_link(5s));
  }
  config.mtu = 65535;  // DPDK 22.11 refuses 9000, DPDK 24.11 does not
  auto port = EthdevPort::open(config);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().message.find("MTU 65535 is not supported"), std::string::npos)
      << port.error().message;
}

}  // namespace
}  // namespace roci
