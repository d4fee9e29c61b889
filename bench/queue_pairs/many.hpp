// Two hosts in one thread with a large number of connections between them, over DPDK rings. The result is the work of
// both on one core.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/device.hpp"

namespace roci::bench {

struct ManyConfig {
  uint32_t connections = 1;
  uint32_t wr = 16;     // requests per work queue
  uint32_t depth = 64;  // outstanding messages of all connections
  uint32_t workers = 1;
};

class Many {
 public:
  // Throws std::runtime_error with an error message.
  explicit Many(const ManyConfig& config);
  ~Many();

  void create();   // creates the queue pairs of both hosts
  void connect();  // changes them to RTS
  void destroy();
  // Polls both hosts until they have no more traffic of their own.
  void settle();

  // Posts 8-byte WRITEs up to `depth`, on connections in random order; polls both hosts and reaps completions. Returns
  // the number of completed messages.
  uint32_t round();
  [[nodiscard]] uint64_t retransmissions() const;

 private:
  struct Host {
    std::unique_ptr<Device> device;
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionQueue> cq;
    std::vector<std::unique_ptr<QueuePair>> qps;
    std::vector<uint8_t> memory;
    std::unique_ptr<MemoryRegion> region;
  };
  void make_host(Host& host, std::unique_ptr<Port> port, const std::string& name, const std::string& address);
  static void connect(Host& host, size_t index, const Host& peer, const ibv_gid& gid);
  bool poll_both();

  ManyConfig config_;
  std::shared_ptr<MbufPool> pool_;
  Host a_, b_;
  std::vector<uint32_t> order_;
  size_t next_ = 0;
  uint32_t under_way_ = 0;
};

}  // namespace roci::bench
