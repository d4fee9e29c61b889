#include "transport/qp_transitions.hpp"

#include <span>
#include <string>

namespace roci {
namespace {

struct Transition {
  ibv_qp_state from, to;
  int required, optional;
};

constexpr Transition kReliable[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

constexpr Transition kUnreliable[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
};
constexpr Transition kDatagram[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_QKEY},
};

struct AttributeName {
  int bit;
  const char* name;
};
constexpr AttributeName kAttributeNames[] = {
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
  }
  return names;
}

}  // namespace

std::string_view qp_state_name(ibv_qp_state state) {
  constexpr std::string_view kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state <= IBV_QPS_ERR ? kNames[state] : "unknown";
}

Status check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  const std::string what =
      "queue pair: " + std::string(qp_state_name(from)) + " to " + std::string(qp_state_name(to));
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    if (attributes == 0) return {};
    return fail(what + " takes no attributes, but has " + attribute_names(attributes));
  }
  std::span<const Transition> transitions = kReliable;
  if (type == IBV_QPT_UC) transitions = kUnreliable;
  if (type == IBV_QPT_UD) transitions = kDatagram;
  for (const Transition& t : transitions) {
    if (t.from != from || t.to != to) continue;
    if (const int missing = t.required & ~attributes; missing != 0) {
      return fail(what + " lacks " + attribute_names(missing));
    }
    if (const int extra = attributes & ~(t.required | t.optional); extra != 0) {
      return fail(what + " does not take " + attribute_names(extra));
    }
    return {};
  }
  return fail(what + " is not a legal transition");
}

}  // namespace roci
