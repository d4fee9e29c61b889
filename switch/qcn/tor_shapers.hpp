// Shapers between switches (L3QCN 6): a switch with attached hosts limits the traffic to the networks of another
// switch, in one class, to a rate. Self-defined CNMs about these flows control the shaper's reaction point and are not
// forwarded to hosts. Waiting frames form a queue like that of a port: it marks, drops, and notifies the attached
// hosts.
//
//   forward -> shaper -> admit -> queue                 one reaction point for each (prefix, class)
//                 ^
//                 +--- CNM for a flow to the prefix
//
// With several workers, each has its own shapers for the traffic of its egress ports. All workers receive each CNM.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/congestion_point.hpp"
#include "base/containers/growing_ring.hpp"
#include "base/time/line_clock.hpp"
#include "port/port.hpp"
#include "switch/forwarding/route_table.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/qcn/reaction_point.hpp"
#include "switch/qos/aqm.hpp"
#include "switch/qos/buffer.hpp"
#include "switch/switch_config.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {

// Counters of a shaper, summed up over the workers of a switch.
struct ShaperCounts {
  uint64_t rate = 0;      // current, b/s; 0: no limit
  uint32_t limiting = 0;  // number of workers that limit
  uint64_t queue_bytes = 0;
  uint64_t queue_peak_bytes = 0;  // maximum of the workers
  uint64_t held = 0;              // frames that had to wait
  uint64_t marked = 0;
  uint64_t dropped = 0;
  uint64_t notices = 0;  // CNMs for this shaper
};

// Owned by one switch worker; add_counts() may be called by any thread.
class TorShapers {
 public:
  // `workers`: number of workers of the switch, which share the traffic. Keeps a reference to the buffer.
  TorShapers(const SwitchConfig& config, SwitchBuffer& buffer, uint32_t workers, uint64_t seed);
  ~TorShapers();
  TorShapers(const TorShapers&) = delete;
  TorShapers& operator=(const TorShapers&) = delete;
  // Must be called first. `config` is that of the constructor.
  Status open(const SwitchConfig& config);

  // Bitmap of the classes that have a shaper.
  [[nodiscard]] uint8_t classes() const { return classes_; }
  [[nodiscard]] size_t size() const { return shapers_.size(); }
  static constexpr size_t kNone = SIZE_MAX;
  // Shaper of an IP packet; kNone if it has none.
  [[nodiscard]] size_t find(const SwitchPacket& packet) const;

  // Decision for a frame of `length` at a shaper.
  struct RateRequest {
    bool waits = false;  // if false: passes, and has been counted against the rate
    DropReason refused = DropReason::kNone;
    bool mark = false;
  };
  RateRequest request_rate(size_t shaper, const SwitchPacket& packet, uint32_t length, Nanos now);
  // Stores a frame that waits. Returns the feedback, if it was sampled and the queue is congested.
  std::optional<QcnFeedback> hold(size_t shaper, const SwitchPacket& packet, uint16_t egress);

  // Removes the next frame that may be sent, if any. The shaper no longer accounts for it.
  struct Released {
    SwitchPacket packet;
    uint16_t egress = 0;
    bool mark = false;  // to be marked on departure
  };
  bool release(Nanos now, Released& out);
  [[nodiscard]] Nanos next_deadline() const;

  // Processes a CNM. Returns false if it is not for a shaper of this switch.
  bool take(const L3CnmView& view, Nanos now);

  // Number of the congestion point in CNMs. Numbers of ports are lower.
  static uint16_t point_number(size_t shaper) { return static_cast<uint16_t>(0x8000U + shaper); }
  // Adds the counters. A worker that does not limit adds the shaper's configured rate.
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
    // Arrivals in windows of kWindow: the current and the last one.
    uint64_t window_bytes = 0, last_window_bytes = 0;
    Nanos window{0};

    using Counter = std::atomic<uint64_t>;
    Counter rate_now{0}, queue_bytes{0}, queue_peak_bytes{0}, held{0}, marked{0}, dropped{0}, notices{0};
  };
  static constexpr Nanos kWindow = 1ms;
  // Time without arrivals after which the worker has no traffic for the shaper. Longer than the delay of a CNM.
  static constexpr Nanos kIdle = 100ms;

  [[nodiscard]] size_t find(const IpAddress& destination, uint8_t traffic_class) const;
  [[nodiscard]] uint8_t class_of(const Cnm& cnm) const;

  ClassifierConfig classifier_;
  SwitchBuffer& buffer_;
  int64_t workers_;
  uint8_t classes_ = 0;
  RouteTable prefixes_;
  // By prefix number: the shaper, or kNotFound.
  std::vector<std::array<uint16_t, kTrafficClasses>> by_class_;
  std::vector<std::unique_ptr<Shaper>> shapers_;
  size_t next_ = 0;     // next shaper to release from
  size_t waiting_ = 0;  // frames in all shapers
};

}  // namespace roci
