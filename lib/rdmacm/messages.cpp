#include "rdmacm/messages.hpp"

#include <algorithm>

namespace roci::rdmacm {
namespace {

constexpr uint8_t kTargetAckDelay = 15;  // as rdma_rxe reports
constexpr uint8_t kMaxRetries = 7;
constexpr uint8_t kXrc = 1;  // extended transport type

CmIpHeader ip_header_of(const Endpoints& ends) {
  return {.v6 = !ends.local.is_v4(),
          .source_port = ends.local_port,
          .source = ends.local,
          .destination = ends.remote};
}

uint64_t service_id_of(const Endpoints& ends) {
  return ends.service_id.value_or(cm_service_id(static_cast<CmPortSpace>(ends.space), ends.remote_port));
}

// Sum of the ACK timeout of a path and the ACK delay of the peer, all as exponents of 4.096 us (Linux: cm_ack_timeout).
uint8_t with_ack_delay(uint8_t ack_timeout, uint8_t ack_delay) {
  const int longer = std::max(ack_timeout, ack_delay);
  const int shorter = std::min(ack_timeout, ack_delay);
  return static_cast<uint8_t>(std::min(longer + (shorter >= longer - 1 ? 1 : 0), 31));
}

void set_type(CmRequest& request, ibv_qp_type type) {
  if (type == IBV_QPT_UC) request.transport = CmTransport::kUc;
  if (type != IBV_QPT_XRC_SEND) return;
  request.transport = CmTransport::kExtended;
  request.extended_transport = kXrc;
}

}  // namespace

Terms terms_of(const CmRequest& request) {
  return {.remote_qpn = request.queue_pair.value(),
          .sq_psn = request.starting_psn.value(),
          .responder_resources = request.initiator_depth,
          .initiator_depth = request.responder_resources,
          .retry_count = request.retry_count,
          .rnr_retry_count = request.rnr_retry_count,
          .path_mtu = request.path_mtu,
          .ack_timeout = request.primary.ack_timeout,
          .flow_label = request.primary.flow_label};
}

void apply(Terms& terms, const CmReply& reply, ibv_qp_type type) {
  terms.remote_qpn = type == IBV_QPT_XRC_SEND ? reply.local_eecn : reply.queue_pair.value();
  terms.sq_psn = reply.starting_psn.value();
  terms.responder_resources = std::min(terms.responder_resources, reply.initiator_depth);
  terms.initiator_depth = std::min(terms.initiator_depth, reply.responder_resources);
  terms.rnr_retry_count = reply.rnr_retry_count;
  terms.ack_timeout = with_ack_delay(terms.ack_timeout, reply.target_ack_delay);
}

void request_terms(Terms& terms, const rdma_conn_param* wanted, const TermLimits& most,
                   const Endpoints& ends) {
  const auto limited = [&](uint8_t requested, uint8_t can) {
    return wanted == nullptr || requested == RDMA_MAX_RESP_RES ? can : std::min(requested, can);
  };
  static_assert(RDMA_MAX_RESP_RES == RDMA_MAX_INIT_DEPTH);
  const rdma_conn_param requested = wanted != nullptr ? *wanted : rdma_conn_param{};
  terms.responder_resources = limited(requested.responder_resources, most.responder_resources);
  terms.initiator_depth = limited(requested.initiator_depth, most.initiator_depth);
  terms.retry_count = wanted == nullptr ? kMaxRetries : std::min(requested.retry_count, kMaxRetries);
  terms.rnr_retry_count = wanted == nullptr ? kMaxRetries : std::min(requested.rnr_retry_count, kMaxRetries);
  terms.flow_label = (ends.local_port * 31U + ends.remote_port) & 0xfffff;
}

void agree_to(Terms& terms, const rdma_conn_param* wanted, const TermLimits& most) {
  const auto agree = [&](uint8_t offered, uint8_t requested, uint8_t can) {
    return std::min(wanted == nullptr || requested == RDMA_MAX_RESP_RES ? offered : requested, can);
  };
  const rdma_conn_param requested = wanted != nullptr ? *wanted : rdma_conn_param{};
  terms.responder_resources =
      agree(terms.responder_resources, requested.responder_resources, most.responder_resources);
  terms.initiator_depth = agree(terms.initiator_depth, requested.initiator_depth, most.initiator_depth);
}

CmRequest request_for(const Endpoints& ends, const Terms& terms, const OwnQueuePair& own, bool flow_control,
                      const cm::TimeoutSettings& timeouts) {
  CmRequest request{.service_id = service_id_of(ends)};
  request.queue_pair = Qpn{own.number};
  request.responder_resources = terms.responder_resources;
  request.initiator_depth = terms.initiator_depth;
  request.remote_response_timeout = request.local_response_timeout = timeouts.response_timeout;
  set_type(request, own.type);
  request.end_to_end_flow_control = flow_control;
  request.starting_psn = Psn{terms.rq_psn};
  request.retry_count = terms.retry_count;
  request.pkey = kDefaultPKey.value();
  request.path_mtu = terms.path_mtu;
  request.rnr_retry_count = terms.rnr_retry_count;
  request.max_cm_retries = timeouts.retries;
  request.srq = own.srq;
  request.vendor_id = own.ece_vendor & 0xffffff;
  request.primary = {.local_lid = 0xffff,
                     .remote_lid = 0xffff,
                     .local_gid = ends.local,
                     .remote_gid = ends.remote,
                     .flow_label = terms.flow_label,
                     .traffic_class = ends.traffic_class,
                     .hop_limit = kHopLimit,
                     .ack_timeout = terms.ack_timeout};
  if (!ends.service_id) write_cm_ip_header(ip_header_of(ends), request.private_data);
  return request;
}

CmReply reply_for(const Terms& terms, const OwnQueuePair& own, const rdma_conn_param* wanted) {
  const bool target = own.type == IBV_QPT_XRC_RECV;
  CmReply reply{.starting_psn = Psn{terms.rq_psn}};
  if (target) {
    reply.local_eecn = own.number;
  } else {
    reply.queue_pair = Qpn{own.number};
  }
  reply.responder_resources = terms.responder_resources;
  reply.initiator_depth = terms.initiator_depth;
  reply.target_ack_delay = kTargetAckDelay;
  reply.end_to_end_flow_control = wanted != nullptr && wanted->flow_control != 0;
  // The RNR retry count for the peer. That of this host is in the peer's request.
  reply.rnr_retry_count = wanted == nullptr ? kMaxRetries : std::min(wanted->rnr_retry_count, kMaxRetries);
  reply.srq = target || own.srq;
  reply.vendor_id = own.ece_vendor & 0xffffff;
  return reply;
}

CmServiceRequest service_request_for(const Endpoints& ends) {
  CmServiceRequest request{.pkey = kDefaultPKey.value(), .service_id = service_id_of(ends)};
  if (!ends.service_id) write_cm_ip_header(ip_header_of(ends), request.private_data);
  return request;
}

}  // namespace roci::rdmacm
