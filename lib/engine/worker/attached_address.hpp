// An address handle with the engine's state for sending to it, and the resolution of its next hop.
#pragma once

#include <memory>
#include <vector>

#include "port/neighbors/neighbors.hpp"
#include "transport/address_path.hpp"

namespace roci {

// A worker's state of an address: the next hop, and prepared headers with its MAC address.
struct AddressView {
  NeighborRef neighbor;  // empty until the worker first sends to the address
  uint32_t neighbor_version = 0;
  bool laid_out = false;
  RoceWriter writer;
};

// A view is owned by the holder of its worker's token. Created and destroyed while all tokens are held.
struct AttachedAddress final : AddressPath {
  AttachedAddress(const RocePath& to, PdNumber domain, uint32_t most, size_t workers)
      : AddressPath(to, domain, most), views(workers) {}
  std::vector<AddressView> views;  // indexed by worker
};

// Resolves the next hops of one worker's datagrams.
class AddressResolver {
 public:
  AddressResolver(Neighbors& neighbors, size_t worker, RoceWriter::Contents contents)
      : neighbors_(neighbors), worker_(worker), contents_(contents) {}

  PathSource::Answer find(AttachedAddress& to, Nanos now);
  // Whether find() has returned kPending since the last call: the queue pair that is being served must then wait.
  bool take_pending() { return std::exchange(pending_, false); }

 private:
  Neighbors& neighbors_;
  const size_t worker_;
  const RoceWriter::Contents contents_;
  bool pending_ = false;
};

// Address handles that were destroyed while posted requests still refer to them. Requires all tokens.
class RetiredAddresses {
 public:
  void add(std::unique_ptr<AttachedAddress> address);
  [[nodiscard]] size_t size() const { return addresses_.size(); }

 private:
  std::vector<std::unique_ptr<AttachedAddress>> addresses_;
};

}  // namespace roci
