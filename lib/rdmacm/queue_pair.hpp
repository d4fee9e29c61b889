// Queue pair of an identifier: creation, state transitions of the connection, and error state.
#pragma once

#include "rdmacm/id.hpp"

namespace roci::rdmacm {

ibv_ah_attr address_of_peer(const Id& id);
// Moves the queue pair to RTS with the negotiated parameters. Returns false with errno on failure.
bool connect_queue_pair(Id& id);
bool fail_queue_pair(Id& id);
// The attributes of a transition (rdma_init_qp_attr).
bool attributes_for(Id& id, ibv_qp_state state, ibv_qp_attr& attr, int& mask);

// Creates a completion queue for a queue pair or an XRC shared receive queue, if the program did not specify one.
bool make_receive_queue(Id& id, uint32_t entries);
void destroy_queues(Id& id);

void leave_events(Id& id);
// Afterwards no events of the membership are queued, and the program holds none.
void leave_events(Id& id, const Membership& membership);
// Moves the id and its unfetched events to another channel. `own`: the channel belongs to the id.
int move_to_channel(Id& id, rdma_event_channel* channel, bool own);
// Destroys an id except its queue pair, which the program destroys.
void destroy(Id& id);

}  // namespace roci::rdmacm
