// Selective repeat state of one direction: request packets that the receiver buffers after a gap, and the sender's
// record of packets that the receiver reports as buffered (IRN, SIGCOMM 2018, §3.1). Both are indexed by PSN within a
// negotiated window, a power of two.
#pragma once

#include <rte_mbuf.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/sequence.hpp"
#include "port/port.hpp"

namespace roci {

// Limit of the frames that all queue pairs of a worker buffer together. Such frames are buffers that the port cannot
// use.
struct BufferBudget {
  uint32_t kept = 0;
  uint32_t most = 1024;
};

// Buffers whole frames, each held by a reference (port/port.hpp). Not thread-safe. The slots are allocated once, at the
// first gap: most queue pairs never have one.
class ReorderBuffer {
 public:
  // `window`: packets from the expected PSN on; a power of two.
  ReorderBuffer(uint32_t window, BufferBudget& budget) : window_(window), budget_(budget) {}
  ~ReorderBuffer() { clear(); }
  ReorderBuffer(const ReorderBuffer&) = delete;
  ReorderBuffer& operator=(const ReorderBuffer&) = delete;

  [[nodiscard]] uint32_t window() const { return window_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool has(Psn psn) const {
    return count_ > 0 && at(psn).frame != nullptr && at(psn).psn == psn;
  }
  // False when the budget is used up, there is no memory, the slot is occupied, or the PSN is refused.
  bool insert(Psn psn, rte_mbuf* frame) {
    if (budget_.kept >= budget_.most) return false;
    if (slots_ == nullptr) slots_.reset(new (std::nothrow) Slot[window_]);
    if (slots_ == nullptr) return false;
    Slot& slot = at(psn);
    if (slot.frame != nullptr || (slot.refused && slot.psn == psn)) return false;
    rte_mbuf* const held = hold(frame);
    if (held == nullptr) return false;
    slot = {held, psn, false};
    ++count_;
    ++budget_.kept;
    return true;
  }
  // The buffered frame of this PSN, which must be present.
  [[nodiscard]] const rte_mbuf* get(Psn psn) const { return at(psn).frame; }
  // Frees the frame of this PSN, which must be present. No other one is buffered for the PSN.
  void refuse(Psn psn) {
    Slot& slot = at(psn);
    rte_pktmbuf_free(std::exchange(slot.frame, nullptr));
    slot.refused = true;
    --count_;
    --budget_.kept;
  }
  // Returns the frame of this PSN and its ownership; null when there is none. A frame in the slot from before a jump of
  // the expected PSN is freed.
  rte_mbuf* take(Psn psn) {
    if (count_ == 0) return nullptr;
    Slot& slot = at(psn);
    if (slot.frame == nullptr) return nullptr;
    rte_mbuf* const frame = std::exchange(slot.frame, nullptr);
    --count_;
    --budget_.kept;
    if (slot.psn == psn) return frame;
    rte_pktmbuf_free(frame);
    return nullptr;
  }
  void clear() {
    for (uint32_t i = 0; count_ > 0 && i < window_; ++i) {
      if (slots_[i].frame == nullptr) continue;
      rte_pktmbuf_free(std::exchange(slots_[i].frame, nullptr));
      --count_;
      --budget_.kept;
    }
  }
  // One bit for each of the 64 packets from `from` on.
  [[nodiscard]] uint64_t bitmap(Psn from) const {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64 && i < window(); ++i) bits |= (has(from + i) ? uint64_t{1} : 0) << i;
    return bits;
  }

 private:
  struct Slot {
    rte_mbuf* frame = nullptr;
    Psn psn;
    bool refused = false;  // two different packets with this PSN arrived
  };
  [[nodiscard]] Slot& at(Psn psn) const { return slots_[psn.value() & (window_ - 1)]; }

  std::unique_ptr<Slot[]> slots_;
  uint32_t window_;
  uint32_t count_ = 0;
  BufferBudget& budget_;
};

// Tracks which packets from the oldest unacknowledged one on have arrived at the receiver. The bits are allocated once,
// when the first one is set.
class SackBoard {
 public:
  explicit SackBoard(uint32_t window) : window_(window) {}

  [[nodiscard]] uint32_t window() const { return window_; }
  [[nodiscard]] bool has(Psn psn) const { return count_ > 0 && bits_[index(psn)]; }
  // False when the bit is set already.
  bool set(Psn psn) {
    if (has(psn)) return false;
    if (bits_.empty()) bits_.resize(window_);
    bits_[index(psn)] = true;
    ++count_;
    return true;
  }
  // Clears the bits of acknowledged packets, from `from` up to `to`, for later packets.
  void remove(Psn from, Psn to) {
    const uint32_t distance = psns_between(from, to);
    for (uint32_t i = 0; count_ > 0 && i < distance && i < window(); ++i) {
      if (!bits_[index(from + i)]) continue;
      bits_[index(from + i)] = false;
      --count_;
    }
  }
  void clear() {
    if (count_ > 0) bits_.assign(bits_.size(), false);
    count_ = 0;
  }

 private:
  [[nodiscard]] size_t index(Psn psn) const { return psn.value() & (window_ - 1); }
  std::vector<bool> bits_;
  uint32_t window_;
  uint32_t count_ = 0;
};

}  // namespace roci
