// What a recorded exchange says about its responder, so that ours can stand in for it: the numbers of the queue pair,
// the memory as the READ responses show it, when receive buffers were there; and what has to come of it, by a model
// that is as simple as possible.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "replay/differences.hpp"
#include "replay/replay_host.hpp"

namespace roci::test {

struct Scenario {
  struct Request {
    int frame = 0;  // its number in the capture
    ByteVector bytes;
  };

  // The responder's program changed its own memory before this request: rping fills its buffer anew for each READ.
  struct LocalWrite {
    int frame = 0;
    MemoryKey rkey;
    uint64_t va = 0;
    ByteVector bytes;
  };

  ReplayHost::Config host;
  std::vector<LocalWrite> local_writes;
  std::vector<Request> requests;   // to be fed, in order
  std::vector<uint32_t> receives;  // sizes of the receive buffers, one a message
  int receives_before = 0;         // frame before which they are posted

  Regions regions_after;
  std::vector<ByteVector> received;  // as ReplayHost::received() has it
};

// `differences`: those of the exchange's capture.
Scenario make_scenario(const Exchange& exchange, std::span<const Difference> differences);

}  // namespace roci::test
