// Congestion control between switches (L3QCN 6): a switch at which hosts are attached holds what goes to the networks behind
// another switch, in one class, to a rate of its own. Self-defined CNMs about these flows are for its reaction point, and
// no host hears of them. What waits here is a queue like that of a port: it marks, drops and tells the hosts here.
//
//   forward -> shaper -> admit -> queue                 one reaction point for each (prefix, class)
//                 ^
//                 +--- CNM for a flow to the prefix
//
// With several workers each has shapers of its own for what leaves by its ports; every CNM is told to all of them.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/congestion_point.hpp"
#include "base/growing_ring.hpp"
#include "base/line_clock.hpp"
#include "port/port.hpp"
#include "switch/aqm.hpp"
#include "switch/buffer.hpp"
#include "switch/packet.hpp"
#include "switch/reaction_point.hpp"
#include "switch/route_table.hpp"
#include "switch/switch_config.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {

// A shaper's counters, as values: summed up over the workers of a switch.
struct ShaperCounts {
  uint64_t rate = 0;  // b/s now; 0 when nothing is limited
  uint64_t queue_bytes = 0;
  uint64_t queue_peak_bytes = 0;  // of the worker with the longest
  uint64_t held = 0;              // frames that have had to wait
  uint64_t marked = 0;
  uint64_t dropped = 0;
  uint64_t notices = 0;  // CNMs that were for it
};

// Owned by the thread of a worker; counts() may be asked by any.
class TorShapers {
 public:
  // `workers`: of the switch, which share the traffic. Keeps a reference to the buffer.
  TorShapers(const SwitchConfig& config, SwitchBuffer& buffer, uint32_t workers, uint64_t seed);
  ~TorShapers();
  TorShapers(const TorShapers&) = delete;
  TorShapers& operator=(const TorShapers&) = delete;
  // Before anything else. `config` is the one of the constructor.
  Status open(const SwitchConfig& config);

  // The classes that have a shaper, a bit for each.
  [[nodiscard]] uint8_t classes() const { return classes_; }
  [[nodiscard]] size_t size() const { return shapers_.size(); }
  static constexpr size_t kNone = SIZE_MAX;
  // Which one an IP packet goes through; kNone.
  [[nodiscard]] size_t find(const SwitchPacket& packet) const;

  // A frame of `length` has come for a shaper.
  struct Ask {
    bool waits = false;  // else it goes on, and has been counted against the rate
    DropReason refused = DropReason::kNone;
    bool mark = false;
  };
  Ask ask(size_t shaper, const SwitchPacket& packet, uint32_t length, Nanos now);
  // It waits; what it says of the queue, when it has been sampled and there is congestion.
  std::optional<QcnFeedback> hold(size_t shaper, const SwitchPacket& packet, uint16_t egress);

  // The next frame that may go on, if there is one: once the caller has it, it is no business of the shaper's.
  struct Released {
    SwitchPacket packet;
    uint16_t egress = 0;
    bool mark = false;  // on departure
  };
  bool release(Nanos now, Released& out);
  [[nodiscard]] Nanos next_deadline() const;

  // True when a message was for one of them.
  bool take(const L3CnmView& view, Nanos now);

  // The number of the congestion point in CNMs; those of ports are below.
  static uint16_t point_number(size_t shaper) { return static_cast<uint16_t>(0x8000U + shaper); }
  void add_counts(size_t shaper, ShaperCounts& sum) const;

 private:
  struct Held {
    SwitchPacket packet;
    uint16_t egress = 0;
  };
  struct Shaper {
    Shaper(const SwitchShaperConfig& config, uint64_t seed);

    [[nodiscard]] BitsPerSec sending(Nanos now) const;
    void count_arrival(uint32_t bytes, Nanos now);
    void follow_rate();

    uint64_t limit;
    uint32_t frame_limit;
    uint8_t traffic_class;
    BitsPerSec line;
    ReactionPoint reaction;
    LineClock clock;
    Aqm aqm;
    std::optional<CongestionPoint> point;
    GrowingRing<Held> waiting;
    uint64_t bytes = 0;
    // How fast it sends, by windows of kWindow: the one before, and this one so far.
    uint64_t window_bytes = 0, last_window_bytes = 0;
    Nanos window{0};

    using Counter = std::atomic<uint64_t>;
    Counter rate_now{0}, queue_bytes{0}, queue_peak_bytes{0}, held{0}, marked{0}, dropped{0}, notices{0};
  };
  static constexpr Nanos kWindow = 1ms;

  [[nodiscard]] size_t find(const IpAddress& destination, uint8_t traffic_class) const;
  [[nodiscard]] uint8_t class_of(const Cnm& cnm) const;

  ClassifierConfig classifier_;
  SwitchBuffer& buffer_;
  int64_t workers_;
  uint8_t classes_ = 0;
  RouteTable prefixes_;
  std::vector<std::array<uint16_t, kTrafficClasses>>
      by_class_;  // by the prefix's number: the shaper, or kNotFound
  std::vector<std::unique_ptr<Shaper>> shapers_;
  size_t next_ = 0;     // whose turn it is to release
  size_t waiting_ = 0;  // frames in all of them
};

}  // namespace roci
