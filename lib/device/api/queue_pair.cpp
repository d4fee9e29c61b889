// Queue pairs of the C++ API: creation, and conversion of verbs attributes to the transport's.
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/host/address.hpp"
#include "device/host/host.hpp"
#include "device/host/limits.hpp"
#include "roci/device.hpp"
#include "transport/queue_pair/qp_transitions.hpp"

namespace roci {
namespace {

Status check_range(const char* what, uint64_t value, uint64_t most) {
  if (value <= most) return {};
  return fail("queue pair: " + std::string(what) + " " + std::to_string(value) + " is too large; at most " +
              std::to_string(most) + " is allowed");
}

Status check_type(const ibv_qp_init_attr& init, bool shares_receives) {
  switch (init.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
      return {};
    case IBV_QPT_XRC_SEND:
      if (!shares_receives) return {};
      return fail("queue pair: XRC_SEND does not receive; a shared receive queue is not allowed");
    case IBV_QPT_XRC_RECV:
      return fail("queue pair: XRC_RECV is created by an XRC domain and has no protection domain");
    default:
      return fail("queue pair: type " + std::to_string(init.qp_type) +
                      " is not supported; supported are RC, UC, UD, XRC and raw packets",
                  EOPNOTSUPP);
  }
}

Status check_capabilities(const ibv_qp_init_attr& init) {
  if (init.srq != nullptr)
    return fail("queue pair: init->srq must be null; pass the shared receive queue as a separate argument");
  ROCI_TRY(check_range("max_send_wr", init.cap.max_send_wr, kMaxWorkRequests));
  ROCI_TRY(check_range("max_recv_wr", init.cap.max_recv_wr, kMaxWorkRequests));
  ROCI_TRY(check_range("max_send_sge", init.cap.max_send_sge, kMaxSge));
  ROCI_TRY(check_range("max_recv_sge", init.cap.max_recv_sge, kMaxSge));
  return check_range("max_inline_data", init.cap.max_inline_data, kMaxInline);
}

// Only RC has feedback that AUTH covers.
Status check_authentication(const Host& host, ibv_qp_type type) {
  if (!host.config().extensions.require_authentication || type == IBV_QPT_RC) return {};
  return fail("queue pair: the device requires authentication (authenticate: require); only RC supports it",
              EOPNOTSUPP);
}

// Copies the settings of the device.
void take_settings(QueuePairConfig& config, Host& host) {
  const DeviceConfig& of = host.config();
  if (of.header_only && is_reliable(config.type)) {
    config.contents = RoceWriter::Contents::kHeaders;
  } else if (!host.port().capabilities().needs_icrc) {
    config.contents = RoceWriter::Contents::kWithoutIcrc;
  }
  config.window_bytes = of.window_bytes;
  config.reactive_window = host.profiles().reactive_window();
  config.packets_per_ack = static_cast<uint16_t>(of.packets_per_ack);
}

Result<uint32_t> read_path_mtu(const Host& host, ibv_mtu code, bool ipv6, ibv_qp_type type) {
  if (code < IBV_MTU_256 || code > IBV_MTU_4096) {
    return fail("queue pair: path MTU code " + std::to_string(static_cast<int>(code)) +
                " is unknown; 1 (256) to 5 (4096) are allowed");
  }
  const uint32_t mtu = 128U << code;
  const uint32_t most = host.largest_path_mtu(ipv6, type);
  if (mtu > most) {
    return fail("queue pair: path MTU " + std::to_string(mtu) + " exceeds port MTU " +
                std::to_string(host.port_mtu()) + "; at most " + std::to_string(most) + " is allowed");
  }
  return mtu;
}

}  // namespace

Result<std::unique_ptr<QueuePair>> ProtectionDomain::create_qp(ibv_qp_init_attr* init,
                                                               CompletionQueue& send_cq,
                                                               CompletionQueue& recv_cq,
                                                               SharedReceiveQueue* srq) {
  ROCI_TRY(check_type(*init, srq != nullptr));
  ROCI_TRY(check_capabilities(*init));
  ROCI_TRY(check_authentication(*host_, init->qp_type));
  if (send_cq.host_ != host_ || recv_cq.host_ != host_)
    return fail("queue pair: the completion queues and the protection domain must belong to the same device");
  if (srq != nullptr && srq->host_ != host_)
    return fail(
        "queue pair: the shared receive queue and the protection domain must belong to the same device");
  if (srq != nullptr && srq->xrc_ != nullptr)
    return fail("queue pair: an XRC shared receive queue is allowed only for XRC_RECV targets");
  const bool receives = srq == nullptr && init->qp_type != IBV_QPT_XRC_SEND;  // with its own receive queue
  QueuePairConfig config;
  config.type = init->qp_type;
  config.pd = PdNumber{number_};
  config.context = init->qp_context;
  config.max_send_wr = std::bit_ceil(std::max(1U, init->cap.max_send_wr));
  config.max_recv_wr = receives ? std::bit_ceil(std::max(1U, init->cap.max_recv_wr)) : 0;
  config.max_send_sge = static_cast<uint8_t>(std::max(1U, init->cap.max_send_sge));
  config.max_recv_sge = receives ? static_cast<uint8_t>(std::max(1U, init->cap.max_recv_sge)) : uint8_t{0};
  config.srq = srq != nullptr ? srq->ring_.get() : nullptr;
  // At least the size of the scatter list, as in the Linux kernel: applications rely on it.
  config.max_inline = static_cast<uint16_t>(std::max<size_t>(
      init->cap.max_inline_data, std::min<size_t>(config.max_send_sge * sizeof(ibv_sge), kMaxInline)));
  config.signal_all = init->sq_sig_all != 0;
  take_settings(config, *host_);

  auto attached = host_->attach([&](Qpn number) {
    config.number = number;
    return make_queue_pair(host_->arena(), config, *send_cq.ring_, *recv_cq.ring_);
  });
  if (!attached) return fail(attached.error());
  if (config.type == IBV_QPT_RAW_PACKET) (*attached)->core.attributes.path_mtu = host_->port_mtu();
  std::unique_ptr<QueuePair> qp(new QueuePair(host_, std::move(*attached), send_cq.ring_, recv_cq.ring_,
                                              srq != nullptr ? srq->ring_ : nullptr));
  init->cap = {.max_send_wr = config.max_send_wr,
               .max_recv_wr = config.max_recv_wr,
               .max_send_sge = config.max_send_sge,
               .max_recv_sge = config.max_recv_sge,
               .max_inline_data = config.max_inline};
  host_->events().assign(EventSource::kQueuePair, qp->qp_num(), events_);
  qp->verbs_send_cq_ = init->send_cq;
  qp->verbs_recv_cq_ = init->recv_cq;
  return qp;
}

Result<std::unique_ptr<QueuePair>> XrcDomain::create_target(ibv_qp_init_attr* init) {
  if (init->qp_type != IBV_QPT_XRC_RECV) {
    return fail("XRC domain: a target must be of type XRC_RECV, not of type " +
                std::to_string(init->qp_type));
  }
  if (init->srq != nullptr)
    return fail("XRC domain: a target cannot have a shared receive queue; each message specifies one");
  ROCI_TRY(check_authentication(*host_, init->qp_type));
  QueuePairConfig config;
  config.type = IBV_QPT_XRC_RECV;
  config.context = init->qp_context;
  config.max_send_wr = config.max_recv_wr = 0;
  config.max_send_sge = 0;
  config.max_recv_sge = kMaxSge;  // a slot for a request of any shared receive queue
  take_settings(config, *host_);
  auto attached = host_->attach([&](Qpn number) {
    config.number = number;
    return make_xrc_target(host_->arena(), config, host_->xrc_queues(), *core_);
  });
  if (!attached) return fail(attached.error());
  std::unique_ptr<QueuePair> qp(new QueuePair(host_, std::move(*attached), nullptr, nullptr, nullptr, core_));
  host_->events().assign(EventSource::kQueuePair, qp->qp_num(), events_);
  init->cap = {};
  return qp;
}

QueuePair::QueuePair(std::shared_ptr<Host> host, std::unique_ptr<AttachedQueuePair> attached,
                     std::shared_ptr<CompletionRing> send_cq, std::shared_ptr<CompletionRing> recv_cq,
                     std::shared_ptr<SharedReceiveRing> srq, std::shared_ptr<XrcDomainCore> domain)
    : host_(std::move(host)),
      send_cq_(std::move(send_cq)),
      recv_cq_(std::move(recv_cq)),
      srq_(std::move(srq)),
      xrc_domain_(std::move(domain)),
      attached_(std::move(attached)) {
  if (srq_ != nullptr) ++srq_->users;
  if (xrc_domain_ != nullptr) ++xrc_domain_->users;
  if (is_connected(attached_->core.config.type)) profile_ = host_->profiles().standard();
}

QueuePair::~QueuePair() {
  if (attached_->core.config.type == IBV_QPT_UD) {
    const std::scoped_lock guard(host_->all_workers());
    host_->groups().detach_all(*attached_);
  }
  if (attached_->core.config.type == IBV_QPT_RAW_PACKET) {
    const std::scoped_lock guard(host_->all_workers());
    host_->steering().remove_all(*attached_);
  }
  const std::scoped_lock guard(attached_->worker->token());
  host_->detach(*attached_);
  attached_->core.to_reset();
  if (srq_ != nullptr) --srq_->users;
  if (xrc_domain_ != nullptr) --xrc_domain_->users;
  host_->memory().unbind_windows_of(attached_->core.number());
  host_->events().remove(EventSource::kQueuePair, qp_num());
}

uint32_t QueuePair::qp_num() const { return attached_->core.number().value(); }
ibv_qp_state QueuePair::state() const { return attached_->core.state(); }

int QueuePair::post_send(ibv_send_wr* list, ibv_send_wr** bad) {
  attached_->prefetch();  // with many queue pairs, its cache lines are cold, and its worker needs them next
  const int code = attached_->core.post_send(list, bad);
  attached_->worker->ring(*attached_);
  return code;
}

int QueuePair::post_send_all(ibv_send_wr* list) {
  attached_->prefetch();
  const int code = attached_->core.post_send(list, nullptr, QueuePairCore::Posting::kAllOrNothing);
  attached_->worker->ring(*attached_);
  return code;
}

bool QueuePair::settled() const {
  const std::scoped_lock guard(attached_->worker->token());
  return !attached_->ready && !attached_->rung.load() && !attached_->worker->has_staged();
}

int QueuePair::post_recv(ibv_recv_wr* list, ibv_recv_wr** bad) {
  const int code = attached_->core.post_recv(list, bad);
  // The worker reads the receive queue when a message arrives. Only in the error state must it be notified, to flush
  // the request.
  if (attached_->core.state() == IBV_QPS_ERR) {
    const Host::ControlCall call(*host_);
    attached_->worker->ring(*attached_);
  }
  return code;
}

int QueuePair::bind_window(MemoryWindow& window, const ibv_mw_bind& bind) {
  if (window.type() != IBV_MW_TYPE_1) return EINVAL;
  ibv_send_wr wr{};
  wr.wr_id = bind.wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind.send_flags;
  wr.bind_mw.mw = window.verbs();
  wr.bind_mw.rkey = ibv_inc_rkey(window.rkey());
  wr.bind_mw.bind_info = bind.bind_info;
  const int code = post_send(&wr, nullptr);
  if (code == 0) window.verbs()->rkey = wr.bind_mw.rkey;
  return code;
}

Status QueuePair::set_congestion_control(const std::string& name) {
  const std::scoped_lock guard(attached_->worker->token());
  if (!is_connected(attached_->core.config.type))
    return fail("queue pair: UD and raw packets do not support congestion control; RC and UC do", EOPNOTSUPP);
  auto profile = host_->profiles().choose(name);
  if (!profile) return fail(profile.error().within("queue pair"));
  if (const ibv_qp_state now = state(); now != IBV_QPS_RESET && now != IBV_QPS_INIT && now != IBV_QPS_ERR) {
    if (Status s = attached_->worker->change_congestion_control(*attached_, *profile); !s)
      return fail(s.error().within("queue pair"));
  }
  profile_ = *profile;
  attached_->core.config.reactive_window = name != Profiles::kNone;
  return {};
}

std::string QueuePair::congestion_control() const {
  const std::scoped_lock guard(attached_->worker->token());
  if (profile_ != nullptr) return profile_->name;
  return attached_->core.config.reactive_window ? Profiles::kWindow : Profiles::kNone;
}

Status QueuePair::attach_multicast(const ibv_gid& group) {
  return change_group(group, &MulticastTable::attach);
}
Status QueuePair::detach_multicast(const ibv_gid& group) {
  return change_group(group, &MulticastTable::detach);
}

template <class Change>
Status QueuePair::change_group(const ibv_gid& group, Change change) {
  const Gid gid = from_ibv(group);
  if (attached_->core.config.type != IBV_QPT_UD)
    return fail("multicast: only UD queue pairs can be attached to groups");
  if (!gid.is_multicast()) {
    return fail("multicast: " + gid.to_string() +
                " is not a multicast GID; allowed are ff00::/8 and ::ffff:224.0.0.0/100");
  }
  const std::scoped_lock guard(host_->all_workers());
  return (host_->groups().*change)(gid, *attached_);
}

Status QueuePair::modify(const ibv_qp_attr& attr, int mask) {
  const Host::ControlCall call(*host_);
  ROCI_TRY(modify_with_token(attr, mask));
  if ((mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RTR && attached_->core.config.type == IBV_QPT_RC)
    negotiate_with_peer();
  return {};
}

// Until set_peer(), packets with an extension block are refused. The first worker's token is acquired without the own
// worker's token, since tokens must be acquired in the order of the workers.
void QueuePair::negotiate_with_peer() {
  if (host_->config().extensions.mode == ExtensionMode::kOff) return;
  Worker& worker = *attached_->worker;
  worker.token().lock();
  const RocePath path = attached_->core.attributes.path;
  worker.token().unlock();
  auto peer = host_->request_peer(path);
  const std::scoped_lock guard(worker.token());
  worker.set_peer(*attached_, std::move(peer));
}

Status QueuePair::modify_with_token(const ibv_qp_attr& attr, int mask) {
  const std::scoped_lock guard(attached_->worker->token());
  const ibv_qp_state from = state();
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != from) {
    return fail("queue pair: the state is " + std::string(qp_state_name(from)) + ", not " +
                std::string(qp_state_name(attr.cur_qp_state)) + " (cur_qp_state)");
  }
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : from;
  ROCI_TRY(check_transition(attached_->core.config.type, from, to, mask));
  if (attached_->core.draining() && to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
    return fail(
        "queue pair: the state is SQD and requests are outstanding; until they complete, only RESET and ERR "
        "are allowed");
  }
  return change_state(to, attr, mask);
}

Status QueuePair::change_state(ibv_qp_state to, const ibv_qp_attr& attr, int mask) {
  QueuePairCore& core = attached_->core;
  const ibv_qp_state from = core.state();
  QueuePairAttributes next = core.attributes;  // committed only if all checks pass
  if ((mask & IBV_QP_PKEY_INDEX) != 0) ROCI_TRY(check_range("pkey_index", attr.pkey_index, 0));
  if ((mask & IBV_QP_PORT) != 0 && attr.port_num != 1)
    return fail("queue pair: port " + std::to_string(attr.port_num) + " does not exist; the only port is 1");
  if ((mask & IBV_QP_PATH_MIG_STATE) != 0 && attr.path_mig_state != IBV_MIG_MIGRATED) {
    return fail("queue pair: path_mig_state " + std::to_string(attr.path_mig_state) +
                    "; only MIGRATED (0) is allowed, since RoCE devices do not support path migration",
                EOPNOTSUPP);
  }
  attached_->worker->withdraw_grants(*attached_);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) next.access = static_cast<int>(attr.qp_access_flags);
  if ((mask & IBV_QP_QKEY) != 0) next.qkey = QKey{attr.qkey};
  if ((mask & IBV_QP_AV) != 0) {
    auto path = read_path(*host_, attr.ah_attr, "queue pair", Destinations::kHosts);
    if (!path) return fail(path.error());
    next.path = *path;
  }
  if (from == IBV_QPS_SQD &&
      next.path_mtu > host_->largest_path_mtu(!next.path.destination_ip.is_v4(), core.config.type)) {
    return fail("queue pair: path MTU " + std::to_string(next.path_mtu) +
                " exceeds the port's MTU with the IP version of the new path");
  }
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    auto mtu = read_path_mtu(*host_, attr.path_mtu, !next.path.destination_ip.is_v4(), core.config.type);
    if (!mtu) return fail(mtu.error());
    next.path_mtu = *mtu;
  }
  if ((mask & IBV_QP_DEST_QPN) != 0) {
    ROCI_TRY(check_range("dest_qp_num", attr.dest_qp_num, 0xffffff));
    next.remote_qp = Qpn{attr.dest_qp_num};
  }
  if ((mask & (IBV_QP_AV | IBV_QP_DEST_QPN)) != 0)
    next.path.udp_source_port = flow_udp_source_port(next.path.flow_label, core.number(), next.remote_qp);
  if ((mask & IBV_QP_RQ_PSN) != 0) ROCI_TRY(check_range("rq_psn", attr.rq_psn, Psn::kMask));
  if ((mask & IBV_QP_SQ_PSN) != 0) ROCI_TRY(check_range("sq_psn", attr.sq_psn, Psn::kMask));
  if ((mask & IBV_QP_TIMEOUT) != 0) {
    ROCI_TRY(check_range("timeout", attr.timeout, 31));
    next.timeout = attr.timeout;
  }
  if ((mask & IBV_QP_RETRY_CNT) != 0) {
    ROCI_TRY(check_range("retry_cnt", attr.retry_cnt, 7));
    next.retry_count = attr.retry_cnt;
  }
  if ((mask & IBV_QP_RNR_RETRY) != 0) {
    ROCI_TRY(check_range("rnr_retry", attr.rnr_retry, 7));
    next.rnr_retry = attr.rnr_retry;
  }
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) {
    ROCI_TRY(check_range("min_rnr_timer", attr.min_rnr_timer, 31));
    next.min_rnr_timer = attr.min_rnr_timer;
  }
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    ROCI_TRY(check_range("max_rd_atomic", attr.max_rd_atomic, kMaxReads));
    next.max_rd_atomic = attr.max_rd_atomic;
  }
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) {
    ROCI_TRY(check_range("max_dest_rd_atomic", attr.max_dest_rd_atomic, kMaxReads));
    next.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  }
  next.path.source_mac = host_->port().mac();
  if (next.max_dest_rd_atomic != core.attributes.max_dest_rd_atomic) {
    switch (core.remember_reads(next.max_dest_rd_atomic)) {
      case 0:
        break;
      case EBUSY:
        return fail("queue pair: max_dest_rd_atomic cannot change while READs or atomics are in progress",
                    EBUSY);
      default:
        return fail("queue pair: no memory for " + std::to_string(next.max_dest_rd_atomic) +
                        " concurrent READs or atomics (max_dest_rd_atomic)",
                    ENOMEM);
    }
  }
  core.attributes = next;

  if ((mask & IBV_QP_AV) != 0) path_ = attr.ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) path_mtu_ = attr.path_mtu;

  if (to == from) {
    if (from == IBV_QPS_SQD && (mask & IBV_QP_AV) != 0) {
      core.change_path();
      attached_->neighbor = NeighborRef();  // of the previous peer
      attached_->worker->enter_congestion(*attached_);
      attached_->worker->make_ready(*attached_);
    }
    return {};
  }
  switch (to) {
    case IBV_QPS_RESET:
      attached_->worker->leave_congestion(*attached_);
      attached_->worker->control_congestion(*attached_, nullptr);
      core.to_reset();
      break;
    case IBV_QPS_INIT:
      core.to_init();
      break;
    case IBV_QPS_RTR:
      attached_->worker->set_peer(*attached_, nullptr);  // of the previous connection
      core.to_ready_to_receive((mask & IBV_QP_RQ_PSN) != 0 ? Psn{attr.rq_psn} : Psn{});
      core.extensions_undecided =
          attached_->core.config.type == IBV_QPT_RC && host_->config().extensions.mode != ExtensionMode::kOff;
      core.refuses_plain = host_->config().extensions.require_authentication;
      attached_->neighbor = NeighborRef();  // of the previous peer
      if (!attached_->worker->control_congestion(*attached_, profile_)) {
        core.to_error();
        return fail("queue pair: no memory for congestion control", ENOMEM);
      }
      attached_->worker->enter_congestion(*attached_);
      attached_->worker->make_ready(*attached_);
      break;
    case IBV_QPS_RTS:
      if (from == IBV_QPS_SQE || from == IBV_QPS_SQD) {
        core.resume_sending();
      } else {
        core.to_ready_to_send(Psn{attr.sq_psn});
      }
      attached_->worker->make_ready(*attached_);
      break;
    case IBV_QPS_SQD:
      core.drain_sends((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr.en_sqd_async_notify != 0,
                       host_->events(), attached_->worker->counters());
      attached_->worker->make_ready(*attached_);
      break;
    default:
      // The program may reuse its memory now (IBTA 10.3.1.7).
      core.discard_responses();
      core.to_error();
      attached_->worker->make_ready(*attached_);
  }
  return {};
}

void QueuePair::query(ibv_qp_attr* attr, ibv_qp_init_attr* init) const {
  const std::scoped_lock guard(attached_->worker->token());
  const QueuePairCore& core = attached_->core;
  const QueuePairConfig& config = core.config;
  const QueuePairAttributes& now = core.attributes;
  const ibv_qp_cap cap{.max_send_wr = config.max_send_wr,
                       .max_recv_wr = config.max_recv_wr,
                       .max_send_sge = config.max_send_sge,
                       .max_recv_sge = config.max_recv_wr == 0 ? 0U : config.max_recv_sge,
                       .max_inline_data = config.max_inline};
  if (init != nullptr) {
    *init = {};
    init->qp_context = config.context;
    init->send_cq = verbs_send_cq_;
    init->recv_cq = verbs_recv_cq_;
    init->cap = cap;
    init->qp_type = config.type;
    init->sq_sig_all = config.signal_all ? 1 : 0;
  }
  if (attr == nullptr) return;
  *attr = {};
  attr->ah_attr = path_;
  attr->path_mtu = path_mtu_;
  attr->dest_qp_num = now.remote_qp.value();
  attr->qp_state = attr->cur_qp_state = core.state();
  attr->sq_draining = core.draining() ? 1 : 0;
  attr->qkey = now.qkey.value();
  attr->qp_access_flags = static_cast<unsigned>(now.access);
  attr->cap = cap;
  attr->port_num = 1;
  attr->timeout = now.timeout;
  attr->retry_cnt = now.retry_count;
  attr->rnr_retry = now.rnr_retry;
  attr->min_rnr_timer = now.min_rnr_timer;
  attr->max_rd_atomic = now.max_rd_atomic;
  attr->max_dest_rd_atomic = now.max_dest_rd_atomic;
  attr->sq_psn = core.send_psn().value();
  attr->rq_psn = core.receive_psn().value();
}

}  // namespace roci
