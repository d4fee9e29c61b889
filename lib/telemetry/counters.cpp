#include "telemetry/counters.hpp"

namespace roci {

std::string_view counter_name(Counter counter) {
  constexpr std::array<std::string_view, kCounterCount> kNames = {
      "rx_frames",
      "rx_handed_over",
      "rx_hand_over_full",
      "rx_roce",
      "rx_not_for_us",
      "rx_malformed",
      "rx_unknown_opcode",
      "rx_icrc_errors",
      "rx_other_protocol",
      "rx_unknown_qp",
      "rx_wrong_source",
      "rx_wrong_pkey",
      "rx_wrong_transport",
      "rx_bad_state",
      "rx_cnp",
      "rx_ce_marked",
      "tx_frames",
      "tx_no_buffer",
      "requests_received",
      "requests_duplicate",
      "requests_out_of_order",
      "read_replays",
      "atomic_replays",
      "replays_refused",
      "acks_sent",
      "naks_sequence_sent",
      "naks_invalid_sent",
      "naks_access_sent",
      "naks_operational_sent",
      "rnr_naks_sent",
      "responses_received",
      "responses_duplicate",
      "responses_ghost",
      "responses_out_of_order",
      "naks_sequence_received",
      "naks_fatal_received",
      "rnr_naks_received",
      "timeouts",
      "packets_retransmitted",
      "reads_reissued",
      "cq_overflows",
  };
  return kNames[static_cast<size_t>(counter)];
}

}  // namespace roci
