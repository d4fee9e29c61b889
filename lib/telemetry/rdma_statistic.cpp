#include "telemetry/rdma_statistic.hpp"

namespace roci {
namespace {

constexpr Counter kNone = Counter::kCount;

constexpr RdmaStatistic kStatistics[] = {
    // Both
    {"duplicate_request", {Counter::kRequestsDuplicate, kNone}},
    // rxe
    {"sent_pkts", {Counter::kTxFrames, kNone}},
    {"rcvd_pkts", {Counter::kRxRoce, kNone}},
    {"out_of_seq_request", {Counter::kRequestsOutOfOrder, kNone}},
    {"rcvd_rnr_err", {Counter::kRnrNaksReceived, kNone}},
    {"send_rnr_err", {Counter::kRnrNaksSent, kNone}},
    {"rcvd_seq_err", {Counter::kNaksSequenceReceived, kNone}},
    // mlx5
    {"out_of_sequence", {Counter::kRequestsOutOfOrder, kNone}},
    {"out_of_buffer", {Counter::kRnrNaksSent, Counter::kRxNoReceive}},
    {"packet_seq_err", {Counter::kNaksSequenceReceived, kNone}},
    {"implied_nak_seq_err", {Counter::kResponsesOutOfOrder, kNone}},
    {"rnr_nak_retry_err", {Counter::kRnrNaksReceived, kNone}},
    {"local_ack_timeout_err", {Counter::kTimeouts, kNone}},
    {"resp_remote_access_errors", {Counter::kNaksAccessSent, kNone}},
    {"rx_icrc_encapsulated", {Counter::kRxIcrcErrors, kNone}},
    {"np_cnp_sent", {Counter::kNpCnpsSent, kNone}},
    {"np_ecn_marked_roce_packets", {Counter::kRxCeMarked, kNone}},
    {"rp_cnp_handled", {Counter::kRpCnpsHandled, kNone}},
    {"rp_cnp_ignored", {Counter::kRpCnpsIgnored, kNone}},
};

}  // namespace

std::span<const RdmaStatistic> rdma_statistics() { return kStatistics; }

}  // namespace roci
