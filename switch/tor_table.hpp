// What the switch at which hosts are attached knows of their flows, so that it can turn a self-defined CNM, which names a
// flow by its five fields, into the CNM that the flow's sender understands (L3QCN 5.2.2 steps 1 and 4). Bounded
// (ageing_table.hpp).
#pragma once

#include <cstdint>

#include "switch/ageing_table.hpp"
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

struct FlowHash {
  uint64_t operator()(const FiveTuple& key, uint64_t salt) const;
};

// Owned by the switch's thread.
class TorTable {
  using Table = AgeingTable<FiveTuple, TorFlow, FlowHash>;

 public:
  using Learned = Table::Learned;

  // `ageing` after the last frame of a flow it is forgotten; kNever keeps all. Without a size it knows nothing.
  TorTable(uint32_t size, Nanos ageing) : table_(size, ageing) {}

  Learned learn(const FiveTuple& key, const TorFlow& flow, Nanos now) {
    const auto heard = table_.hear(key, now);
    if (heard.value != nullptr) *heard.value = flow;
    return heard.learned;
  }
  // Of what was last learnt: whether who has a copy of the table is to be told (AgeingTable).
  [[nodiscard]] bool is_to_be_told(Nanos now) const { return table_.is_to_be_told(now); }
  void told(Nanos now) { table_.told(now); }
  // Null when it is not known. Valid until something is learnt.
  [[nodiscard]] const TorFlow* find(const FiveTuple& key, Nanos now) const { return table_.find(key, now); }

  // Entries, counting old ones that nobody has asked for.
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  [[nodiscard]] uint32_t capacity() const { return table_.capacity(); }

 private:
  Table table_;
};

}  // namespace roci
