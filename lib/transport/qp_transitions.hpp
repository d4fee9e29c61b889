// Which state changes of a queue pair are legal and which attributes they need or allow (IBTA 11.2.5.2, table 96).
#pragma once

#include <infiniband/verbs.h>

#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace roci {

std::string_view qp_state_name(ibv_qp_state state);

// What a transition must and may be given: sets of ibv_qp_attr_mask, without IBV_QP_STATE.
struct AttributeMasks {
  int required = 0;
  int optional = 0;
};

// None when the service has no such transition.
std::optional<AttributeMasks> find_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to);

// `mask` may hold IBV_QP_STATE. The sentence names the attributes that are missing or too many.
Status check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace roci
