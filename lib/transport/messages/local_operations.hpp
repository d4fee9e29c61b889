// Local operations: work requests that send no packet, namely binding and invalidating memory windows (IBTA 10.6.7,
// 10.8.2). A local operation is executed once, in the order of the send queue, and completes after all requests before
// it.
#pragma once

#include <infiniband/verbs.h>

#include "transport/packet_sink.hpp"
#include "transport/queues/work_queue.hpp"

namespace roci {

// Copies the window parameters of the request; a bind has a window. The ibv_mw of a program has the key of its last
// posted bind; that of a MemoryWindow, which has no context, keeps its key.
void take_local_operation(SendWqe& wqe, const ibv_send_wr& wr);

// Executes the operation and returns its completion status.
[[nodiscard]] ibv_wc_status execute_local_operation(const TransportContext& context, const Accessor& accessor,
                                                    const SendWqe& wqe);

}  // namespace roci
