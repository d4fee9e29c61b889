// Egress port: one queue per traffic class, a limit in bytes and frames for all of them, and the line. The line sends
// no faster than its rate, and no classes that the neighbor has paused.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <vector>

#include "base/containers/growing_ring.hpp"
#include "base/time/line_clock.hpp"
#include "port/port.hpp"
#include "switch/pipeline/counters.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/pipeline/port_set.hpp"
#include "switch/qos/aqm.hpp"
#include "switch/qos/buffer.hpp"
#include "switch/qos/scheduler.hpp"
#include "switch/telemetry/int_responder.hpp"
#include "switch/telemetry/telemetry.hpp"

namespace roci {

// Owned by one switch worker. A frame starts at the latest of its arrival, the end of the preceding frame, and the end
// of its class's pause. It occupies the line for its bytes and kEthernetLineOverhead. If the port is polled late,
// overdue frames are sent at once, for at most kMaxCatchUp, so that the average rate is kept in real time. A
// virtual runner polls at the exact time. A frame on the line is no longer in its queue.
//
// All frames are discarded if the port accepts none and its link is down, or accepts none for kMaxTransitDelay (802.1Q
// 8.6.5, 8.6.7). The queue of a peer that has exited thus occupies no buffer and pauses no sender.
class EgressPort {
 public:
  static constexpr Nanos kMaxCatchUp = 100us;
  // Interval between checks of the link while the port accepts no frame.
  static constexpr Nanos kLinkCheck = 10ms;
  static constexpr Nanos kMaxTransitDelay = 1s;

  struct Config {
    BitsPerSec rate{0};
    Bytes limit{0};
    uint32_t frame_limit = 0;
    ClassConfigs classes;
    PauseWatchdogConfig watchdog;
    TelemetryRole role = TelemetryRole::kTransit;
    uint16_t index = 0;  // number of the port in its switch
    uint64_t seed = 0;
  };
  // Objects that the ports of a switch share; they must outlive the ports. The pool provides copies of shared frames
  // that must be changed.
  struct Context {
    SwitchBuffer& buffer;
    Telemetry& telemetry;
    IntResponder& responder;
    rte_mempool* pool;
    // Ports with frames to send. A port inserts itself; the caller of drain() removes it when is_idle().
    PortSet& busy;
  };
  EgressPort(const Config& config, const Context& context, SwitchPortCounters& counters);
  ~EgressPort();
  EgressPort(const EgressPort&) = delete;
  EgressPort& operator=(const EgressPort&) = delete;

  // Whether one more frame of `bytes` is within the limits of the port. Only the limit of frames, has_frame_space(),
  // applies to lossless classes.
  [[nodiscard]] bool has_space(uint32_t bytes) const { return bytes_ + bytes <= limit_ && has_frame_space(); }
  [[nodiscard]] bool has_frame_space() const { return frames_ < frame_limit_; }
  [[nodiscard]] uint64_t queue(uint8_t traffic_class) const { return classes_[traffic_class].bytes; }
  [[nodiscard]] BitsPerSec rate() const { return line_.rate(); }
  // Frame bytes put on the line so far.
  [[nodiscard]] uint64_t line_bytes() const { return line_bytes_; }
  // AQM verdict of the class for a frame that arrives now.
  AqmVerdict aqm_verdict(const SwitchPacket& packet, Nanos now) {
    return classes_[packet.traffic_class].aqm.on_arrival(queue(packet.traffic_class), packet.ecn, now);
  }
  // Takes ownership of the frame and queues it, with class and ingress port of `packet`. The caller has called
  // has_space() and aqm_verdict().
  void push(rte_mbuf* frame, const SwitchPacket& packet, Nanos now);
  // Queues a MAC control frame: sent before all other frames, also when classes are paused. It replaces a control frame
  // that has not been sent: each determines the pause of its classes alone.
  void set_control(rte_mbuf* frame) {
    if (control_ != nullptr) rte_pktmbuf_free(control_);
    control_ = frame;
    busy_.insert(index_);
  }
  [[nodiscard]] bool has_control() const { return control_ != nullptr; }

  // Sends at most one burst of due frames, as many as the port accepts, and updates the queue counters. Returns whether
  // any frame was sent.
  bool drain(Port& port, Nanos now) { return is_idle() ? false : send(port, now); }
  [[nodiscard]] bool is_idle() const {
    return staged_count_ == 0 && occupied_ == 0 && control_ == nullptr && unpublished_ == 0;
  }
  // Earliest start of the next frame; kNever if no frame waits.
  [[nodiscard]] Nanos next_start() const;

  // Handles a PFC frame: the class is paused until `until`. A time that is not after `now` resumes it.
  void pause(uint8_t traffic_class, Nanos until, Nanos now);

  // Applies new AQM curves to all classes. Queued frames are not changed.
  void configure(const ClassConfigs& classes);

 private:
  struct Waiting {
    rte_mbuf* frame = nullptr;
    Nanos since{0};
    // From SwitchPacket, in the same order: the compiler copies them together.
    uint16_t ingress = kNoPort;
    uint16_t vlan = 0;
    uint8_t traffic_class = 0;
    Ecn ecn = Ecn::kNotEct;
    bool starts_telemetry = false;
    bool routed = false;
  };
  static_assert(sizeof(Waiting) == 24);
  // Frame on the line that the port has not accepted yet.
  struct Staged {
    uint32_t queued_bytes = 0;  // length in its queue
    uint32_t bytes = 0;         // length as sent
    uint8_t traffic_class = 0;
  };
  // Bytes that have left the queues and are not released in the buffer yet: of one class and ingress port.
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

    GrowingRing<Waiting> waiting{4};
    uint64_t bytes = 0, peak = 0;
    PauseState pause;
    // First frame in the queue at the last PFC frame, null if none waited. If it is still the first, it waits since.
    const rte_mbuf* stopped = nullptr;
    Nanos stopped_since{0};  // its arrival: buffers are reused
    Aqm aqm;
  };
  static constexpr size_t kBurst = 128;
  static constexpr uint8_t kControl = kTrafficClasses;  // in place of a class

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
  void flush_released();
  void leave(uint32_t frames, uint64_t queued_bytes);
  void count_sent(uint16_t taken);
  void remove_sent(uint16_t taken);
  void publish();
  bool discards_refused(const Port& port, Nanos now);
  void discard_all();
  [[nodiscard]] static bool is_starved(const Class& c);
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
  uint8_t occupied_ = 0;  // bitmap of classes with queued frames
  Scheduler scheduler_;
  rte_mbuf* control_ = nullptr;
  uint64_t bytes_ = 0;  // in the queues and staged, without control frames
  uint64_t peak_ = 0;
  uint32_t frames_ = 0;      // counted like bytes_
  uint8_t unpublished_ = 0;  // bitmap of classes whose queue counters are outdated

  Released released_;
  uint64_t line_bytes_ = 0;  // put on the line so far

  std::array<rte_mbuf*, kBurst> staged_{};
  std::array<Staged, kBurst> staged_as_{};
  size_t staged_count_ = 0;
  Nanos refused_since_ = kNever;  // time of the first refusal without an accepted frame since
  Nanos link_checked_{0};
};

}  // namespace roci
