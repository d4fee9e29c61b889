#include "roci-perf/output/completion_status.hpp"

#include <array>
#include <cstdio>

namespace roci::perf {
namespace {

struct StatusRow {
  ibv_wc_status status;
  std::string_view name;
  std::string_view hint;
};

#define ROW(name, hint) \
  StatusRow { name, #name, hint }
constexpr std::array kRows{
    ROW(IBV_WC_SUCCESS, "no error"),
    ROW(IBV_WC_LOC_LEN_ERR, "a message exceeds its buffer"),
    ROW(IBV_WC_LOC_QP_OP_ERR, "the queue pair could not execute the request"),
    ROW(IBV_WC_LOC_EEC_OP_ERR, "the end-to-end context could not execute the request"),
    ROW(IBV_WC_LOC_PROT_ERR, "a local memory region does not allow the access"),
    ROW(IBV_WC_WR_FLUSH_ERR, "the queue pair was in the error state"),
    ROW(IBV_WC_MW_BIND_ERR, "a memory window could not be bound"),
    ROW(IBV_WC_BAD_RESP_ERR, "the peer's response is invalid"),
    ROW(IBV_WC_LOC_ACCESS_ERR, "a received message has no access to local memory"),
    ROW(IBV_WC_REM_INV_REQ_ERR, "the peer rejects the request as invalid"),
    ROW(IBV_WC_REM_ACCESS_ERR, "the peer's memory region does not allow the access"),
    ROW(IBV_WC_REM_OP_ERR, "the peer could not execute the request"),
    ROW(IBV_WC_RETRY_EXC_ERR, "the peer does not respond"),
    ROW(IBV_WC_RNR_RETRY_EXC_ERR, "the peer had no posted receive request"),
    ROW(IBV_WC_LOC_RDD_VIOL_ERR, "the reliable datagram domains differ"),
    ROW(IBV_WC_REM_INV_RD_REQ_ERR, "the peer rejects the reliable datagram request"),
    ROW(IBV_WC_REM_ABORT_ERR, "the peer aborted the request"),
    ROW(IBV_WC_INV_EECN_ERR, "the end-to-end context number is wrong"),
    ROW(IBV_WC_INV_EEC_STATE_ERR, "the end-to-end context is in the wrong state"),
    ROW(IBV_WC_FATAL_ERR, "the device failed"),
    ROW(IBV_WC_RESP_TIMEOUT_ERR, "no response in time"),
    ROW(IBV_WC_GENERAL_ERR, "the device reports an unspecified error"),
};
#undef ROW

const StatusRow* find(ibv_wc_status status) {
  for (const StatusRow& row : kRows) {
    if (row.status == status) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view status_name(ibv_wc_status status) {
  const StatusRow* row = find(status);
  return row == nullptr ? "unknown status" : row->name;
}

std::string_view status_hint(ibv_wc_status status) {
  const StatusRow* row = find(status);
  return row == nullptr ? "the device reports a status that verbs does not define" : row->hint;
}

std::string failure_sentence(const ibv_wc& completion, uint64_t message) {
  char start[80];
  std::snprintf(start, sizeof start, "queue pair 0x%06x failed at message %llu: ", completion.qp_num,
                static_cast<unsigned long long>(message));
  return start + std::string(status_hint(completion.status)) + " (" +
         std::string(status_name(completion.status)) + ")";
}

}  // namespace roci::perf
