// Program of the rdma_cm API, linked with the system's librdmacm: one process that is both sides of its connections,
// on the given address. `rdmacm-check NAME ADDRESS [PORT]` runs one check. Exit status 1, after a sentence, on any
// error. `requested` and `answered` stop in the middle of a handshake with a peer and print that state; `leaving`
// connects and exits.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPatience = 20000, kResolve = 2000 };  // ms

static const char* address;
static struct rdma_event_channel *active, *passive;

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s (errno %d: %s)\n", what, errno, strerror(errno));
  exit(1);
}

static struct sockaddr_storage at(const char* host, int port) {
  struct sockaddr_storage out;
  struct addrinfo *found = NULL, hints = {.ai_flags = AI_NUMERICHOST};
  char service[8];
  snprintf(service, sizeof service, "%d", port);
  must(getaddrinfo(host, service, &hints, &found) == 0, "the address cannot be read");
  memset(&out, 0, sizeof out);
  memcpy(&out, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return out;
}

static struct rdma_cm_id* make_id(struct rdma_event_channel* channel, enum rdma_port_space space) {
  struct rdma_cm_id* id = NULL;
  must(rdma_create_id(channel, &id, NULL, space) == 0, "no id");
  return id;
}

static struct rdma_cm_event* next_event(struct rdma_event_channel* channel) {
  struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
  struct rdma_cm_event* event = NULL;
  must(poll(&waits, 1, kPatience) == 1, "nothing happens");
  must(rdma_get_cm_event(channel, &event) == 0, "no event");
  return event;
}

// Expects that this is the next event, and acknowledges it.
static void expect(struct rdma_event_channel* channel, enum rdma_cm_event_type type, int status) {
  struct rdma_cm_event* event = next_event(channel);
  if (event->event != type || event->status != status) {
    fprintf(stderr, "%s with status %d instead of %s with %d\n", rdma_event_str(event->event), event->status,
            rdma_event_str(type), status);
    exit(1);
  }
  rdma_ack_cm_event(event);
}

static struct rdma_cm_id* listen_on(int port, enum rdma_port_space space) {
  struct rdma_cm_id* id = make_id(passive, space);
  struct sockaddr_storage here = at(address, port);
  must(rdma_bind_addr(id, (struct sockaddr*)&here) == 0, "cannot bind");
  must(rdma_listen(id, 0) == 0, "cannot listen");
  return id;
}

static struct rdma_cm_id* resolved(const char* host, int port, enum rdma_port_space space) {
  struct rdma_cm_id* id = make_id(active, space);
  struct sockaddr_storage there = at(host, port);
  must(rdma_resolve_addr(id, NULL, (struct sockaddr*)&there, kResolve) == 0, "cannot resolve");
  expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  must(rdma_resolve_route(id, kResolve) == 0, "no route");
  expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return id;
}

static void make_qp(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr attr = {
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
  must(rdma_create_qp(id, NULL, &attr) == 0, "no queue pair");
}

static struct rdma_cm_id* request_with(const void* data, size_t length, const struct rdma_conn_param* as) {
  struct rdma_cm_event* event = next_event(passive);
  must(event->event == RDMA_CM_EVENT_CONNECT_REQUEST, "no request");
  const struct rdma_conn_param* conn = &event->param.conn;
  must(conn->private_data_len >= length && memcmp(conn->private_data, data, length) == 0,
       "the private data of the request is another");
  if (as != NULL) {
    must(conn->responder_resources == as->initiator_depth &&
             conn->initiator_depth == as->responder_resources && conn->retry_count == as->retry_count &&
             conn->rnr_retry_count == as->rnr_retry_count,
         "the request asks for something else");
  }
  struct rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  return id;
}

static void end(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  rdma_destroy_id(id);
}

// ---- A complete connection, with all private data.
static void check_connection(void) {
  const char ask[] = "may I", yes[] = "you may";
  struct rdma_cm_id* listener = listen_on(0, RDMA_PS_TCP);
  const int port = ntohs(rdma_get_src_port(listener));
  must(port != 0, "the listener has no port");
  struct rdma_cm_id* client = resolved(address, port, RDMA_PS_TCP);
  must(ntohs(rdma_get_dst_port(client)) == port && rdma_get_src_port(client) != 0, "the ports are wrong");
  make_qp(client);
  struct rdma_conn_param wanted = {.private_data = ask,
                                   .private_data_len = 57,
                                   .responder_resources = 3,
                                   .initiator_depth = 2,
                                   .retry_count = 5,
                                   .rnr_retry_count = 6};
  char long_data[57] = {0};
  wanted.private_data = long_data;
  must(rdma_connect(client, &wanted) == -1 && errno == EINVAL, "57 bytes of private data are taken");
  wanted.private_data = ask;
  wanted.private_data_len = sizeof ask;
  must(rdma_connect(client, &wanted) == 0, "cannot connect");
  struct rdma_cm_id* server = request_with(ask, sizeof ask, &wanted);
  must(rdma_get_dst_port(server) == rdma_get_src_port(client), "the peer's port is another");
  make_qp(server);
  struct rdma_conn_param given = {.private_data = yes,
                                  .private_data_len = sizeof yes,
                                  .responder_resources = 1,
                                  .initiator_depth = 1,
                                  .rnr_retry_count = 7};
  must(rdma_accept(server, &given) == 0, "cannot accept");
  struct rdma_cm_event* event = next_event(active);
  must(event->event == RDMA_CM_EVENT_ESTABLISHED, "the active side is not connected");
  must(memcmp(event->param.conn.private_data, yes, sizeof yes) == 0,
       "the private data of the answer is another");
  rdma_ack_cm_event(event);
  expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  const int mask = IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RNR_RETRY |
                   IBV_QP_RETRY_CNT | IBV_QP_AV;
  must(ibv_query_qp(client->qp, &attr, mask, &init) == 0, "the queue pair cannot be asked");
  must(attr.qp_state == IBV_QPS_RTS && attr.max_rd_atomic == 1 && attr.max_dest_rd_atomic == 1 &&
           attr.rnr_retry == 7 && attr.retry_cnt == 5,
       "the active side's queue pair is not as it was agreed");
  const uint32_t label = attr.ah_attr.grh.flow_label;
  must(ibv_query_qp(server->qp, &attr, IBV_QP_AV, &init) == 0, "the queue pair cannot be asked");
  must(label != 0 && attr.ah_attr.grh.flow_label == label, "the flow labels of the two sides differ");

  must(rdma_migrate_id(server, active) == 0, "cannot move to another channel");
  must(rdma_disconnect(client) == 0, "cannot disconnect");
  unsigned ends = 0;
  while (ends < 2) {
    event = next_event(active);
    must(event->event == RDMA_CM_EVENT_DISCONNECTED, "not disconnected");
    must(event->id == client || event->id == server, "of somebody else");
    if (event->id == server) rdma_disconnect(server);
    ++ends;
    rdma_ack_cm_event(event);
  }
  // Time-wait of both sides.
  expect(active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  expect(active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  must(rdma_disconnect(client) == 0, "a connection that has ended cannot be disconnected again");
  must(fcntl(active->fd, F_SETFL, O_NONBLOCK) == 0, "the channel stays blocking");
  must(rdma_get_cm_event(active, &event) == -1 && errno == EAGAIN, "an empty channel does not say so");
  end(server);
  end(client);
  end(listener);
}

// ---- Rejected requests, and unreachable addresses.
static void check_refusals(void) {
  const char no[] = "not today";
  struct rdma_cm_id* listener = listen_on(0, RDMA_PS_TCP);
  const int port = ntohs(rdma_get_src_port(listener));
  struct rdma_cm_id* client = resolved(address, port, RDMA_PS_TCP);
  make_qp(client);
  struct rdma_conn_param wanted = {.retry_count = 7};
  must(rdma_connect(client, &wanted) == 0, "cannot connect");
  struct rdma_cm_id* server = request_with("", 0, NULL);
  must(rdma_reject(server, no, sizeof no) == 0, "cannot reject");
  struct rdma_cm_event* event = next_event(active);
  must(event->event == RDMA_CM_EVENT_REJECTED && event->status == 28, "not rejected by the consumer");
  must(memcmp(event->param.conn.private_data, no, sizeof no) == 0,
       "the private data of the rejection is another");
  rdma_ack_cm_event(event);
  end(server);
  end(client);
  end(listener);

  client = resolved(address, port, RDMA_PS_TCP);
  make_qp(client);
  char bytes[64];
  struct ibv_mr* mr = rdma_reg_msgs(client, bytes, sizeof bytes);
  must(mr != NULL && rdma_post_recv(client, NULL, bytes, sizeof bytes, mr) == 0, "no receive request");
  must(rdma_connect(client, &wanted) == 0, "cannot connect");
  expect(active, RDMA_CM_EVENT_REJECTED, 8);
  struct ibv_wc wc;
  int flushed = 0;
  for (int i = 0; i < kPatience && flushed == 0; ++i, usleep(1000))
    flushed = ibv_poll_cq(client->recv_cq, 1, &wc);
  must(flushed == 1 && wc.status == IBV_WC_WR_FLUSH_ERR, "the receive request is not flushed");
  must(rdma_dereg_mr(mr) == 0, "the region stays");
  end(client);

  client = make_id(active, RDMA_PS_TCP);
  struct sockaddr_storage nobody = at("10.77.99.99", 1);
  must(rdma_resolve_addr(client, NULL, (struct sockaddr*)&nobody, 200) == 0, "cannot resolve");
  event = next_event(active);
  must(event->event == RDMA_CM_EVENT_ADDR_ERROR && event->status < 0, "nobody's address was resolved");
  rdma_ack_cm_event(event);
  must(rdma_resolve_addr(client, NULL, (struct sockaddr*)&nobody, 1) == 0, "cannot resolve again");
  event = next_event(active);
  must(event->event == RDMA_CM_EVENT_ADDR_ERROR, "nobody's address was resolved");
  rdma_ack_cm_event(event);
  end(client);
}

// ---- Queue pairs of the program's own, and rdma_notify() after the first packet.
static void check_own_queue_pair(void) {
  struct rdma_cm_id* listener = listen_on(0, RDMA_PS_TCP);
  struct rdma_cm_id* client = resolved(address, ntohs(rdma_get_src_port(listener)), RDMA_PS_TCP);
  struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x10000005}, seen = {0};
  must(rdma_set_local_ece(client, &ece) == 0, "no enhanced connection establishment");
  struct rdma_conn_param wanted = {.retry_count = 7, .qp_num = 0x123};
  must(rdma_connect(client, &wanted) == 0, "cannot connect");
  struct rdma_cm_id* server = request_with("", 0, NULL);
  must(rdma_get_remote_ece(server, &seen) == 0 && seen.vendor_id == 0x15b3 && seen.options == 0x10000005,
       "the options of the request are others");
  ece.options = 0x10000001;
  must(rdma_set_local_ece(server, &ece) == 0, "no enhanced connection establishment");
  struct rdma_conn_param given = {.qp_num = 0x456};
  must(rdma_accept(server, &given) == 0, "cannot accept");
  struct rdma_cm_event* event = next_event(active);
  must(event->event == RDMA_CM_EVENT_CONNECT_RESPONSE && event->param.conn.qp_num == 0x456,
       "no answer to a program's own");
  rdma_ack_cm_event(event);
  must(rdma_get_remote_ece(client, &seen) == 0 && seen.options == 0x10000001,
       "the options of the answer are others");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
  int mask = 0;
  must(rdma_init_qp_attr(client, &attr, &mask) == 0 && attr.dest_qp_num == 0x456 && (mask & IBV_QP_AV) != 0,
       "the attributes are not the connection's");
  must(rdma_notify(server, IBV_EVENT_COMM_EST) == 0, "the first packet is of no interest");
  expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
  must(rdma_notify(server, IBV_EVENT_COMM_EST) == -1 && errno == EISCONN, "it is established twice");
  must(rdma_establish(client) == 0, "cannot establish");
  must(rdma_disconnect(server) == 0, "cannot disconnect");
  expect(active, RDMA_CM_EVENT_DISCONNECTED, 0);
  must(rdma_disconnect(client) == 0, "cannot answer the disconnect request");
  expect(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
  end(server);
  end(client);
  end(listener);
}

// ---- Port sharing.
static int binds(struct rdma_cm_id* id, const char* host, int port) {
  struct sockaddr_storage here = at(host, port);
  return rdma_bind_addr(id, (struct sockaddr*)&here) == 0;
}

static void check_ports(void) {
  int yes = 1;
  struct rdma_cm_id* first = listen_on(0, RDMA_PS_TCP);
  const int port = ntohs(rdma_get_src_port(first));
  struct rdma_cm_id* second = make_id(active, RDMA_PS_TCP);
  must(!binds(second, address, port) && errno == EADDRINUSE, "a port is given twice");
  must(!binds(second, "0.0.0.0", port), "a port is given twice, of any address too");
  struct rdma_cm_id* other_space = make_id(active, RDMA_PS_UDP);
  must(binds(other_space, address, port), "another port space has ports of its own");
  must(!binds(second, "10.77.200.200", 0) && errno == EADDRNOTAVAIL, "an address that is not ours is bound");
  end(first);
  must(binds(second, address, port), "a port that was given back is not free");

  struct rdma_cm_id *four = make_id(active, RDMA_PS_TCP), *six = make_id(active, RDMA_PS_TCP);
  for (int i = 0; i < 2; ++i)
    must(rdma_set_option(i ? four : six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof yes) == 0,
         "no option");
  must(binds(four, "0.0.0.0", 7999) && binds(six, "::", 7999), "a port is not for each IP version");
  must(rdma_listen(four, 1) == 0 && rdma_listen(six, 1) == 0, "both cannot listen");

  struct rdma_cm_id *a = make_id(active, RDMA_PS_TCP), *b = make_id(active, RDMA_PS_TCP);
  for (int i = 0; i < 2; ++i)
    must(rdma_set_option(i ? a : b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof yes) == 0,
         "no option");
  must(binds(a, address, 8001) && binds(b, address, 8001), "a port is not shared");
  end(a);
  must(binds(make_id(active, RDMA_PS_TCP), address, 8001) == 0, "a port is free while somebody has it");
  must(rdma_listen(b, 1) == 0, "who is left cannot listen");
  end(b);
  end(four);
  end(six);
  end(second);
  end(other_space);
}

// ---- Datagram services.
static void check_datagrams(void) {
  const char ask[] = "where", yes[] = "there", no[] = "nowhere";
  struct rdma_cm_id* listener = listen_on(0, RDMA_PS_UDP);
  const int port = ntohs(rdma_get_src_port(listener));
  for (int accepts = 1; accepts >= 0; --accepts) {
    struct rdma_cm_id* client = resolved(address, port, RDMA_PS_UDP);
    struct rdma_conn_param wanted = {.private_data = ask, .private_data_len = sizeof ask};
    must(rdma_connect(client, &wanted) == 0, "cannot ask");
    struct rdma_cm_id* server = request_with(ask, sizeof ask, NULL);
    struct rdma_conn_param given = {.private_data = yes, .private_data_len = sizeof yes, .qp_num = 0x789};
    must((accepts ? rdma_accept(server, &given) : rdma_reject(server, no, sizeof no)) == 0, "cannot answer");
    struct rdma_cm_event* event = next_event(active);
    const struct rdma_ud_param* ud = &event->param.ud;
    if (accepts) {
      must(event->event == RDMA_CM_EVENT_ESTABLISHED && ud->qp_num == 0x789 && ud->qkey == RDMA_UDP_QKEY,
           "no answer");
      must(memcmp(ud->private_data, yes, sizeof yes) == 0, "the private data of the answer is another");
    } else {
      must(event->event == RDMA_CM_EVENT_UNREACHABLE && event->status == 2, "not rejected");
      must(memcmp(ud->private_data, no, sizeof no) == 0, "the private data of the rejection is another");
    }
    rdma_ack_cm_event(event);
    end(server);
    end(client);
  }
  end(listener);
}

static struct rdma_cm_id* endpoint(int port, int flags) {
  struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD};
  struct rdma_addrinfo* info = NULL;
  struct rdma_cm_id* id = NULL;
  char service[8];
  snprintf(service, sizeof service, "%d", port);
  must(rdma_getaddrinfo(address, service, &hints, &info) == 0, "no address information");
  must(rdma_create_ep(&id, info, NULL, NULL) == 0, "no endpoint");
  rdma_freeaddrinfo(info);
  return id;
}

static void* ask_twice(void* port) {
  struct rdma_conn_param none = {0};
  struct rdma_cm_id* id = endpoint(*(int*)port, 0);
  must(rdma_connect(id, &none) == 0, "no answer");
  rdma_destroy_ep(id);
  id = endpoint(*(int*)port + 1, 0);
  errno = 0;
  must(rdma_connect(id, &none) == -1 && errno > 0, "an unknown service answers");
  rdma_destroy_ep(id);
  return NULL;
}

// ---- Datagram services with synchronous calls.
static void check_synchronous_datagrams(void) {
  struct rdma_cm_id *listener = endpoint(8100, RAI_PASSIVE), *request = NULL;
  must(rdma_listen(listener, 1) == 0, "cannot listen");
  int port = ntohs(rdma_get_src_port(listener));
  pthread_t client;
  must(pthread_create(&client, NULL, ask_twice, &port) == 0, "no thread");
  must(rdma_get_request(listener, &request) == 0, "no request");
  struct rdma_conn_param given = {.qp_num = 0x789};
  must(rdma_accept(request, &given) == 0, "cannot accept");
  must(pthread_join(client, NULL) == 0, "the client does not end");
  alarm(kPatience / 1000);  // limits a blocking call
  rdma_destroy_ep(listener);
  alarm(0);
  rdma_destroy_ep(request);
}

// ---- Multicast groups that an identifier joins and leaves.
static void check_multicast(void) {
  struct sockaddr_storage here = at(address, 0), group = at("239.1.2.3", 0);
  struct rdma_cm_id* id = make_id(active, RDMA_PS_UDP);
  must(rdma_bind_addr(id, (struct sockaddr*)&here) == 0, "cannot bind");
  must(rdma_leave_multicast(id, (struct sockaddr*)&group) == -1 && errno == EADDRNOTAVAIL,
       "a group is left that was not joined");
  struct ibv_qp_init_attr attr = {
      .qp_type = IBV_QPT_UD,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
  must(rdma_create_qp(id, NULL, &attr) == 0, "no queue pair");
  for (int sends_only = 0; sends_only < 2; ++sends_only) {
    struct rdma_cm_join_mc_attr_ex join = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags = sends_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER,
        .addr = (struct sockaddr*)&group};
    must(rdma_join_multicast_ex(id, &join, NULL) == 0, "cannot join");
    expect(active, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    must(rdma_leave_multicast(id, (struct sockaddr*)&group) == 0, "cannot leave");
    must(rdma_leave_multicast(id, (struct sockaddr*)&group) == -1 && errno == EADDRNOTAVAIL, "left twice");
  }
  end(id);
}

// ---- Addresses of AF_IB: a GID and a service ID. Requests between them have no IP header in their private data.
static struct sockaddr_ib gid_at(const char* host, int port, enum rdma_port_space space) {
  char name[64], service[8];
  struct rdma_addrinfo *found = NULL, hints = {.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
                                               .ai_family = AF_IB,
                                               .ai_port_space = space,
                                               .ai_qp_type = space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC};
  snprintf(name, sizeof name, "::ffff:%s", host);
  snprintf(service, sizeof service, "%d", port);
  must(rdma_getaddrinfo(name, service, &hints, &found) == 0, "the GID is not parsed");
  must(found->ai_family == AF_IB && found->ai_dst_len == sizeof(struct sockaddr_ib),
       "the address is not of AF_IB");
  struct sockaddr_ib out = *(struct sockaddr_ib*)found->ai_dst_addr;
  rdma_freeaddrinfo(found);
  must(out.sib_family == AF_IB && out.sib_pkey == 0xffff, "the address has another family or partition key");
  must(be64toh(out.sib_sid) == (((uint64_t)space << 16) | (unsigned)port), "the service ID is another");
  return out;
}

static void check_invalid_addresses(void) {
  struct rdma_cm_id* id = make_id(active, RDMA_PS_TCP);
  struct sockaddr_storage unknown = {.ss_family = AF_UNIX}, ip = at(address, 0);
  must(rdma_bind_addr(id, NULL) == -1 && errno == EINVAL, "a null address is bound");
  must(rdma_bind_addr(id, (struct sockaddr*)&unknown) == -1 && errno == EINVAL, "an unknown family is bound");
  must(rdma_resolve_addr(id, NULL, NULL, kResolve) == -1 && errno == EINVAL, "a null address is resolved");
  must(rdma_join_multicast(id, NULL, NULL) == -1 && errno == EINVAL, "a null group is joined");
  must(rdma_leave_multicast(id, NULL) == -1, "a null group is left");
  struct sockaddr_ib datagrams = gid_at(address, 0, RDMA_PS_UDP),
                     foreign = gid_at("10.77.200.200", 0, RDMA_PS_TCP);
  must(rdma_bind_addr(id, (struct sockaddr*)&datagrams) == -1 && errno == EPROTONOSUPPORT,
       "a service ID of another port space is bound");
  must(rdma_bind_addr(id, (struct sockaddr*)&foreign) == -1 && errno == ENODEV,
       "the GID of another host is bound");
  must(rdma_bind_addr(id, (struct sockaddr*)&ip) == 0, "cannot bind");
  struct rdma_cm_id* other = make_id(active, RDMA_PS_TCP);
  must(rdma_resolve_addr(other, (struct sockaddr*)&unknown, (struct sockaddr*)&ip, kResolve) == 0,
       "a source of an unknown family is not the wildcard");
  expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  end(other);
  struct sockaddr_ib there = gid_at(address, 4791, RDMA_PS_TCP);
  must(rdma_resolve_addr(id, NULL, (struct sockaddr*)&there, kResolve) == -1 && errno == EINVAL,
       "an IP address has a route to one of AF_IB");
  end(id);
}

static void check_ib_addresses(void) {
  check_invalid_addresses();
  struct rdma_cm_id* listener = make_id(passive, RDMA_PS_TCP);
  struct sockaddr_ib any = {.sib_family = AF_IB};
  must(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "cannot bind");
  const int port = ntohs(rdma_get_src_port(listener));
  const struct sockaddr_ib* bound = (const struct sockaddr_ib*)&listener->route.addr.src_addr;
  must(port != 0 && be64toh(bound->sib_sid) == (((uint64_t)RDMA_PS_TCP << 16) | (unsigned)port),
       "the service ID of the listener is not completed");
  must(rdma_listen(listener, 0) == 0, "cannot listen");

  struct rdma_cm_id* client = make_id(active, RDMA_PS_TCP);
  struct sockaddr_ib there = gid_at(address, port, RDMA_PS_TCP);
  must(rdma_resolve_addr(client, NULL, (struct sockaddr*)&there, kResolve) == 0, "cannot resolve");
  expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  must(rdma_resolve_route(client, kResolve) == 0, "no route");
  expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  must(client->route.addr.src_addr.sa_family == AF_IB && ntohs(rdma_get_dst_port(client)) == port,
       "the addresses of the client are others");
  make_qp(client);
  uint8_t data[93];
  for (unsigned i = 0; i < sizeof data; ++i) data[i] = (uint8_t)i;
  struct rdma_conn_param wanted = {.private_data = data, .private_data_len = 93, .retry_count = 7};
  must(rdma_connect(client, &wanted) == -1 && errno == EINVAL, "93 bytes of private data are accepted");
  wanted.private_data_len = 92;
  must(rdma_connect(client, &wanted) == 0, "cannot connect");
  struct rdma_cm_id* server = request_with(data, 92, NULL);
  const struct sockaddr_ib* from = (const struct sockaddr_ib*)&server->route.addr.dst_addr;
  must(from->sib_family == AF_IB && memcmp(&from->sib_addr, &there.sib_addr, 16) == 0,
       "the peer has another GID");
  must(ntohs(rdma_get_src_port(server)) == port, "the request has another port");
  make_qp(server);
  must(rdma_accept(server, NULL) == 0, "cannot accept");
  expect(active, RDMA_CM_EVENT_ESTABLISHED, 0);
  expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
  must(rdma_disconnect(client) == 0, "cannot disconnect");
  expect(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
  must(rdma_disconnect(server) == 0, "cannot answer the disconnect request");
  expect(active, RDMA_CM_EVENT_DISCONNECTED, 0);
  end(server);
  end(client);
  end(listener);
}

// ---- Half a handshake, for somebody who kills this process then.
static void* read_events(void* channel) {
  struct rdma_cm_event* event = NULL;
  rdma_get_cm_event(channel, &event);
  must(0, "rdma_get_cm_event() returned from a destroyed channel");
  return NULL;
}

// rping destroys its channel while a thread waits for an event of it. With the kernel's file that thread does not return.
static void check_channels(void) {
  for (int i = 0; i < 20; ++i) {
    struct rdma_event_channel* channel = rdma_create_event_channel();
    must(channel != NULL, "no event channel");
    pthread_t reader;
    must(pthread_create(&reader, NULL, read_events, channel) == 0, "no thread");
    usleep(20000);  // it waits
    rdma_destroy_event_channel(channel);
  }
  usleep(200000);
}

static int signals_handled;

static void count_signal(int number) {
  (void)number;
  __atomic_add_fetch(&signals_handled, 1, __ATOMIC_RELAXED);
}

static void handle_signals(int flags) {
  struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
  must(sigaction(SIGUSR1, &action, NULL) == 0, "no handler");
}

static void* read_until_error(void* channel) {
  struct rdma_cm_event* event = NULL;
  const int result = rdma_get_cm_event(channel, &event);
  return (void*)(intptr_t)(result == -1 ? errno : -1);
}

// rdma_get_cm_event() continues after a signal whose handler was installed with SA_RESTART.
static void check_interrupts(void) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  must(channel != NULL, "no event channel");
  pthread_t reader;
  must(pthread_create(&reader, NULL, read_until_error, channel) == 0, "no thread");
  usleep(20000);  // it waits
  handle_signals(SA_RESTART);
  for (int i = 0; i < 3; ++i) {
    const int before = __atomic_load_n(&signals_handled, __ATOMIC_RELAXED);
    must(pthread_kill(reader, SIGUSR1) == 0, "no signal");
    while (__atomic_load_n(&signals_handled, __ATOMIC_RELAXED) == before) usleep(100);
    usleep(10000);
    must(pthread_tryjoin_np(reader, NULL) == EBUSY, "a handler with SA_RESTART ends the call");
  }
  handle_signals(0);
  void* error = NULL;
  do must(pthread_kill(reader, SIGUSR1) == 0, "no signal");
  while (usleep(10000), pthread_tryjoin_np(reader, &error) == EBUSY);
  must((intptr_t)error == EINTR, "a handler without SA_RESTART does not end the call with EINTR");
  must(pthread_create(&reader, NULL, read_until_error, channel) == 0, "no thread");
  usleep(20000);
  must(pthread_cancel(reader) == 0, "the thread is not canceled");
  must(pthread_join(reader, &error) == 0 && error == PTHREAD_CANCELED, "the call is no cancellation point");
  rdma_destroy_event_channel(channel);
}

// A listener moves between two channels while requests for it arrive. No request is lost. A client whose rejection is late
// sends its request again, so that it can be reported twice.
static void check_migration(void) {
  enum { kClients = 48 };
  struct rdma_cm_id* clients[kClients];
  struct rdma_event_channel* channels[2] = {passive, rdma_create_event_channel()};
  must(channels[1] != NULL, "no event channel");
  for (int i = 0; i < 2; ++i) must(fcntl(channels[i]->fd, F_SETFL, O_NONBLOCK) == 0, "not non-blocking");
  struct rdma_cm_id* listener = listen_on(0, RDMA_PS_TCP);
  const int port = ntohs(rdma_get_src_port(listener));
  for (int i = 0; i < kClients; ++i) {
    clients[i] = resolved(address, port, RDMA_PS_TCP);
    make_qp(clients[i]);
  }
  uint8_t started = 0;
  int seen[kClients] = {0}, requests = 0, moves = 0;
  for (int idle = 0; requests < kClients || idle < 200; ++moves) {
    struct rdma_conn_param wanted = {.private_data = &started, .private_data_len = 1, .retry_count = 7};
    if (started < kClients) {
      must(rdma_connect(clients[started], &wanted) == 0, "cannot connect");
      ++started;
    }
    must(rdma_migrate_id(listener, channels[moves % 2]) == 0, "cannot move to another channel");
    struct rdma_cm_event* event = NULL;
    ++idle;
    for (int i = 0; i < 2; ++i) {
      while (rdma_get_cm_event(channels[i], &event) == 0) {
        must(event->event == RDMA_CM_EVENT_CONNECT_REQUEST, "no request");
        struct rdma_cm_id* server = event->id;
        const uint8_t client = *(const uint8_t*)event->param.conn.private_data;
        must(client < kClients, "the private data of the request is another");
        rdma_ack_cm_event(event);
        must(rdma_reject(server, NULL, 0) == 0, "cannot reject");
        end(server);
        requests += seen[client]++ == 0;
        idle = 0;
      }
      must(errno == EAGAIN, "cannot read the channel");
    }
    if (idle > 0) usleep(1000);
    must(moves < kPatience, "requests are missing");
  }
  for (int i = 0; i < kClients; ++i) end(clients[i]);
  end(listener);
  rdma_destroy_event_channel(channels[1]);
}

static void say_and_wait(const char* what) {
  puts(what);
  fflush(stdout);
  for (;;) pause();
}

static void come_to_requested(int port) {
  listen_on(port, RDMA_PS_TCP);
  request_with("", 0, NULL);
  say_and_wait("requested");
}

// Repeats until the peer listens.
static struct rdma_cm_event* answer_from(int port, int with_qp) {
  struct rdma_conn_param wanted = {.retry_count = 7, .qp_num = 0x123};
  for (;;) {
    struct rdma_cm_id* client = resolved(address, port, RDMA_PS_TCP);
    if (with_qp) make_qp(client);
    must(rdma_connect(client, &wanted) == 0, "cannot connect");
    struct rdma_cm_event* event = next_event(active);
    if (event->event != RDMA_CM_EVENT_REJECTED || event->status != 8) return event;
    rdma_ack_cm_event(event);
    end(client);
  }
}

static void come_to_answered(int port) {
  must(answer_from(port, 0)->event == RDMA_CM_EVENT_CONNECT_RESPONSE, "not answered");
  say_and_wait("answered");
}

// Connects and exits.
static void leave(int port) {
  must(answer_from(port, 1)->event == RDMA_CM_EVENT_ESTABLISHED, "not connected");
  exit(0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kChecks[] = {{"connection", check_connection},
                 {"refusals", check_refusals},
                 {"own-qp", check_own_queue_pair},
                 {"ports", check_ports},
                 {"datagrams", check_datagrams},
                 {"channels", check_channels},
                 {"interrupts", check_interrupts},
                 {"migration", check_migration},
                 {"ib-addresses", check_ib_addresses},
                 {"multicast", check_multicast},
                 {"synchronous-datagrams", check_synchronous_datagrams}};
  must(argc >= 3, "rdmacm-check NAME ADDRESS [PORT]");
  address = argv[2];
  active = rdma_create_event_channel();
  passive = rdma_create_event_channel();
  must(active != NULL && passive != NULL, "no event channels");
  if (argc == 4 && strcmp(argv[1], "requested") == 0) come_to_requested(atoi(argv[3]));
  if (argc == 4 && strcmp(argv[1], "answered") == 0) come_to_answered(atoi(argv[3]));
  if (argc == 4 && strcmp(argv[1], "leaving") == 0) leave(atoi(argv[3]));
  for (size_t i = 0; i < sizeof kChecks / sizeof kChecks[0]; ++i) {
    if (strcmp(argv[1], kChecks[i].name) != 0) continue;
    kChecks[i].run();
    rdma_destroy_event_channel(active);
    rdma_destroy_event_channel(passive);
    printf("%s: as it should be\n", argv[1]);
    return 0;
  }
  must(0, "there is no such check");
}
