// Program with the verbs and rdma_cm APIs, linked with the system's libraries: several processes send RDMA WRITEs to one.
//
//   senders-check receive SENDERS                    prints "listening", accepts SENDERS connections, and exits
//                                                    when all of them are disconnected
//   senders-check send ADDRESS BYTES DEPTH SECONDS   prints "sent BYTES NANOSECONDS" after SECONDS of WRITEs of BYTES,
//                                                    of which DEPTH are outstanding
//
// Exit status 1, after a sentence on standard error, on an error.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPort = 7472, kMaxBytes = 1 << 20, kMaxDepth = 64, kMaxSenders = 16 };

struct target {
  uint64_t address;
  uint32_t rkey;
};

static void must(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct rdma_cm_event* expect(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = NULL;
  must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  if (event->event != type) {
    fprintf(stderr, "senders-check: %s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
    exit(1);
  }
  return event;
}

static void create_qp(struct rdma_cm_id* id, uint32_t depth) {
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  init.cap =
      (struct ibv_qp_cap){.max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
  must(rdma_create_qp(id, NULL, &init) == 0, "rdma_create_qp");
}

static int receive(int senders) {
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  must(channel != NULL, "rdma_create_event_channel");
  struct rdma_cm_id* listener;
  must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  must(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "rdma_bind_addr");
  must(rdma_listen(listener, senders) == 0, "rdma_listen");
  printf("listening\n");
  fflush(stdout);
  for (int connected = 0, left = senders; left > 0;) {
    struct rdma_cm_event* event;
    must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    struct rdma_cm_id* const id = event->id;
    const enum rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      must(connected++ < kMaxSenders, "too many connections");
      create_qp(id, 1);
      void* const memory = calloc(1, kMaxBytes);
      must(memory != NULL, "calloc");
      struct ibv_mr* const mr = rdma_reg_write(id, memory, kMaxBytes);
      must(mr != NULL, "rdma_reg_write");
      struct target target = {(uintptr_t)memory, mr->rkey};
      struct rdma_conn_param parameters = {.private_data = &target, .private_data_len = sizeof target};
      must(rdma_accept(id, &parameters) == 0, "rdma_accept");
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
      rdma_disconnect(id);
      --left;
    } else if (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
      fprintf(stderr, "senders-check: %s\n", rdma_event_str(type));
      return 1;
    }
  }
  return 0;
}

static int send_to(const char* address, uint32_t bytes, uint32_t depth, double seconds) {
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  must(channel != NULL, "rdma_create_event_channel");
  struct rdma_cm_id* id;
  must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  must(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
  must(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 5000) == 0, "rdma_resolve_addr");
  rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
  must(rdma_resolve_route(id, 5000) == 0, "rdma_resolve_route");
  rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
  create_qp(id, depth);
  void* const memory = calloc(1, bytes);
  must(memory != NULL, "calloc");
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, bytes);
  must(mr != NULL, "rdma_reg_msgs");
  struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7};
  must(rdma_connect(id, &parameters) == 0, "rdma_connect");
  struct rdma_cm_event* const event = expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  struct target target;
  must(event->param.conn.private_data_len >= sizeof target, "private data");
  memcpy(&target, event->param.conn.private_data, sizeof target);
  rdma_ack_cm_event(event);

  const int64_t start = now(), end = start + (int64_t)(seconds * 1e9);
  uint64_t done = 0;
  for (uint32_t outstanding = 0, stop = 0; !stop || outstanding > 0;) {
    stop = now() >= end;
    for (; !stop && outstanding < depth; ++outstanding)
      must(rdma_post_write(id, NULL, memory, bytes, mr, 0, target.address, target.rkey) == 0,
           "rdma_post_write");
    struct ibv_wc wc[16];
    const int n = ibv_poll_cq(id->send_cq, 16, wc);
    must(n >= 0, "ibv_poll_cq");
    for (int i = 0; i < n; ++i) {
      if (wc[i].status == IBV_WC_SUCCESS) continue;
      fprintf(stderr, "senders-check: a WRITE ended with %s\n", ibv_wc_status_str(wc[i].status));
      return 1;
    }
    outstanding -= (uint32_t)n;
    done += (uint64_t)n * bytes;
  }
  printf("sent %llu %lld\n", (unsigned long long)done, (long long)(now() - start));
  must(rdma_disconnect(id) == 0, "rdma_disconnect");
  rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_DISCONNECTED));
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "receive") == 0) return receive(atoi(argv[2]));
  if (argc == 6 && strcmp(argv[1], "send") == 0) {
    const uint32_t bytes = (uint32_t)atoi(argv[3]), depth = (uint32_t)atoi(argv[4]);
    if (bytes >= 1 && bytes <= kMaxBytes && depth >= 1 && depth <= kMaxDepth)
      return send_to(argv[2], bytes, depth, atof(argv[5]));
  }
  fprintf(stderr, "usage: senders-check receive SENDERS | send ADDRESS BYTES DEPTH SECONDS\n");
  return 2;
}
