// Connection calls: converts them to messages of the connection manager, and its events to rdma_cm events.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/rng.hpp"
#include "rdmacm/addresses.hpp"
#include "rdmacm/queue_pair.hpp"

namespace roci::rdmacm {
namespace {

uint32_t random_psn() { return static_cast<uint32_t>(os_random()) & 0xffffff; }

cm::Route route_of(const Id& id) {
  cm::Route route;
  route.local = ip_of(id.verbs.route.addr.addr.ibaddr.sgid);
  route.remote = ip_of(id.verbs.route.addr.addr.ibaddr.dgid);
  route.traffic_class = id.traffic_class;
  return route;
}

template <size_t kSize>
bool put_private_data(std::array<uint8_t, kSize>& out, size_t at, const void* data, size_t length) {
  if (length > kSize - at) return false;
  if (length > 0) std::memcpy(out.data() + at, data, length);
  return true;
}

TermLimits most_of(ibv_context* context) {
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) != 0) return {};
  return {static_cast<uint8_t>(std::clamp(attr.max_qp_rd_atom, 0, 255)),
          static_cast<uint8_t>(std::clamp(attr.max_qp_init_rd_atom, 0, 255))};
}

Endpoints ends_of(const Id& id) {
  const cm::Route route = route_of(id);
  return {.local = route.local,
          .remote = route.remote,
          .local_port = id.port,
          .remote_port = port_of(id.verbs.route.addr.dst_addr),
          .space = id.verbs.ps,
          .traffic_class = id.traffic_class,
          .service_id = service_id_of(id.verbs.route.addr.dst_addr)};
}

OwnQueuePair queue_pair_of(const Id& id, const rdma_conn_param& param) {
  const ibv_qp* qp = id.verbs.qp;
  return {.type = id.verbs.qp_type,
          .number = qp != nullptr ? qp->qp_num : param.qp_num,
          .srq = qp != nullptr ? qp->srq != nullptr : param.srq != 0,
          .ece_vendor = id.local_ece.vendor_id};
}

bool uses_service_resolution(rdma_port_space space) { return space == RDMA_PS_UDP || space == RDMA_PS_IPOIB; }

int reject(Id& id, uint16_t reason, const void* data, uint8_t length) {
  if (id.connection == nullptr) return failed(EINVAL);
  CmRejected no{.reason = reason};
  if (!put_private_data(no.private_data, 0, data, length)) return failed(EINVAL);
  const roci::Status status = id.service->reject(*id.connection, no);
  return status ? 0 : failed(status.error());
}

int refuse_service(Id& id, const void* data, uint8_t length) {
  if (id.connection == nullptr) return failed(EINVAL);
  CmServiceReply no{.status = CmServiceReply::kRejected};
  if (!put_private_data(no.private_data, 0, data, length)) return failed(EINVAL);
  const roci::Status status = id.service->reply_service(*id.connection, no, 0);
  return status ? 0 : failed(status.error());
}

// Offset of the program's part of the private data in requests of this id, or to this listener.
size_t private_data_offset(const Id& id) { return id.uses_ib_addresses() ? 0 : CmIpHeader::kBytes; }

int send_service_request(Id& id, const rdma_conn_param* param) {
  CmServiceRequest request = service_request_for(ends_of(id));
  if (param != nullptr && !put_private_data(request.private_data, private_data_offset(id),
                                            param->private_data, param->private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kConnecting;
  if (roci::Status requested = id.service->request_service(route_of(id), request, id, id.connection);
      !requested) {
    id.phase = Phase::kRouteResolved;
    return failed(requested.error());
  }
  return complete(id);
}

ibv_qp_type type_of(const CmRequest& request) {
  switch (request.transport) {
    case CmTransport::kUc:
      return IBV_QPT_UC;
    case CmTransport::kExtended:
      return IBV_QPT_XRC_RECV;
    default:
      return IBV_QPT_RC;
  }
}

// ---- Events. Handlers run with the device's token held and must not call the device.

void fill_connection(CmEvent& event, uint8_t responder_resources, uint8_t initiator_depth, uint8_t retries,
                     uint8_t rnr_retries, bool flow_control, bool srq, uint32_t qpn) {
  rdma_conn_param& conn = event.verbs.param.conn;
  conn.responder_resources = responder_resources;
  conn.initiator_depth = initiator_depth;
  conn.retry_count = retries;
  conn.rnr_retry_count = rnr_retries;
  conn.flow_control = flow_control;
  conn.srq = srq;
  conn.qp_num = qpn;
}

// Of a connection or a service request. Programs get the complete field, since the message has no length of the data.
void fill_private_data(CmEvent& event, std::span<const uint8_t> data) {
  std::copy(data.begin(), data.end(), event.private_data.begin());
  // rdma_ud_param starts with the same fields as rdma_conn_param.
  event.verbs.param.conn.private_data = event.private_data.data();
  event.verbs.param.conn.private_data_len = static_cast<uint8_t>(std::min<size_t>(data.size(), 255));
}

// Creates an id for a request to a listener. Returns null if the private data has no IP header and the listener's address
// is not one of AF_IB.
Id* id_of_request(Id& listener, cm::Connection& connection, std::span<const uint8_t> private_data) {
  const auto ip = read_cm_ip_header(private_data);
  if (!ip && !listener.uses_ib_addresses()) return nullptr;
  auto* id = new Id;
  id->verbs.context = listener.verbs.context;
  id->verbs.ps = listener.verbs.ps;
  id->verbs.qp_type = listener.verbs.qp_type;
  id->service = listener.service;
  id->of_listener = true;
  id->port = listener.port;
  id->service_space = listener.service_space;
  id->traffic_class = listener.traffic_class;
  id->ack_timeout = listener.ack_timeout;
  id->connection = &connection;
  id->phase = Phase::kRequested;
  const cm::Route& route = connection.route();
  id->verbs.route.addr.addr.ibaddr.sgid = gid_of(route.local);
  id->verbs.route.addr.addr.ibaddr.dgid = gid_of(route.remote);
  id->verbs.route.addr.addr.ibaddr.pkey = 0xffff;
  if (listener.uses_ib_addresses()) {
    write_ib_address(route.local, id->service_id(), id->verbs.route.addr.src_storage);
    write_ib_address(route.remote, 0, id->verbs.route.addr.dst_storage);
  } else {
    write_address(route.local, listener.port, ip->v6, id->verbs.route.addr.src_storage);
    write_address(route.remote, ip->source_port, ip->v6, id->verbs.route.addr.dst_storage);
  }
  id->verbs.port_num = 1;
  connection.user = id;
  return id;
}

class Requests final : public cm::EventHandler {
 public:
  bool on_event(cm::Connection& connection, const cm::Event& event) override {
    if (event.kind == cm::EventKind::kRequest) return on_request(connection, *event.mad);
    if (event.kind == cm::EventKind::kServiceRequest)
      return on_service_request(connection, std::get<CmServiceRequest>(event.mad->message));
    return static_cast<Id*>(connection.user)->on_event(connection, event);
  }

 private:
  static bool on_request(cm::Connection& connection, const CmMad& mad) {
    const auto& request = std::get<CmRequest>(mad.message);
    Id& listener = *static_cast<Id*>(connection.user);
    if (listener.verbs.qp_type == IBV_QPT_UD) return false;  // as in Linux (cma_ib_check_req_qp_type)
    Id* id = id_of_request(listener, connection, request.private_data);
    if (id == nullptr) return false;
    id->verbs.qp_type = type_of(request);
    id->terms = terms_of(request);
    const Terms& terms = id->terms;
    id->remote_ece = {.vendor_id = request.vendor_id, .options = mad.modifier, .comp_mask = 0};
    auto event = make_event(*id, RDMA_CM_EVENT_CONNECT_REQUEST);
    event->id = &listener;
    event->verbs.listen_id = &listener.verbs;
    fill_connection(*event, terms.responder_resources, terms.initiator_depth, request.retry_count,
                    request.rnr_retry_count, request.end_to_end_flow_control, request.srq,
                    request.queue_pair.value());
    fill_private_data(*event, std::span(request.private_data).subspan(private_data_offset(listener)));
    listener.push(std::move(event));
    return true;
  }

  static bool on_service_request(cm::Connection& connection, const CmServiceRequest& request) {
    Id& listener = *static_cast<Id*>(connection.user);
    if (listener.verbs.qp_type != IBV_QPT_UD) return false;
    Id* id = id_of_request(listener, connection, request.private_data);
    if (id == nullptr) return false;
    auto event = make_event(*id, RDMA_CM_EVENT_CONNECT_REQUEST);
    event->id = &listener;
    event->verbs.listen_id = &listener.verbs;
    fill_private_data(*event, std::span(request.private_data).subspan(private_data_offset(listener)));
    listener.push(std::move(event));
    return true;
  }
};

void report_reply(Id& id, const CmMad& mad) {
  const auto& reply = std::get<CmReply>(mad.message);
  Terms& terms = id.terms;
  apply(terms, reply, id.verbs.qp_type);
  id.remote_ece = {.vendor_id = reply.vendor_id, .options = mad.modifier, .comp_mask = 0};
  auto event = make_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE);
  fill_connection(*event, reply.initiator_depth, reply.responder_resources, 0, reply.rnr_retry_count,
                  reply.end_to_end_flow_control, reply.srq, terms.remote_qpn);
  fill_private_data(*event, reply.private_data);
  id.push(std::move(event));
}

void report_service(Id& id, const CmServiceReply& reply) {
  if (reply.status != CmServiceReply::kValid) {
    auto event = make_event(id, RDMA_CM_EVENT_UNREACHABLE, reply.status);
    fill_private_data(*event, reply.private_data);
    return id.push(std::move(event));
  }
  id.terms.remote_qpn = reply.queue_pair.value();
  id.phase = Phase::kConnected;
  auto event = make_event(id, RDMA_CM_EVENT_ESTABLISHED);
  fill_private_data(*event, reply.private_data);
  rdma_ud_param& ud = event->verbs.param.ud;
  ud.qp_num = reply.queue_pair.value();
  ud.qkey = reply.qkey;
  ud.ah_attr = address_of_peer(id);
  id.push(std::move(event));
}

}  // namespace

cm::EventHandler& requests() {
  static auto* const kRequests = new Requests;
  return *kRequests;
}

uint8_t path_mtu_of(const Id& id) {
  ibv_port_attr port{};
  return ibv_query_port(id.verbs.verbs, 1, &port) == 0 ? static_cast<uint8_t>(port.active_mtu)
                                                       : uint8_t{IBV_MTU_1024};
}

bool Id::on_event(cm::Connection&, const cm::Event& event) {
  switch (event.kind) {
    case cm::EventKind::kReply:
      report_reply(*this, *event.mad);
      return true;
    case cm::EventKind::kReady: {
      phase = Phase::kConnected;
      auto created = make_event(*this, RDMA_CM_EVENT_ESTABLISHED);
      if (event.mad != nullptr)
        fill_private_data(*created, std::get<CmReady>(event.mad->message).private_data);
      push(std::move(created));
      return true;
    }
    case cm::EventKind::kRejected: {
      // The program has not yet accepted the request. Its rdma_accept() fails, as in Linux.
      if (of_listener && phase == Phase::kRequested) return true;
      const auto& rejected = std::get<CmRejected>(event.mad->message);
      auto created = make_event(*this, RDMA_CM_EVENT_REJECTED, rejected.reason);
      fill_private_data(*created, rejected.private_data);
      push(std::move(created));
      return true;
    }
    case cm::EventKind::kRequestTimeout:
    case cm::EventKind::kReplyTimeout:
    case cm::EventKind::kServiceTimeout:
      report(*this, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
      return true;
    case cm::EventKind::kDisconnect:
    case cm::EventKind::kDisconnected:
    case cm::EventKind::kDisconnectTimeout:
      if (phase == Phase::kDisconnected) return true;
      phase = Phase::kDisconnected;
      report(*this, RDMA_CM_EVENT_DISCONNECTED,
             event.kind == cm::EventKind::kDisconnectTimeout ? -ETIMEDOUT : 0);
      return true;
    case cm::EventKind::kTimeWaitExpired:
      report(*this, RDMA_CM_EVENT_TIMEWAIT_EXIT);
      return true;
    case cm::EventKind::kServiceReply:
      report_service(*this, std::get<CmServiceReply>(event.mad->message));
      return true;
    case cm::EventKind::kRequest:
    case cm::EventKind::kServiceRequest:
      return true;  // these are events of listeners
  }
  return true;
}

}  // namespace roci::rdmacm

using namespace roci;          // NOLINT(google-build-using-namespace): this file defines the C API
using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

extern "C" {

int rdma_connect(rdma_cm_id* verbs, rdma_conn_param* param) {
  Id& id = Id::of(verbs);
  if (id.phase != Phase::kRouteResolved) return failed(EINVAL);
  const rdma_conn_param none{};
  const rdma_conn_param& wanted = param != nullptr ? *param : none;
  if (verbs->qp_type == IBV_QPT_UD) return send_service_request(id, param);
  Terms& terms = id.terms;
  const Endpoints ends = ends_of(id);
  request_terms(terms, param, most_of(verbs->verbs), ends);
  terms.rq_psn = random_psn();
  terms.path_mtu = path_mtu_of(id);
  if (id.ack_timeout != 0) terms.ack_timeout = id.ack_timeout;
  CmRequest request =
      request_for(ends, terms, queue_pair_of(id, wanted), wanted.flow_control != 0, id.service->timeouts());
  if (!put_private_data(request.private_data, private_data_offset(id), wanted.private_data,
                        wanted.private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kConnecting;
  if (roci::Status started =
          id.service->connect(route_of(id), request, id.local_ece.options, id, id.connection);
      !started) {
    id.phase = Phase::kRouteResolved;
    return failed(started.error());
  }
  return complete(id);
}

int rdma_accept(rdma_cm_id* verbs, rdma_conn_param* param) {
  Id& id = Id::of(verbs);
  if (id.phase != Phase::kRequested) return failed(EINVAL);
  const rdma_conn_param none{};
  const rdma_conn_param& wanted = param != nullptr ? *param : none;
  const OwnQueuePair own = queue_pair_of(id, wanted);
  if (uses_service_resolution(verbs->ps)) {
    CmServiceReply reply{.queue_pair = Qpn{own.number}, .qkey = RDMA_UDP_QKEY};
    reply.service_id = id.service_id();
    if (!put_private_data(reply.private_data, 0, wanted.private_data, wanted.private_data_len))
      return failed(EINVAL);
    if (roci::Status status = id.service->reply_service(*id.connection, reply, 0); !status)
      return failed(status.error());
    id.phase = Phase::kConnected;
    if (id.synchronous) acknowledge_own_event(id);
    return 0;
  }
  Terms& terms = id.terms;
  agree_to(terms, param, most_of(open_device()));
  terms.rq_psn = random_psn();
  terms.path_mtu = std::min(terms.path_mtu, path_mtu_of(id));
  CmReply reply = reply_for(terms, own, param);
  if (!put_private_data(reply.private_data, 0, wanted.private_data, wanted.private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kAccepting;
  if (verbs->qp != nullptr && !connect_queue_pair(id)) {
    id.phase = Phase::kRequested;
    return -1;
  }
  if (roci::Status status = id.service->accept(*id.connection, reply, id.local_ece.options); !status) {
    id.phase = Phase::kRequested;
    static_cast<void>(fail_queue_pair(id));
    return failed(status.error());
  }
  return complete(id);
}

int rdma_establish(rdma_cm_id* verbs) {
  Id& id = Id::of(verbs);
  if (verbs->qp != nullptr || id.connection == nullptr) return failed(EINVAL);
  if (roci::Status status = id.service->ready(*id.connection, {}); !status) return failed(status.error());
  id.phase = Phase::kConnected;
  return 0;
}

int rdma_reject(rdma_cm_id* verbs, const void* data, uint8_t length) {
  Id& id = Id::of(verbs);
  return uses_service_resolution(verbs->ps) ? refuse_service(id, data, length)
                                            : reject(id, CmRejected::kConsumer, data, length);
}

int rdma_reject_ece(rdma_cm_id* verbs, const void* data, uint8_t length) {
  return reject(Id::of(verbs), CmRejected::kVendorOption, data, length);
}

int rdma_notify(rdma_cm_id* verbs, ibv_event_type event) {
  Id& id = Id::of(verbs);
  if (event != IBV_EVENT_COMM_EST || id.connection == nullptr) return failed(EINVAL);
  const roci::Status status = id.service->established(*id.connection);
  return status ? 0 : failed(status.error());
}

int rdma_disconnect(rdma_cm_id* verbs) {
  Id& id = Id::of(verbs);
  if (id.connection == nullptr) return failed(EINVAL);
  if (!fail_queue_pair(id)) return -1;
  if (id.service->disconnect(*id.connection, {}) || id.service->reply_disconnect(*id.connection, {}))
    return complete(id);
  return 0;  // the connection has ended already, for example because both ends have disconnected; as in Linux
}

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (ece == nullptr || ece->comp_mask != 0) return failed(EINVAL);
  Id::of(id).local_ece = *ece;
  return 0;
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (ece == nullptr || ece->comp_mask != 0) return failed(EINVAL);
  *ece = Id::of(id).remote_ece;
  return 0;
}

}  // extern "C"
