// What a recorded exchange says about its requester, so that ours can stand in for it: the numbers of the queue pair and
// the send requests that its program posted, each from the time when its first packet was recorded.
#pragma once

#include <vector>

#include "replay/replay_host.hpp"

namespace roci::test {

// What the program gave its queue pair and no packet shows, with the status that its last request ended with.
struct RecordedProgram {
  uint8_t timeout = 14;  // code: 67.1 ms
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  ibv_wc_status end = IBV_WC_SUCCESS;
};
RecordedProgram recorded_program(std::string_view capture);

struct RequesterScenario {
  struct Posted {
    Nanos at;
    ReplayHost::Message message;
    ByteVector answer;  // what the responses of a READ or an atomic put into the buffer
  };
  ReplayHost::Config host;
  std::vector<Posted> posted;  // in order
};

// Throws std::runtime_error when the frames do not make whole messages.
RequesterScenario make_requester_scenario(const Exchange& exchange);

// PSNs that a request takes: more than one for a READ.
uint32_t psns_of(const Packet& request, uint32_t path_mtu);

}  // namespace roci::test
