// Connections: what programs ask for as messages of the connection manager, and what it says as events.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/rng.hpp"
#include "rdmacm/addresses.hpp"
#include "rdmacm/queue_pair.hpp"

namespace roci::rdmacm {
namespace {

constexpr uint8_t kTargetAckDelay = 15;  // as the Linux kernel says

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

// What both sides of a connection can at most.
struct Most {
  uint8_t responder_resources = 0, initiator_depth = 0;
};
Most most_of(ibv_context* context) {
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) != 0) return {};
  return {static_cast<uint8_t>(std::clamp(attr.max_qp_rd_atom, 0, 255)),
          static_cast<uint8_t>(std::clamp(attr.max_qp_init_rd_atom, 0, 255))};
}

CmIpHeader ip_header_of(const Id& id) {
  const cm::Route route = route_of(id);
  return {
      .v6 = !route.local.is_v4(), .source_port = id.port, .source = route.local, .destination = route.remote};
}

uint64_t service_id_of(const Id& id) {
  return cm_service_id(static_cast<CmPortSpace>(id.verbs.ps), port_of(id.verbs.route.addr.dst_addr));
}

int ask_for_service(Id& id, const rdma_conn_param* param) {
  CmServiceRequest request{.pkey = 0xffff, .service_id = service_id_of(id)};
  write_cm_ip_header(ip_header_of(id), request.private_data);
  if (param != nullptr && !put_private_data(request.private_data, CmIpHeader::kBytes, param->private_data,
                                            param->private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kConnecting;
  if (roci::Status asked = id.service->ask(route_of(id), request, id, id.connection); !asked)
    return failed(asked.error());
  return complete(id);
}

constexpr uint8_t kXrc = 1;  // an extended transport

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

void set_type(CmRequest& request, ibv_qp_type type) {
  if (type == IBV_QPT_UC) request.transport = CmTransport::kUc;
  if (type != IBV_QPT_XRC_SEND) return;
  request.transport = CmTransport::kExtended;
  request.extended_transport = kXrc;
}

CmRequest request_of(Id& id, const rdma_conn_param& param) {
  CmRequest request{.service_id = service_id_of(id)};
  request.queue_pair = Qpn{id.verbs.qp != nullptr ? id.verbs.qp->qp_num : param.qp_num};
  request.responder_resources = id.terms.responder_resources;
  request.initiator_depth = id.terms.initiator_depth;
  const cm::Patience patience = id.service->patience();
  request.remote_response_timeout = request.local_response_timeout = patience.response_timeout;
  set_type(request, id.verbs.qp_type);
  request.end_to_end_flow_control = param.flow_control != 0;
  request.starting_psn = Psn{id.terms.local_psn};
  request.retry_count = id.terms.retry_count;
  request.pkey = 0xffff;
  request.path_mtu = id.terms.path_mtu;
  request.rnr_retry_count = id.terms.rnr_retry_count;
  request.max_cm_retries = patience.retries;
  request.srq = id.verbs.qp != nullptr ? id.verbs.qp->srq != nullptr : param.srq != 0;
  request.vendor_id = id.local_ece.vendor_id & 0xffffff;
  const cm::Route route = route_of(id);
  request.primary = {.local_lid = 0xffff,
                     .remote_lid = 0xffff,
                     .local_gid = route.local,
                     .remote_gid = route.remote,
                     .flow_label = id.terms.flow_label,
                     .traffic_class = id.traffic_class,
                     .hop_limit = kHopLimit,
                     .ack_timeout = kPacketLifetime + 1};
  write_cm_ip_header(ip_header_of(id), request.private_data);
  return request;
}

// ---- Events, with the device's token in hand: nothing here may call the device.

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

// Of a connection or a question. Programs see the whole field, whatever the sender wrote into it.
void fill_private_data(CmEvent& event, std::span<const uint8_t> data) {
  std::copy(data.begin(), data.end(), event.private_data.begin());
  // The struct of datagrams begins alike.
  event.verbs.param.conn.private_data = event.private_data.data();
  event.verbs.param.conn.private_data_len = static_cast<uint8_t>(std::min<size_t>(data.size(), 255));
}

// A new id for somebody who asks a listener. Null when the message is none of the IP service.
Id* id_of_request(Id& listener, cm::Connection& connection, std::span<const uint8_t> private_data) {
  const auto ip = read_cm_ip_header(private_data);
  if (!ip) return nullptr;
  auto* id = new Id;
  id->verbs.channel = listener.verbs.channel;
  id->verbs.context = listener.verbs.context;
  id->verbs.ps = listener.verbs.ps;
  id->verbs.qp_type = listener.verbs.qp_type;
  id->service = listener.service;
  id->of_listener = true;
  id->port = listener.port;
  id->traffic_class = listener.traffic_class;
  id->ack_timeout = listener.ack_timeout;
  id->connection = &connection;
  id->phase = Phase::kRequested;
  const cm::Route& route = connection.route();
  id->verbs.route.addr.addr.ibaddr.sgid = gid_of(route.local);
  id->verbs.route.addr.addr.ibaddr.dgid = gid_of(route.remote);
  id->verbs.route.addr.addr.ibaddr.pkey = 0xffff;
  write_address(route.local, listener.port, ip->v6, id->verbs.route.addr.src_storage);
  write_address(route.remote, ip->source_port, ip->v6, id->verbs.route.addr.dst_storage);
  id->verbs.port_num = 1;
  connection.user = id;
  return id;
}

class Requests final : public cm::EventHandler {
 public:
  bool on_event(cm::Connection& connection, const cm::Event& event) override {
    if (event.kind == cm::EventKind::kRequest) return on_request(connection, *event.mad);
    if (event.kind == cm::EventKind::kServiceRequest)
      return on_question(connection, std::get<CmServiceRequest>(event.mad->message));
    return static_cast<Id*>(connection.user)->on_event(connection, event);
  }

 private:
  static bool on_request(cm::Connection& connection, const CmMad& mad) {
    const auto& request = std::get<CmRequest>(mad.message);
    Id& listener = *static_cast<Id*>(connection.user);
    Id* id = id_of_request(listener, connection, request.private_data);
    if (id == nullptr) return false;
    id->verbs.qp_type = type_of(request);
    Terms& terms = id->terms;
    terms.remote_qpn = request.queue_pair.value();
    terms.remote_psn = request.starting_psn.value();
    terms.responder_resources = request.initiator_depth;  // what it begins, we serve
    terms.initiator_depth = request.responder_resources;
    terms.retry_count = request.retry_count;
    terms.rnr_retry_count = request.rnr_retry_count;
    terms.path_mtu = request.path_mtu;
    terms.flow_label = request.primary.flow_label;
    id->remote_ece = {.vendor_id = request.vendor_id, .options = mad.modifier, .comp_mask = 0};
    auto event = make_event(*id, RDMA_CM_EVENT_CONNECT_REQUEST);
    event->id = &listener;
    event->verbs.listen_id = &listener.verbs;
    fill_connection(*event, terms.responder_resources, terms.initiator_depth, request.retry_count,
                    request.rnr_retry_count, request.end_to_end_flow_control, request.srq,
                    request.queue_pair.value());
    fill_private_data(*event, std::span(request.private_data).subspan(CmIpHeader::kBytes));
    listener.channel().push(std::move(event));
    return true;
  }

  static bool on_question(cm::Connection& connection, const CmServiceRequest& request) {
    Id& listener = *static_cast<Id*>(connection.user);
    Id* id = id_of_request(listener, connection, request.private_data);
    if (id == nullptr) return false;
    auto event = make_event(*id, RDMA_CM_EVENT_CONNECT_REQUEST);
    event->id = &listener;
    event->verbs.listen_id = &listener.verbs;
    fill_private_data(*event, std::span(request.private_data).subspan(CmIpHeader::kBytes));
    listener.channel().push(std::move(event));
    return true;
  }
};

void report_reply(Id& id, const CmMad& mad) {
  const auto& reply = std::get<CmReply>(mad.message);
  Terms& terms = id.terms;
  terms.remote_qpn = id.verbs.qp_type == IBV_QPT_XRC_SEND ? reply.local_eecn : reply.queue_pair.value();
  terms.remote_psn = reply.starting_psn.value();
  terms.responder_resources = std::min(terms.responder_resources, reply.initiator_depth);
  terms.initiator_depth = std::min(terms.initiator_depth, reply.responder_resources);
  terms.rnr_retry_count = reply.rnr_retry_count;
  id.remote_ece = {.vendor_id = reply.vendor_id, .options = mad.modifier, .comp_mask = 0};
  auto event = make_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE);
  fill_connection(*event, reply.initiator_depth, reply.responder_resources, 0, reply.rnr_retry_count,
                  reply.end_to_end_flow_control, reply.srq, terms.remote_qpn);
  fill_private_data(*event, reply.private_data);
  id.channel().push(std::move(event));
}

void report_service(Id& id, const CmServiceReply& reply) {
  if (reply.status != CmServiceReply::kValid) {
    auto event = make_event(id, RDMA_CM_EVENT_UNREACHABLE, reply.status);
    fill_private_data(*event, reply.private_data);
    return id.channel().push(std::move(event));
  }
  id.terms.remote_qpn = reply.queue_pair.value();
  id.phase = Phase::kConnected;
  auto event = make_event(id, RDMA_CM_EVENT_ESTABLISHED);
  fill_private_data(*event, reply.private_data);
  rdma_ud_param& ud = event->verbs.param.ud;
  ud.qp_num = reply.queue_pair.value();
  ud.qkey = reply.qkey;
  ud.ah_attr = address_of_peer(id);
  id.channel().push(std::move(event));
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
      auto told = make_event(*this, RDMA_CM_EVENT_ESTABLISHED);
      if (event.mad != nullptr) fill_private_data(*told, std::get<CmReady>(event.mad->message).private_data);
      channel().push(std::move(told));
      return true;
    }
    case cm::EventKind::kRejected: {
      const auto& rejected = std::get<CmRejected>(event.mad->message);
      auto told = make_event(*this, RDMA_CM_EVENT_REJECTED, rejected.reason);
      fill_private_data(*told, rejected.private_data);
      channel().push(std::move(told));
      return true;
    }
    case cm::EventKind::kRequestTimeout:
    case cm::EventKind::kReplyTimeout:
    case cm::EventKind::kServiceTimeout:
      report(*this, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
      return true;
    case cm::EventKind::kDisconnect:
    case cm::EventKind::kDisconnected:
      if (phase == Phase::kDisconnected) return true;
      phase = Phase::kDisconnected;
      report(*this, RDMA_CM_EVENT_DISCONNECTED);
      return true;
    case cm::EventKind::kTimeWaitOver:
      report(*this, RDMA_CM_EVENT_TIMEWAIT_EXIT);
      return true;
    case cm::EventKind::kServiceReply:
      report_service(*this, std::get<CmServiceReply>(event.mad->message));
      return true;
    case cm::EventKind::kRequest:
    case cm::EventKind::kServiceRequest:
      return true;  // of listeners
  }
  return true;
}

}  // namespace roci::rdmacm

using namespace roci;          // NOLINT(google-build-using-namespace): this file is the skin
using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file is the skin

extern "C" {

int rdma_connect(rdma_cm_id* verbs, rdma_conn_param* param) {
  Id& id = Id::of(verbs);
  if (id.phase != Phase::kRouteKnown) return failed(EINVAL);
  const rdma_conn_param none{};
  const rdma_conn_param& wanted = param != nullptr ? *param : none;
  if (verbs->qp_type == IBV_QPT_UD) return ask_for_service(id, param);
  const Most most = most_of(verbs->verbs);
  Terms& terms = id.terms;
  const bool open = param == nullptr;
  terms.responder_resources = open || wanted.responder_resources == RDMA_MAX_RESP_RES
                                  ? most.responder_resources
                                  : std::min(wanted.responder_resources, most.responder_resources);
  terms.initiator_depth = open || wanted.initiator_depth == RDMA_MAX_INIT_DEPTH
                              ? most.initiator_depth
                              : std::min(wanted.initiator_depth, most.initiator_depth);
  terms.retry_count = open ? 7 : std::min<uint8_t>(wanted.retry_count, 7);
  terms.rnr_retry_count = open ? 7 : std::min<uint8_t>(wanted.rnr_retry_count, 7);
  terms.local_psn = random_psn();
  terms.path_mtu = path_mtu_of(id);
  terms.flow_label = (id.port * 31U + port_of(verbs->route.addr.dst_addr)) & 0xfffff;
  CmRequest request = request_of(id, wanted);
  if (!put_private_data(request.private_data, CmIpHeader::kBytes, wanted.private_data,
                        wanted.private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kConnecting;
  roci::Status begun = id.service->connect(route_of(id), request, id.local_ece.options, id, id.connection);
  if (!begun) {
    id.phase = Phase::kRouteKnown;
    return failed(begun.error());
  }
  return complete(id);
}

int rdma_accept(rdma_cm_id* verbs, rdma_conn_param* param) {
  Id& id = Id::of(verbs);
  if (id.phase != Phase::kRequested) return failed(EINVAL);
  const rdma_conn_param none{};
  const rdma_conn_param& wanted = param != nullptr ? *param : none;
  const uint32_t qpn = verbs->qp != nullptr ? verbs->qp->qp_num : wanted.qp_num;
  if (verbs->ps == RDMA_PS_UDP || verbs->ps == RDMA_PS_IPOIB) {
    CmServiceReply reply{.queue_pair = Qpn{qpn}, .qkey = RDMA_UDP_QKEY};
    reply.service_id = cm_service_id(static_cast<CmPortSpace>(verbs->ps), id.port);
    if (!put_private_data(reply.private_data, 0, wanted.private_data, wanted.private_data_len))
      return failed(EINVAL);
    if (roci::Status said = id.service->answer(*id.connection, reply, 0); !said) return failed(said.error());
    id.phase = Phase::kConnected;
    return 0;
  }
  const Most most = most_of(open_device());
  Terms& terms = id.terms;
  const auto agree = [&](uint8_t asked, uint8_t given, uint8_t can) {
    return std::min(param == nullptr || given == RDMA_MAX_RESP_RES ? asked : given, can);
  };
  terms.responder_resources =
      agree(terms.responder_resources, wanted.responder_resources, most.responder_resources);
  terms.initiator_depth = agree(terms.initiator_depth, wanted.initiator_depth, most.initiator_depth);
  if (param != nullptr) terms.rnr_retry_count = std::min<uint8_t>(wanted.rnr_retry_count, 7);
  terms.local_psn = random_psn();
  terms.path_mtu = std::min(terms.path_mtu, path_mtu_of(id));
  const bool target = verbs->qp_type == IBV_QPT_XRC_RECV;
  CmReply reply{.starting_psn = Psn{terms.local_psn}};
  if (target) {
    reply.local_eecn = qpn;
  } else {
    reply.queue_pair = Qpn{qpn};
  }
  reply.responder_resources = terms.responder_resources;
  reply.initiator_depth = terms.initiator_depth;
  reply.target_ack_delay = kTargetAckDelay;
  reply.end_to_end_flow_control = wanted.flow_control != 0;
  reply.rnr_retry_count = terms.rnr_retry_count;
  reply.srq = target || (verbs->qp != nullptr ? verbs->qp->srq != nullptr : wanted.srq != 0);
  reply.vendor_id = id.local_ece.vendor_id & 0xffffff;
  if (!put_private_data(reply.private_data, 0, wanted.private_data, wanted.private_data_len))
    return failed(EINVAL);
  id.phase = Phase::kAccepting;
  if (verbs->qp != nullptr && !connect_queue_pair(id)) return -1;
  if (roci::Status said = id.service->accept(*id.connection, reply, id.local_ece.options); !said)
    return failed(said.error());
  return complete(id);
}

int rdma_establish(rdma_cm_id* verbs) {
  Id& id = Id::of(verbs);
  if (verbs->qp != nullptr || id.connection == nullptr) return failed(EINVAL);
  if (roci::Status said = id.service->ready(*id.connection, {}); !said) return failed(said.error());
  id.phase = Phase::kConnected;
  return 0;
}

int rdma_reject(rdma_cm_id* verbs, const void* data, uint8_t length) {
  Id& id = Id::of(verbs);
  if (id.connection == nullptr) return failed(EINVAL);
  if (verbs->ps == RDMA_PS_UDP || verbs->ps == RDMA_PS_IPOIB) {
    CmServiceReply no{.status = CmServiceReply::kRejected};
    if (!put_private_data(no.private_data, 0, data, length)) return failed(EINVAL);
    const roci::Status said = id.service->answer(*id.connection, no, 0);
    return said ? 0 : failed(said.error());
  }
  CmRejected no{.reason = CmRejected::kConsumer};
  if (!put_private_data(no.private_data, 0, data, length)) return failed(EINVAL);
  const roci::Status said = id.service->reject(*id.connection, no);
  return said ? 0 : failed(said.error());
}

int rdma_reject_ece(rdma_cm_id* verbs, const void* data, uint8_t length) {
  Id& id = Id::of(verbs);
  if (id.connection == nullptr) return failed(EINVAL);
  CmRejected no{.reason = CmRejected::kVendorOption};
  if (!put_private_data(no.private_data, 0, data, length)) return failed(EINVAL);
  const roci::Status said = id.service->reject(*id.connection, no);
  return said ? 0 : failed(said.error());
}

int rdma_notify(rdma_cm_id* verbs, ibv_event_type event) {
  Id& id = Id::of(verbs);
  if (event != IBV_EVENT_COMM_EST || id.connection == nullptr) return failed(EINVAL);
  const roci::Status told = id.service->established(*id.connection);
  return told ? 0 : failed(told.error());
}

int rdma_disconnect(rdma_cm_id* verbs) {
  Id& id = Id::of(verbs);
  if (id.connection == nullptr) return failed(EINVAL);
  if (!fail_queue_pair(id)) return -1;
  if (id.service->disconnect(*id.connection, {})) return complete(id);
  const roci::Status answered = id.service->answer_disconnect(*id.connection, {});
  return answered ? complete(id) : failed(answered.error());
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
