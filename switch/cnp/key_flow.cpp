#include "switch/cnp/key_flow.hpp"

#include <algorithm>

namespace roci {
namespace {

uint32_t tag_of(const RoceFlow& flow) {
  constexpr uint64_t kTagSalt = 0x2545f4914f6cdd1d;
  return static_cast<uint32_t>(RoceFlowHash{}(flow, kTagSalt) >> 32);
}

}  // namespace

void FlowSketch::add(const KeyFlow& flow, uint32_t bytes) {
  const uint32_t tag = tag_of(flow.flow);
  size_t at = 0;
  while (at < used_ && (tags_[at] != tag || !(flows_[at].flow == flow.flow))) ++at;
  if (at == used_) {
    if (used_ < kFlows) {
      bytes_[used_++] = 0;
    } else {
      // Replaces the lightest flow. The new flow inherits its bytes, so that a flow is never underestimated.
      at = static_cast<size_t>(std::min_element(bytes_.begin(), bytes_.end()) - bytes_.begin());
    }
    tags_[at] = tag;
  }
  flows_[at] = flow;
  bytes_[at] += bytes;
  since_ += bytes;
  if (since_ >= window_) halve();
}

void FlowSketch::halve() {
  since_ = 0;
  for (size_t i = 0; i < used_; ++i) bytes_[i] /= 2;
}

uint64_t FlowSketch::bytes_of(const RoceFlow& flow) const {
  for (size_t i = 0; i < used_; ++i) {
    if (flows_[i].flow == flow) return bytes_[i];
  }
  return 0;
}

}  // namespace roci
