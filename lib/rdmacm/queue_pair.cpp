#include "rdmacm/queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "rdmacm/addresses.hpp"

namespace roci::rdmacm {
namespace {

bool serves_reads(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV; }

void for_init(const Id& id, ibv_qp_attr& attr, int& mask) {
  mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (id.verbs.qp_type == IBV_QPT_UD) {
    mask |= IBV_QP_QKEY;
    attr.qkey = RDMA_UDP_QKEY;
    return;
  }
  mask |= IBV_QP_ACCESS_FLAGS;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.terms.responder_resources > 0 || id.phase < Phase::kConnecting)
    attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

void for_rtr(const Id& id, ibv_qp_attr& attr, int& mask) {
  mask = IBV_QP_STATE;
  attr.qp_state = IBV_QPS_RTR;
  if (id.verbs.qp_type == IBV_QPT_UD) return;
  mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  attr.ah_attr = address_of_peer(id);
  attr.path_mtu = static_cast<ibv_mtu>(id.terms.path_mtu);
  attr.dest_qp_num = id.terms.remote_qpn;
  attr.rq_psn = id.terms.rq_psn;
  if (!serves_reads(id.verbs.qp_type)) return;
  mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  attr.max_dest_rd_atomic = id.terms.responder_resources;
  attr.min_rnr_timer = 0;
}

void for_rts(const Id& id, ibv_qp_attr& attr, int& mask) {
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = id.terms.sq_psn;
  if (id.verbs.qp_type == IBV_QPT_UC || id.verbs.qp_type == IBV_QPT_UD) return;
  mask |= IBV_QP_TIMEOUT;
  attr.timeout = id.ack_timeout != 0 ? id.ack_timeout : id.terms.ack_timeout;
  if (id.verbs.qp_type == IBV_QPT_XRC_RECV) return;
  mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  attr.retry_cnt = id.terms.retry_count;
  attr.rnr_retry = id.terms.rnr_retry_count;
  attr.max_rd_atomic = id.terms.initiator_depth;
}

bool move_to(Id& id, ibv_qp_state state) {
  ibv_qp_attr attr{};
  int mask = 0;
  if (!attributes_for(id, state, attr, mask)) return false;
  if (const int code = ibv_modify_qp(id.verbs.qp, &attr, mask); code != 0) {
    errno = code;
    return false;
  }
  return true;
}

bool make_queue(Id& id, uint32_t entries, ibv_comp_channel*& channel, ibv_cq*& queue) {
  channel = ibv_create_comp_channel(id.verbs.verbs);
  if (channel == nullptr) return false;
  queue = ibv_create_cq(id.verbs.verbs, static_cast<int>(std::max(entries, 1U)), &id.verbs, channel, 0);
  return queue != nullptr;
}

// Creates the completion queues that the program specified neither here nor in the id. An XRC target has none; its shared
// receive queues have one.
bool make_queues(Id& id, ibv_qp_init_attr_ex& attr) {
  if (id.verbs.qp_type == IBV_QPT_XRC_RECV) return true;
  if (attr.send_cq == nullptr) {
    if (id.verbs.send_cq == nullptr &&
        !make_queue(id, attr.cap.max_send_wr, id.verbs.send_cq_channel, id.verbs.send_cq))
      return false;
    attr.send_cq = id.verbs.send_cq;
  }
  if (attr.recv_cq == nullptr) {
    if (!make_receive_queue(id, attr.cap.max_recv_wr)) return false;
    attr.recv_cq = id.verbs.recv_cq;
  }
  return true;
}

}  // namespace

bool make_receive_queue(Id& id, uint32_t entries) {
  return id.verbs.recv_cq != nullptr || make_queue(id, entries, id.verbs.recv_cq_channel, id.verbs.recv_cq);
}

// Destroys the completion queues of the id, also after a partial failure. A program that stores its own queues in the id
// passes them to this library, as in rdma-core. Both may be the same.
void destroy_queues(Id& id) {
  if (id.verbs.send_cq == id.verbs.recv_cq) id.verbs.send_cq = nullptr;
  if (id.verbs.send_cq_channel == id.verbs.recv_cq_channel) id.verbs.send_cq_channel = nullptr;
  const auto end = [](ibv_comp_channel*& channel, ibv_cq*& queue) {
    if (queue != nullptr) ibv_destroy_cq(queue);
    if (channel != nullptr) ibv_destroy_comp_channel(channel);
    queue = nullptr;
    channel = nullptr;
  };
  end(id.verbs.send_cq_channel, id.verbs.send_cq);
  end(id.verbs.recv_cq_channel, id.verbs.recv_cq);
}

ibv_ah_attr address_of_peer(const Id& id) {
  ibv_ah_attr out{};
  out.is_global = 1;
  out.port_num = 1;
  out.grh.dgid = id.verbs.route.addr.addr.ibaddr.dgid;
  out.grh.sgid_index = id.sgid_index;
  out.grh.hop_limit = kHopLimit;
  out.grh.traffic_class = id.traffic_class;
  out.grh.flow_label = id.terms.flow_label;
  return out;
}

bool attributes_for(Id& id, ibv_qp_state state, ibv_qp_attr& attr, int& mask) {
  switch (state) {
    case IBV_QPS_INIT:
      for_init(id, attr, mask);
      return true;
    case IBV_QPS_RTR:
      for_rtr(id, attr, mask);
      return true;
    case IBV_QPS_RTS:
      for_rts(id, attr, mask);
      return true;
    default:
      errno = EINVAL;
      return false;
  }
}

// Repeats the transition to INIT, since the access rights of the peer are only now known.
bool connect_queue_pair(Id& id) {
  return move_to(id, IBV_QPS_INIT) && move_to(id, IBV_QPS_RTR) && move_to(id, IBV_QPS_RTS);
}

bool fail_queue_pair(Id& id) {
  if (id.verbs.qp == nullptr) return true;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  const int code = ibv_modify_qp(id.verbs.qp, &attr, IBV_QP_STATE);
  if (code != 0) errno = code;
  return code == 0;
}

}  // namespace roci::rdmacm

using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* verbs, ibv_qp_init_attr_ex* attr) {
  Id& id = Id::of(verbs);
  if (verbs->verbs == nullptr || verbs->qp != nullptr) return failed(EINVAL);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attr->pd = verbs->pd;
  }
  if (attr->pd == nullptr) attr->pd = verbs->pd;
  if (attr->pd == nullptr || attr->pd->context != verbs->verbs) return failed(EINVAL);
  if (verbs->qp_type == IBV_QPT_XRC_RECV &&
      ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr->xrcd == nullptr)) {
    attr->xrcd = default_xrc_domain();
    if (attr->xrcd == nullptr) return -1;
    attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
  }
  const auto differ = [](const ibv_cq* of_id, const ibv_cq* given) {
    return of_id != nullptr && given != nullptr && of_id != given;
  };
  if (differ(verbs->send_cq, attr->send_cq) || differ(verbs->recv_cq, attr->recv_cq)) return failed(EINVAL);
  if (attr->srq == nullptr && verbs->qp_type != IBV_QPT_XRC_RECV) attr->srq = verbs->srq;
  if (!make_queues(id, *attr)) {
    destroy_queues(id);
    return -1;
  }
  ibv_qp* const qp = attr->srq == nullptr || (attr->comp_mask & ~uint32_t{IBV_QP_INIT_ATTR_PD}) != 0
                         ? ibv_create_qp_ex(verbs->verbs, attr)
                         : ibv_create_qp(attr->pd, reinterpret_cast<ibv_qp_init_attr*>(attr));
  if (qp == nullptr) {
    destroy_queues(id);
    return -1;
  }
  verbs->qp = qp;
  verbs->pd = attr->pd;
  verbs->qp_type = attr->qp_type;
  bool moved = move_to(id, IBV_QPS_INIT);
  if (moved && attr->qp_type == IBV_QPT_UD) moved = move_to(id, IBV_QPS_RTR) && move_to(id, IBV_QPS_RTS);
  if (moved) return 0;
  const int code = errno;
  rdma_destroy_qp(verbs);
  return failed(code);
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex extended{};
  std::memcpy(&extended, attr, sizeof *attr);  // starts with the same fields
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd != nullptr ? pd : id->pd;
  const int status = rdma_create_qp_ex(id, &extended);
  std::memcpy(attr, &extended, sizeof *attr);
  return status;
}

void rdma_destroy_qp(rdma_cm_id* verbs) {
  if (verbs->qp != nullptr) ibv_destroy_qp(verbs->qp);
  verbs->qp = nullptr;
  // The queues of an XRC target belong to its shared receive queue.
  if (verbs->qp_type != IBV_QPT_XRC_RECV || verbs->srq == nullptr) destroy_queues(Id::of(verbs));
}

// As with Linux, every attribute is set, those outside of the mask to 0: programs pass uninitialized structs. `rate_limit`
// is excepted, because it is missing in the struct of older programs.
int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
  const ibv_qp_state state = attr->qp_state;
  std::memset(static_cast<void*>(attr), 0, offsetof(ibv_qp_attr, rate_limit));
  attr->qp_state = state;
  return attributes_for(Id::of(id), state, *attr, *mask) ? 0 : -1;
}

}  // extern "C"
