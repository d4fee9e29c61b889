#include "port/capture/capture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci {

Result<std::unique_ptr<CapturePort>> CapturePort::open(std::unique_ptr<Port> port,
                                                       const CaptureConfig& config) {
  const int descriptor = ::open(config.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int code = errno;
    return fail("capture file \"" + config.path + "\" cannot be written: " + std::strerror(code), code);
  }
  auto capture = std::unique_ptr<CapturePort>(new CapturePort(std::move(port), config, descriptor));
  ROCI_TRY(capture->save());
  return capture;
}

CapturePort::CapturePort(std::unique_ptr<Port> port, const CaptureConfig& config, int descriptor)
    : port_(std::move(port)), config_(config), descriptor_(descriptor), buffer_(config.max_bytes) {
  buffer_.add_interface(port_->name());
}

CapturePort::~CapturePort() {
  if (const Status status = save(); !status) {
    if (config_.saved != nullptr) {
      *config_.saved = status;
    } else {
      log().warn("{}", status.error().message);
    }
  }
  close(descriptor_);
}

Status CapturePort::save() {
  // The statistics are at the end of the file; the next save() replaces them.
  const size_t packets_end = buffer_.size();
  buffer_.add_statistics(0, config_.epoch + newest_, captured_ + not_captured_, not_captured_);
  const Status status = buffer_.write_to(descriptor_);
  buffer_.truncate(packets_end);
  if (!status) return fail(status.error().within("capture file \"" + config_.path + "\""));
  if (not_captured_ > 0) {
    log().info("capture file \"{}\": {} frames; {} frames were not captured because the file was full",
               config_.path, captured_, not_captured_);
  }
  return {};
}

uint16_t CapturePort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  const uint16_t queues = port_->queues();
  uint16_t received = 0;
  first_queue_ = static_cast<uint16_t>((first_queue_ + 1) % queues);  // a busy queue does not starve others
  for (uint16_t i = 0; i < queues && received < out.size(); ++i) {
    const auto queue = static_cast<uint16_t>((first_queue_ + i) % queues);
    received = static_cast<uint16_t>(received + port_->queue(queue).rx_burst(out.subspan(received), now));
  }
  for (uint16_t i = 0; i < received; ++i) capture(*out[i], PcapngBuffer::Direction::kInbound, now);
  return received;
}

Nanos CapturePort::next_arrival() const {
  Nanos next = kNever;
  for (uint16_t queue = 0; queue < port_->queues(); ++queue) {
    next = std::min(next, port_->queue(queue).next_arrival());
  }
  return next;
}

uint16_t CapturePort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  // An accepted frame belongs to the device, so frames are captured before the call,
  // and refused frames are removed from the capture afterwards.
  constexpr size_t kBatch = 64;
  size_t done = 0;
  while (done < frames.size()) {
    const auto batch = frames.subspan(done, std::min(kBatch, frames.size() - done));
    struct Mark {
      size_t size;
      uint64_t captured, not_captured;
    } before[kBatch];
    for (size_t i = 0; i < batch.size(); ++i) {
      before[i] = {buffer_.size(), captured_, not_captured_};
      if (!exceeds_mtu(*batch[i], port_->capabilities().mtu)) {
        capture(*batch[i], PcapngBuffer::Direction::kOutbound, now);
      }
    }
    const uint16_t accepted = port_->tx_burst(batch, now);
    done += accepted;
    if (accepted == batch.size()) continue;
    buffer_.truncate(before[accepted].size);
    captured_ = before[accepted].captured;
    not_captured_ = before[accepted].not_captured;
    break;
  }
  return static_cast<uint16_t>(done);
}

bool CapturePort::add(const rte_mbuf& frame, PcapngBuffer::Direction direction, Nanos time) {
  if (port_->capabilities().needs_icrc)
    return buffer_.add_packet(0, frame, direction, time, config_.snap_length);
  completed_.resize(frame.pkt_len);
  const void* const bytes = rte_pktmbuf_read(&frame, 0, frame.pkt_len, completed_.data());
  if (bytes != completed_.data()) std::memcpy(completed_.data(), bytes, frame.pkt_len);
  const FrameView view =
      parse_frame(completed_.data(), frame.pkt_len, frame.pkt_len, OpcodeRange::kWithPrivate);
  if (view.kind == FrameKind::kRoce) store_icrc(completed_.data() + view.icrc_offset, compute_icrc(view));
  return buffer_.add_packet(0, completed_, direction, time, config_.snap_length);
}

void CapturePort::capture(const rte_mbuf& frame, PcapngBuffer::Direction direction, Nanos now) {
  newest_ = now;
  if (captured_ >= config_.max_packets || !add(frame, direction, config_.epoch + now)) {
    ++not_captured_;
    return;
  }
  ++captured_;
}

}  // namespace roci
