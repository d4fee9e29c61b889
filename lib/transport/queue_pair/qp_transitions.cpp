#include "transport/queue_pair/qp_transitions.hpp"

#include <optional>
#include <string>

namespace roci {
namespace {

using Masks = std::optional<AttributeMasks>;

// Attributes of one transition for each service; nullopt where the service does not support the transition.
struct Transition {
  ibv_qp_state from, to;
  Masks rc, uc, ud, xrc_send, xrc_recv, raw;
};

constexpr AttributeMasks kNothing{};
constexpr int kPlace = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kPeer = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
// Attributes of a responder that sends acknowledgments.
constexpr int kAnswers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kResumes = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;
constexpr int kRunning = kResumes | IBV_QP_PATH_MIG_STATE;
constexpr int kRunningUd = IBV_QP_CUR_STATE | IBV_QP_QKEY;

constexpr AttributeMasks kOpened{kPlace | IBV_QP_ACCESS_FLAGS, 0};
constexpr AttributeMasks kMoved{0, kPlace | IBV_QP_ACCESS_FLAGS};
constexpr int kDrained = IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int kMayChange = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr AttributeMasks kRunningPlain{0, kRunning};
constexpr AttributeMasks kRunningAnswers{0, kRunning | IBV_QP_MIN_RNR_TIMER};
constexpr AttributeMasks kRunningDatagrams{0, kRunningUd};
constexpr AttributeMasks kDrains{0, IBV_QP_EN_SQD_ASYNC_NOTIFY};

// IBTA table 96 and, for XRC, annex A14, without alternate paths. PATH_MIG_STATE is permitted where Linux permits it; its
// value must be MIGRATED. An XRC initiator has the attributes of RC's requester, an XRC target those of RC's responder.
// Raw packet queue pairs are as in Linux. Every state has transitions to RESET and ERR, without attributes.
constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kOpened, kOpened, AttributeMasks{kPlace | IBV_QP_QKEY, 0}, kOpened, kOpened,
     AttributeMasks{IBV_QP_PORT, 0}},
    {IBV_QPS_INIT, IBV_QPS_INIT, kMoved, kMoved, AttributeMasks{0, kPlace | IBV_QP_QKEY}, kMoved, kMoved,
     kNothing},
    {IBV_QPS_INIT, IBV_QPS_RTR, AttributeMasks{kPeer | kAnswers, kMayChange},
     AttributeMasks{kPeer, kMayChange}, AttributeMasks{0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX},
     AttributeMasks{kPeer, kMayChange}, AttributeMasks{kPeer | kAnswers, kMayChange}, kNothing},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     AttributeMasks{kRetries | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, kRunning | IBV_QP_MIN_RNR_TIMER},
     AttributeMasks{IBV_QP_SQ_PSN, kRunning}, AttributeMasks{IBV_QP_SQ_PSN, kRunningUd},
     AttributeMasks{kRetries | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, kRunning},
     AttributeMasks{IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, kRunning | IBV_QP_MIN_RNR_TIMER}, kNothing},
    {IBV_QPS_RTS, IBV_QPS_RTS, kRunningAnswers, kRunningPlain, kRunningDatagrams, kRunningPlain,
     kRunningAnswers, kNothing},
    {IBV_QPS_RTS, IBV_QPS_SQD, kDrains, kDrains, kDrains, kDrains, kDrains, kNothing},
    {IBV_QPS_SQD, IBV_QPS_SQD,
     AttributeMasks{0, kPlace | IBV_QP_AV | kRetries | IBV_QP_MAX_QP_RD_ATOMIC | kAnswers | kDrained},
     AttributeMasks{0, IBV_QP_AV | IBV_QP_PKEY_INDEX | kDrained},
     AttributeMasks{0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
     AttributeMasks{0, kPlace | IBV_QP_AV | kRetries | IBV_QP_MAX_QP_RD_ATOMIC | kDrained},
     AttributeMasks{0, kPlace | IBV_QP_AV | IBV_QP_TIMEOUT | kAnswers | kDrained}, kNothing},
    {IBV_QPS_SQD, IBV_QPS_RTS, kRunningAnswers, kRunningPlain, kRunningDatagrams, kRunningPlain,
     kRunningAnswers, kNothing},
    // Reliable services have no SQE state: local errors lead to ERR (IBTA 10.3.1.6).
    {IBV_QPS_SQE, IBV_QPS_RTS, std::nullopt, AttributeMasks{0, kResumes}, kRunningDatagrams, std::nullopt,
     std::nullopt, kNothing},
};

Masks Transition::*masks_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return &Transition::uc;
    case IBV_QPT_UD:
      return &Transition::ud;
    case IBV_QPT_XRC_SEND:
      return &Transition::xrc_send;
    case IBV_QPT_XRC_RECV:
      return &Transition::xrc_recv;
    case IBV_QPT_RAW_PACKET:
      return &Transition::raw;
    default:
      return &Transition::rc;
  }
}

struct AttributeName {
  int bit;
  const char* name;
};
constexpr AttributeName kAttributeNames[] = {
    {IBV_QP_CUR_STATE, "CUR_STATE"},
    {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
    {IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
    {IBV_QP_PORT, "PORT"},
    {IBV_QP_QKEY, "QKEY"},
    {IBV_QP_AV, "AV"},
    {IBV_QP_PATH_MTU, "PATH_MTU"},
    {IBV_QP_TIMEOUT, "TIMEOUT"},
    {IBV_QP_RETRY_CNT, "RETRY_CNT"},
    {IBV_QP_RNR_RETRY, "RNR_RETRY"},
    {IBV_QP_RQ_PSN, "RQ_PSN"},
    {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
    {IBV_QP_ALT_PATH, "ALT_PATH"},
    {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
    {IBV_QP_SQ_PSN, "SQ_PSN"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
    {IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
    {IBV_QP_CAP, "CAP"},
    {IBV_QP_DEST_QPN, "DEST_QPN"},
    {IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
};

std::string attribute_names(int bits) {
  std::string names;
  for (const AttributeName& attribute : kAttributeNames) {
    if ((bits & attribute.bit) == 0) continue;
    names += names.empty() ? "" : ", ";
    names += attribute.name;
    bits &= ~attribute.bit;
  }
  if (bits != 0) names += (names.empty() ? "unknown bits " : ", unknown bits ") + std::to_string(bits);
  return names;
}

}  // namespace

std::string_view qp_state_name(ibv_qp_state state) {
  constexpr std::string_view kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state <= IBV_QPS_ERR ? kNames[state] : "unknown";
}

std::optional<AttributeMasks> find_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  if (from > IBV_QPS_ERR) return std::nullopt;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return kNothing;
  for (const Transition& t : kTransitions) {
    if (t.from == from && t.to == to) return t.*masks_of(type);
  }
  return std::nullopt;
}

Status check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~IBV_QP_STATE;
  if ((attributes & IBV_QP_ALT_PATH) != 0) {
    return fail("queue pair: ALT_PATH cannot be set; RoCE devices do not support path migration", EOPNOTSUPP);
  }
  const std::string what =
      "queue pair: " + std::string(qp_state_name(from)) + " to " + std::string(qp_state_name(to));
  const auto masks = find_transition(type, from, to);
  if (!masks) return fail(what + " is not a legal transition");
  if (const int missing = masks->required & ~attributes; missing != 0)
    return fail(what + " lacks " + attribute_names(missing));
  if (const int extra = attributes & ~(masks->required | masks->optional); extra != 0)
    return fail(what + " does not allow " + attribute_names(extra));
  return {};
}

}  // namespace roci
