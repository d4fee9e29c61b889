#include "switch/buffer.hpp"

#include "switch/packet.hpp"

namespace roci {

SwitchBuffer::SwitchBuffer(const BufferConfig& config, std::vector<ClassConfigs> classes)
    : config_(config), classes_(std::move(classes)), ports_(classes_.size()) {}

DropReason SwitchBuffer::admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                               uint64_t queue) const {
  const uint64_t size = config_.size.value();
  if (used_ > size || bytes > size - used_) return DropReason::kBufferFull;
  if (ingress != kNoPort && classes_[ingress][traffic_class].lossless) {
    // What the neighbour sent before it could stop has its place; nothing else holds a lossless class back.
    const LosslessConfig& lossless = *classes_[ingress][traffic_class].lossless;
    const uint64_t most = (lossless.xoff + lossless.headroom).value();
    return ports_[ingress].used[traffic_class] + bytes > most ? DropReason::kHeadroomFull : DropReason::kNone;
  }
  if (config_.alpha > 0 &&
      static_cast<double>(queue + bytes) > config_.alpha * static_cast<double>(size - used_)) {
    return DropReason::kBufferFull;
  }
  return DropReason::kNone;
}

void SwitchBuffer::take(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
  used_ += bytes;
  if (ingress == kNoPort) return;
  Ingress& in = ports_[ingress];
  in.used[traffic_class] += bytes;
  const auto& lossless = classes_[ingress][traffic_class].lossless;
  if (lossless && in.used[traffic_class] >= lossless->xoff.value())
    in.stopped = static_cast<uint8_t>(in.stopped | 1U << traffic_class);
}

void SwitchBuffer::release(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
  used_ -= bytes;
  if (ingress == kNoPort) return;
  Ingress& in = ports_[ingress];
  in.used[traffic_class] -= bytes;
  const auto& lossless = classes_[ingress][traffic_class].lossless;
  if (lossless && in.used[traffic_class] <= lossless->xon.value())
    in.stopped = static_cast<uint8_t>(in.stopped & ~(1U << traffic_class));
}

}  // namespace roci
