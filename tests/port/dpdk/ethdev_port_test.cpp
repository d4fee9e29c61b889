#include "port/dpdk/ethdev_port.hpp"

#include <rte_ethdev.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/rng.hpp"
#include "port/packets.hpp"
#include "support/process/folder.hpp"

namespace roci {
namespace {

constexpr Nanos kNow{0};

// Error message of open() for an invalid device.
std::string error_of(const EthdevConfig& config) {
  const auto port = EthdevPort::open(config);
  return port ? "it opened" : port.error().message;
}

EthdevConfig config_for(const std::string& device, std::shared_ptr<MbufPool> pool, uint16_t mtu = 1500) {
  EthdevConfig config;
  config.device = device;
  config.pool = std::move(pool);
  config.mtu = mtu;
  return config;
}

// Receives until `count` frames have arrived or the sender has had enough time.
std::vector<rte_mbuf*> receive(Port& port, size_t count) {
  std::vector<rte_mbuf*> all;
  std::array<rte_mbuf*, 32> burst{};
  for (int i = 0; i < 20'000 && all.size() < count; ++i) {
    const uint16_t n = port.rx_burst(burst, kNow);
    all.insert(all.end(), burst.begin(), burst.begin() + n);
    if (n == 0) usleep(50);
  }
  return all;
}

// Sends one frame. A memif port rejects frames while the interrupt thread handles its devices, and the client
// provides buffers to the server only when it polls. Frames that arrive meanwhile are added to `arrived`.
bool send(Port& from, Port& to, rte_mbuf* frame, std::vector<rte_mbuf*>& arrived) {
  std::array<rte_mbuf*, 32> burst{};
  for (int i = 0; i < 20'000; ++i) {
    if (from.tx_burst({&frame, 1}, kNow) == 1) return true;
    const uint16_t n = to.rx_burst(burst, kNow);
    arrived.insert(arrived.end(), burst.begin(), burst.begin() + n);
    usleep(50);
  }
  rte_pktmbuf_free(frame);
  return false;
}

TEST(RingPair, transfers_frames_both_ways_in_order_and_frees_all_buffers) {
  auto pool = make_pool(512);
  {
    auto pair = make_ring_pair("pair", pool, 1500, 64);
    ASSERT_TRUE(pair) << pair.error().message;
    auto& [a, b] = *pair;
    EXPECT_TRUE(a->link_up());
    EXPECT_NE(a->mac(), b->mac());
    EXPECT_TRUE(a->capabilities().tx_multi_segment);
    for (auto& [from, to] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
      std::vector<rte_mbuf*> sent;
      for (uint32_t i = 0; i < 10; ++i) sent.push_back(make_frame(*pool, 60 + i * 100, i, 500));
      EXPECT_EQ(from->tx_burst(sent, kNow), 10);
      auto received = receive(*to, 10);
      ASSERT_EQ(received.size(), 10U);
      EXPECT_EQ(received, sent);
      free_all(received);
      EXPECT_EQ(from->stats().tx_packets, 10U);
      EXPECT_EQ(to->stats().rx_packets, 10U);
      EXPECT_EQ(to->stats().rx_bytes, from->stats().tx_bytes);
    }
  }
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(RingPair, separates_queues_and_sums_their_statistics) {
  auto pool = make_pool(512);
  {
    auto pair = make_ring_pair("pair", pool, 1500, 64, 3);
    ASSERT_TRUE(pair) << pair.error().message;
    auto& [a, b] = *pair;
    ASSERT_EQ(a->queues(), 3);
    for (uint16_t q = 0; q < 3; ++q) {
      std::vector<rte_mbuf*> sent;
      for (uint32_t i = 0; i <= q; ++i) sent.push_back(make_frame(*pool, 100, i));
      EXPECT_EQ(a->queue(q).tx_burst(sent, kNow), q + 1);
    }
    for (uint16_t q = 0; q < 3; ++q) {
      std::array<rte_mbuf*, 32> burst{};
      const uint16_t got = b->queue(q).rx_burst(burst, kNow);
      EXPECT_EQ(got, q + 1);
      rte_pktmbuf_free_bulk(burst.data(), got);
    }
    EXPECT_EQ(a->stats().tx_packets, 6U);
    EXPECT_EQ(b->stats().rx_packets, 6U);
    std::vector<rte_mbuf*> left = {make_frame(*pool, 100, 1)};
    EXPECT_EQ(a->queue(2).tx_burst(left, kNow), 1);  // in the ring when the pair is closed
  }
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(RingPair, rejects_frames_beyond_capacity_and_leaves_them_to_the_caller) {
  auto pool = make_pool(512);
  {
    auto pair = make_ring_pair("pair", pool, 1500, 16);
    ASSERT_TRUE(pair) << pair.error().message;
    auto& [a, b] = *pair;
    std::vector<rte_mbuf*> frames;
    for (uint32_t i = 0; i < 100; ++i) frames.push_back(make_frame(*pool, 100, i));
    const uint16_t accepted = a->tx_burst(frames, kNow);
    EXPECT_EQ(accepted, 16);
    EXPECT_EQ(a->stats().tx_refused, 84U);
    // The caller still owns the rest, and can send it after the peer has read.
    std::span<rte_mbuf*> rest = std::span(frames).subspan(accepted);
    auto received = receive(*b, 16);
    free_all(received);
    EXPECT_EQ(a->tx_burst(rest.first(4), kNow), 4);
    free_all(rest.subspan(4));
    EXPECT_EQ(pool->in_use(), 4U);
    // Four frames are in the ring when the pair is closed.
  }
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(RingPair, drops_frames_longer_than_the_mtu_and_counts_them) {
  auto pool = make_pool(64);
  auto pair = make_ring_pair("pair", pool, 1000, 64);
  ASSERT_TRUE(pair) << pair.error().message;
  auto& [a, b] = *pair;
  // The longest untagged frame has 1014 bytes; a VLAN tag adds 4 bytes, two add 8.
  std::vector<rte_mbuf*> frames = {make_frame(*pool, 1014, 1), make_frame(*pool, 1015, 2),
                                   make_frame(*pool, 1018, 3), make_frame(*pool, 1019, 4),
                                   make_frame(*pool, 1022, 5), make_frame(*pool, 1023, 6)};
  const auto tag = [](rte_mbuf* m, uint32_t offset) {
    *rte_pktmbuf_mtod_offset(m, Be16*, offset) = Be16{kEtherTypeVlan};
  };
  for (size_t i = 2; i < 6; ++i) tag(frames[i], 12);
  for (size_t i = 4; i < 6; ++i) tag(frames[i], 16);
  EXPECT_EQ(a->tx_burst(frames, kNow), 6);
  EXPECT_EQ(a->stats().tx_dropped, 3U);
  EXPECT_EQ(a->stats().tx_packets, 3U);
  auto received = receive(*b, 3);
  ASSERT_EQ(received.size(), 3U);
  EXPECT_EQ(received[0]->pkt_len, 1014U);
  EXPECT_EQ(received[1]->pkt_len, 1018U);
  EXPECT_EQ(received[2]->pkt_len, 1022U);
  free_all(received);
  EXPECT_EQ(pool->in_use(), 0U);
}

// Random bursts, some with too long frames, into a small ring that is read at random times. The valid frames must
// arrive in order, even if some were rejected and sent again.
TEST(RingPair, keeps_order_and_ownership_under_random_load) {
  auto pool = make_pool(2000);
  {
    auto pair = make_ring_pair("pair", pool, 500, 24);
    ASSERT_TRUE(pair) << pair.error().message;
    auto& [a, b] = *pair;
    Rng rng{7};
    std::deque<uint32_t> expected;
    std::vector<rte_mbuf*> waiting;
    uint32_t next = 0;
    uint64_t long_frames = 0;
    for (int round = 0; round < 3000; ++round) {
      while (waiting.size() < 70 && rng.chance(0.9)) {
        const bool too_long = rng.chance(0.2);
        long_frames += too_long ? 1 : 0;
        if (!too_long) expected.push_back(next);
        rte_mbuf* m = make_frame(*pool, too_long ? 515 : 64, next);
        std::memcpy(rte_pktmbuf_mtod_offset(m, uint8_t*, 20), &next, sizeof next);
        ++next;
        waiting.push_back(m);
      }
      const uint16_t accepted = a->tx_burst(std::span(waiting).first(rng.between(0, waiting.size())), kNow);
      waiting.erase(waiting.begin(), waiting.begin() + accepted);
      std::array<rte_mbuf*, 16> burst{};
      const uint16_t n = b->rx_burst(std::span(burst).first(rng.between(0, 16)), kNow);
      for (uint16_t i = 0; i < n; ++i) {
        uint32_t number = 0;
        std::memcpy(&number, rte_pktmbuf_mtod_offset(burst[i], uint8_t*, 20), sizeof number);
        ASSERT_FALSE(expected.empty());
        ASSERT_EQ(number, expected.front());
        expected.pop_front();
        rte_pktmbuf_free(burst[i]);
      }
    }
    EXPECT_GT(a->stats().tx_dropped, 100U);
    EXPECT_LE(a->stats().tx_dropped, long_frames);
    EXPECT_GT(a->stats().tx_refused, 100U);
    free_all(waiting);
  }
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(RingPair, more_pairs_than_dpdk_ports_can_be_opened_one_after_another) {
  auto pool = make_pool(64);
  // More than DPDK's number of ports, opened one after the other.
  for (int i = 0; i < 40; ++i) {
    auto pair = make_ring_pair("pair", pool, 1500, 16);
    ASSERT_TRUE(pair) << i << ": " << pair.error().message;
  }
  EXPECT_EQ(rte_eth_dev_count_avail(), 0);
}

TEST(EthdevPort, open_rejects_invalid_devices_with_the_reason) {
  auto pool = make_pool(600);
  EXPECT_NE(error_of(config_for("net_nonsense0", pool)).find("net_nonsense0 cannot be opened"),
            std::string::npos);
  EXPECT_NE(error_of(config_for("0000:ff:1f.7", pool)).find("PCI"), std::string::npos);
  EXPECT_NE(error_of(config_for("", pool)).find("no name"), std::string::npos);
  EXPECT_NE(error_of(config_for("net_null0,size", pool)).find("key=value"), std::string::npos);
  EXPECT_NE(error_of(config_for("net_null0,nonsense=1", pool)).find("net_null0,nonsense=1"),
            std::string::npos);
  EXPECT_NE(error_of(config_for("net_null0", nullptr)).find("pool"), std::string::npos);
}

TEST(EthdevPort, open_reports_a_missing_or_unspecified_interface) {
  auto pool = make_pool(600);
  EXPECT_NE(error_of(config_for("net_af_packet0,iface=nothere0", pool)).find("\"nothere0\" does not exist"),
            std::string::npos);
  EXPECT_NE(error_of(config_for("net_af_packet0", pool)).find("iface="), std::string::npos);
}

TEST(EthdevPort, open_reports_invalid_memif_arguments) {
  auto pool = make_pool(600);
  EXPECT_NE(error_of(config_for("net_memif0,role=client,socket-abstract=no,socket=/nonexistent/x.sock", pool))
                .find("\"/nonexistent\""),
            std::string::npos);
  EXPECT_NE(error_of(config_for("net_memif0,role=boss", pool)).find("allowed are server and client"),
            std::string::npos);
  EXPECT_NE(error_of(config_for("net_memif0,socket=" + std::string(200, 'x'), pool)).find("too long"),
            std::string::npos);
}

std::string memif_device(int number, const std::string& role, const std::string& socket) {
  return "net_memif" + std::to_string(number) + ",role=" + role + ",id=0,socket=" + socket;
}

std::string memif_device(int number, const std::string& role) {
  static const test::Folder kFolder;
  return memif_device(number, role, kFolder.path() / "m.sock");
}

// The driver's default is an abstract name, to which any user of the machine can connect.
TEST(MemifSocket, name_that_is_not_an_absolute_path_is_rejected) {
  auto pool = make_pool(600);
  for (const char* device : {"net_memif0,role=server", "net_memif0,role=client,socket=roci",
                             "net_memif0,socket=./roci,socket-abstract=no"})
    EXPECT_NE(error_of(config_for(device, pool)).find("is not an absolute path"), std::string::npos)
        << device;
  const std::string name =
      "net_memif0,role=server,socket-abstract=yes,socket=roci-test-" + std::to_string(getpid());
  EXPECT_EQ(error_of(config_for(name, pool)), "it opened");
}

// Another user could create the socket before the server, or after the server has ended.
TEST(MemifSocket, client_rejects_a_folder_in_which_other_users_can_create_files) {
  auto pool = make_pool(600);
  const test::Folder folder;
  const std::string socket = folder.path() / "m.sock";
  chmod(folder.path().c_str(), 01777);
  EXPECT_NE(error_of(config_for(memif_device(0, "client", socket), pool)).find("is writable by other users"),
            std::string::npos);
  EXPECT_EQ(error_of(config_for(memif_device(0, "server", socket), pool)), "it opened");
}

TEST(MemifSocket, client_rejects_a_socket_of_another_user_and_another_file) {
  auto pool = make_pool(600);
  const test::Folder folder;
  const std::string path = folder.path() / "m.sock";
  const EthdevConfig client = config_for(memif_device(0, "client", path), pool);
  std::ofstream{path} << "x";
  EXPECT_NE(error_of(client).find("is not a socket"), std::string::npos);
  std::filesystem::remove(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(error_of(client).find("belongs to another user"), std::string::npos) << error_of(client);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_NE(error_of(client).find("belongs to another user (12345)"), std::string::npos);
  }
  close(fd);
}

TEST(EthdevPort, open_rejects_an_invalid_mtu_with_the_limit) {
  auto pool = make_pool(600);
  EXPECT_NE(error_of(config_for("net_null0", pool, 40)).find("68 to "), std::string::npos);
  EXPECT_NE(
      error_of(config_for("net_null0", pool, 4200)).find("4222 bytes, and the pool's buffers have 2048"),
      std::string::npos);
}

TEST(EthdevPort, rejects_a_second_open_until_the_first_port_is_closed) {
  auto pool = make_pool(600);
  auto first = EthdevPort::open(config_for("net_null0", pool));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_NE(error_of(config_for("net_null0", pool)).find("already open"), std::string::npos);
  auto second = EthdevPort::open(config_for("net_null1", pool));
  EXPECT_TRUE(second) << second.error().message;
  first->reset();
  EXPECT_EQ(error_of(config_for("net_null0", pool)), "it opened");
}

// Both ends of one socket in this process. The pool's buffers are smaller than the frames.
class Memif : public ::testing::TestWithParam<uint16_t> {};

TEST_P(Memif, transfers_chained_frames_up_to_the_mtu_both_ways) {
  const uint16_t mtu = GetParam();
  auto pool = make_pool(4000, 2048);
  {
    auto server = EthdevPort::open(config_for(memif_device(0, "server"), pool, mtu));
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_FALSE((*server)->link_up());
    EXPECT_FALSE((*server)->wait_for_link(20ms));
    auto client = EthdevPort::open(config_for(memif_device(1, "client"), pool, mtu));
    ASSERT_TRUE(client) << client.error().message;
    ASSERT_TRUE((*client)->wait_for_link(5s));
    ASSERT_TRUE((*server)->wait_for_link(5s));
    for (auto& [from, to] :
         {std::pair{client->get(), server->get()}, std::pair{server->get(), client->get()}}) {
      std::vector<std::vector<uint8_t>> sent;
      std::vector<rte_mbuf*> received;
      for (uint32_t i = 0; i < 50; ++i) {
        const uint32_t length = i == 0 ? mtu + 14U : 60 + i * 277 % (mtu - 60U);
        rte_mbuf* frame = make_frame(*pool, length, i, 700);
        sent.push_back(bytes_of(frame));
        ASSERT_TRUE(send(*from, *to, frame, received)) << i;
      }
      const auto rest = receive(*to, 50 - received.size());
      received.insert(received.end(), rest.begin(), rest.end());
      ASSERT_EQ(received.size(), 50U);
      for (size_t i = 0; i < 50; ++i) EXPECT_EQ(bytes_of(received[i]), sent[i]) << i;
      free_all(received);
    }
  }
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(MemifPort, default_mac_replaces_the_random_one_of_the_driver) {
  auto pool = make_pool(4000, 2048);
  EthdevConfig config = config_for(memif_device(0, "server"), pool);
  config.default_mac = MacAddress::local(77);
  for (int start = 0; start < 2; ++start) {
    const auto port = EthdevPort::open(config);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ((*port)->mac(), MacAddress::local(77));
  }
  const MacAddress chosen = MacAddress::local(78);
  config.device += ",mac=" + chosen.to_string();
  const auto port = EthdevPort::open(config);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ((*port)->mac(), chosen);
}

INSTANTIATE_TEST_SUITE_P(Mtus, Memif, ::testing::Values(1500, 4200, 9000));

TEST(MemifPort, client_reports_a_missing_server_after_its_timeout) {
  auto pool = make_pool(2000);
  EthdevConfig config = config_for(memif_device(1, "client"), pool);
  config.connect_timeout = 40ms;
  EXPECT_NE(error_of(config).find("the memif server does not listen"), std::string::npos);
}

TEST(MemifPort, client_reconnects_after_both_ends_restart) {
  auto pool = make_pool(4000);
  auto server = EthdevPort::open(config_for(memif_device(0, "server"), pool));
  ASSERT_TRUE(server) << server.error().message;
  auto client = EthdevPort::open(config_for(memif_device(1, "client"), pool));
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE((*client)->wait_for_link(5s));
  ASSERT_TRUE((*server)->wait_for_link(5s));
  // A link that is down rejects frames, and the caller keeps them.
  ASSERT_TRUE((*server)->restart());
  for (int i = 0; i < 1000 && (*client)->link_up(); ++i) usleep(1000);
  EXPECT_FALSE((*client)->link_up());
  rte_mbuf* frame = make_frame(*pool, 100, 1);
  EXPECT_EQ((*client)->tx_burst({&frame, 1}, kNow), 0);
  rte_pktmbuf_free(frame);
  ASSERT_TRUE((*client)->restart());
  EXPECT_TRUE((*client)->wait_for_link(5s));
}

}  // namespace
}  // namespace roci
