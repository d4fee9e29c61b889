// Flows of a host to which congestion notification messages refer. Each sending queue pair has a number, which its
// packets carry in their CN-TAG (802.1Q: flow identifier, L3QCN: RPID). A flow is found by its number, or without
// CN-TAG by fields of a sampled packet: IP addresses, UDP source port and destination queue pair.
//
// There are 65,535 numbers. A released number is reused as late as possible, so that a message about a destroyed queue
// pair does not match another one. Further queue pairs get no notifications.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "roci/congestion_config.hpp"
#include "transport/congestion_notice.hpp"
#include "wire/headers/address.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// Fields that all packets of a connected queue pair share.
struct SentFlow {
  IpAddress source, destination;
  Qpn remote_qp;
  uint16_t udp_source_port = 0;
};

// Whether packets of this path have a priority with congestion notification.
inline bool is_notified(const CongestionConfig& config, const RocePath& path) {
  const unsigned priority = config.trust_pcp ? path.priority : path.traffic_class >> 5;
  return (config.priorities >> priority & 1U) != 0;
}

// Flow table of a host. Any thread may call enter() and leave(). A record belongs to the worker
// of its queue pair. All workers may call find() at any time: while a queue pair leaves, find()
// may return it although the worker no longer has it.
class CongestionFlows {
 public:
  static constexpr uint32_t kMax = 65535;

  // `first`: the first number to assign.
  CongestionFlows(bool enabled, uint32_t first, uint64_t salt);
  CongestionFlows(const CongestionFlows&) = delete;
  CongestionFlows& operator=(const CongestionFlows&) = delete;
  ~CongestionFlows();

  [[nodiscard]] bool enabled() const { return !buckets_.empty(); }
  // Assigns a number to the queue pair and resets its records; 0 if no number is free.
  // Without `sent` the queue pair is found only by its number.
  uint16_t enter(Qpn qp, const SentFlow* sent);
  void leave(uint16_t flow);

  [[nodiscard]] std::optional<Qpn> find(uint16_t flow) const;
  [[nodiscard]] std::optional<Qpn> find(const SentFlow& sent) const;

  // `flow` must be assigned.
  [[nodiscard]] CongestionRecord& requests(uint16_t flow) { return slot(flow)->requests; }
  [[nodiscard]] CongestionRecord& responses(uint16_t flow) { return slot(flow)->responses; }
  [[nodiscard]] uint32_t size() const;

 private:
  static constexpr uint32_t kChunk = 256;
  static constexpr uint32_t kMaxChain = 64;
  struct Slot {
    std::atomic<uint32_t> qp{0};    // 0: free
    std::atomic<uint16_t> next{0};  // in its bucket; 0: end of chain
    bool in_bucket = false;
    std::atomic<uint64_t> hash{0};
    CongestionRecord requests, responses;
  };
  using Chunk = std::array<Slot, kChunk>;

  [[nodiscard]] Slot* slot(uint16_t flow) const;
  [[nodiscard]] uint64_t hash_of(const SentFlow& sent) const;
  [[nodiscard]] std::atomic<uint16_t>& bucket(uint64_t hash) const { return buckets_[hash >> 48]; }
  uint16_t take_number();
  void link(uint16_t flow, Slot& of, uint64_t hash);
  void unlink(uint16_t flow, Slot& of);

  const uint64_t salt_;
  mutable std::vector<std::atomic<uint16_t>> buckets_;        // first flow of each chain; empty if disabled
  std::array<std::atomic<Chunk*>, 65536 / kChunk> chunks_{};  // allocated when first needed

  mutable std::mutex changes_;
  uint32_t next_fresh_;  // next number that was never assigned
  uint32_t fresh_left_;
  std::deque<uint16_t> free_;  // released numbers, oldest first
};

}  // namespace roci
