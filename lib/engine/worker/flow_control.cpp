#include "engine/worker/flow_control.hpp"

#include <algorithm>

namespace roci {

FlowControl::FlowControl(const FlowControlConfig& config, BitsPerSec link_rate, const MacAddress& mac)
    : config_(config),
      rate_(config.rate != 0         ? BitsPerSec{config.rate}
            : link_rate.value() != 0 ? link_rate
                                     : kAssumedRate),
      mac_(mac),
      watchdog_(make_watchdog(config.watchdog_detect, config.watchdog_restore)) {}

void FlowControl::take(const rte_mbuf* frame, Nanos now, Counters& counters) {
  const ParsedPause parsed = parse_pause({rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len}, mac_);
  const bool is_pfc =
      parsed.outcome == PauseOutcome::kAccepted && parsed.message.kind == PauseKind::kPriority;
  const unsigned meant = is_pfc ? parsed.message.classes & config_.priorities : 0;
  counters.add(meant != 0 ? Counter::kPausesReceived : Counter::kPausesIgnored);
  const unsigned starved = starved_.load(std::memory_order_relaxed);
  for (unsigned left = meant; left != 0; left &= left - 1) {
    const auto priority = static_cast<unsigned>(__builtin_ctz(left));
    pauses_[priority].on_pause(now + pause_time(parsed.message.quanta[priority], rate_), now, watchdog_,
                               (starved >> priority & 1U) != 0);
    publish(priority);
  }
}

void FlowControl::publish(unsigned priority) {
  resume_times_[priority].store(pauses_[priority].resume_time(watchdog_).count(), std::memory_order_relaxed);
}

void FlowControl::watch(Nanos now, Counters& counters) {
  for (unsigned left = config_.priorities; left != 0; left &= left - 1) {
    const auto priority = static_cast<unsigned>(__builtin_ctz(left));
    PauseState& pause = pauses_[priority];
    if (pause.resume_time(watchdog_) > now || !pause.break_at(now)) continue;
    counters.add(Counter::kPauseStorms);
    publish(priority);
  }
}

uint8_t FlowControl::stopped(Nanos now) const {
  unsigned stopped = 0;
  for (unsigned left = config_.priorities; left != 0; left &= left - 1) {
    const auto priority = static_cast<unsigned>(__builtin_ctz(left));
    if (resume_times_[priority].load(std::memory_order_relaxed) > now.count()) stopped |= 1U << priority;
  }
  return static_cast<uint8_t>(stopped);
}

Nanos FlowControl::resume_time(uint8_t priorities) const {
  Nanos first = kNever;
  for (unsigned left = priorities; left != 0; left &= left - 1)
    first = std::min(
        first,
        Nanos{resume_times_[static_cast<unsigned>(__builtin_ctz(left))].load(std::memory_order_relaxed)});
  return first;
}

void FlowControl::note_waiting(uint32_t worker, uint32_t frames) {
  const uint32_t bit = 1U << worker;
  const bool was = (congested_workers_.load(std::memory_order_relaxed) & bit) != 0;
  if (!was && frames >= config_.xoff) congested_workers_.fetch_or(bit, std::memory_order_relaxed);
  if (was && frames <= config_.xon) congested_workers_.fetch_and(~bit, std::memory_order_relaxed);
}

bool FlowControl::must_send_pause(Nanos now) const {
  return is_congested() != pause_sent_ || now >= repeat_at_;
}

void FlowControl::write(std::span<uint8_t, kPauseFrameBytes> out) const {
  PauseMessage message{.source = mac_, .classes = config_.priorities};
  for (unsigned p = 0; is_congested() && p < kPriorities; ++p) {
    if (message.includes(p)) message.quanta[p] = kQuanta;
  }
  build_pause(message, out);
}

// Sends the pause again after half of its duration, before it expires.
void FlowControl::on_pause_sent(Nanos now) {
  pause_sent_ = is_congested();
  repeat_at_ = pause_sent_ ? now + pause_time(kQuanta, rate_) / 2 : kNever;
}

}  // namespace roci
