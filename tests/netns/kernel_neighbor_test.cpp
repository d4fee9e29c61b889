// Test of address resolution with the Linux kernel, which owns veth0; the test host owns veth1. Runs inside
// tests/tools/netns.sh.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "port/dpdk/ethdev_port.hpp"
#include "port/neighbors/neighbors.hpp"
#include "port/packets.hpp"

namespace roci {
namespace {

const IpAddress kKernel = *IpAddress::parse("10.9.0.1");
const IpAddress kKernel6 = *IpAddress::parse("fd09::1");

void shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// Returns the ICMP checksum of an even number of bytes, which the kernel does not compute for IPv4 raw sockets.
uint16_t checksum_of(const uint8_t* data, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < size; i += 2) sum += static_cast<uint32_t>(data[i] << 8 | data[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<uint16_t>(~sum));
}

class KernelNeighbor : public ::testing::Test, public FrameSink {
 protected:
  void SetUp() override {
    shell("ip addr flush dev veth0 && ip addr add 10.9.0.1/24 dev veth0");
    shell("echo 0 > /proc/sys/net/ipv6/conf/veth0/disable_ipv6 && ip addr add fd09::1/64 dev veth0 nodad");
    pool_ = make_pool(4000, EthdevPort::data_room_for("net_af_packet0", 1500));
    EthdevConfig config;
    config.device = "net_af_packet0,iface=veth1";
    config.pool = pool_;
    auto port = EthdevPort::open(config);
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
    NeighborConfig ours;
    ours.mac = port_->mac();
    ours.addresses = {*IpNetwork::parse("10.9.0.2/24"), *IpNetwork::parse("fd09::2/64")};
    auto host = Neighbors::create(ours, *this);
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
  }
  void TearDown() override {
    host_.reset();
    port_.reset();
    EXPECT_EQ(pool_->in_use(), 0U);
  }

  rte_mbuf* allocate() override { return rte_pktmbuf_alloc(pool_->get()); }
  void send(rte_mbuf* frame) override {
    if (port_->tx_burst({&frame, 1}, now()) == 0) rte_pktmbuf_free(frame);
  }
  static Nanos now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  // Polls the port until `done` returns true, for at most 4 s.
  template <class Done>
  bool serve_until(Done done) {
    const Nanos end = now() + 4s;
    while (now() < end) {
      std::array<rte_mbuf*, 8> burst{};
      const uint16_t n = port_->rx_burst(burst, now());
      for (uint16_t i = 0; i < n; ++i) {
        const auto* data = rte_pktmbuf_mtod(burst[i], const uint8_t*);
        host_->handle(parse_frame(data, burst[i]->data_len, burst[i]->pkt_len), burst[i], now());
        rte_pktmbuf_free(burst[i]);
      }
      host_->poll(now());
      if (done()) return true;
      if (n == 0) usleep(100);
    }
    return false;
  }

  // Sends a ping through the kernel. Returns whether the kernel delivers the host's reply.
  bool kernel_pings_us(bool v6, size_t data_bytes) {
    std::vector<uint8_t> ping(8 + data_bytes, 0x5a);
    ping[0] = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
    ping[1] = ping[2] = ping[3] = 0;
    if (!v6) {
      const uint16_t checksum = checksum_of(ping.data(), ping.size());
      std::memcpy(&ping[2], &checksum, sizeof checksum);
    }
    const int raw = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK,
                           v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP});
    EXPECT_GE(raw, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    inet_pton(AF_INET, "10.9.0.2", &to.sin_addr);
    sockaddr_in6 to6{};
    to6.sin6_family = AF_INET6;
    inet_pton(AF_INET6, "fd09::2", &to6.sin6_addr);
    const ssize_t sent =
        v6 ? sendto(raw, ping.data(), ping.size(), 0, reinterpret_cast<sockaddr*>(&to6), sizeof to6)
           : sendto(raw, ping.data(), ping.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    EXPECT_EQ(sent, static_cast<ssize_t>(ping.size())) << std::strerror(errno);
    const bool answered = serve_until([&] {
      std::array<uint8_t, 2048> reply{};
      const ssize_t size = recv(raw, reply.data(), reply.size(), 0);
      if (size <= 0) return false;
      const size_t header = v6 ? 0 : 20;  // An IPv4 raw socket delivers the IP header.
      return static_cast<size_t>(size) == header + ping.size() &&
             reply[header] == (v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) &&
             std::equal(ping.begin() + 4, ping.end(),
                        reply.begin() + static_cast<std::ptrdiff_t>(header) + 4);
    });
    close(raw);
    return answered;
  }

  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<EthdevPort> port_;
  std::unique_ptr<Neighbors> host_;
};

TEST_F(KernelNeighbor, kernel_replies_to_arp_and_neighbor_solicitations) {
  for (const IpAddress& address : {kKernel, kKernel6}) {
    EXPECT_TRUE(serve_until([&] { return host_->resolve(address, now()).result == Resolution::kResolved; }))
        << address.to_string();
    EXPECT_EQ(host_->resolve(address, now()).entry->state, NeighborState::kReachable);
  }
  EXPECT_EQ(host_->resolve(kKernel, now()).entry->mac, host_->resolve(kKernel6, now()).entry->mac);
  // The kernel answers a unicast probe as well.
  for (const IpAddress& address : {kKernel, kKernel6}) {
    Neighbor& entry = *host_->resolve(address, now()).entry;
    entry.deadline = now();
    host_->use(entry, now());
    EXPECT_EQ(entry.state, NeighborState::kProbing);
    EXPECT_TRUE(serve_until([&] { return entry.state == NeighborState::kReachable; })) << address.to_string();
  }
}

TEST_F(KernelNeighbor, kernel_resolves_the_host_and_receives_ping_replies) {
  shell("ip neigh flush dev veth0");
  EXPECT_TRUE(kernel_pings_us(false, 56));
  EXPECT_TRUE(kernel_pings_us(true, 56));
  EXPECT_TRUE(kernel_pings_us(false, 1400));
  EXPECT_TRUE(kernel_pings_us(true, 1400));
  EXPECT_EQ(host_->stats().malformed, 0U);
}

}  // namespace
}  // namespace roci
