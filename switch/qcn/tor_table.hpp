// ToR table: flows of the hosts attached to a switch, by five-tuple. With it, the switch translates a self-defined CNM
// into the CNM that the flow's sender supports (L3QCN 5.2.2 steps 1 and 4). Bounded (ageing_table.hpp).
#pragma once

#include <cstdint>

#include "switch/forwarding/ageing_table.hpp"
#include "wire/cnm/congestion_notification.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

// Link-layer header of a flow, as the host sends it.
struct TorFlow {
  MacAddress source;
  MacAddress destination;  // of the router, if the flow leaves the network
  uint16_t vlan = 0;
  LinkTags tags;  // including the CN-TAG

  // Link header of a CNM to the host.
  [[nodiscard]] CnmLink answer(const MacAddress& own) const;
};

struct FlowHash {
  uint64_t operator()(const FiveTuple& key, uint64_t salt) const;
};

// Owned by one switch worker.
class TorTable {
  using Table = AgeingTable<FiveTuple, TorFlow, FlowHash>;

 public:
  using Learned = Table::Learned;

  // A flow is removed `ageing` after its last frame; kNever: never. A table of size 0 learns nothing.
  TorTable(uint32_t size, Nanos ageing) : table_(size, ageing) {}

  Learned learn(const FiveTuple& key, const TorFlow& flow, Nanos now) {
    const auto updated = table_.update(key, now);
    if (updated.value != nullptr) *updated.value = flow;
    return updated.learned;
  }
  // Whether the other workers' tables need the flow of the last learn() (AgeingTable).
  [[nodiscard]] bool needs_announcement(Nanos now) const { return table_.needs_announcement(now); }
  void announced(Nanos now) { table_.announced(now); }
  // Returns null for an unknown flow. Valid until the next learn().
  [[nodiscard]] const TorFlow* find(const FiveTuple& key, Nanos now) const { return table_.find(key, now); }

  // Number of entries, including expired ones that are not removed yet.
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  [[nodiscard]] uint32_t capacity() const { return table_.capacity(); }

 private:
  Table table_;
};

}  // namespace roci
