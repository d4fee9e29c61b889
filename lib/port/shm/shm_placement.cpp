#include "port/shm/shm_placement.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/os/waiting.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kMaxWait{100'000'000};
constexpr size_t kMaxPieces = 32;
// A longer WRITE is copied in parts, between which the grant is checked again: revoke() waits for one part.
constexpr uint64_t kMaxPart = uint64_t{1} << 20;
// The thread that copies processes no packets meanwhile. A longer WRITE is sent as packets.
constexpr uint64_t kMaxPlaced = uint64_t{16} << 20;

ShmGrant& entry_of(ShmGrants& grants, const Placement::Target& target) {
  const uint32_t mixed = (target.qp.value() * 0x9e3779b1U) ^ (target.key.value() * 0x85ebca6bU);
  return grants.entries[(mixed >> 16) % kShmGrantsPerPair];
}

// Number of bytes at the end of a copy that become visible after the rest.
constexpr uint64_t kMaxEnding = 8;
uint64_t ending_of(uint64_t address, uint64_t length) {
  return length >= kMaxEnding && (address + length) % kMaxEnding == 0 ? kMaxEnding : 1;
}

// `bytes` bytes of the pieces from position `at` on. Returns their number.
size_t cut(std::span<const iovec> pieces, uint64_t at, uint64_t bytes, std::array<iovec, kMaxPieces>& out) {
  size_t count = 0;
  for (const iovec& piece : pieces) {
    if (at >= piece.iov_len) {
      at -= piece.iov_len;
      continue;
    }
    const uint64_t some = std::min<uint64_t>(piece.iov_len - at, bytes);
    if (some == 0) break;
    out[count++] = {static_cast<uint8_t*>(piece.iov_base) + at, static_cast<size_t>(some)};
    bytes -= some;
    at = 0;
  }
  return count;
}

}  // namespace

ShmPlacement::ShmPlacement(std::shared_ptr<ShmSegment> segment, uint32_t slot, SlotOf slot_of)
    : segment_(std::move(segment)), slot_(slot), slot_of_(std::move(slot_of)) {
  segment_->slot(slot_).grant_epoch.fetch_add(1);  // invalidates the grants of the slot's previous owner
  // The previous owner may have been killed while it copied.
  for (uint32_t peer = 0; peer < kShmSlots; ++peer) {
    std::atomic<uint32_t>& placing = segment_->grants(peer, slot_).placing;
    const uint32_t left = placing.load(std::memory_order_relaxed);
    if (left % 2 == 1) placing.store(left + 1, std::memory_order_release);
  }
}

uint32_t ShmPlacement::epoch() const {
  return segment_->slot(slot_).grant_epoch.load(std::memory_order_relaxed);
}

void ShmPlacement::grant(const MacAddress& peer, const Target& target, const Area& area) {
  const auto to = slot_of_(peer);
  if (!to || *to == slot_) return;
  ShmGrant& entry = entry_of(segment_->grants(slot_, *to), target);
  if (entry.epoch.load(std::memory_order_relaxed) == epoch() &&
      entry.qp.load(std::memory_order_relaxed) == target.qp.value() &&
      entry.key.load(std::memory_order_relaxed) == target.key.value() && granted_)
    return;
  const uint32_t version = entry.version.load(std::memory_order_relaxed) | 1;
  entry.version.store(version, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.qp.store(target.qp.value(), std::memory_order_relaxed);
  entry.key.store(target.key.value(), std::memory_order_relaxed);
  entry.epoch.store(epoch(), std::memory_order_relaxed);
  entry.start.store(area.start, std::memory_order_relaxed);
  entry.length.store(area.length, std::memory_order_relaxed);
  entry.host.store(reinterpret_cast<uint64_t>(area.host), std::memory_order_relaxed);
  entry.incarnation.store(segment_->slot(slot_).incarnation.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  entry.version.store(version + 1, std::memory_order_release);
  granted_ = true;
}

// The peer increments `placing` and then reads the epoch. revoke() changes the epoch and then reads `placing`. At least
// one of the two sees the other's change.
void ShmPlacement::revoke() {
  if (!std::exchange(granted_, false)) return;
  segment_->slot(slot_).grant_epoch.fetch_add(1, std::memory_order_seq_cst);
  const Nanos until = monotonic_now() + kMaxWait;
  for (uint32_t peer = 0; peer < kShmSlots; ++peer) {
    const std::atomic<uint32_t>& placing = segment_->grants(slot_, peer).placing;
    const uint32_t seen = placing.load(std::memory_order_seq_cst);
    if (seen % 2 == 0) continue;
    const std::atomic<uint64_t>& owner = segment_->slot(peer).incarnation;
    const Copy copy{seen, owner.load(std::memory_order_relaxed)};
    if (copy == given_up_[peer]) continue;
    bool copies = true;
    while (copies && monotonic_now() < until) {
      sleep_uncanceled(std::chrono::microseconds{1});
      copies = placing.load(std::memory_order_acquire) == seen && owner.load(std::memory_order_relaxed) != 0;
    }
    if (copies) given_up_[peer] = copy;
  }
}

bool ShmPlacement::place(const MacAddress& peer, const Target& target, uint64_t va,
                         std::span<const iovec> pieces, uint64_t length) {
  const auto to = slot_of_(peer);
  if (!to || *to == slot_ || length == 0 || length > kMaxPlaced || pieces.size() > kMaxPieces) return false;
  ShmSlot& owner = segment_->slot(*to);
  ShmGrants& grants = segment_->grants(*to, slot_);
  const ShmGrant& entry = entry_of(grants, target);
  const uint32_t version = entry.version.load(std::memory_order_acquire);
  const uint32_t qp = entry.qp.load(std::memory_order_relaxed),
                 key = entry.key.load(std::memory_order_relaxed);
  const uint32_t epoch = entry.epoch.load(std::memory_order_relaxed);
  const uint64_t start = entry.start.load(std::memory_order_relaxed);
  const uint64_t area = entry.length.load(std::memory_order_relaxed);
  const uint64_t host = entry.host.load(std::memory_order_relaxed);
  const uint64_t incarnation = entry.incarnation.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (version % 2 == 1 || entry.version.load(std::memory_order_relaxed) != version) return false;
  if (qp != target.qp.value() || key != target.key.value() || incarnation == 0) return false;
  if (va < start || va - start > area || length > area - (va - start)) return false;
  if (forbidden_[*to] == incarnation) return false;

  const uint64_t address = host + (va - start);
  // Acquire: pairs with the store of `pid` in ShmSlotOwner::join(). The next owner of the slot has increased the epoch
  // before it, so with the next owner's process id the check below fails.
  const auto process = static_cast<pid_t>(owner.pid.load(std::memory_order_acquire));
  const uint32_t placing = grants.placing.load(std::memory_order_relaxed) | 1;
  grants.placing.store(placing, std::memory_order_seq_cst);
  uint64_t done = 0;
  bool copied = true, forbidden = false;
  while (copied && done < length && owner.grant_epoch.load(std::memory_order_seq_cst) == epoch &&
         owner.incarnation.load(std::memory_order_seq_cst) == incarnation) {
    const uint64_t left = length - done;
    const uint64_t part = left <= kMaxPart + kMaxEnding ? left : kMaxPart;
    const uint64_t ending = part == left ? ending_of(address, length) : 0;
    const std::array<iovec, 2> remote{
        iovec{reinterpret_cast<void*>(address + done), static_cast<size_t>(part - ending)},
        iovec{reinterpret_cast<void*>(address + length - ending), static_cast<size_t>(ending)}};
    const size_t first = part == ending ? 1 : 0, count = ending == 0 || first == 1 ? 1 : 2;
    std::array<iovec, kMaxPieces> local;
    const ssize_t written = process_vm_writev(process, local.data(), cut(pieces, done, part, local),
                                              remote.data() + first, count, 0);
    copied = written == static_cast<ssize_t>(part);
    forbidden = written < 0 && errno == EPERM;
    done += part;
  }
  grants.placing.store(placing + 1, std::memory_order_release);
  if (copied && done == length) return true;
  if (forbidden) forbidden_[*to] = incarnation;
  return false;
}

}  // namespace roci
