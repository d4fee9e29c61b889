// What programs wish for, as the messages that the Linux kernel makes of the same wishes. Knows neither identifiers nor devices.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "cm/service.hpp"
#include "wire/cm_messages.hpp"

namespace roci::rdmacm {

inline constexpr uint8_t kHopLimit = 64;
using cm::kPacketLifetime;

// What a connection was asked for with, or has agreed on.
struct Terms {
  uint32_t remote_qpn = 0;
  uint32_t local_psn = 0, remote_psn = 0;
  uint8_t responder_resources = 0, initiator_depth = 0;
  uint8_t retry_count = 7, rnr_retry_count = 7;
  uint8_t path_mtu = 0;  // ibv_mtu
  uint32_t flow_label = 0;
};

// What a side of a connection can at most.
struct Most {
  uint8_t responder_resources = 0, initiator_depth = 0;
};

// Between whom. Ports in host order.
struct Ends {
  IpAddress local, remote;
  uint16_t local_port = 0, remote_port = 0;
  rdma_port_space space = RDMA_PS_TCP;
  uint8_t traffic_class = 0;
};

// Of one side of a connection.
struct OwnQueuePair {
  ibv_qp_type type = IBV_QPT_RC;
  uint32_t number = 0;
  bool srq = false;
  uint32_t ece_vendor = 0;
};

// Of the peer, as its receiver sees them.
Terms terms_of(const CmRequest& request);

// Null: whatever is possible.
void ask_for(Terms& terms, const rdma_conn_param* wanted, const Most& most, const Ends& ends);
// Of what the peer asked for. Null: all of it.
void agree_to(Terms& terms, const rdma_conn_param* wanted, const Most& most);

// Without what the program adds to private data.
CmRequest request_for(const Ends& ends, const Terms& terms, const OwnQueuePair& own, bool flow_control,
                      const cm::Patience& patience);
CmReply reply_for(const Terms& terms, const OwnQueuePair& own, const rdma_conn_param* wanted);
CmServiceRequest question_for(const Ends& ends);

}  // namespace roci::rdmacm
