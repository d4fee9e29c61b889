// State transitions of queue pairs: the legal ones, with required and optional attributes (IBTA 11.2.5.2, table 96).
#pragma once

#include <infiniband/verbs.h>

#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace roci {

std::string_view qp_state_name(ibv_qp_state state);

// Attributes of a transition: sets of ibv_qp_attr_mask, without IBV_QP_STATE.
struct AttributeMasks {
  int required = 0;
  int optional = 0;
};

// nullopt when the service does not support the transition.
std::optional<AttributeMasks> find_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to);

// `mask` may contain IBV_QP_STATE. The error message lists the attributes that are missing or not allowed.
Status check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace roci
