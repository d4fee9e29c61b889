// Which state changes of a queue pair are legal and which attributes they need or allow (IBTA 11.2.5.2, table 96).
#pragma once

#include <infiniband/verbs.h>

#include "base/result.hpp"

namespace roci {

std::string_view qp_state_name(ibv_qp_state state);

// `mask` is a set of ibv_qp_attr_mask; IBV_QP_STATE and IBV_QP_CUR_STATE may be in it. The sentence names the
// attributes that are missing or too many.
Status check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace roci
