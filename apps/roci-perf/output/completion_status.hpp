// Names of completion statuses as in libibverbs, with their usual cause in this program.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

namespace roci::perf {

// "IBV_WC_RETRY_EXC_ERR"; "unknown status" for a value that is not in the enumeration.
std::string_view status_name(ibv_wc_status status);
std::string_view status_hint(ibv_wc_status status);  // usual cause, as part of a sentence; never empty

// "queue pair 0x000012 failed at message 5: the peer stopped answering (IBV_WC_RETRY_EXC_ERR)"
std::string failure_sentence(const ibv_wc& completion, uint64_t message);

}  // namespace roci::perf
