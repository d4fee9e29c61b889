// An address handle with what the engine needs to send to it, and the finding of its next hop.
#pragma once

#include <memory>
#include <vector>

#include "port/neighbours.hpp"
#include "transport/address_path.hpp"

namespace roci {

// One worker's view of an address: its next hop, and headers laid out with that one's MAC.
struct AddressView {
  NeighbourRef neighbour;  // empty until the worker first sends there
  uint32_t neighbour_version = 0;
  bool laid_out = false;
  RoceWriter writer;
};

// Each view is owned by whoever holds its worker's token; made and destroyed with all tokens in hand.
struct AttachedAddress final : AddressPath {
  AttachedAddress(const RocePath& to, PdNumber domain, uint32_t most, size_t workers)
      : AddressPath(to, domain, most), views(workers) {}
  std::vector<AddressView> views;  // by the worker's index
};

// The next hops of one worker's datagrams.
class AddressResolver {
 public:
  AddressResolver(Neighbours& neighbours, size_t worker, RoceWriter::Contents contents)
      : neighbours_(neighbours), worker_(worker), contents_(contents) {}

  PathSource::Answer find(AttachedAddress& to, Nanos now);
  // Whether an answer has been kPending since the last call: then the queue pair that was served waits.
  bool take_pending() { return std::exchange(pending_, false); }

 private:
  Neighbours& neighbours_;
  const size_t worker_;
  const RoceWriter::Contents contents_;
  bool pending_ = false;
};

// Address handles whose owners have let go of them while posted requests still name them. All tokens in hand.
class RetiredAddresses {
 public:
  void add(std::unique_ptr<AttachedAddress> address);
  [[nodiscard]] size_t size() const { return addresses_.size(); }

 private:
  std::vector<std::unique_ptr<AttachedAddress>> addresses_;
};

}  // namespace roci
