#include "switch/pipeline/egress_port.hpp"

#include <algorithm>
#include <utility>

#include "switch/pipeline/frame_edit.hpp"

namespace roci {

EgressPort::EgressPort(const Config& config, const Context& context, SwitchPortCounters& counters)
    : line_(config.rate),
      limit_(config.limit.value()),
      frame_limit_(config.frame_limit),
      watchdog_(make_watchdog(config.watchdog.detect, config.watchdog.restore)),
      role_(config.role),
      index_(config.index),
      buffer_(context.buffer),
      telemetry_(context.telemetry),
      responder_(context.responder),
      pool_(context.pool),
      busy_(context.busy),
      counters_(counters),
      scheduler_(config.classes) {
  classes_.reserve(kTrafficClasses);
  for (uint8_t c = 0; c < kTrafficClasses; ++c)
    classes_.emplace_back(config.classes[c].aqm, config.rate, config.seed * kTrafficClasses + c);
}

EgressPort::~EgressPort() {
  for (Class& c : classes_) {
    while (!c.waiting.empty()) rte_pktmbuf_free(c.waiting.pop().frame);
  }
  if (control_ != nullptr) rte_pktmbuf_free(control_);
  for (size_t i = 0; i < staged_count_; ++i) rte_pktmbuf_free(staged_[i]);
}

void EgressPort::push(rte_mbuf* frame, const SwitchPacket& packet, Nanos now) {
  Class& c = classes_[packet.traffic_class];
  const uint32_t length = frame->pkt_len;
  Waiting& waiting = c.waiting.add();
  waiting.frame = frame;
  waiting.since = now;
  waiting.ingress = packet.ingress;
  waiting.vlan = packet.vlan;
  waiting.traffic_class = packet.traffic_class;
  waiting.ecn = packet.ecn;
  waiting.starts_telemetry = packet.starts_telemetry;
  waiting.routed = packet.originated;
  c.bytes += length;
  c.peak = std::max(c.peak, c.bytes);
  bytes_ += length;
  peak_ = std::max(peak_, bytes_);
  ++frames_;
  const auto bit = static_cast<uint8_t>(1U << packet.traffic_class);
  occupied_ |= bit;
  unpublished_ |= bit;
  busy_.insert(index_);
  buffer_.take(packet.ingress, packet.traffic_class, length);
}

// Called once per burst: readers need no higher resolution.
void EgressPort::publish() {
  counters_.queue_bytes.store(bytes_, std::memory_order_relaxed);
  counters_.queue_packets.store(frames_, std::memory_order_relaxed);
  counters_.queue_peak_bytes.store(peak_, std::memory_order_relaxed);
  for (unsigned left = unpublished_; left != 0; left &= left - 1) {
    const auto c = static_cast<size_t>(__builtin_ctz(left));
    counters_.classes[c].queue_bytes.store(classes_[c].bytes, std::memory_order_relaxed);
    counters_.classes[c].queue_peak_bytes.store(classes_[c].peak, std::memory_order_relaxed);
  }
  unpublished_ = 0;
}

// Earliest start of the first frame of a class with frames, by its arrival and the pause of the class.
Nanos EgressPort::may_start(const Class& c) const {
  return std::max(c.waiting.front().since, c.pause.resume_time(watchdog_));
}

Nanos EgressPort::next_start() const {
  if (staged_count_ > 0 || control_ != nullptr) return line_.free_at();
  Nanos next = kNever;
  for (unsigned left = occupied_; left != 0; left &= left - 1)
    next = std::min(next, may_start(classes_[static_cast<size_t>(__builtin_ctz(left))]));
  return next == kNever ? kNever : std::max(line_.free_at(), next);
}

void EgressPort::put_on_line(rte_mbuf* frame, const Staged& staged, Nanos start) {
  line_.occupy(start, Bytes{staged.bytes} + kEthernetLineOverhead);
  line_bytes_ += staged.bytes;
  staged_[staged_count_] = frame;
  staged_as_[staged_count_++] = staged;
}

void EgressPort::stage_control(Nanos now) {
  if (control_ == nullptr || line_.free_at() > now) return;
  rte_mbuf* frame = std::exchange(control_, nullptr);
  put_on_line(frame, {.bytes = frame->pkt_len, .traffic_class = kControl}, now);
}

void EgressPort::stage(Nanos now, uint16_t mtu) {
  stage_control(now);
  while (staged_count_ < kBurst && occupied_ != 0) {
    const Nanos free = std::max(line_.free_at(), now - kMaxCatchUp);
    Turn next{static_cast<uint8_t>(__builtin_ctz(occupied_))};
    if ((occupied_ & (occupied_ - 1U)) == 0) {  // usual case: one class has frames
      next.start = std::max(free, may_start(classes_[next.traffic_class]));
    } else {
      next = share_line(free, now);
    }
    if (next.start > now) return;
    stage_one(next.traffic_class, next.start, mtu);
  }
}

// Consecutive frames are often of one ingress port and class: released together. This worker admits no frame meanwhile.
void EgressPort::release(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
  if (ingress != released_.ingress || traffic_class != released_.traffic_class) {
    flush_released();
    released_ = {.ingress = ingress, .traffic_class = traffic_class};
  }
  released_.bytes += bytes;
}

void EgressPort::flush_released() {
  if (released_.bytes == 0) return;
  buffer_.release(released_.ingress, released_.traffic_class, released_.bytes);
  released_.bytes = 0;
}

// Selects the class that sends at the earliest start of any class. If this is after `now`, the scheduler is not
// advanced.
EgressPort::Turn EgressPort::share_line(Nanos free, Nanos now) {
  std::array<Nanos, kTrafficClasses> earliest;
  Nanos first = kNever;
  for (unsigned left = occupied_; left != 0; left &= left - 1) {
    const auto c = static_cast<size_t>(__builtin_ctz(left));
    earliest[c] = may_start(classes_[c]);
    first = std::min(first, earliest[c]);
  }
  const Nanos start = std::max(free, first);
  if (start > now) return {.start = start};
  uint8_t eligible = 0;
  for (unsigned left = occupied_; left != 0; left &= left - 1) {
    const auto c = static_cast<unsigned>(__builtin_ctz(left));
    if (earliest[c] <= start) eligible = static_cast<uint8_t>(eligible | 1U << c);
  }
  const auto on_line = [this](uint8_t c) {
    return classes_[c].waiting.front().frame->pkt_len + kEthernetLineOverhead.value();
  };
  return {scheduler_.pick(eligible, on_line), start};
}

void EgressPort::stage_one(uint8_t traffic_class, Nanos start, uint16_t mtu) {
  Class& c = classes_[traffic_class];
  const Waiting& leaving = c.waiting.drop_front();
  rte_mbuf* frame = leaving.frame;
  const uint32_t queued_bytes = frame->pkt_len;
  c.bytes -= queued_bytes;
  unpublished_ = static_cast<uint8_t>(unpublished_ | 1U << traffic_class);
  if (c.waiting.empty()) {
    occupied_ = static_cast<uint8_t>(occupied_ & ~(1U << traffic_class));
    scheduler_.emptied(traffic_class);
  }
  if (const Nanos until = c.pause.until(); c.pause.break_at(start)) {
    bump(counters_.classes[traffic_class].pause_storms);
    count_pause(traffic_class, until, start, start);
  }
  release(leaving.ingress, traffic_class, queued_bytes);
  if (c.aqm.on_departure(c.bytes, leaving.ecn, start) == AqmVerdict::kMark)
    frame = mark(frame, traffic_class);
  if (frame != nullptr && telemetry_.enabled()) frame = stamp(frame, leaving, start, mtu);
  if (frame == nullptr) return leave(1, queued_bytes);
  put_on_line(frame, {queued_bytes, frame->pkt_len, traffic_class}, start);
}

// Adds telemetry to a frame that has just left its queue. Returns null if the frame was freed (see Telemetry::stamp()).
rte_mbuf* EgressPort::stamp(rte_mbuf* frame, const Waiting& leaving, Nanos start, uint16_t mtu) {
  const uint64_t behind = queue(leaving.traffic_class);
  const Departure departure{.ingress = leaving.ingress,
                            .egress = index_,
                            .traffic_class = leaving.traffic_class,
                            .from_source = leaving.starts_telemetry,
                            .to_sink = ends_telemetry(role_),
                            .routed = leaving.routed,
                            .vlan = leaving.vlan,
                            .arrived = leaving.since,
                            .now = start,
                            .tx_bytes = line_bytes_,
                            .queue_bytes = behind,
                            .rate = line_.rate(),
                            .mtu = mtu};
  if (responder_.is_due(behind)) [[unlikely]]
    responder_.consider(frame, departure, telemetry_.report(departure));
  return telemetry_.stamp(frame, departure, counters_);
}

// Returns null, and frees the frame, if a copy is required and the pool is empty.
rte_mbuf* EgressPort::mark(rte_mbuf* frame, uint8_t traffic_class) {
  frame = mark_frame(frame, pool_);
  bump(frame != nullptr ? counters_.classes[traffic_class].marked
                        : counters_.drops[static_cast<unsigned>(DropReason::kNoBuffer)]);
  return frame;
}

void EgressPort::leave(uint32_t frames, uint64_t queued_bytes) {
  bytes_ -= queued_bytes;
  frames_ -= frames;
}

// Counts the first `taken` staged frames as sent. Consecutive frames of a class are summed up first, since an addition
// to a counter must wait for the preceding store to it.
void EgressPort::count_sent(uint16_t taken) {
  uint64_t all_bytes = 0;
  for (uint16_t i = 0; i < taken;) {
    const uint8_t c = staged_as_[i].traffic_class;
    uint64_t bytes = 0, queued_bytes = 0;
    const uint16_t first = i;
    for (; i < taken && staged_as_[i].traffic_class == c; ++i) {
      bytes += staged_as_[i].bytes;
      queued_bytes += staged_as_[i].queued_bytes;
    }
    all_bytes += bytes;
    if (c == kControl) continue;
    leave(static_cast<uint32_t>(i - first), queued_bytes);
    bump(counters_.classes[c].tx_packets, static_cast<uint64_t>(i - first));
    bump(counters_.classes[c].tx_bytes, bytes);
  }
  bump(counters_.tx_packets, taken);
  bump(counters_.tx_bytes, all_bytes);
}

void EgressPort::remove_sent(uint16_t taken) {
  staged_count_ -= taken;
  std::copy_n(staged_.begin() + taken, staged_count_, staged_.begin());
  std::copy_n(staged_as_.begin() + taken, staged_count_, staged_as_.begin());
}

bool EgressPort::send(Port& port, Nanos now) {
  if (staged_count_ == 0) {
    stage(now, port.capabilities().mtu);
    flush_released();
  }
  const uint16_t taken =
      staged_count_ == 0 ? uint16_t{0} : port.tx_burst({staged_.data(), staged_count_}, now);
  if (taken > 0) {
    count_sent(taken);
    remove_sent(taken);
    refused_since_ = kNever;
  } else if (staged_count_ > 0 && discards_refused(port, now)) {
    discard_all();
  }
  publish();
  return taken > 0;
}

// Called when the port has accepted none of the staged frames.
bool EgressPort::discards_refused(const Port& port, Nanos now) {
  if (refused_since_ == kNever) {
    refused_since_ = link_checked_ = now;
    return false;
  }
  if (now - refused_since_ >= kMaxTransitDelay) return true;
  if (now - link_checked_ < kLinkCheck) return false;
  link_checked_ = now;
  return !port.link_up();
}

void EgressPort::discard_all() {
  uint64_t discarded = 0;
  for (size_t i = 0; i < staged_count_; ++i) {
    rte_pktmbuf_free(staged_[i]);
    if (staged_as_[i].traffic_class == kControl) continue;
    leave(1, staged_as_[i].queued_bytes);
    ++discarded;
  }
  staged_count_ = 0;
  if (control_ != nullptr) rte_pktmbuf_free(std::exchange(control_, nullptr));
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    Class& of = classes_[c];
    if (of.waiting.empty()) continue;
    while (!of.waiting.empty()) {
      const Waiting waiting = of.waiting.pop();
      const uint32_t bytes = waiting.frame->pkt_len;
      release(waiting.ingress, c, bytes);
      leave(1, bytes);
      rte_pktmbuf_free(waiting.frame);
      ++discarded;
    }
    of.bytes = 0;
    unpublished_ = static_cast<uint8_t>(unpublished_ | 1U << c);
    scheduler_.emptied(c);
  }
  flush_released();
  occupied_ = 0;
  refused_since_ = kNever;
  bump(counters_.drops[static_cast<unsigned>(DropReason::kPortRefused)], discarded);
}

void EgressPort::pause(uint8_t traffic_class, Nanos until, Nanos now) {
  Class& of = classes_[traffic_class];
  const Nanos before = of.pause.until();
  const bool starved = is_starved(of);
  const PauseState::Outcome outcome = of.pause.on_pause(until, now, watchdog_, starved);
  const bool is_stopped = starved || std::max(before, until) > now;
  of.stopped = is_stopped && !of.waiting.empty() ? of.waiting.front().frame : nullptr;
  if (of.stopped != nullptr) of.stopped_since = of.waiting.front().since;
  if (outcome == PauseState::Outcome::kIgnored) return;
  if (outcome == PauseState::Outcome::kPause) bump(counters_.classes[traffic_class].pauses_received);
  count_pause(traffic_class, before, until, now);
}

// Whether frames wait since an earlier pause, and none was sent since.
bool EgressPort::is_starved(const Class& c) {
  return c.stopped != nullptr && !c.waiting.empty() && c.waiting.front().frame == c.stopped &&
         c.waiting.front().since == c.stopped_since;
}

// Adds the change of the pause's end to the paused time. A pause that is cut short is subtracted.
void EgressPort::count_pause(uint8_t traffic_class, Nanos before, Nanos until, Nanos now) {
  const Nanos more = std::max(until, now) - std::max(before, now);
  bump(counters_.classes[traffic_class].paused_nanos, static_cast<uint64_t>(more.count()));
}

void EgressPort::configure(const ClassConfigs& classes) {
  for (uint8_t c = 0; c < kTrafficClasses; ++c) classes_[c].aqm.configure(classes[c].aqm);
}

}  // namespace roci
