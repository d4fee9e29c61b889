// Port that records the PFC frames received through it, for results in the formats of other simulators.
#pragma once

#include <vector>

#include "port/sim/borrowed_port.hpp"
#include "wire/net/pause.hpp"

namespace roci::lab {

struct PauseEvent {
  Nanos at{0};  // since the start of the traffic
  bool is_switch = false;
  uint32_t node = 0;  // number of the receiving host or switch
  uint32_t port = 0;
  uint8_t traffic_class = 0;
  bool pause = false;  // false: resume
};

// Owned by the thread that runs its node.
class PauseRecorder final : public BorrowedPort {
 public:
  // `of` is the receiver of the recorded events.
  PauseRecorder(Port& port, const PauseEvent& of) : BorrowedPort(port), of_(of) {}

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  [[nodiscard]] uint16_t queues() const override { return 1; }
  [[nodiscard]] PortQueue& queue(uint16_t /*index*/) override { return *this; }
  // Times are those of rx_burst().
  [[nodiscard]] const std::vector<PauseEvent>& events() const { return events_; }

 private:
  void record(const PauseMessage& message, Nanos now);

  PauseEvent of_;
  std::vector<PauseEvent> events_;
};

}  // namespace roci::lab
