// Names of completion statuses as verbs programmers know them, with what they usually mean here.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

namespace roci::perf {

std::string_view status_name(
    ibv_wc_status status);  // "IBV_WC_RETRY_EXC_ERR"; "unknown status" beyond the list
std::string_view status_hint(ibv_wc_status status);  // a half-sentence for the user; never empty

// "queue pair 0x000012 failed at message 5: the peer stopped answering (IBV_WC_RETRY_EXC_ERR)"
std::string failure_sentence(const ibv_wc& completion, uint64_t message);

}  // namespace roci::perf
