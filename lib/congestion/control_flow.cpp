#include "congestion/control_flow.hpp"

#include <cstring>
#include <memory>
#include <new>

#include "base/os/waiting.hpp"

namespace roci {
namespace {

constexpr size_t rounded_state_bytes(const Profile& profile) {
  return (profile.plugin->state_bytes + size_t{7}) & ~size_t{7};
}

}  // namespace

void PublishedDecision::begin() {
  version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void PublishedDecision::finish(const roci_cc_decision& decision) {
  std::array<uint64_t, kWords> words;
  std::memcpy(words.data(), &decision, sizeof decision);
  // A reader that sees one of these words also sees the odd version. (Not a fence, because ThreadSanitizer does not
  // support fences.)
  for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
  version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

bool PublishedDecision::try_read(roci_cc_decision& decision) const {
  constexpr int kTries = 16;  // each about as long as an uninterrupted write
  std::array<uint64_t, kWords> words;
  for (int tries = 0; tries < kTries; ++tries) {
    const uint32_t before = version_.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if ((before & 1U) != 0 || version_.load(std::memory_order_relaxed) != before) continue;
    std::memcpy(&decision, words.data(), sizeof decision);
    return true;
  }
  return false;
}

roci_cc_decision PublishedDecision::read() const {
  roci_cc_decision decision;
  for (Backoff backoff; !try_read(decision);) backoff.wait();
  return decision;
}

ControlFlow::ControlFlow(const Profile& of, const roci_cc_flow& about, uint32_t number)
    : profile(of), info(about), id(number) {
  decision.window = decision.rate = ROCI_CC_NO_LIMIT;
  read_ = decision;
  std::memset(tail(), 0, rounded_state_bytes(of));
  std::uninitialized_value_construct_n(numbers(), of.plugin->state_count + of.plugin->reason_count);
}

size_t ControlFlow::bytes_of(const Profile& profile) {
  return sizeof(ControlFlow) + rounded_state_bytes(profile) +
         (size_t{profile.plugin->state_count} + profile.plugin->reason_count) * sizeof(std::atomic<uint64_t>);
}

ControlFlow* ControlFlow::create(SparseArena& arena, const Profile& profile, const roci_cc_flow& info,
                                 uint32_t id) {
  void* memory = arena.take(bytes_of(profile));
  return memory == nullptr ? nullptr : new (memory) ControlFlow(profile, info, id);
}

void ControlFlow::destroy() {
  const size_t bytes = bytes_of(profile);
  this->~ControlFlow();
  SparseArena::give_back(this, bytes);
}

std::atomic<uint64_t>* ControlFlow::numbers() const {
  return reinterpret_cast<std::atomic<uint64_t>*>(tail() + rounded_state_bytes(profile));
}

std::span<std::atomic<uint64_t>> ControlFlow::state_nanos() const {
  return {numbers(), profile.plugin->state_count};
}

std::span<std::atomic<uint64_t>> ControlFlow::reason_counts() const {
  return {numbers() + profile.plugin->state_count, profile.plugin->reason_count};
}

}  // namespace roci
