#include "switch/qos/buffer.hpp"

namespace roci {

SwitchBuffer::SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes,
                           uint32_t workers)
    : config_(config), shared_(workers > 1), ports_(classes.size()) {
  for (size_t port = 0; port < classes.size(); ++port) {
    for (uint8_t c = 0; c < kTrafficClasses; ++c) {
      const auto& lossless = classes[port][c].lossless;
      if (!lossless) continue;
      Account& account = ports_[port][c];
      account.xoff = lossless->xoff.value();
      account.xon = lossless->xon.value();
      account.most = (lossless->xoff + lossless->headroom).value();
    }
  }
}

DropReason SwitchBuffer::admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                               uint64_t queue) const {
  const uint64_t size = config_.size.value();
  const uint64_t held = used();
  if (held > size || bytes > size - held) return DropReason::kBufferFull;
  if (ingress != kNoPort) {
    // A lossless class is limited only by `size` and by its own xoff and headroom, which hold the frames that the
    // neighbor sends before it stops.
    const Account& account = ports_[ingress][traffic_class];
    if (account.most != 0)
      return used_by(ingress, traffic_class) + bytes > account.most ? DropReason::kHeadroomFull
                                                                    : DropReason::kNone;
  }
  if (config_.alpha > 0 &&
      static_cast<double>(queue + bytes) > config_.alpha * static_cast<double>(size - held)) {
    return DropReason::kBufferFull;
  }
  return DropReason::kNone;
}

uint8_t SwitchBuffer::stop(uint16_t port, uint8_t stopped) const {
  unsigned now = stopped;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    const Account& account = ports_[port][c];
    const uint64_t held = account.used.load(std::memory_order_relaxed);
    if (held >= account.xoff) {
      now |= 1U << c;
    } else if (held <= account.xon) {
      now &= ~(1U << c);
    }
  }
  return static_cast<uint8_t>(now);
}

}  // namespace roci
