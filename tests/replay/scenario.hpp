// Responder parameters of a recorded exchange: numbers of the queue pair, memory contents as in the READ responses,
// and times of receives. Also the expected results, from a minimal model.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "replay/differences.hpp"
#include "replay/replay_host.hpp"

namespace roci::test {

struct Scenario {
  struct Request {
    int frame = 0;  // number in the capture
    ByteVector bytes;
  };

  // The responder's program changed its own memory before this request: rping refills its buffer for each READ.
  struct LocalWrite {
    int frame = 0;
    MemoryKey rkey;
    uint64_t va = 0;
    ByteVector bytes;
  };

  ReplayHost::Config host;
  std::vector<LocalWrite> local_writes;
  std::vector<Request> requests;   // in the order of sending
  std::vector<uint32_t> receives;  // sizes of the receive buffers, one per message
  int receives_before = 0;         // frame before which they are posted

  Regions regions_after;
  std::vector<ByteVector> received;  // format of ReplayHost::received()
};

// `differences`: those of the exchange's capture.
Scenario make_scenario(const Exchange& exchange, std::span<const Difference> differences);

}  // namespace roci::test
