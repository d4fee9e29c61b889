// A wire with faults: a port around another one that loses, spoils, doubles, swaps and delays what arrives, by chance and
// replayable by a seed, or is down. For real ports, to measure with and to try things in a lab; a simulated link (sim_link.hpp) has
// faults of its own.
//
//   what arrives   port -> ( down? lost? spoilt? doubled? late? ) -> [ delay ] -> rx_burst
//   what leaves    tx_burst -> ( down? ) -> port
//
// All but the last are of what arrives alone; with one at each end they are of both directions. A wire that is
// down carries nothing in either direction, and both rx_burst() and link_up() say so; what was on its way arrives.
// Corruption flips 1 to 4 bits behind the Ethernet header, as if the line's own checksum had not seen it. A frame that is
// doubled comes twice in a row. One that is late comes after up to kMostOvertaking that arrived behind it, or after
// kLongestWait when fewer do; one is late at a time.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/growing_ring.hpp"
#include "base/rng.hpp"
#include "port/eal.hpp"
#include "port/port.hpp"

namespace roci {

struct PortFaults {
  double loss = 0;        // probability of each frame, 0 to 1
  double corruption = 0;  // the same
  double duplication = 0;
  double reordering = 0;
  Nanos delay{0};  // of every frame, up to kLongestFaultDelay; frames keep their order
  bool down = false;

  friend bool operator==(const PortFaults&, const PortFaults&) = default;
};
inline constexpr Nanos kLongestFaultDelay = 1s;

// Written by the port's thread, readable from any.
struct PortFaultCounters {
  using Counter = std::atomic<uint64_t>;
  Counter lost{0};
  Counter corrupted{0};
  Counter duplicated{0};
  Counter reordered{0};
  Counter delayed{0};
  Counter delay_full{0};  // lost because FaultyPort::kMostHeld frames were on their way
  Counter no_buffer{
      0};              // lost because there was no buffer for the copy that was to be spoilt; or not doubled
  Counter down_rx{0};  // arrived while the wire was down
  Counter down_tx{0};  // were sent while it was down
};

// Of a row of events each happens by chance and independently. Those between two that do are distributed geometrically,
// so one draw for each that happens is enough.
class RareEvent {
 public:
  RareEvent(double probability, uint64_t seed) : rng_(seed) { set(probability); }
  void set(double probability);

  // How many of the next events do not happen.
  [[nodiscard]] uint64_t gap() const { return gap_; }
  // So many, at most gap(), have not happened.
  void pass(uint64_t count) { gap_ -= count; }
  // Whether the next one happens.
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

// One queue: all queues of the port behind it would share the generators. Owned by the thread that uses the port.
class FaultyPort final : public Port {
 public:
  // Frames that are on their way when there is a delay; what arrives beyond that is lost.
  static constexpr size_t kMostHeld = 4096;
  static constexpr unsigned kMostOvertaking = 4;
  static constexpr Nanos kLongestWait = 100us;

  // `copies` gives buffers for copies of frames that are to be spoilt and are not this port's alone, and of those that are
  // doubled; without it the former are lost, and the latter come once.
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

  // From the next frame on; by the port's thread.
  void set_faults(const PortFaults& faults);
  // Any thread.
  [[nodiscard]] PortFaults faults() const;
  [[nodiscard]] const PortFaultCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kBurst = 32;
  static constexpr unsigned kMostBursts = 32;  // at a time, of frames that are held or lost

  struct Held {
    Nanos due{0};
    rte_mbuf* frame = nullptr;
  };
  // The frame that others overtake.
  struct Late {
    rte_mbuf* frame = nullptr;
    unsigned overtaking = 0;  // how many are yet to
    Nanos until{0};
  };

  uint16_t harm(std::span<rte_mbuf*> frames);
  void hold(Nanos now);
  void rearrange(rte_mbuf* frame, Nanos now);
  void put(rte_mbuf* frame, Nanos now);

  std::unique_ptr<Port> port_;
  std::shared_ptr<MbufPool> copies_;
  RareEvent loss_, corruption_, duplication_, reordering_;
  Rng bits_, overtaking_;
  bool rearranges_ = false;
  Late late_;
  Nanos delay_{0};
  GrowingRing<Held> held_;
  // What any thread may ask for.
  std::atomic<double> told_loss_{0}, told_corruption_{0}, told_duplication_{0}, told_reordering_{0};
  std::atomic<int64_t> told_delay_{0};
  std::atomic<bool> down_{false};
  PortFaultCounters counters_;
};

}  // namespace roci
