// The queue pair of an identifier: made, connected, and taken out of service as the connection goes.
#pragma once

#include "rdmacm/id.hpp"

namespace roci::rdmacm {

ibv_ah_attr address_of_peer(const Id& id);
// To RTS, as the terms say. False, and errno.
bool connect_queue_pair(Id& id);
bool fail_queue_pair(Id& id);
// The attributes of a transition (rdma_init_qp_attr).
bool attributes_for(Id& id, ibv_qp_state state, ibv_qp_attr& attr, int& mask);

// Where what the queue pair, or an XRC shared receive queue, receives is completed, when the program brought nothing.
bool make_receive_queue(Id& id, uint32_t entries);
void destroy_queues(Id& id);

void leave_events(Id& id);
// With the events that nobody has fetched; `own`: the channel is the id's.
int move_to_channel(Id& id, rdma_event_channel* channel, bool own);
// Everything of an id but its queue pair, which is the program's to destroy.
void destroy(Id& id);

}  // namespace roci::rdmacm
