// Names of enumeration values, which programs print. The text is exactly that of rdma-core.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

#include "verbs/any_value.hpp"

namespace {

template <size_t N>
const char* text_at(const std::array<const char*, N>& texts, int value) {
  return value >= 0 && static_cast<size_t>(value) < N ? texts[static_cast<size_t>(value)] : "unknown";
}

// In the order of the enumerators.
constexpr std::array kNodeTypes{
    "unknown",  // 0 is no type
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
};
static_assert(kNodeTypes.size() == IBV_NODE_UNSPECIFIED + 1);

constexpr std::array kPortStates{"no state change (NOP)", "down", "init", "armed", "active", "active defer"};
static_assert(kPortStates.size() == IBV_PORT_ACTIVE_DEFER + 1);

constexpr std::array kEvents{
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};
static_assert(kEvents.size() == IBV_EVENT_WQ_FATAL + 1);

constexpr std::array kStatuses{
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};
static_assert(kStatuses.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

// Null: no opcode has this value.
constexpr std::array<const char*, 16> kOpcodes{
    "rdma-write",
    "rdma-write-with-imm",
    "send",
    "send-with-imm",
    "rdma-read",
    "atomic-cmp-and-swp",
    "atomic-fetch-and-add",
    "local-inv",
    "bind-mw",
    "send-with-inv",
    "tso",
    "driver1",
    nullptr,
    nullptr,
    "flush",
    "atomic-write",
};

}  // namespace

ROCI_ANY_VALUE const char* ibv_node_type_str(ibv_node_type type) { return text_at(kNodeTypes, type); }
ROCI_ANY_VALUE const char* ibv_port_state_str(ibv_port_state state) {
  return text_at(kPortStates, static_cast<int>(state));
}
ROCI_ANY_VALUE const char* ibv_event_type_str(ibv_event_type event) {
  return text_at(kEvents, static_cast<int>(event));
}
ROCI_ANY_VALUE const char* ibv_wc_status_str(ibv_wc_status status) {
  return text_at(kStatuses, static_cast<int>(status));
}
// rdma-core 44 does not have it. In rdma-core 56 it is public, with a private version node.
extern "C" ROCI_ANY_VALUE const char* ibv_wr_opcode_str(ibv_wr_opcode opcode) {
  return text_at(kOpcodes, static_cast<int>(opcode));
}
