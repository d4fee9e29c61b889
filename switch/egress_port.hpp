// The frames that wait to leave by one port: a queue for each traffic class, up to a number of bytes and frames over all,
// and the line behind them, which sends no faster than its rate and only classes that the neighbour has not paused.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <vector>

#include "base/growing_ring.hpp"
#include "base/line_clock.hpp"
#include "port/port.hpp"
#include "switch/aqm.hpp"
#include "switch/buffer.hpp"
#include "switch/counters.hpp"
#include "switch/int_responder.hpp"
#include "switch/packet.hpp"
#include "switch/port_set.hpp"
#include "switch/scheduler.hpp"
#include "switch/telemetry.hpp"

namespace roci {

// Owned by the switch's thread. A frame starts at the latest of its arrival, the end of the one before it and the end of
// its class's pause, and occupies the line for its bytes and kEthernetLineOverhead. When the port is polled too late, the
// frames that should have gone meanwhile go at once (up to kLongestCatchUp of them), so the rate holds on average under a
// real clock; a virtual runner polls at the exact time. The frame that is on the line is not in its queue any more.
class EgressPort {
 public:
  static constexpr Nanos kLongestCatchUp = 100us;

  struct Config {
    BitsPerSec rate{0};
    Bytes limit{0};
    uint32_t frame_limit = 0;
    ClassConfigs classes;
    PauseWatchdogConfig watchdog;
    TelemetryRole role = TelemetryRole::kTransit;
    uint16_t index = 0;  // of the port in its switch
    uint64_t seed = 0;
  };
  // What the ports of a switch share; outlives them. The pool gives copies of frames that must be changed and are not
  // this switch's alone.
  struct Surroundings {
    SwitchBuffer& buffer;
    Telemetry& telemetry;
    IntResponder& responder;
    rte_mempool* pool;
    PortSet&
        busy;  // ports with something to send: a port puts itself in; who drains it takes it out when it is_idle()
  };
  EgressPort(const Config& config, const Surroundings& surroundings, SwitchPortCounters& counters);
  ~EgressPort();
  EgressPort(const EgressPort&) = delete;
  EgressPort& operator=(const EgressPort&) = delete;

  // Whether one more frame of `bytes` would still be within the limits of the port.
  [[nodiscard]] bool has_room(uint32_t bytes) const {
    return bytes_ + bytes <= limit_ && frames_ < frame_limit_;
  }
  [[nodiscard]] uint64_t queue(uint8_t traffic_class) const { return classes_[traffic_class].bytes; }
  [[nodiscard]] BitsPerSec rate() const { return line_.rate(); }
  // All that has been put on the line.
  [[nodiscard]] uint64_t line_bytes() const { return line_bytes_; }
  // What the class's AQM says to a frame that comes now.
  AqmVerdict ask(const SwitchPacket& packet, Nanos now) {
    return classes_[packet.traffic_class].aqm.on_arrival(queue(packet.traffic_class), packet.ecn, now);
  }
  // Takes the frame over, for the class and from the port that `packet` names. The caller has asked.
  void push(rte_mbuf* frame, const SwitchPacket& packet, Nanos now);
  // MAC control frames: before everything else, whatever is paused, outside all limits.
  void push_control(rte_mbuf* frame) {
    control_.push(frame);
    busy_.insert(index_);
  }

  // Sends what is due, a burst at most, as far as the port takes it, and shows who reads the counters how long the queues
  // are. Returns whether anything went.
  bool drain(Port& port, Nanos now) { return is_idle() ? false : send(port, now); }
  [[nodiscard]] bool is_idle() const {
    return staged_count_ == 0 && occupied_ == 0 && control_.empty() && unpublished_ == 0;
  }
  // When the next frame may start; kNever when none waits.
  [[nodiscard]] Nanos next_start() const;

  // The neighbour wants nothing of the class before `until`; what is over by then means: go on.
  void pause(uint8_t traffic_class, Nanos until, Nanos now);

  // New curves for all classes; nothing that waits is touched.
  void configure(const ClassConfigs& classes);

 private:
  struct Waiting {
    rte_mbuf* frame = nullptr;
    Nanos since{0};
    // As in SwitchPacket, in its order: the compiler copies them at once.
    uint16_t ingress = kNoPort;
    uint16_t vlan = 0;
    uint8_t traffic_class = 0;
    Ecn ecn = Ecn::kNotEct;
    bool begins_telemetry = false;
    bool routed = false;
  };
  static_assert(sizeof(Waiting) == 24);
  // A frame that is on the line and that the port has not taken yet.
  struct Staged {
    uint32_t queued_bytes = 0;  // as it was in its queue
    uint32_t bytes = 0;         // as it leaves
    uint8_t traffic_class = 0;
  };
  // What has left the queues and the buffer has not been told yet: of one class, from one port.
  struct Released {
    uint64_t bytes = 0;
    uint16_t ingress = kNoPort;
    uint8_t traffic_class = 0;
  };
  struct Turn {
    uint8_t traffic_class = 0;
    Nanos start{0};
  };
  struct Class {
    Class(const AqmConfig& config, BitsPerSec rate, uint64_t seed) : aqm(config, rate, seed) {}

    GrowingRing<Waiting> waiting;
    uint64_t bytes = 0, peak = 0;
    PauseState pause;
    Aqm aqm;
  };
  static constexpr size_t kBurst = 128;
  static constexpr uint8_t kControl = kTrafficClasses;  // instead of a class

  bool send(Port& port, Nanos now);
  [[nodiscard]] Nanos may_start(const Class& c) const;
  void stage(Nanos now, uint16_t mtu);
  Turn share_line(Nanos free, Nanos now);
  void stage_control(Nanos now);
  void stage_one(uint8_t traffic_class, Nanos start, uint16_t mtu);
  rte_mbuf* mark(rte_mbuf* frame, uint8_t traffic_class);
  rte_mbuf* stamp(rte_mbuf* frame, const Waiting& leaving, Nanos start, uint16_t mtu);
  void put_on_line(rte_mbuf* frame, const Staged& staged, Nanos start);
  void release(uint16_t ingress, uint8_t traffic_class, uint32_t bytes);
  void tell_buffer();
  void leave(uint32_t frames, uint64_t queued_bytes);
  void count_sent(uint16_t taken);
  void remove_sent(uint16_t taken);
  void publish();
  void count_pause(uint8_t traffic_class, Nanos before, Nanos until, Nanos now);

  LineClock line_;
  uint64_t limit_;
  uint32_t frame_limit_;
  PauseWatchdogConfig watchdog_;
  const TelemetryRole role_;
  const uint16_t index_;
  SwitchBuffer& buffer_;
  Telemetry& telemetry_;
  IntResponder& responder_;
  rte_mempool* pool_;
  PortSet& busy_;
  SwitchPortCounters& counters_;

  std::vector<Class> classes_;
  uint8_t occupied_ = 0;  // a bit for each class with something in its queue
  Scheduler scheduler_;
  GrowingRing<rte_mbuf*> control_;
  uint64_t bytes_ = 0;  // in the queues and staged, without control frames
  uint64_t peak_ = 0;
  uint32_t frames_ = 0;      // the same as bytes_
  uint8_t unpublished_ = 0;  // a bit for each class whose queue is not what its counters say

  Released released_;
  uint64_t line_bytes_ = 0;  // that have been put on the line

  std::array<rte_mbuf*, kBurst> staged_{};
  std::array<Staged, kBurst> staged_as_{};
  size_t staged_count_ = 0;
};

}  // namespace roci
