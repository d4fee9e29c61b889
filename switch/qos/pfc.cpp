#include "switch/qos/pfc.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "wire/net/pause.hpp"

namespace roci {

PauseControl::PauseControl(SwitchBuffer& buffer, const MacAddress& mac, rte_mempool* pool,
                           const std::vector<PortView>& ports)
    : buffer_(buffer), mac_(mac), pool_(pool) {
  std::ranges::copy_if(ports, std::back_inserter(ports_),
                       [](const PortView& view) { return view.lossless != 0; });
  states_.resize(ports_.size());
}

BitsPerSec PauseControl::rate_of(const PortView& view) {
  return view.rate.value() == 0 ? kAssumedRate : view.rate;
}

bool PauseControl::take(const rte_mbuf* frame, uint16_t port, Nanos now) {
  const auto view = std::ranges::lower_bound(ports_, port, {}, &PortView::port);
  if (view == ports_.end() || view->port != port) return false;
  const ParsedPause parsed = parse_pause({rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len}, mac_);
  if (parsed.outcome != PauseOutcome::kAccepted || parsed.message.kind != PauseKind::kPriority) return false;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    if (!parsed.message.includes(c) || (view->lossless >> c & 1U) == 0) continue;
    view->egress.pause(c, now + pause_time(parsed.message.quanta[c], rate_of(*view)), now);
  }
  return true;
}

bool PauseControl::poll(Nanos now) {
  bool worked = false;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const PortView& view = ports_[i];
    State& state = states_[i];
    const uint8_t stopped = buffer_.stop(view.port, state.stopped);
    const auto resume = static_cast<uint8_t>(state.stopped & ~stopped);
    const bool again = stopped != 0 && now >= state.again && !view.egress.has_control();
    if (stopped == state.stopped && !again) continue;
    // The frame replaces one that the port has not accepted, and therefore also contains the classes of that one.
    const auto classes =
        static_cast<uint8_t>(stopped | resume | (view.egress.has_control() ? state.queued : 0));
    if (!send_pause(view, classes, stopped)) continue;  // pool empty: repeated in the next round
    state.queued = classes;
    worked = true;
    state.stopped = stopped;
    // Renews the pause after half of its time.
    state.again = stopped == 0 ? kNever : now + pause_time(kQuanta, rate_of(view)) / 2;
  }
  return worked;
}

Nanos PauseControl::next_deadline() const {
  Nanos next = kNever;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const State& state = states_[i];
    // Another worker has queued or released frames of this port.
    if (buffer_.stop(ports_[i].port, state.stopped) != state.stopped) return Nanos{0};
    next = std::min(next, state.again);
  }
  return next;
}

bool PauseControl::send_pause(const PortView& view, uint8_t classes, uint8_t stopped) {
  rte_mbuf* frame = rte_pktmbuf_alloc(pool_);
  if (frame == nullptr) return false;
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, kPauseFrameBytes));
  if (bytes == nullptr) {
    rte_pktmbuf_free(frame);
    return false;
  }
  PauseMessage message{.source = mac_, .classes = classes};
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    if ((stopped >> c & 1U) == 0) continue;
    message.quanta[c] = kQuanta;
    bump(view.counters.classes[c].pauses_sent);
  }
  build_pause(message, std::span<uint8_t, kPauseFrameBytes>(bytes, kPauseFrameBytes));
  view.egress.set_control(frame);
  return true;
}

}  // namespace roci
