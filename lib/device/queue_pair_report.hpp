// What a live view wants to know of a device's queue pairs: who is there, who is busy, and what a few of them do. A device
// may have very many, so a worker's token is held for some of them at a time and given back in between: what comes back is
// of one moment for each queue pair, not for all.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/host.hpp"
#include "roci/congestion_report.hpp"

namespace roci {

// What is read of each when there are very many.
struct QueuePairActivity {
  uint32_t qp_num = 0;
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  // How far the PSNs have come, of what it sends and of what its peer sends: a packet more is 1 more, modulo 2^24. It says
  // nothing by itself, but a difference is packets, those that are sent again left out. UD counts what it sends.
  uint32_t psns = 0;
};

// One direction of a queue pair: its requests, or the READ responses that it sends.
struct QueuePairReport {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  std::string peer;  // its address; empty before RTR, and of UD
  uint32_t peer_qp_num = 0;
  uint32_t send_psn = 0;  // of the next packet; UC and UD count nothing else
  // Payload and packets that have arrived: at the peer as far as it says so, and here. RC alone.
  uint64_t acked_bytes = 0, received_bytes = 0, received_packets = 0;
  // Of a queue pair without congestion control: the profile is "window" or "none", and what is not known is 0.
  CongestionFlowReport flow;
};

// The lowest numbers of all that are there, from `from` on, in order. Any thread without a token; so the others.
std::vector<uint32_t> queue_pair_numbers(Host& host, uint32_t from, size_t most);
// Those of these numbers that are there, in this order.
std::vector<QueuePairActivity> queue_pair_activity(Host& host, std::span<const uint32_t> numbers);
// The same; requests come first, and READ responses when any has been sent.
std::vector<QueuePairReport> report_queue_pairs(Host& host, std::span<const uint32_t> numbers);

// "RC", "UC", "UD", "XRC_SEND", "XRC_RECV".
std::string qp_type_name(ibv_qp_type type);

// What is counted of a flow, by the names under which people see it.
std::vector<std::pair<std::string, uint64_t>> numbers_of(const CongestionFlowReport& flow);

// Number and CongestionControl::directions() of each that has any.
std::vector<std::pair<uint32_t, uint32_t>> queue_pair_flows(Host& host, std::span<const uint32_t> numbers);

}  // namespace roci
