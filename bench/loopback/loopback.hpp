// Two hosts in one thread with a queue pair each, connected by DPDK rings or shared memory, directly or by a switch.
// One round polls every component once, so the result is the work of both hosts (and the switch) on one core.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "port/shm/shm_switch.hpp"
#include "roci/device.hpp"
#include "switch/switch.hpp"

namespace roci::bench {

struct LoopbackConfig {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  uint32_t bytes = 64;  // per message
  ibv_mtu path_mtu = IBV_MTU_1024;
  bool through_switch = false;
  bool shared_memory = false;  // as between processes of a roci-run network
  uint32_t depth = 64;         // outstanding messages
  uint32_t packets_per_ack = 64;
  ExtensionConfig extensions{.mode = ExtensionMode::kOff};
  const char* algorithm = "none";  // of both hosts, with a rate that does not limit
  uint32_t one_lost_in = 0;        // of the frames that b receives, at random; 0: none
  bool virtual_time = false;       // 1 us per round, so that runs execute the same instructions
};

// A host with one object of each kind.
struct LoopbackHost {
  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;
  std::vector<uint8_t> memory;  // one message
  std::unique_ptr<MemoryRegion> region;

  [[nodiscard]] uint64_t counter(const std::string& name) const;
};

class Loopback {
 public:
  // Throws std::runtime_error with an error message. The constructor transfers messages and verifies their bytes.
  explicit Loopback(const LoopbackConfig& config);
  ~Loopback();

  // Transfers `messages` messages. Before and after, no message is outstanding.
  void move(uint64_t messages);
  // Posts messages up to `depth`, polls every component once and reaps completions. Returns the number of completed
  // messages.
  uint32_t round() { return round(config_.depth); }

  [[nodiscard]] uint64_t packets_per_message() const;
  [[nodiscard]] uint64_t frames_sent() const;  // by both hosts, including acknowledgments
  [[nodiscard]] uint64_t retransmissions() const;

 private:
  uint32_t round(uint32_t most_under_way);
  void make_ports(std::unique_ptr<Port>& a, std::unique_ptr<Port>& b);
  void make_shm_ports(std::unique_ptr<Port>& a, std::unique_ptr<Port>& b);
  void make_switch();
  void make_host(LoopbackHost& host, std::unique_ptr<Port> port, const std::string& name,
                 const std::string& address);
  void connect(LoopbackHost& host, const LoopbackHost& peer) const;
  void wait_for_agreement();
  void check_arrival();
  bool poll_all();
  void post_receive();
  void post_message();

  LoopbackConfig config_;
  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<ShmSwitch> shm_switch_;
  std::vector<std::unique_ptr<Port>> switch_ports_;
  std::unique_ptr<Switch> switch_;
  LoopbackHost a_, b_;  // a posts
  uint32_t under_way_ = 0;
  Nanos now_{0};
};

}  // namespace roci::bench
