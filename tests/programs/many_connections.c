// Program of librdmacm and the verbs API, linked with the system's libraries: a client with very many simultaneous
// connections to a server, one queue pair each. It sends a message over each connection and disconnects all; then
// again in the same processes.
//
//     many-connections -c 10000 -r 2                 the server, until it has served two rounds
//     many-connections -c 10000 -r 2 10.77.0.1       the client
//
// With -w both wait for this number of seconds between two rounds, for the end of time-wait, and before they exit,
// for inspection.
//
// Each process has one event channel, one completion queue and one protection domain, the server also one shared
// receive queue. It prints the duration of a round and its remaining memory. Exit status 1, after a sentence, on any
// error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { kMessage = 64, kReceives = 4096, kPatience = 100, kBatch = 64 };

static struct options {
  unsigned connections, rounds, under_way, wait;
  uint16_t port;
  const char* server;  // NULL: this process is the server
} wanted = {.connections = 10000, .rounds = 2, .under_way = 4096, .port = 7471};

// A connection of the client.
struct one {
  struct rdma_cm_id* id;
};

static struct side {
  struct rdma_event_channel* channel;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_srq* srq;
  struct ibv_mr* mr;
  unsigned char* bytes;
  struct one* all;
  // In this round.
  unsigned connected, moved, disconnected;
} me;

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Processor time of all threads.
static double processor_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static long resident_kib(void) {
  long kib = 0;
  char line[256];
  FILE* file = fopen("/proc/self/status", "r");
  must(file != NULL, "/proc/self/status");
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  }
  fclose(file);
  return kib;
}

// Allocated memory of the process. Resident memory is larger, because queues keep their memory.
static long used_kib(void) {
  const struct mallinfo2 all = mallinfo2();
  return (long)((all.uordblks + all.hblkhd) / 1024);
}

// Threads of the library open files for a moment, so the least of several counts.
static unsigned open_files(void) {
  unsigned least = UINT_MAX;
  for (int i = 0; i < 20; i++) {
    unsigned count = 0;
    for (int fd = 0; fd < 4096; fd++) count += fcntl(fd, F_GETFD) >= 0;
    if (count < least) least = count;
    usleep(1000);
  }
  return least;
}

// ---------------------------------------------------------------------------------------------------------- queues

static void post_receive(uint64_t slot) {
  struct ibv_sge sge = {(uintptr_t)me.bytes + slot * kMessage, kMessage, me.mr->lkey};
  struct ibv_recv_wr request = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
  must(ibv_post_srq_recv(me.srq, &request, &bad) == 0, "no receive request");
}

// Objects that all connections share, on the device of the first identifier that has one.
static void make_shared(struct ibv_context* device) {
  if (me.pd != NULL) return;
  me.pd = ibv_alloc_pd(device);
  me.cq = ibv_create_cq(device, (int)(wanted.connections + kReceives), NULL, NULL, 0);
  me.bytes = calloc(kReceives, kMessage);
  must(me.pd != NULL && me.cq != NULL && me.bytes != NULL, "no domain, queue or memory");
  me.mr = ibv_reg_mr(me.pd, me.bytes, (size_t)kReceives * kMessage, IBV_ACCESS_LOCAL_WRITE);
  must(me.mr != NULL, "the memory cannot be registered");
  if (wanted.server != NULL) return;
  struct ibv_srq_init_attr init = {.attr = {.max_wr = kReceives, .max_sge = 1}};
  me.srq = ibv_create_srq(me.pd, &init);
  must(me.srq != NULL, "no shared receive queue");
  for (uint64_t i = 0; i < kReceives; i++) post_receive(i);
}

static void make_queue_pair(struct rdma_cm_id* id) {
  make_shared(id->verbs);
  struct ibv_qp_init_attr init = {.send_cq = me.cq,
                                  .recv_cq = me.cq,
                                  .srq = me.srq,
                                  .qp_type = IBV_QPT_RC,
                                  .sq_sig_all = 1,
                                  .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  if (me.srq == NULL) init.cap.max_recv_wr = 1;
  must(rdma_create_qp(id, me.pd, &init) == 0, "no queue pair");
}

// Returns whether there may be more completions.
static int take_some_completions(void) {
  struct ibv_wc found[kBatch];
  const int count = ibv_poll_cq(me.cq, kBatch, found);
  must(count >= 0, "the completion queue cannot be asked");
  for (int i = 0; i < count; i++) {
    if (found[i].status != IBV_WC_SUCCESS) {
      fprintf(stderr, "a message ends with %s\n", ibv_wc_status_str(found[i].status));
      exit(1);
    }
    if ((found[i].opcode & IBV_WC_RECV) != 0) {
      must(found[i].byte_len == kMessage && me.bytes[found[i].wr_id * kMessage] == 'm', "another message");
      post_receive(found[i].wr_id);
    }
    me.moved++;
  }
  return count == kBatch;
}

static void take_completions(void) {
  while (take_some_completions()) continue;
}

static void destroy(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  must(rdma_destroy_id(id) == 0, "an identifier stays");
}

// Returns NULL on timeout.
static struct rdma_cm_event* next_event(int milliseconds) {
  struct pollfd channel = {me.channel->fd, POLLIN, 0};
  struct rdma_cm_event* event = NULL;
  if (poll(&channel, 1, milliseconds) <= 0) return NULL;
  must(rdma_get_cm_event(me.channel, &event) == 0, "no event");
  return event;
}

static void check_patience(double begin) {
  errno = ETIMEDOUT;
  must(seconds() - begin < kPatience, "the round does not come to an end");
}

static void unexpected(const struct rdma_cm_event* event) {
  fprintf(stderr, "unexpected: %s, status %d, after %u connected and %u disconnected\n",
          rdma_event_str(event->event), event->status, me.connected, me.disconnected);
  exit(1);
}

static void report(unsigned round, double processor, long before, long most, double connecting,
                   double ending) {
  printf("round %u: %u connections", round, wanted.connections);
  if (wanted.server != NULL)
    printf(", %.0f connects/s, %.0f disconnects/s", wanted.connections / connecting,
           wanted.connections / ending);
  printf(
      ", %.1f us of processor time and %.0f bytes each, %ld KiB before, %ld after, %ld KiB in use, %u "
      "files\n",
      (processor_seconds() - processor) * 1e6 / wanted.connections,
      (double)(most - before) * 1024 / wanted.connections, before, resident_kib(), used_kib(), open_files());
  fflush(stdout);
}

// -------------------------------------------------------------------------------------------------------- server

static void serve(struct rdma_cm_event* event) {
  struct rdma_cm_id* id = event->id;
  const enum rdma_cm_event_type type = event->event;
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST: {
      struct rdma_conn_param accept = {.rnr_retry_count = 7};
      make_queue_pair(id);
      must(rdma_accept(id, &accept) == 0, "a connection is not accepted");
      break;
    }
    case RDMA_CM_EVENT_ESTABLISHED:
      me.connected++;
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      must(rdma_disconnect(id) == 0 || errno == EINVAL, "a connection does not end");
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      break;
    default:
      unexpected(event);
  }
  rdma_ack_cm_event(event);
  if (type != RDMA_CM_EVENT_DISCONNECTED) return;
  take_completions();  // destroying a queue pair removes its completions
  destroy(id);
  me.disconnected++;
}

// Listens only during a round, after all connections of the previous one were destroyed: so the client knows when to
// start.
static void serve_round(unsigned round) {
  struct rdma_cm_id* listener = NULL;
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(wanted.port)};
  must(rdma_create_id(me.channel, &listener, NULL, RDMA_PS_TCP) == 0, "no identifier");
  must(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "the port cannot be bound");
  if (round == 0) {  // shared objects must not count as memory of connections
    struct ibv_context** devices = rdma_get_devices(NULL);
    must(devices != NULL, "no device");
    make_shared(devices[0]);
    rdma_free_devices(devices);
  }
  must(rdma_listen(listener, 1024) == 0, "nobody may listen");
  me.connected = me.moved = me.disconnected = 0;
  const long before = resident_kib();
  long most = 0;
  double begin = seconds(), processor = 0;
  while (me.disconnected < wanted.connections) {
    take_completions();
    for (struct rdma_cm_event* event; (event = next_event(0)) != NULL;) {
      if (me.connected == 0) {  // the time until the first connection does not count
        begin = seconds();
        processor = processor_seconds();
      }
      if (most == 0 && event->event == RDMA_CM_EVENT_DISCONNECTED) most = resident_kib();
      serve(event);
    }
    check_patience(begin);
  }
  must(me.connected == wanted.connections && me.moved == wanted.connections, "something did not come");
  must(rdma_destroy_id(listener) == 0, "the listener stays");
  report(round + 1, processor, before, most, 1, 1);
}

// -------------------------------------------------------------------------------------------------------- client

static void begin_connection(struct one* one) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(wanted.port)};
  must(inet_pton(AF_INET, wanted.server, &to.sin_addr) == 1, "not an IPv4 address");
  must(rdma_create_id(me.channel, &one->id, one, RDMA_PS_TCP) == 0, "no identifier");
  must(rdma_resolve_addr(one->id, NULL, (struct sockaddr*)&to, 2000) == 0, "no way to the server");
}

// Returns 0 if the server does not listen yet.
static int connect_on(struct rdma_cm_event* event) {
  struct rdma_conn_param ask = {.retry_count = 7, .rnr_retry_count = 7};
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      must(rdma_resolve_route(event->id, 2000) == 0, "no route");
      return 1;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      make_queue_pair(event->id);
      must(rdma_connect(event->id, &ask) == 0, "no connection begins");
      return 1;
    case RDMA_CM_EVENT_ESTABLISHED:
      me.connected++;
      return 1;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      if (me.connected == 0) return 0;
      unexpected(event);
      return 0;
    default:
      unexpected(event);
      return 0;
  }
}

// Repeats the first connection until the server listens.
static void connect_first(void) {
  const double begin = seconds();
  begin_connection(&me.all[0]);
  while (me.connected == 0) {
    check_patience(begin);
    struct rdma_cm_event* event = next_event(100);
    if (event == NULL) continue;
    const int good = connect_on(event);
    rdma_ack_cm_event(event);
    if (good) continue;
    destroy(me.all[0].id);
    usleep(2000);
    begin_connection(&me.all[0]);
  }
}

static double connect_all(void) {
  const double begin = seconds();
  unsigned begun = 1;
  while (me.connected < wanted.connections) {
    for (; begun < wanted.connections && begun - me.connected < wanted.under_way; begun++)
      begin_connection(&me.all[begun]);
    struct rdma_cm_event* event = next_event(100);
    check_patience(begin);
    if (event == NULL) continue;
    connect_on(event);
    rdma_ack_cm_event(event);
  }
  return seconds() - begin;
}

static void send_over_all(void) {
  const double begin = seconds();
  memset(me.bytes, 'm', kMessage);
  for (unsigned posted = 0; me.moved < wanted.connections; take_completions()) {
    check_patience(begin);
    for (; posted < wanted.connections && posted - me.moved < wanted.under_way; posted++) {
      struct ibv_sge sge = {(uintptr_t)me.bytes, kMessage, me.mr->lkey};
      struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
      must(ibv_post_send(me.all[posted].id->qp, &request, &bad) == 0, "no send request");
    }
  }
}

static double disconnect_all(void) {
  const double begin = seconds();
  unsigned begun = 0;
  while (me.disconnected < wanted.connections) {
    for (; begun < wanted.connections && begun - me.disconnected < wanted.under_way; begun++)
      must(rdma_disconnect(me.all[begun].id) == 0, "a connection does not end");
    struct rdma_cm_event* event = next_event(100);
    check_patience(begin);
    if (event == NULL) continue;
    const enum rdma_cm_event_type type = event->event;
    if (type != RDMA_CM_EVENT_DISCONNECTED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) unexpected(event);
    me.disconnected += type == RDMA_CM_EVENT_DISCONNECTED;
    rdma_ack_cm_event(event);
  }
  return seconds() - begin;
}

static void ask_round(unsigned round) {
  if (round == 0) {
    struct ibv_context** devices = rdma_get_devices(NULL);
    must(devices != NULL, "no device");
    make_shared(devices[0]);
    rdma_free_devices(devices);
  }
  me.connected = me.moved = me.disconnected = 0;
  const long before = resident_kib();
  connect_first();
  const double processor = processor_seconds();
  const double connecting = connect_all();
  send_over_all();
  const long most = resident_kib();
  const double ending = disconnect_all();
  for (unsigned i = 0; i < wanted.connections; i++) destroy(me.all[i].id);
  report(round + 1, processor, before, most, connecting, ending);
}

int main(int count, char** words) {
  for (int option; (option = getopt(count, words, "c:r:u:p:w:")) != -1;) {
    const unsigned value = optarg != NULL ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    if (option == 'c') wanted.connections = value;
    if (option == 'r') wanted.rounds = value;
    if (option == 'u') wanted.under_way = value;
    if (option == 'p') wanted.port = (uint16_t)value;
    if (option == 'w') wanted.wait = value;
    if (option == '?' || value == 0) {
      fprintf(stderr,
              "usage: many-connections [-c CONNECTIONS] [-r ROUNDS] [-u AT_ONCE] [-p PORT] [-w SECONDS] "
              "[SERVER]\n");
      return 2;
    }
  }
  wanted.server = optind < count ? words[optind] : NULL;
  me.channel = rdma_create_event_channel();
  me.all = calloc(wanted.connections, sizeof *me.all);
  must(me.channel != NULL && me.all != NULL, "no event channel, or no memory");
  for (unsigned round = 0; round < wanted.rounds; round++) {
    if (round > 0) sleep(wanted.wait);
    if (wanted.server != NULL)
      ask_round(round);
    else
      serve_round(round);
  }
  if (me.srq != NULL) must(ibv_destroy_srq(me.srq) == 0, "the shared receive queue stays");
  must(ibv_dereg_mr(me.mr) == 0 && ibv_destroy_cq(me.cq) == 0 && ibv_dealloc_pd(me.pd) == 0,
       "an object stays");
  rdma_destroy_event_channel(me.channel);
  printf("all gone\n");
  fflush(stdout);
  sleep(wanted.wait);
  return 0;
}
