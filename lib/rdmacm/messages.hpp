// Conversion of rdma_conn_param to CM messages as in the Linux kernel, and queue pair attributes that result from the
// messages of a connection. Independent of identifiers and devices.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <optional>

#include "cm/service.hpp"
#include "wire/mad/cm_messages.hpp"

namespace roci::rdmacm {

inline constexpr uint8_t kHopLimit = 64;
using cm::kPacketLifetime;

// Parameters of a connection, requested or negotiated, as its local side uses them.
struct Terms {
  uint32_t remote_qpn = 0;
  // The starting PSN in REQ and REP is the first PSN that the recipient of the message sends (IBTA 12.6). rq_psn is in
  // the message of this host, sq_psn in that of the peer.
  uint32_t rq_psn = 0, sq_psn = 0;
  uint8_t responder_resources = 0, initiator_depth = 0;
  uint8_t retry_count = 7, rnr_retry_count = 7;
  uint8_t path_mtu = 0;                       // ibv_mtu
  uint8_t ack_timeout = kPacketLifetime + 1;  // IBV_QP_TIMEOUT
  uint32_t flow_label = 0;
};

// Maximums of the local device.
struct TermLimits {
  uint8_t responder_resources = 0, initiator_depth = 0;
};

// Addresses of a connection. Ports are in host byte order.
struct Endpoints {
  IpAddress local, remote;
  uint16_t local_port = 0, remote_port = 0;
  rdma_port_space space = RDMA_PS_TCP;
  uint8_t traffic_class = 0;
  // With addresses of AF_IB: the service ID of the peer. The private data of a request then has no IP header. Null: the
  // service ID consists of the port space and the port.
  std::optional<uint64_t> service_id{};
};

// The local queue pair.
struct OwnQueuePair {
  ibv_qp_type type = IBV_QPT_RC;
  uint32_t number = 0;
  bool srq = false;
  uint32_t ece_vendor = 0;
};

// Parameters requested by the peer.
Terms terms_of(const CmRequest& request);
// Applies the peer's reply to the parameters of the request.
void apply(Terms& terms, const CmReply& reply, ibv_qp_type type);

// Parameters of a new request. wanted == nullptr: the maximums of the device.
void request_terms(Terms& terms, const rdma_conn_param* wanted, const TermLimits& most,
                   const Endpoints& ends);
// Reduces the parameters of the peer's request to those of the reply. wanted == nullptr: as requested, within the
// maximums.
void agree_to(Terms& terms, const rdma_conn_param* wanted, const TermLimits& most);

// Builds messages without the private data of the program.
CmRequest request_for(const Endpoints& ends, const Terms& terms, const OwnQueuePair& own, bool flow_control,
                      const cm::TimeoutSettings& timeouts);
CmReply reply_for(const Terms& terms, const OwnQueuePair& own, const rdma_conn_param* wanted);
CmServiceRequest service_request_for(const Endpoints& ends);

}  // namespace roci::rdmacm
