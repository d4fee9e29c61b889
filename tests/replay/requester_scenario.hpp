// Requester parameters of a recorded exchange: numbers of the queue pair, and the posted send requests with the time
// at which the first packet of each was recorded.
#pragma once

#include <vector>

#include "replay/replay_host.hpp"

namespace roci::test {

// Queue pair attributes that no packet shows, and the completion status of the last request.
struct RecordedProgram {
  uint8_t timeout = 14;  // encoded: 67.1 ms
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  ibv_wc_status end = IBV_WC_SUCCESS;
};
RecordedProgram recorded_program(std::string_view capture);

struct RequesterScenario {
  struct Posted {
    Nanos at;
    ReplayHost::Message message;
    ByteVector answer;  // buffer contents after the responses of a READ or an atomic
  };
  ReplayHost::Config host;
  std::vector<Posted> posted;  // in the order of posting
};

// Throws std::runtime_error if the frames are not complete messages.
RequesterScenario make_requester_scenario(const Exchange& exchange);

// Number of PSNs of a request: more than one for a READ.
uint32_t psns_of(const Packet& request, uint32_t path_mtu);

}  // namespace roci::test
