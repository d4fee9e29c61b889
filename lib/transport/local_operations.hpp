// Work requests of the send queue that send nothing: binding and invalidating memory windows (IBTA 10.6.7, 10.8.2). The
// requester executes one when its turn comes, once, and completes it after everything posted before it.
#pragma once

#include <infiniband/verbs.h>

#include "transport/packet_sink.hpp"
#include "transport/work_queue.hpp"

namespace roci {

// Copies what the request says about the window. False when it names none.
[[nodiscard]] bool take_local_operation(SendWqe& wqe, const ibv_send_wr& wr);

// The status that it completes with.
[[nodiscard]] ibv_wc_status execute_local_operation(const TransportContext& context, const Accessor& who,
                                                    const SendWqe& wqe);

}  // namespace roci
