#include "switch/buffer.hpp"

namespace roci {

SwitchBuffer::SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes)
    : config_(config), ports_(classes.size()) {
  for (size_t port = 0; port < classes.size(); ++port) {
    for (uint8_t c = 0; c < kTrafficClasses; ++c) {
      const auto& lossless = classes[port][c].lossless;
      if (!lossless) continue;
      Account& account = ports_[port].classes[c];
      account.xoff = lossless->xoff.value();
      account.xon = lossless->xon.value();
      account.most = (lossless->xoff + lossless->headroom).value();
    }
  }
}

DropReason SwitchBuffer::admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                               uint64_t queue) const {
  const uint64_t size = config_.size.value();
  if (used_ > size || bytes > size - used_) return DropReason::kBufferFull;
  if (ingress != kNoPort) {
    // What the neighbour sent before it could stop has its place; nothing else holds a lossless class back.
    const Account& account = ports_[ingress].classes[traffic_class];
    if (account.most != 0)
      return account.used + bytes > account.most ? DropReason::kHeadroomFull : DropReason::kNone;
  }
  if (config_.alpha > 0 &&
      static_cast<double>(queue + bytes) > config_.alpha * static_cast<double>(size - used_)) {
    return DropReason::kBufferFull;
  }
  return DropReason::kNone;
}

}  // namespace roci
