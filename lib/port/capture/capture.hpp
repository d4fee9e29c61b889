// A tap around any port: captures the first frames of both directions in
// memory and writes a pcapng file, for Wireshark and tshark.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "port/capture/pcapng.hpp"
#include "port/port.hpp"

namespace roci {

struct CaptureConfig {
  std::string path;
  uint64_t max_packets = 10'000;  // further frames pass uncaptured and are counted
  size_t max_bytes = 64 << 20;    // of the file; memory of this size is reserved until the file is written
  uint32_t snap_length = 65535;   // maximum number of bytes captured per frame
  // Set by the destructor if the file cannot be written. Null: the failure is logged.
  Status* saved = nullptr;
  Nanos epoch{0};  // added to `now`: the wall-clock time of the runner's origin, 0 under a virtual clock
};

// Owned by the thread that uses the port. The capture port has one queue, so that the file has one order, and receives
// from all queues of the wrapped port. Frames are copied into memory; save() and the destructor write the file, never
// the data path. On a port whose packets have no ICRC (PortCapabilities::needs_icrc), the file has the correct ICRC.
class CapturePort final : public Port {
 public:
  // Creates the file at once, so that an unwritable path is an error of open().
  static Result<std::unique_ptr<CapturePort>> open(std::unique_ptr<Port> port, const CaptureConfig& config);
  ~CapturePort() override;

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  [[nodiscard]] Nanos next_arrival() const override;
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_->capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_->mac(); }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }
  [[nodiscard]] PortStats stats() const override { return port_->stats(); }
  [[nodiscard]] bool link_up() const override { return port_->link_up(); }
  [[nodiscard]] PortWakeup* wakeup() override { return port_->wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return port_->peers(); }
  [[nodiscard]] std::vector<Detail> details() const override { return port_->details(); }

  // Writes the frames captured so far. Control path; called by the port's thread.
  Status save();

  [[nodiscard]] uint64_t captured() const { return captured_; }
  // Frames that were not captured because a limit was reached.
  [[nodiscard]] uint64_t not_captured() const { return not_captured_; }

 private:
  CapturePort(std::unique_ptr<Port> port, const CaptureConfig& config, int descriptor);
  bool add(const rte_mbuf& frame, PcapngBuffer::Direction direction, Nanos time);
  void capture(const rte_mbuf& frame, PcapngBuffer::Direction direction, Nanos now);

  std::unique_ptr<Port> port_;
  CaptureConfig config_;
  int descriptor_;
  PcapngBuffer buffer_;
  std::vector<uint8_t> completed_;  // a frame with its ICRC
  uint16_t first_queue_ = 0;        // the next rx_burst() starts after this queue
  uint64_t captured_ = 0;
  uint64_t not_captured_ = 0;
  Nanos newest_{0};
};

}  // namespace roci
