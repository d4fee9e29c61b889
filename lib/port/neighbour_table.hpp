// The storage of a neighbour cache: a number of entries with stable addresses, found by IP address, given out again from
// the least recently used one that nobody holds.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "wire/address.hpp"

namespace roci {

//                     use                    answer
//   kFree ──────────► kIncomplete ─────────────────────────► kReachable ◄──┐
//                      │      ▲                                  │ 30 s,   │ answer
//        no answer to  │      │ use after the hold time          ▼ then use│
//        3 broadcasts  ▼      │                               kProbing ────┘
//                     kFailed ┘          kIncomplete ◄───────────┘ no answer to 3 unicast probes
enum class NeighbourState : uint8_t {
  kFree,        // not in use
  kIncomplete,  // waits for the answer to a broadcast or multicast solicitation; no MAC yet
  kReachable,   // has a MAC that the neighbour confirmed, or that is to be confirmed at the next use (stale)
  kProbing,     // has a MAC, waits for the answer to a unicast probe
  kFailed,      // nobody answered; waits for the hold time, then for somebody who asks again
  kPermanent,   // static, own or multicast: what the wire says does not change it
};
std::string_view neighbour_state_name(NeighbourState state);

// Owned by its table; everything but the reference count is changed by Neighbours.
struct Neighbour {
  IpAddress address;
  MacAddress mac;
  NeighbourState state = NeighbourState::kFree;
  bool pinned = false;   // never evicted: static and own addresses
  uint8_t attempts = 0;  // solicitations sent in this state
  uint32_t version = 0;  // changes with the MAC, for whoever keeps headers ready
  uint32_t holders = 0;  // NeighbourRefs
  Nanos deadline{
      0};  // kIncomplete, kProbing: of the next step. kReachable: stale from then on. kFailed: end of hold

  [[nodiscard]] bool has_mac() const {
    return state == NeighbourState::kReachable || state == NeighbourState::kProbing ||
           state == NeighbourState::kPermanent;
  }

 private:
  friend class NeighbourTable;
  uint32_t index_ = 0;
  uint32_t next_in_bucket_ = 0;
  uint32_t older_ = 0, newer_ = 0;  // in the list of entries that may be evicted
};

class NeighbourTable {
 public:
  // `capacity` entries, at least 1, which only grow() makes more.
  explicit NeighbourTable(uint32_t capacity);

  [[nodiscard]] Neighbour* find(const IpAddress& address);
  // A new kFree entry for an address that is not in the table; null when it is full of entries that are held
  // or pinned. The oldest other one makes room.
  Neighbour* insert(const IpAddress& address);
  // Room for twice as many; entries stay where they are. For entries that its owner holds, not for what strangers say.
  void grow();
  // Marks as most recently used.
  void touch(Neighbour& entry);
  // The entry is never evicted from now on.
  void pin(Neighbour& entry);
  void hold(Neighbour& entry);
  void release(Neighbour& entry);

  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(slots_.size()) - 1; }
  template <class Visit>
  void for_each(Visit visit) {
    for (size_t i = 1; i <= used_; ++i) {
      if (slots_[i].state != NeighbourState::kFree) visit(slots_[i]);
    }
  }

 private:
  static constexpr uint32_t kNone = 0;  // slot 0 is the head of the list of entries that may be evicted

  uint32_t& bucket_of(const IpAddress& address);
  void link_newest(Neighbour& entry);
  void unlink(Neighbour& entry);
  void remove_from_bucket(const Neighbour& entry);

  std::deque<Neighbour> slots_;
  std::vector<uint32_t> buckets_;  // first slot of each chain; a power of two of them
  uint32_t used_ = 0;              // slots 1 to used_ have been given out once
  uint32_t size_ = 0;
};

// Keeps an entry in its table, for a queue pair that sends to it. Must go before the table. Not thread-safe:
// it is the table owner's.
class NeighbourRef {
 public:
  NeighbourRef() = default;
  NeighbourRef(NeighbourTable& table, Neighbour& entry) : table_(&table), entry_(&entry) {
    table.hold(entry);
  }
  NeighbourRef(NeighbourRef&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), entry_(std::exchange(other.entry_, nullptr)) {}
  NeighbourRef& operator=(NeighbourRef&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~NeighbourRef() {
    if (entry_ != nullptr) table_->release(*entry_);
  }

  explicit operator bool() const { return entry_ != nullptr; }
  Neighbour& operator*() const { return *entry_; }
  Neighbour* operator->() const { return entry_; }
  [[nodiscard]] Neighbour* get() const { return entry_; }

 private:
  NeighbourTable* table_ = nullptr;
  Neighbour* entry_ = nullptr;
};

}  // namespace roci
