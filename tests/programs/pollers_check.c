// Request-response pairs with the polling of eRPC, of an SPDK target and of brpc, linked with the system's
// libibverbs:
//
//   pollers-check ud    -p PORT            server: one pinned thread polls and never sleeps, unreliable datagrams
//   pollers-check ud    -p PORT 127.0.0.1  client
//   pollers-check rc    ...                the same on RC: commands, RDMA READ or WRITE of the data, completions
//   pollers-check epoll ...                RC, both processes sleep in epoll until a completion event
//
// The client prints one line. Exit status 1, after one sentence, if data is wrong, a request fails or there is no
// progress.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pollers.h"

static const struct mode modes[] = {
    {.name = "ud",
     .size = 64,
     .type = IBV_QPT_UD,
     .pins_thread = 1,
     .memory = ud_memory,
     .receive = ud_receive,
     .client = ud_client,
     .server = ud_server},
    {.name = "rc",
     .size = 4096,
     .type = IBV_QPT_RC,
     .pins_first = 1,
     .moves_data = 1,
     .memory = rc_memory,
     .receive = rc_receive,
     .client = rc_client,
     .server = rc_server},
    {.name = "epoll",
     .size = 64,
     .type = IBV_QPT_RC,
     .sleeps = 1,
     .memory = rc_memory,
     .receive = rc_receive,
     .client = rc_client,
     .server = rc_server},
};

static const char* role(const struct side* s) { return s->options.server != NULL ? "client" : "server"; }

_Noreturn void fail(const struct side* s, const char* format, ...) {
  va_list words;
  va_start(words, format);
  fprintf(stderr, "%s %s: ", s->options.mode->name, role(s));
  vfprintf(stderr, format, words);
  fprintf(stderr, " (%llu requests completed)\n", (unsigned long long)s->completed);
  exit(1);
}

void require(const struct side* s, int condition, const char* sentence) {
  if (!condition) fail(s, "%s", sentence);
}

// ------------------------------------------------------------------------------------------------- clock, progress

static uint64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static _Noreturn void fail_stalled(struct side* s) {
  struct ibv_wc wc[kBatch];
  const int sends = ibv_poll_cq(s->send_cq, kBatch, wc);
  const int receives = ibv_poll_cq(s->receive_cq, kBatch, wc);
  fail(s, "no progress for %d s; ibv_poll_cq returns %d and %d completions", kStall, sends, receives);
}

int tick(struct side* s) {
  s->now = clock_ns();
  if (s->now < s->next_tick) return 0;
  s->next_tick = s->now + kMillisecond;
  const ssize_t got = recv(s->socket, &s->reported, sizeof s->reported, MSG_DONTWAIT);
  require(s, got != 0 && (got > 0 || errno == EAGAIN), "the other process has exited");
  if (got > 0) {
    require(s, got == sizeof s->reported && s->options.server == NULL, "unexpected bytes from the socket");
    s->client_finished = 1;
  } else if (s->now > s->last_progress + kStall * 1000000000ULL) {
    fail_stalled(s);
  }
  return 1;
}

void count_completed(struct side* s) {
  s->completed++;
  s->last_progress = s->now;
}

static uint32_t bucket(uint64_t ns) {
  if (ns < 128) return (uint32_t)ns;
  const uint32_t shift = 57 - (uint32_t)__builtin_clzll(ns);
  return 128 + (shift - 1) * 64 + (uint32_t)(ns >> shift) - 64;
}

void add_latency(struct side* s, uint64_t sent) {
  const uint64_t ns = s->now - sent;
  s->latency.buckets[bucket(ns)]++;
  s->latency.count++;
  if (ns > s->latency.max) s->latency.max = ns;
}

static double percentile_us(const struct histogram* h, double share) {
  uint64_t left = (uint64_t)((double)h->count * share);
  for (uint32_t i = 0; i < sizeof h->buckets / sizeof h->buckets[0]; i++) {
    if (left < h->buckets[i]) {
      if (i < 128) return i / 1e3;
      const uint32_t shift = (i - 128) / 64 + 1;
      return (double)((uint64_t)((i - 128) % 64 + 64) << shift) / 1e3;
    }
    left -= h->buckets[i];
  }
  return (double)h->max / 1e3;
}

// -------------------------------------------------------------------------------------------------------- patterns

// Pattern that is readable in a message about wrong data: sequence number, kind, position.
static uint64_t word(uint64_t sequence, enum kind kind, uint32_t i) {
  return sequence << 24 | (uint64_t)kind << 20 | (i & 0xFFFFF);
}

void fill(void* bytes, uint32_t length, uint64_t sequence, enum kind kind) {
  uint64_t* words = bytes;
  for (uint32_t i = 0; i < length / 8; i++) words[i] = word(sequence, kind, i);
}

void verify(const struct side* s, const void* bytes, uint32_t length, uint64_t sequence, enum kind kind) {
  const uint64_t* words = bytes;
  for (uint32_t i = 0; i < length / 8; i++)
    if (words[i] != word(sequence, kind, i))
      fail(s, "request %llu: wrong data: word %u of %u is %016llx, not %016llx", (unsigned long long)sequence,
           i, length / 8, (unsigned long long)words[i], (unsigned long long)word(sequence, kind, i));
}

void fill_message(struct message* m, uint32_t length) {
  fill(m + 1, length - (uint32_t)sizeof *m, m->sequence, m->kind);
}

void verify_message(const struct side* s, const struct message* m, uint32_t length) {
  const enum kind kind = s->options.server != NULL ? kResponse : kRequest;
  if (m->kind != kind || m->slot >= s->options.depth)
    fail(s, "a message is of kind %u and of slot %u", m->kind, m->slot);
  verify(s, m + 1, length - (uint32_t)sizeof *m, m->sequence, kind);
}

// ----------------------------------------------------------------------------------------------- peer process

static void connect_socket(struct side* s) {
  const struct options* o = &s->options;
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(s, socket_fd >= 0, "no TCP socket");
  const struct timeval limit = {.tv_sec = kStall};
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(o->port)};
  if (inet_pton(AF_INET, o->server != NULL ? o->server : "127.0.0.1", &address.sin_addr) != 1)
    fail(s, "%s is not an IPv4 address", o->server);
  if (o->server != NULL) {
    if (connect(socket_fd, (struct sockaddr*)&address, sizeof address) != 0)
      fail(s, "TCP port %u: %s", o->port, strerror(errno));
    s->socket = socket_fd;
    return;
  }
  if (bind(socket_fd, (struct sockaddr*)&address, sizeof address) != 0 || listen(socket_fd, 1) != 0)
    fail(s, "TCP port %u: %s", o->port, strerror(errno));
  s->socket = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC);
  if (s->socket < 0) fail(s, "no client connects: %s", strerror(errno));
  setsockopt(s->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  close(socket_fd);
}

static void send_to_peer(const struct side* s, const void* data, size_t length) {
  require(s, send(s->socket, data, length, MSG_NOSIGNAL) == (ssize_t)length, "the other process has exited");
}

static void read_from_peer(const struct side* s, void* data, size_t length) {
  const ssize_t got = recv(s->socket, data, length, MSG_WAITALL);
  if (got < 0) fail(s, "no message of the other process: %s", strerror(errno));
  require(s, got == (ssize_t)length, "the other process has exited");
}

// Pins the server's thread to the first processor that the process may use, the client's to the second.
static void pin(const struct side* s) {
  cpu_set_t allowed;
  require(s, sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity fails");
  int skip = s->options.server != NULL && CPU_COUNT(&allowed) > 1;
  int processor = 0;
  while (!CPU_ISSET(processor, &allowed) || skip-- > 0) processor++;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  require(s, sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity fails");
}

// ----------------------------------------------------------------------------------------------------------- verbs

static void open_device(struct side* s) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  require(s, devices != NULL && devices[0] != NULL, "no RDMA device");
  s->context = ibv_open_device(devices[0]);
  require(s, s->context != NULL, "ibv_open_device fails");
  ibv_free_device_list(devices);
  s->pd = ibv_alloc_pd(s->context);
  require(s, s->pd != NULL, "ibv_alloc_pd fails");
  const size_t length = s->options.mode->memory(&s->options);
  s->memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(s, s->memory != MAP_FAILED, "no memory");
  s->mr = ibv_reg_mr(s->pd, s->memory, length,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  require(s, s->mr != NULL, "ibv_reg_mr fails");
}

static void make_queues(struct side* s) {
  const struct options* o = &s->options;
  if (o->mode->sleeps) {
    s->channel = ibv_create_comp_channel(s->context);
    require(s, s->channel != NULL, "ibv_create_comp_channel fails");
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event completions = {.events = EPOLLIN | EPOLLET};
    struct epoll_event readable = {.events = EPOLLIN};
    require(s,
            fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK) == 0 &&
                epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->channel->fd, &completions) == 0 &&
                epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->socket, &readable) == 0,
            "epoll does not accept the completion channel");
  }
  const int entries = (int)(8 * o->depth);
  s->send_cq = ibv_create_cq(s->context, entries, NULL, s->channel, 0);
  s->receive_cq =
      o->mode->type == IBV_QPT_UD ? ibv_create_cq(s->context, entries, NULL, NULL, 0) : s->send_cq;
  require(s, s->send_cq != NULL && s->receive_cq != NULL, "ibv_create_cq fails");
  struct ibv_qp_init_attr init = {
      .send_cq = s->send_cq,
      .recv_cq = s->receive_cq,
      .cap = {.max_send_wr = 4 * o->depth, .max_recv_wr = 4 * o->depth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = o->mode->type,
  };
  s->qp = ibv_create_qp(s->pd, &init);
  require(s, s->qp != NULL, "ibv_create_qp fails");
}

static void set_qp_init(const struct side* s) {
  const int is_ud = s->options.mode->type == IBV_QPT_UD;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey};
  if (!is_ud) attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  require(s,
          ibv_modify_qp(s->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0,
          "ibv_modify_qp to INIT fails");
}

static void set_qp_ready(struct side* s, enum ibv_mtu mtu) {
  struct ibv_device_attr device;
  require(s, ibv_query_device(s->context, &device) == 0, "ibv_query_device fails");
  const uint8_t reads = device.max_qp_rd_atom < 16 ? (uint8_t)device.max_qp_rd_atom : 16;
  const int is_ud = s->options.mode->type == IBV_QPT_UD;
  struct ibv_ah_attr path = {
      .is_global = 1, .port_num = 1, .grh = {.dgid = s->peer.gid, .sgid_index = 1, .hop_limit = 64}};
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = mtu,
                             .dest_qp_num = s->peer.qpn,
                             .max_dest_rd_atomic = reads,
                             .min_rnr_timer = 12,
                             .ah_attr = path};
  require(s,
          ibv_modify_qp(s->qp, &attr,
                        is_ud ? IBV_QP_STATE
                              : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "ibv_modify_qp to RTR fails");
  // No RNR NAK is expected: a process posts a receive request before it permits the next message.
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 0, .max_rd_atomic = reads};
  require(s,
          ibv_modify_qp(s->qp, &attr,
                        is_ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
                              : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "ibv_modify_qp to RTS fails");
  if (is_ud) {
    s->ah = ibv_create_ah(s->pd, &path);
    require(s, s->ah != NULL, "ibv_create_ah fails");
  }
}

static void connect_queues(struct side* s) {
  const struct options* o = &s->options;
  struct ibv_port_attr port;
  require(s, ibv_query_port(s->context, 1, &port) == 0, "ibv_query_port fails");
  const uint32_t mtu = 128U << port.active_mtu;
  if (o->mode->type == IBV_QPT_UD && o->size > mtu) fail(s, "--size: %u exceeds the MTU of %u", o->size, mtu);
  struct peer mine = {.size = o->size, .depth = o->depth, .qpn = s->qp->qp_num};
  snprintf(mine.mode, sizeof mine.mode, "%s", o->mode->name);
  require(s, ibv_query_gid(s->context, 1, 1, &mine.gid) == 0, "ibv_query_gid fails");
  send_to_peer(s, &mine, sizeof mine);
  read_from_peer(s, &s->peer, sizeof s->peer);
  require(s,
          memcmp(mine.mode, s->peer.mode, sizeof mine.mode) == 0 && mine.size == s->peer.size &&
              mine.depth == s->peer.depth,
          "the server and the client were started with different options");
  set_qp_init(s);
  o->mode->receive(s);
  set_qp_ready(s, port.active_mtu);
  char ready = 1;
  send_to_peer(s, &ready, 1);
  read_from_peer(s, &ready, 1);
}

static void destroy(struct side* s) {
  require(s, s->ah == NULL || ibv_destroy_ah(s->ah) == 0, "ibv_destroy_ah fails");
  require(s, ibv_destroy_qp(s->qp) == 0, "ibv_destroy_qp fails");
  require(s, s->receive_cq == s->send_cq || ibv_destroy_cq(s->receive_cq) == 0, "ibv_destroy_cq fails");
  require(s, ibv_destroy_cq(s->send_cq) == 0, "ibv_destroy_cq fails");
  require(s, s->channel == NULL || ibv_destroy_comp_channel(s->channel) == 0,
          "ibv_destroy_comp_channel fails");
  require(s, ibv_dereg_mr(s->mr) == 0 && ibv_dealloc_pd(s->pd) == 0 && ibv_close_device(s->context) == 0,
          "the device does not close");
}

// ------------------------------------------------------------------------------------------------------------- run

static void* run(void* argument) {
  struct side* s = argument;
  const struct mode* mode = s->options.mode;
  if (mode->pins_thread) pin(s);
  s->now = s->begin = s->last_progress = clock_ns();
  s->end = s->begin + (uint64_t)(s->options.seconds * 1e9);
  (s->options.server != NULL ? mode->client : mode->server)(s);
  return NULL;
}

static void finish_client(struct side* s) {
  const double seconds = (double)(s->now - s->begin) / 1e9;
  send_to_peer(s, &s->completed, sizeof s->completed);
  char done = 0;
  read_from_peer(s, &done, 1);
  printf("%s: %llu requests, %.0f requests/s, latency median %.1f us, p99 %.1f us, max %.1f us",
         s->options.mode->name, (unsigned long long)s->completed, (double)s->completed / seconds,
         percentile_us(&s->latency, 0.5), percentile_us(&s->latency, 0.99), (double)s->latency.max / 1e3);
  if (s->options.mode->type == IBV_QPT_UD)
    printf(", %llu retransmitted", (unsigned long long)s->retransmitted);
  printf("\n");
}

static void finish_server(struct side* s) {
  if (s->reported != s->completed)
    fail(s, "the client reports another number of requests: %llu", (unsigned long long)s->reported);
  const char done = 1;
  send_to_peer(s, &done, 1);
  printf("%s: %llu requests served\n", s->options.mode->name, (unsigned long long)s->completed);
}

static _Noreturn void usage(void) {
  fprintf(stderr,
          "usage: pollers-check ud|rc|epoll [--seconds N] [--size BYTES] [--depth N] -p PORT [SERVER]\n"
          "Without SERVER, an IPv4 address, the process is the server. --size: a multiple of 8 from 64 to "
          "1048576, in mode\n"
          "ud at most the MTU. --depth: from 1 to 1024 requests in flight.\n");
  exit(2);
}

static struct options parse(int count, char** words) {
  struct options o = {.seconds = 2, .depth = 16};
  for (size_t i = 0; count > 1 && i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp(modes[i].name, words[1]) == 0) o.mode = &modes[i];
  if (o.mode == NULL) usage();
  o.size = o.mode->size;
  static const struct option names[] = {{"seconds", required_argument, NULL, 't'},
                                        {"size", required_argument, NULL, 's'},
                                        {"depth", required_argument, NULL, 'd'},
                                        {"port", required_argument, NULL, 'p'},
                                        {0}};
  count--, words++;
  for (int name = 0; (name = getopt_long(count, words, "t:s:d:p:", names, NULL)) != -1;) {
    if (name == '?') usage();
    char* rest = NULL;
    const double value = strtod(optarg, &rest);
    if (rest == optarg || *rest != '\0' || value < 0 || value > 1 << 20) usage();
    if (name == 't') o.seconds = value;
    if (name == 's') o.size = (uint32_t)value;
    if (name == 'd') o.depth = (uint32_t)value;
    if (name == 'p') o.port = (uint16_t)value;
  }
  if (optind < count) o.server = words[optind++];
  if (optind < count || o.port == 0 || o.size % 8 != 0 || o.size < kCommand || o.depth < 1 || o.depth > 1024)
    usage();
  return o;
}

int main(int count, char** words) {
  static struct side s;
  s.options = parse(count, words);
  const struct mode* mode = s.options.mode;
  connect_socket(&s);
  if (mode->pins_first) pin(&s);
  open_device(&s);
  make_queues(&s);
  connect_queues(&s);
  if (mode->pins_thread) {
    pthread_t thread;
    require(&s, pthread_create(&thread, NULL, run, &s) == 0, "pthread_create fails");
    pthread_join(thread, NULL);
  } else {
    run(&s);
  }
  (s.options.server != NULL ? finish_client : finish_server)(&s);
  destroy(&s);
  return 0;
}
