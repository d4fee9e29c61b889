// What the switch at which hosts are attached knows of their flows, so that it can turn a self-defined CNM, which names a
// flow by its five fields, into the CNM that the flow's sender understands (L3QCN 5.2.2 steps 1 and 4). Bounded: a full
// table forgets what is too old and otherwise learns nothing new, so that a flood of forged flows cannot drive out the
// real ones.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "wire/congestion_notification.hpp"
#include "wire/link_tags.hpp"

namespace roci {

// How a host sent the frames of a flow.
struct TorFlow {
  MacAddress source;
  MacAddress destination;  // of the router, for what leaves the network
  uint16_t vlan = 0;
  LinkTags tags;  // with the CN-TAG

  // The link header of a CNM to it.
  [[nodiscard]] CnmLink answer(const MacAddress& own) const;
};

// A hash table with linear probing, and a list through its entries in the order they were last heard of, so the ones
// to forget are always at its front. Owned by the switch's thread.
class TorTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kFull };

  // `ageing` after the last frame of a flow it is forgotten; kNever keeps all. Without a size it knows nothing.
  TorTable(uint32_t size, Nanos ageing);

  Learned learn(const FiveTuple& key, const TorFlow& flow, Nanos now);
  // Null when it is not known. Valid until something is learnt.
  [[nodiscard]] const TorFlow* find(const FiveTuple& key, Nanos now) const;

  // Entries, counting old ones that nobody has asked for.
  [[nodiscard]] uint32_t size() const { return used_; }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(entries_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    FiveTuple key;
    TorFlow flow;
    Nanos heard{0};
    uint32_t older = kNone, newer = kNone;
    uint32_t slot = 0;  // where slots_ points here
  };

  [[nodiscard]] uint32_t home_of(const FiveTuple& key) const;
  [[nodiscard]] uint32_t find_entry(const FiveTuple& key) const;
  [[nodiscard]] bool is_old(const Entry& entry, Nanos now) const { return now - entry.heard >= ageing_; }
  void to_newest(uint32_t index);
  void unlink(uint32_t index);
  void forget(uint32_t index);

  Nanos ageing_;
  uint64_t salt_;                // unknown to whoever would choose flows that collide
  unsigned shift_ = 0;           // of the hash, to the size of slots_
  std::vector<uint32_t> slots_;  // at most half full
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNone, newest_ = kNone;
  uint32_t used_ = 0;
};

}  // namespace roci
