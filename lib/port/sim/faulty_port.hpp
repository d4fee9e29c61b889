// A port with fault injection, around another port: drops, corrupts, duplicates, reorders and delays received frames at
// random, or is down. A seed makes the faults reproducible. For measurements and lab tests on real ports; a simulated
// link (sim_link.hpp) has faults of its own.
//
//   receive   port -> ( down? lost? corrupted? duplicated? late? ) -> [ delay ] -> rx_burst
//   send      tx_burst -> ( down? ) -> port
//
// All faults except `down` apply to received frames only; a faulty port at each end affects both directions. A port
// that is down transfers no frames in either direction, rx_burst() returns none and link_up() is false; frames that are
// already delayed still arrive. Corruption flips 1 to 4 bits after the Ethernet header, as if the Ethernet FCS had not
// detected the error. A duplicate directly precedes its frame. A late frame is delivered after up to kMaxReorderDistance
// frames that arrived after it, or after kMaxWait. Only one frame is late at a time.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/containers/growing_ring.hpp"
#include "base/rng.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"

namespace roci {

struct PortFaults {
  double loss = 0;  // probability per frame, 0 to 1; also the next three
  double corruption = 0;
  double duplication = 0;
  double reordering = 0;
  Nanos delay{0};  // of every frame, up to kMaxFaultDelay; frames keep their order
  bool down = false;

  friend bool operator==(const PortFaults&, const PortFaults&) = default;
};
inline constexpr Nanos kMaxFaultDelay = 1s;

// Written by the port's thread, readable from any thread.
struct PortFaultCounters {
  using Counter = std::atomic<uint64_t>;
  Counter lost{0};
  Counter corrupted{0};
  Counter duplicated{0};
  Counter reordered{0};
  Counter delayed{0};
  Counter delay_full{0};  // dropped because FaultyPort::kMaxHeld frames were delayed
  // Frames that were dropped for lack of a buffer for a corrupted copy, or duplicates that were not made.
  Counter no_buffer{0};
  Counter down_rx{0};  // received while down
  Counter down_tx{0};  // sent while down
};

// A sequence of independent events; each happens with the same probability. The gaps between events that
// happen are distributed geometrically, so only these events need a random number.
class RareEvent {
 public:
  RareEvent(double probability, uint64_t seed) : rng_(seed) { set(probability); }
  void set(double probability);

  // Number of next events that do not happen.
  [[nodiscard]] uint64_t gap() const { return gap_; }
  // Skips `count` events, at most gap(), that do not happen.
  void pass(uint64_t count) { gap_ -= count; }
  // Whether the next event happens.
  bool happens() {
    if (gap_ > 0) {
      --gap_;
      return false;
    }
    gap_ = draw();
    return true;
  }

 private:
  [[nodiscard]] uint64_t draw();

  Rng rng_;
  double probability_ = -1;  // not set yet
  uint64_t gap_ = 0;
};

// A port with one queue, because the queues of the wrapped port would share
// the generators. Owned by the thread that uses the port.
class FaultyPort final : public Port {
 public:
  // Maximum number of delayed frames; further frames are dropped.
  static constexpr size_t kMaxHeld = 4096;
  static constexpr unsigned kMaxReorderDistance = 4;
  static constexpr Nanos kMaxWait = 100us;

  // `copies` provides buffers for duplicates, and for corrupting frames whose memory is shared. Without it, shared
  // frames are dropped instead of corrupted, and frames are not duplicated.
  FaultyPort(std::unique_ptr<Port> port, const PortFaults& faults, uint64_t seed,
             std::shared_ptr<MbufPool> copies = nullptr);
  ~FaultyPort() override;

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  [[nodiscard]] Nanos next_arrival() const override;
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_->capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_->mac(); }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }
  [[nodiscard]] PortStats stats() const override { return port_->stats(); }
  [[nodiscard]] bool link_up() const override {
    return !down_.load(std::memory_order_relaxed) && port_->link_up();
  }
  [[nodiscard]] PortWakeup* wakeup() override { return port_->wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return port_->peers(); }
  [[nodiscard]] std::vector<Detail> details() const override { return port_->details(); }

  // Applies from the next frame on. Called by the port's thread.
  void set_faults(const PortFaults& faults);
  // Any thread.
  [[nodiscard]] PortFaults faults() const;
  [[nodiscard]] const PortFaultCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kBurst = 32;
  static constexpr unsigned kMaxBursts = 32;  // limit of one call while frames are delayed or lost

  struct Held {
    Nanos due{0};
    rte_mbuf* frame = nullptr;
  };
  // The frame that other frames overtake.
  struct Late {
    rte_mbuf* frame = nullptr;
    unsigned frames_to_pass = 0;  // frames that are still to overtake it
    Nanos until{0};
  };

  uint16_t corrupt(std::span<rte_mbuf*> frames);
  void hold(Nanos now);
  void rearrange(rte_mbuf* frame, Nanos now);
  void put(rte_mbuf* frame, Nanos now);

  std::unique_ptr<Port> port_;
  std::shared_ptr<MbufPool> copies_;
  RareEvent loss_, corruption_, duplication_, reordering_;
  Rng bits_, reorder_rng_;
  bool rearranges_ = false;
  Late late_;
  Nanos delay_{0};
  GrowingRing<Held> held_;
  // Copies of the settings for faults(), readable from any thread.
  std::atomic<double> published_loss_{0}, published_corruption_{0}, published_duplication_{0},
      published_reordering_{0};
  std::atomic<int64_t> published_delay_{0};
  std::atomic<bool> down_{false};
  PortFaultCounters counters_;
};

}  // namespace roci
