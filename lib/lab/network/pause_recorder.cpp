#include "lab/network/pause_recorder.hpp"

#include <rte_mbuf.h>

namespace roci::lab {

uint16_t PauseRecorder::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  const uint16_t count = BorrowedPort::rx_burst(out, now);
  for (const rte_mbuf* frame : out.first(count)) {
    const ParsedPause parsed = parse_pause({rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len}, mac());
    if (parsed.outcome == PauseOutcome::kAccepted) record(parsed.message, now);
  }
  return count;
}

void PauseRecorder::record(const PauseMessage& message, Nanos now) {
  PauseEvent event = of_;
  event.at = now;
  for (uint8_t priority = 0; priority < kPriorities; ++priority) {
    if (!message.includes(priority)) continue;
    event.traffic_class = priority;
    event.pause = message.quanta[priority] > 0;
    events_.push_back(event);
  }
}

}  // namespace roci::lab
