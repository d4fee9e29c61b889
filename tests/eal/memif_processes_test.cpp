// Test of two processes connected by memif, as roci-perf and roci-switch use it.
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/process/folder.hpp"

namespace roci {
namespace {

constexpr uint32_t kFrames = 5000;
constexpr uint32_t kFrameBytes = 1200;

std::unique_ptr<EthdevPort> open_memif(const std::string& role, const std::string& path) {
  if (!start_eal()) return nullptr;
  auto pool = MbufPool::create(role, 8000, 2048);
  if (!pool) return nullptr;
  EthdevConfig config;
  config.device = "net_memif0,role=" + role + ",id=3,socket=" + path;
  config.pool = *pool;
  auto port = EthdevPort::open(config);
  if (!port) std::fprintf(stderr, "%s\n", port.error().message.c_str());
  if (!port || !(*port)->wait_for_link(10s)) return nullptr;
  return std::move(*port);
}

// Returns each frame to the sender. Returns 0 when the peer has disconnected after all frames.
int echo(const std::string& path) {
  auto port = open_memif("server", path);
  if (port == nullptr) return 1;
  uint32_t echoed = 0;
  for (int idle = 0; echoed < kFrames && idle < 100'000;) {
    rte_mbuf* frame = nullptr;
    if (port->rx_burst({&frame, 1}, Nanos{0}) == 0) {
      ++idle;
      usleep(20);
      continue;
    }
    idle = 0;
    while (port->tx_burst({&frame, 1}, Nanos{0}) == 0) {
      if (!port->link_up()) return 2;
      usleep(20);
    }
    ++echoed;
  }
  // The last frames must reach the client before the link goes down.
  for (int i = 0; i < 5000 && port->link_up(); ++i) usleep(1000);
  return echoed == kFrames ? 0 : 3;
}

int send_and_check(const std::string& path) {
  auto port = open_memif("client", path);
  if (port == nullptr) return 1;
  auto pool = MbufPool::create("source", 2000, 2048);
  if (!pool) return 2;
  uint32_t sent = 0;
  uint32_t received = 0;
  for (int idle = 0; received < kFrames && idle < 100'000;) {
    if (sent < kFrames && sent - received < 200) {
      rte_mbuf* frame = rte_pktmbuf_alloc((*pool)->get());
      if (frame == nullptr) return 3;
      char* data = rte_pktmbuf_append(frame, kFrameBytes);
      std::memset(data, static_cast<int>(sent & 0x7f), kFrameBytes);
      std::memcpy(data + 20, &sent, sizeof sent);
      if (port->tx_burst({&frame, 1}, Nanos{0}) == 1) {
        ++sent;
      } else {
        rte_pktmbuf_free(frame);
      }
    }
    rte_mbuf* frame = nullptr;
    if (port->rx_burst({&frame, 1}, Nanos{0}) == 0) {
      ++idle;
      usleep(20);
      continue;
    }
    idle = 0;
    uint32_t number = 0;
    std::memcpy(&number, rte_pktmbuf_mtod_offset(frame, char*, 20), sizeof number);
    const bool right = number == received && frame->pkt_len == kFrameBytes &&
                       *rte_pktmbuf_mtod_offset(frame, char*, 1000) == static_cast<char>(number & 0x7f);
    rte_pktmbuf_free(frame);
    if (!right) return 4;
    ++received;
  }
  return received == kFrames && (*pool)->in_use() == 0 ? 0 : 5;
}

TEST(MemifProcesses, exchange_frames_regardless_of_start_order) {
  const test::Folder folder;
  for (const bool server_first : {true, false}) {
    const std::string path = folder.path() / (server_first ? "a.sock" : "b.sock");
    const auto run = [&](bool server) {
      const pid_t child = fork();
      if (child == 0) _exit(server ? echo(path) : send_and_check(path));
      return child;
    };
    const pid_t first = run(server_first);
    usleep(100'000);
    const pid_t second = run(!server_first);
    int status = -1;
    waitpid(first, &status, 0);
    EXPECT_EQ(status, 0) << (server_first ? "server" : "client");
    waitpid(second, &status, 0);
    EXPECT_EQ(status, 0) << (server_first ? "client" : "server");
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "the socket was left behind";
  }
}

}  // namespace
}  // namespace roci
