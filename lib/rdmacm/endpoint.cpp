// Endpoints: identifiers for results of rdma_getaddrinfo() with queue pairs, rdma_get_request(), and shared receive
// queues.
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstring>

#include "rdmacm/queue_pair.hpp"

using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

namespace {

int resolve(rdma_cm_id* id, const rdma_addrinfo& res) {
  constexpr int kTimeout = 2000;  // ms
  if (rdma_resolve_addr(id, res.ai_src_addr, res.ai_dst_addr, kTimeout) != 0) return -1;
  return rdma_resolve_route(id, kTimeout);
}

int give_up(rdma_cm_id* id) {
  const int code = errno;
  rdma_destroy_ep(id);
  return failed(code);
}

// Sets the XRC domain and the completion queue if the program did not specify them.
bool bring_xrc(Id& id, ibv_srq_init_attr_ex& attr) {
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr)
    attr.xrcd = default_xrc_domain();
  if (attr.xrcd == nullptr) return false;
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attr.cq == nullptr) {
    if (!make_receive_queue(id, attr.attr.max_wr)) return false;
    attr.cq = id.verbs.recv_cq;
  }
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return true;
}

}  // namespace

extern "C" {

int rdma_create_ep(rdma_cm_id** out, rdma_addrinfo* res, ibv_pd* pd, ibv_qp_init_attr* attr) {
  rdma_cm_id* verbs = nullptr;
  if (rdma_create_id(nullptr, &verbs, nullptr, static_cast<rdma_port_space>(res->ai_port_space)) != 0)
    return -1;
  Id& id = Id::of(verbs);
  verbs->qp_type = static_cast<ibv_qp_type>(res->ai_qp_type);
  if ((res->ai_flags & RAI_PASSIVE) != 0) {
    if (rdma_bind_addr(verbs, res->ai_src_addr) != 0) return give_up(verbs);
    id.requested_pd = pd;
    if (attr != nullptr) id.requested_qp = *attr;
    *out = verbs;
    return 0;
  }
  if (resolve(verbs, *res) != 0) return give_up(verbs);
  if (attr != nullptr) {
    attr->qp_type = verbs->qp_type;
    if (rdma_create_qp(verbs, pd, attr) != 0) return give_up(verbs);
  }
  *out = verbs;
  return 0;
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** out) {
  Id& listener = Id::of(listen);
  if (!listener.synchronous) return failed(EINVAL);
  if (listen->event != nullptr) {
    rdma_ack_cm_event(listen->event);
    listen->event = nullptr;
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  if (event->status != 0) {
    const int code = -event->status;
    rdma_ack_cm_event(event);
    return failed(code);
  }
  if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    rdma_ack_cm_event(event);
    return failed(EINVAL);
  }
  rdma_cm_id* const verbs = event->id;
  if (listener.requested_qp) {
    ibv_qp_init_attr attr = *listener.requested_qp;
    attr.qp_type = listen->qp_type;
    if (rdma_create_qp(verbs, listener.requested_pd, &attr) != 0) {
      const int code = errno;
      rdma_ack_cm_event(event);
      rdma_destroy_ep(verbs);
      return failed(code);
    }
  }
  verbs->event = event;
  *out = verbs;
  return 0;
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  if (id->verbs == nullptr || id->srq != nullptr) return failed(EINVAL);
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) return failed(EINVAL);
  const bool had_queue = id->recv_cq != nullptr;
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    attr->pd = id->pd;
  }
  ibv_srq* srq = nullptr;
  if (attr->srq_type != IBV_SRQT_XRC || bring_xrc(Id::of(id), *attr))
    srq = ibv_create_srq_ex(id->verbs, attr);
  if (srq == nullptr) {
    const int code = errno;
    if (!had_queue) destroy_queues(Id::of(id));
    return failed(code);
  }
  id->srq = srq;
  if (id->pd == nullptr) id->pd = attr->pd;
  return 0;
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd != nullptr ? pd : id->pd;
  const int status = rdma_create_srq_ex(id, &extended);
  attr->attr = extended.attr;
  return status;
}

void rdma_destroy_srq(rdma_cm_id* id) {
  if (id->srq != nullptr) ibv_destroy_srq(id->srq);
  id->srq = nullptr;
  if (id->qp == nullptr || id->qp_type == IBV_QPT_XRC_RECV) destroy_queues(Id::of(id));
}

}  // extern "C"
