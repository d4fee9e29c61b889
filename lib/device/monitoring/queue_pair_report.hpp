// Queries of a device's queue pairs for monitoring: numbers, activity and details. A device may have millions of queue
// pairs, so a worker's token is held for a limited number of them at a time. A result is consistent for each queue
// pair, not across all.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/host/host.hpp"
#include "roci/congestion_report.hpp"

namespace roci {

// The values that are read of each queue pair when there are very many.
struct QueuePairActivity {
  uint32_t qp_num = 0;
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  // Sum of the PSNs of the next packet to be sent and of the next packet expected, modulo 2^24. Only differences have a
  // meaning: the number of packets, without retransmissions. UD counts sent packets only.
  uint32_t psns = 0;
};

// One direction of a queue pair: its requests, or the READ responses that it sends.
struct QueuePairReport {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  std::string peer;  // IP address; empty before RTR, and for UD
  uint32_t peer_qp_num = 0;
  uint32_t send_psn = 0;  // of the next packet; the only count of UC and UD
  // Payload and packets that have arrived: at the peer as far as acknowledged, and here. RC only.
  uint64_t acked_bytes = 0, received_bytes = 0, received_packets = 0;
  // Without congestion control, the profile is "window" or "none", and unknown values are 0.
  CongestionFlowReport flow;
};

// The lowest queue pair numbers from `from` on, at most `most`, in order. Any thread without a token; so are the
// functions below.
std::vector<uint32_t> queue_pair_numbers(Host& host, uint32_t from, size_t most);
// Activity of those of `numbers` that exist, in this order.
std::vector<QueuePairActivity> queue_pair_activity(Host& host, std::span<const uint32_t> numbers);
// The same with details. A queue pair has a row for its requests, followed by one for READ responses if it has sent
// any.
std::vector<QueuePairReport> report_queue_pairs(Host& host, std::span<const uint32_t> numbers);

// "RC", "UC", "UD", "XRC_SEND", "XRC_RECV".
std::string qp_type_name(ibv_qp_type type);

// Counts of a flow with the names shown to users.
std::vector<std::pair<std::string, uint64_t>> numbers_of(const CongestionFlowReport& flow);

// Number and CongestionControl::directions() of each queue pair with congestion control.
std::vector<std::pair<uint32_t, uint32_t>> queue_pair_flows(Host& host, std::span<const uint32_t> numbers);

}  // namespace roci
