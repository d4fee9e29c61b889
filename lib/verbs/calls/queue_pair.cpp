// Queue pairs and posting of work requests.
#include <infiniband/verbs.h>

#include <algorithm>

#include "device/host/host.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"
#include "verbs/process/process_device.hpp"

namespace roci::verbs {
namespace {

constexpr uint32_t kInitMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                               IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_IND_TABLE |
                               IBV_QP_INIT_ATTR_RX_HASH;
constexpr uint32_t kRssMask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;

// Linux ignores attributes of the other side of an XRC connection, which perftest sets; IBTA does not allow them.
int applicable(ibv_qp_type type, int mask) {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case IBV_QPT_XRC_RECV:
      return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    default:
      return mask;
  }
}

void count_users(Qp& qp, uint32_t change) {
  if (qp.pd != nullptr) qp.pd->users += change;
  if (qp.send_cq != nullptr) qp.send_cq->users += change;
  if (qp.recv_cq != nullptr) qp.recv_cq->users += change;
}

void hand_out(Qp& qp, ibv_context* context, const ibv_qp_init_attr& attr) {
  ibv_qp& verbs = qp.verbs.qp_base;
  verbs.context = context;
  verbs.qp_context = attr.qp_context;
  verbs.send_cq = attr.send_cq;
  verbs.recv_cq = attr.recv_cq;
  verbs.srq = attr.srq;
  verbs.handle = verbs.qp_num = qp.queue_pair->qp_num();
  verbs.state = IBV_QPS_RESET;
  verbs.qp_type = attr.qp_type;
  pthread_mutex_init(&verbs.mutex, nullptr);
  pthread_cond_init(&verbs.cond, nullptr);
  count_users(qp, 1);
}

// `attr` is the caller's, with its pointers. Its capabilities are set to the actual values.
Result<std::unique_ptr<Qp>> create(ibv_pd* pd, ibv_qp_init_attr& attr) {
  if (attr.qp_type == IBV_QPT_XRC_SEND) attr.recv_cq = attr.send_cq;  // an XRC initiator does not receive
  if (pd == nullptr || attr.send_cq == nullptr || attr.recv_cq == nullptr)
    return fail("queue pair: a protection domain and both completion queues are required");
  if (check_handle<Pd>(pd) != 0 || check_handle<Cq>(attr.send_cq) != 0 ||
      check_handle<Cq>(attr.recv_cq) != 0 || (attr.srq != nullptr && check_handle<Srq>(attr.srq) != 0))
    return fail("queue pair: the protection domain or a queue does not exist");
  auto qp = std::make_unique<Qp>();
  qp->pd = &of<Pd>(pd);
  qp->send_cq = &of<Cq>(attr.send_cq);
  qp->recv_cq = &of<Cq>(attr.recv_cq);
  ibv_qp_init_attr init = attr;
  init.qp_context = qp.get();
  init.srq = nullptr;
  auto made = qp->pd->domain->create_qp(&init, *qp->send_cq->queue, *qp->recv_cq->queue,
                                        attr.srq == nullptr ? nullptr : of<Srq>(attr.srq).queue.get());
  if (!made) return fail(made.error());
  qp->queue_pair = std::move(*made);
  attr.cap = init.cap;
  qp->verbs.qp_base.pd = pd;
  hand_out(*qp, pd->context, attr);
  return qp;
}

Result<std::unique_ptr<Qp>> create_target(ibv_context* context, ibv_xrcd* xrcd, ibv_qp_init_attr& attr) {
  if (xrcd == nullptr) return fail("queue pair: an XRC target requires an XRC domain");
  auto qp = std::make_unique<Qp>();
  ibv_qp_init_attr init{};
  init.qp_type = attr.qp_type;
  init.qp_context = qp.get();
  auto made = of<Xrcd>(xrcd).domain->create_target(&init);
  if (!made) return fail(made.error());
  qp->queue_pair = std::move(*made);
  attr.cap = init.cap;
  attr.send_cq = attr.recv_cq = nullptr;
  attr.srq = nullptr;
  hand_out(*qp, context, attr);
  return qp;
}

// A raw packet queue pair that distributes frames to the work queues of a table. It has no queues of its own.
Result<std::unique_ptr<Qp>> create_rss(const ibv_qp_init_attr_ex& attr, ibv_qp_init_attr& init) {
  const ibv_rx_hash_conf& hash = attr.rx_hash_conf;
  if ((attr.comp_mask & kRssMask) != kRssMask || attr.qp_type != IBV_QPT_RAW_PACKET)
    return fail("queue pair: receive side scaling requires type RAW_PACKET, an indirection table and a hash");
  if (check_handle<IndirectionTable>(attr.rwq_ind_tbl) != 0)
    return fail("queue pair: the indirection table does not exist");
  auto rss = std::make_unique<RssTable>();
  if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ || hash.rx_hash_key_len != rss->key.size()) {
    return fail("queue pair: the hash function must be TOEPLITZ with a key of " +
                std::to_string(rss->key.size()) + " bytes");
  }
  std::copy_n(hash.rx_hash_key, rss->key.size(), rss->key.begin());
  rss->fields = hash.rx_hash_fields_mask;
  IndirectionTable& table = of<IndirectionTable>(attr.rwq_ind_tbl);
  for (Wq* wq : table.queues) rss->queues.push_back(wq->queue_pair.get());
  if ((rss->fields & ~RssTable::kFields) != 0)
    return fail("queue pair: only addresses, and ports of TCP and UDP, can be hashed", EOPNOTSUPP);
  init.send_cq = init.recv_cq = table.queues.front()->verbs.cq;
  init.srq = nullptr;
  init.cap = {};
  auto qp = create(attr.pd, init);
  if (!qp) return qp;
  (*qp)->rss = std::move(rss);
  (*qp)->table = &table;
  ++table.users;
  init.cap = {};
  return qp;
}

}  // namespace

int post_send(ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad) {
  const int code = of<Qp>(handle).queue_pair->post_send(list, bad);
  // Sends the request now: the program may wait for its effect without calling this library.
  Context::of(handle->context).device->progress();
  return code;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return of<Qp>(qp).queue_pair->post_recv(list, bad);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if ((attr->comp_mask & ~kInitMask) != 0) return refuse(EOPNOTSUPP);
  const bool target = attr->qp_type == IBV_QPT_XRC_RECV;
  if ((attr->comp_mask & (target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD)) == 0) return refuse(EINVAL);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0)
    return refuse(EOPNOTSUPP);
  ibv_qp_init_attr init{.qp_context = attr->qp_context,
                        .send_cq = attr->send_cq,
                        .recv_cq = attr->recv_cq,
                        .srq = attr->srq,
                        .cap = attr->cap,
                        .qp_type = attr->qp_type,
                        .sq_sig_all = attr->sq_sig_all};
  auto qp = target                              ? create_target(context, attr->xrcd, init)
            : (attr->comp_mask & kRssMask) != 0 ? create_rss(*attr, init)
                                                : create(attr->pd, init);
  if (!qp) return refuse(qp.error());
  if (!target && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    if (Status filled = fill_sending(**qp, attr->send_ops_flags); !filled) {
      ibv_destroy_qp(live((*qp).release())->handle());
      return refuse(filled.error());
    }
  }
  attr->cap = init.cap;
  return live((*qp).release())->handle();
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  auto qp = create(pd, *attr);
  if (!qp) return refuse(qp.error());
  return live((*qp).release())->handle();
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* handle) {
  Qp& qp = of<Qp>(handle);
  return qp.list == nullptr ? nullptr : &qp.verbs;
}

int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attr, int mask) {
  if (const int code = check_handle<Qp>(handle); code != 0) return code;
  QueuePair& queue_pair = *of<Qp>(handle).queue_pair;
  // A program that closes after its last message must still send the last acknowledgment.
  if ((mask & IBV_QP_STATE) != 0 && (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
    send_pending(*Context::of(handle->context).device, &queue_pair);
  const int code = code_of(queue_pair.modify(*attr, applicable(handle->qp_type, mask)));
  handle->state = queue_pair.state();
  return code;
}

int ibv_query_qp(ibv_qp* handle, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  if (const int code = check_handle<Qp>(handle); code != 0) return code;
  of<Qp>(handle).queue_pair->query(attr, init);
  handle->state = attr->qp_state;
  init->qp_context = handle->qp_context;
  init->send_cq = handle->send_cq;
  init->recv_cq = handle->recv_cq;
  init->srq = handle->srq;
  return 0;
}

int ibv_destroy_qp(ibv_qp* handle) {
  if (const int code = check_handle<Qp>(handle); code != 0) return code;
  Qp& qp = of<Qp>(handle);
  if (qp.flows != 0) return refuse_with(EBUSY);
  // Sends the acknowledgments for which the peer waits before the queue pair is destroyed.
  Device& device = *Context::of(handle->context).device;
  send_pending(device, qp.queue_pair.get());
  write_final_stats(device, handle->qp_num);
  {
    const std::scoped_lock guard(Context::of(handle->context).async_events);
    qp.queue_pair.reset();
  }
  if (device.host().queue_pairs() == 0) wait_until_received(device);
  qp.async_events.wait_acknowledged();
  count_users(qp, -1U);
  if (qp.table != nullptr) --qp.table->users;
  pthread_mutex_destroy(&handle->mutex);
  pthread_cond_destroy(&handle->cond);
  destroy_handle(qp);
  return 0;
}

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  if (const int code = check_handle<Qp>(qp); code != 0) return code;
  return code_of(of<Qp>(qp).queue_pair->attach_multicast(*gid));
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  if (const int code = check_handle<Qp>(qp); code != 0) return code;
  return code_of(of<Qp>(qp).queue_pair->detach_multicast(*gid));
}

// No enhanced connection establishment options are supported.
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}
int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  if (ece->comp_mask != 0) return refuse_with(EINVAL);
  return ece->vendor_id == 0 && ece->options == 0 ? 0 : refuse_with(EOPNOTSUPP);
}

// The byte order of writes within a message is not guaranteed:
// a retransmitted packet may be written after later packets.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

}  // extern "C"
