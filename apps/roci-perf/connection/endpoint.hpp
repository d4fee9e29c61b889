// The queue pairs, completion queue and memory of one side, for one message size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "roci-perf/options/options.hpp"
#include "roci/device.hpp"

namespace roci::perf {

// The contents of a wr_id: whether the request is a receive, its queue pair, and its number on that queue pair.
struct RequestId {
  bool receive = false;
  uint32_t queue_pair = 0;
  uint64_t number = 0;

  [[nodiscard]] uint64_t encode() const {
    return uint64_t{receive} << 63 | uint64_t{queue_pair} << kNumberBits | (number & kNumberMask);
  }
  static RequestId decode(uint64_t id) {
    return {(id >> 63) != 0, static_cast<uint32_t>(id >> kNumberBits) & kQueuePairMask, id & kNumberMask};
  }
  static constexpr unsigned kNumberBits = 46;
  static constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;
  static constexpr uint32_t kQueuePairMask = (1U << (63 - kNumberBits)) - 1;
  static_assert(kMaxQueuePairs <= kQueuePairMask + 1);
};

// Anonymous zeroed memory, unmapped by the destructor.
class Buffer {
 public:
  static Result<std::unique_ptr<Buffer>> create(uint64_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  Buffer(uint8_t* data, uint64_t size) : data_(data), size_(size) {}
  uint8_t* data_;
  uint64_t size_;
};

// The GID index given by -x; otherwise that of the first configured address, or the only one.
int chosen_gid_index(const Device& device, const Options& options);
// The path MTU in bytes for `wanted` (0: the maximum) on this device. The error for a too large value states the
// maximum.
Result<uint32_t> usable_mtu(const Device& device, uint32_t wanted);

class Endpoint {
 public:
  // Creates the queue pairs in state INIT. `parameters` are the negotiated ones, for messages of `size` bytes.
  static Result<std::unique_ptr<Endpoint>> create(Device& device, const Options& options,
                                                  const Parameters& parameters, uint64_t size);
  // Records the statistics of the queue pairs for `roci-run --stats`.
  ~Endpoint();

  // The addresses that the peer requires, one per queue pair.
  [[nodiscard]] std::vector<QueuePairAddress> addresses() const;
  // Changes the queue pairs to RTS. The peer's MAC address may still be unresolved.
  Status connect(std::vector<QueuePairAddress> peers, uint32_t mtu);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(queue_pairs_.size()); }
  [[nodiscard]] QueuePair& queue_pair(uint32_t index) { return *queue_pairs_[index]; }
  [[nodiscard]] CompletionQueue& completions() { return *completions_; }
  [[nodiscard]] const QueuePairAddress& peer(uint32_t index) const { return peers_[index]; }
  [[nodiscard]] uint32_t lkey() const { return region_->lkey(); }
  [[nodiscard]] bool inlines() const { return inlines_; }  // messages are copied when posted

  // The bytes of message `number`: out() is sent, or read by the peer; in() is for received data.
  [[nodiscard]] std::span<uint8_t> out(uint32_t queue_pair, uint64_t number) const;
  [[nodiscard]] std::span<uint8_t> in(uint32_t queue_pair, uint64_t number) const;

  // Posts receive number `number` of a queue pair with its slot.
  Status post_receive(uint32_t queue_pair, uint64_t number);

 private:
  Endpoint(Device& device, const Options& options, const Layout& layout)
      : device_(device), options_(options), layout_(layout) {}
  Status make_queue_pairs(Device& device, const Options& options, const Parameters& parameters);

  Device& device_;
  const Options& options_;
  Layout layout_;
  Operation operation_ = Operation::kWrite;
  int gid_index_ = 0;
  Gid gid_;
  uint8_t reads_ = 1;  // outstanding READs per direction
  bool inlines_ = false;
  std::vector<uint32_t> psns_;
  std::vector<QueuePairAddress> peers_;
  // Members are destroyed in reverse order: queue pairs before the objects that they use.
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> completions_;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs_;
};

}  // namespace roci::perf
