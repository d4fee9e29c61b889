// Model of a Linux host with a soft-RoCE device (rdma_rxe), written from captures and from observations of Linux 6.12,
// independently of lib/transport. It is the peer of Rocinante hosts in the simulation (docs/robustness.md). The host
// has one port, static neighbors, registered memory, a bounded receive backlog that it processes at a limited rate, and
// a bounded transmit queue. Its queue pairs are LinuxQueuePair.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/poller.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

class LinuxQueuePair;

struct MemoryKeys {
  uint32_t local = 0, remote = 0;
};

struct LinuxHostConfig {
  IpAddress address;
  uint16_t vlan = 0;     // 0: untagged
  uint64_t seed = 1;     // of the keys
  Nanos packet_time{0};  // between the processing of two received frames
  // Nothing is lost, reordered or duplicated. Then an old ACK within the response to a READ fails the connection as in
  // Linux (linux_queue_pair.hpp).
  bool in_order = false;
  size_t backlog = 1000;  // received frames that wait; further ones are dropped (net.core.netdev_max_backlog)
};

class LinuxHost final : public Poller {
 public:
  static constexpr Nanos kTick = 4ms;             // jiffy of a kernel with HZ=250
  static constexpr size_t kTransmitQueue = 1000;  // frames (txqueuelen); further ones are dropped

  // `complain` receives a sentence about a packet that makes Linux fail a connection.
  LinuxHost(Port& port, std::shared_ptr<MbufPool> pool, const LinuxHostConfig& config,
            std::function<void(const std::string&)> complain);
  ~LinuxHost() override;

  void add_neighbor(const IpAddress& address, const MacAddress& mac) { neighbors_[address] = mac; }
  MemoryKeys register_memory(void* address, size_t length, int access);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return "linux"; }
  [[nodiscard]] std::map<std::string, uint64_t> counters() const { return counters_; }

  // For queue pairs.
  uint32_t attach(LinuxQueuePair& qp);  // returns its number
  void detach(uint32_t number);
  [[nodiscard]] Nanos now() const { return now_; }
  // First tick at which a timer of `ticks` that is started now expires.
  [[nodiscard]] Nanos after_ticks(int64_t ticks) const { return (now_ / kTick + ticks + 1) * kTick; }
  // Returns the memory for a remote access, or null if the key, the range or the access right is wrong.
  [[nodiscard]] uint8_t* remote_memory(MemoryKey key, uint64_t address, uint64_t length, int access) const;
  // Completes the headers below the BTH, and queues the packet. `owner`: number of the queue pair.
  void transmit(Packet packet, const IpAddress& to, uint32_t owner);
  [[nodiscard]] bool transmit_queue_full() const { return transmit_queue_.size() >= kTransmitQueue; }
  void count(const std::string& name) { ++counters_[name]; }
  void complain(const std::string& what) { complain_(what); }
  [[nodiscard]] bool in_order() const { return config_.in_order; }
  [[nodiscard]] const IpAddress& address() const { return config_.address; }

 private:
  struct Region {
    uint8_t* begin = nullptr;
    size_t length = 0;
    int access = 0;
  };
  struct Outgoing {
    rte_mbuf* frame = nullptr;
    uint32_t owner = 0;  // 0: none
  };
  bool pull(Nanos now);
  bool push(Nanos now);
  void receive(const ByteVector& frame);
  void answer_address_resolution(const ByteVector& frame, const FrameView& view);
  void queue_frame(const ByteVector& frame, uint32_t owner);

  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  LinuxHostConfig config_;
  std::function<void(const std::string&)> complain_;
  Rng rng_;
  Nanos now_{0};
  std::map<IpAddress, MacAddress> neighbors_;
  std::map<uint32_t, Region> regions_;  // by remote key
  std::map<uint32_t, LinuxQueuePair*> queue_pairs_;
  uint32_t next_number_ = 17;
  uint32_t next_region_ = 1;
  std::deque<ByteVector> backlog_;
  Nanos busy_until_{0};
  std::deque<Outgoing> transmit_queue_;
  uint16_t ip_id_ = 0;
  std::map<std::string, uint64_t> counters_;
};

}  // namespace roci::test
