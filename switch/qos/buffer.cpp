#include "switch/qos/buffer.hpp"

#include <algorithm>

namespace roci {

SwitchBuffer::SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes,
                           uint32_t workers)
    : config_(config), shared_(workers > 1), ports_(classes.size()) {
  for (size_t port = 0; port < classes.size(); ++port) {
    for (uint8_t c = 0; c < kTrafficClasses; ++c) {
      const auto& lossless = classes[port][c].lossless;
      if (!lossless) continue;
      Account& account = ports_[port][c];
      if (lossless->is_dynamic()) {
        account.alpha = lossless->alpha;
        account.hysteresis = lossless->hysteresis.value();
        account.headroom = lossless->headroom.value();
        reserved_ += account.headroom;
        continue;
      }
      account.xoff = lossless->xoff.value();
      account.xon = lossless->xon.value();
      account.most = (lossless->xoff + lossless->headroom).value();
    }
  }
}

DropReason SwitchBuffer::admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                               uint64_t queue) const {
  const Account* const account = ingress == kNoPort ? nullptr : &ports_[ingress][traffic_class];
  // A lossless class is limited only by `size` and by its own threshold and headroom, which hold the frames that the
  // neighbor sends before it stops.
  if (account != nullptr && account->alpha > 0) {
    const bool fits = !needs_headroom(*account, bytes) ||
                      account->in_headroom.load(std::memory_order_relaxed) + bytes <= account->headroom;
    return fits ? DropReason::kNone : DropReason::kHeadroomFull;
  }
  const uint64_t free = free_to_share();
  if (bytes > free) return DropReason::kBufferFull;
  if (account != nullptr && account->most != 0)
    return used_by(ingress, traffic_class) + bytes > account->most ? DropReason::kHeadroomFull
                                                                   : DropReason::kNone;
  if (config_.alpha > 0 && static_cast<double>(queue + bytes) > config_.alpha * static_cast<double>(free)) {
    return DropReason::kBufferFull;
  }
  return DropReason::kNone;
}

uint8_t SwitchBuffer::stop(uint16_t port, uint8_t stopped) const {
  unsigned now = stopped;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    const Account& account = ports_[port][c];
    if (account.alpha > 0) {
      const unsigned bit = 1U << c;
      now = stops_dynamically(account, (now & bit) != 0) ? now | bit : now & ~bit;
      continue;
    }
    const uint64_t held = account.used.load(std::memory_order_relaxed);
    if (held >= account.xoff) {
      now |= 1U << c;
    } else if (held <= account.xon) {
      now &= ~(1U << c);
    }
  }
  return static_cast<uint8_t>(now);
}

// Workers change the counts independently of each other, so a part can exceed its sum for a moment.
uint64_t SwitchBuffer::free_to_share() const {
  const uint64_t all = used();
  if (reserved_ == 0) [[likely]]
    return config_.size.value() - std::min(config_.size.value(), all);
  const uint64_t shared = all - std::min(all, used_of_reserved_.load(std::memory_order_relaxed));
  const uint64_t size = config_.size.value() - reserved_;
  return size - std::min(size, shared);
}

double SwitchBuffer::threshold(const Account& of) const {
  return of.alpha * static_cast<double>(free_to_share());
}

uint64_t SwitchBuffer::counted(const Account& of) {
  const uint64_t all = of.used.load(std::memory_order_relaxed);
  return all - std::min(all, of.in_headroom.load(std::memory_order_relaxed));
}

bool SwitchBuffer::needs_headroom(const Account& of, uint64_t bytes) const {
  return static_cast<double>(counted(of) + bytes) > threshold(of) || bytes > free_to_share();
}

void SwitchBuffer::use_headroom(Account& of, uint64_t bytes) {
  change(of.in_headroom, bytes);
  change(used_of_reserved_, bytes);
}

void SwitchBuffer::free_headroom(Account& of, uint64_t bytes) {
  uint64_t before = of.in_headroom.load(std::memory_order_relaxed), freed = 0;
  do {
    freed = std::min(bytes, before);
  } while (!of.in_headroom.compare_exchange_weak(before, before - freed, std::memory_order_relaxed));
  change(used_of_reserved_, -freed);
}

// Stops while frames are in the headroom. Resumes `hysteresis` below the threshold, or when no frames are left.
bool SwitchBuffer::stops_dynamically(const Account& of, bool stopped) const {
  if (of.in_headroom.load(std::memory_order_relaxed) > 0) return true;
  const uint64_t held = counted(of);
  return held > 0 && static_cast<double>(held + (stopped ? of.hysteresis : 0)) >= threshold(of);
}

}  // namespace roci
