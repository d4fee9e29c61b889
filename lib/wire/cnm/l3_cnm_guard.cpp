#include "wire/cnm/l3_cnm_guard.hpp"

#include <bit>
#include <span>

#include "wire/headers/flow_hasher.hpp"

namespace roci {

L3CnmGuard::L3CnmGuard(uint32_t points, Nanos tolerance, uint64_t salt)
    : tolerance_(std::min(tolerance, kMaxTolerance)),
      salt_(salt),
      slots_(std::bit_ceil(std::max<size_t>(points, kWays))) {}

L3CnmGuard::Verdict L3CnmGuard::take(const CongestionPointId& point, uint32_t sequence, Nanos time_of_day) {
  const auto off = static_cast<int32_t>(sequence - l3_cnm_ticks(time_of_day));
  const int64_t most = tolerance_ / kL3CnmTick;
  if (off > most || off < -most) return Verdict::kTooOld;

  uint64_t bridge = 0;
  for (const uint8_t byte : point.bridge.bytes) bridge = bridge << 8 | byte;
  FlowHasher mix(salt_);
  mix.add(point.queue.get());
  mix.add(bridge);
  const size_t sets = slots_.size() / kWays;
  const std::span set{slots_.data() + (mix.value() & (sets - 1)) * kWays, kWays};
  // A CNM from a clock that is ahead by the tolerance becomes too old only after this time.
  const Nanos until = time_of_day + 2 * tolerance_ + 2 * kL3CnmTick;
  Slot* free = nullptr;
  for (Slot& slot : set) {
    if (slot.until <= time_of_day) {
      free = &slot;
      continue;
    }
    if (!(slot.point == point)) continue;
    if (static_cast<int32_t>(sequence - slot.sequence) <= 0) return Verdict::kRepeated;
    slot.sequence = sequence;
    slot.until = until;
    return Verdict::kNew;
  }
  if (free == nullptr) return Verdict::kFull;
  *free = {point, sequence, until};
  return Verdict::kNew;
}

}  // namespace roci
