// The flows of a host that congestion notification messages are about: each queue pair that sends has a number, which its
// packets carry as their CN-TAG (802.1Q calls it flow identifier, L3QCN RPID), and is found by it, or by what a sampled
// packet of it says where there is no CN-TAG: addresses, UDP source port and the queue pair number at the other end.
//
// There are 65,535 numbers. One is given away again as late as possible, so that a message about a queue pair that is gone
// meets nobody. Queue pairs beyond that are not told.
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
#include "wire/address.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// What packets of a connected queue pair have in common.
struct SentFlow {
  IpAddress source, destination;
  Qpn remote_qp;
  uint16_t udp_source_port = 0;
};

// Whether packets on this way are of a priority that is told.
inline bool is_notified(const CongestionConfig& config, const RocePath& path) {
  const unsigned priority = config.trust_pcp ? path.priority : path.traffic_class >> 5;
  return (config.priorities >> priority & 1U) != 0;
}

// Of a host. Entering and leaving may be done by any thread, a record belongs to the worker of its queue pair, and find()
// is for all workers at any time: what it finds while its queue pair leaves, the worker does not find any more.
class CongestionFlows {
 public:
  static constexpr uint32_t kMost = 65535;

  // `first`: the number that is given away first.
  CongestionFlows(bool enabled, uint32_t first, uint64_t salt);
  CongestionFlows(const CongestionFlows&) = delete;
  CongestionFlows& operator=(const CongestionFlows&) = delete;
  ~CongestionFlows();

  [[nodiscard]] bool enabled() const { return !buckets_.empty(); }
  // The number of the queue pair from now on, with records as new; 0 when there is none left. Without `sent` it is found by
  // its number alone.
  uint16_t enter(Qpn qp, const SentFlow* sent);
  void leave(uint16_t flow);

  [[nodiscard]] std::optional<Qpn> find(uint16_t flow) const;
  [[nodiscard]] std::optional<Qpn> find(const SentFlow& sent) const;

  // Of a flow that has entered.
  [[nodiscard]] CongestionRecord& requests(uint16_t flow) { return slot(flow)->requests; }
  [[nodiscard]] CongestionRecord& responses(uint16_t flow) { return slot(flow)->responses; }
  [[nodiscard]] uint32_t size() const;

 private:
  static constexpr uint32_t kChunk = 256;
  static constexpr uint32_t kLongestChain = 64;
  struct Slot {
    std::atomic<uint32_t> qp{0};    // 0: nobody's
    std::atomic<uint16_t> next{0};  // in its bucket; 0: the last
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
  mutable std::vector<std::atomic<uint16_t>> buckets_;  // first of each chain; none when it is not enabled
  std::array<std::atomic<Chunk*>, 65536 / kChunk> chunks_{};  // made when first needed

  mutable std::mutex changes_;
  uint32_t next_fresh_;  // number that nobody has had
  uint32_t fresh_left_;
  std::deque<uint16_t> free_;  // given back, the longest ago first
};

}  // namespace roci
