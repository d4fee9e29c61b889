// Storage of a neighbor cache: entries with stable addresses, found by IP address. Memory grows with the number of
// entries. A full table evicts the least recently used entry that has no NeighborRef.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "wire/headers/address.hpp"
#include "wire/headers/address_hash.hpp"

namespace roci {

//                     use                    reply
//   kFree ──────────► kIncomplete ─────────────────────────► kReachable ◄──┐
//                      │      ▲                                  │ 30 s,   │ reply
//        no reply to   │      │ use after the hold time          ▼ then use│
//        7 broadcasts  ▼      │                               kProbing ────┘
//                     kFailed ┘          kIncomplete ◄───────────┘ no reply to 7 unicast probes, or to 5 if
//                                                                  another MAC address claims the entry
enum class NeighborState : uint8_t {
  kFree,        // unused
  kIncomplete,  // waits for the reply to a broadcast or multicast solicitation; no MAC address yet
  kReachable,   // has a MAC address, confirmed by the neighbor, or stale: confirmed at the next use
  kProbing,     // has a MAC address, waits for the reply to a unicast probe
  kFailed,      // no reply; use after the hold time solicits again
  kPermanent,   // static, own or multicast: received messages do not change it
};
std::string_view neighbor_state_name(NeighborState state);

// Entry of a NeighborTable, which owns it. Only Neighbors modifies it, except for the reference count.
struct Neighbor {
  IpAddress address;
  MacAddress mac;
  NeighborState state = NeighborState::kFree;
  bool pinned = false;   // never evicted: static and own addresses
  uint8_t attempts = 0;  // solicitations sent in this state
  uint32_t version = 0;  // changes with the MAC address, for owners of prepared headers
  uint32_t holders = 0;  // number of NeighborRefs
  // Ingress port whose packet caused the resolution; counts the entry while it is kIncomplete. kNoRequester: none.
  uint16_t requester = kNoRequester;
  // Another MAC address claims the entry's IP address. Fewer probes are sent to the known one.
  bool contested = false;
  // Time of the last proof that the neighbor uses `mac`; kNeverConfirmed: none since `mac` was set.
  Nanos confirmed{-1};
  // kIncomplete, kProbing: time of the next step. kReachable: stale from then on. kFailed: end of the hold time.
  Nanos deadline{0};

  static constexpr uint16_t kNoRequester = UINT16_MAX;
  static constexpr Nanos kNeverConfirmed{-1};

  [[nodiscard]] bool is_confirmed() const { return confirmed != kNeverConfirmed; }
  [[nodiscard]] bool has_mac() const {
    return state == NeighborState::kReachable || state == NeighborState::kProbing ||
           state == NeighborState::kPermanent;
  }

 private:
  friend class NeighborTable;
  uint32_t index_ = 0;
  uint32_t next_in_bucket_ = 0;
  uint32_t older_ = 0, newer_ = 0;  // list of entries that may be evicted
};

class NeighborTable {
 public:
  // At most `capacity` entries, at least 1; grow() raises the limit.
  explicit NeighborTable(uint32_t capacity);

  [[nodiscard]] Neighbor* find(const IpAddress& address);
  // Adds a kFree entry for an address that is not in the table. If the table is full, evicts the oldest entry that is
  // neither held nor pinned. Null if there is no such entry.
  Neighbor* insert(const IpAddress& address);
  // The entry that the next insert() evicts; null if it evicts none.
  [[nodiscard]] Neighbor* victim() {
    const uint32_t oldest = used_ < capacity() ? kNone : slots_[kNone].newer_;
    return oldest == kNone ? nullptr : &slots_[oldest];
  }
  // Doubles the capacity. Only for entries that the owner holds, not for received messages.
  void grow() { capacity_ *= 2; }
  // Marks the entry as most recently used.
  void touch(Neighbor& entry);
  // The entry is never evicted from now on.
  void pin(Neighbor& entry);
  void hold(Neighbor& entry);
  void release(Neighbor& entry);

  [[nodiscard]] uint32_t size() const { return size_; }
  // Entries that find() compares in the worst case.
  [[nodiscard]] uint32_t longest_chain() const;
  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  template <class Visit>
  void for_each(Visit visit) {
    for (size_t i = 1; i <= used_; ++i) {
      if (slots_[i].state != NeighborState::kFree) visit(slots_[i]);
    }
  }

 private:
  static constexpr uint32_t kNone = 0;  // slot 0 is the head of the list of entries that may be evicted

  [[nodiscard]] size_t bucket_index(const IpAddress& address) const;
  uint32_t& bucket_of(const IpAddress& address) { return buckets_[bucket_index(address)]; }
  void link_newest(Neighbor& entry);
  void unlink(Neighbor& entry);
  void remove_from_bucket(const Neighbor& entry);
  void add_to_bucket(Neighbor& entry);
  void double_buckets();

  const AddressHash hash_;
  uint32_t capacity_;
  std::deque<Neighbor> slots_{1};                // the head, and an entry per slot that has been used
  std::vector<uint32_t> buckets_{kNone, kNone};  // first slot of each chain; a power of two
  uint32_t used_ = 0;                            // slots 1 to used_ have been used
  uint32_t size_ = 0;
};

// Reference that keeps an entry in its table, for a queue pair that sends to it. Must be destroyed before the table.
// Not thread-safe: used by the thread of the table's owner.
class NeighborRef {
 public:
  NeighborRef() = default;
  NeighborRef(NeighborTable& table, Neighbor& entry) : table_(&table), entry_(&entry) { table.hold(entry); }
  NeighborRef(NeighborRef&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), entry_(std::exchange(other.entry_, nullptr)) {}
  NeighborRef& operator=(NeighborRef&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~NeighborRef() {
    if (entry_ != nullptr) table_->release(*entry_);
  }

  explicit operator bool() const { return entry_ != nullptr; }
  Neighbor& operator*() const { return *entry_; }
  Neighbor* operator->() const { return entry_; }
  [[nodiscard]] Neighbor* get() const { return entry_; }

 private:
  NeighborTable* table_ = nullptr;
  Neighbor* entry_ = nullptr;
};

}  // namespace roci
