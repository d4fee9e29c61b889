// Program with the verbs and rdma_cm APIs, linked with the system's libraries: one process of a pair in which either
// process is killed or stopped at any time (killed.py). It has traffic in both directions on three queue pairs that
// it connects itself (RDMA WRITE, SEND, RDMA READ) and on one of an rdma_cm connection (all three). It reports each
// failure with the time.
//
// Commands, one per line, on standard input:
//   begin TRAFFIC WAITING CM SEED  creates the queue pairs.
//                                  TRAFFIC: full (requests are always outstanding), light (one request, then a pause),
//                                  still (none)
//                                  WAITING: poll (polls the completion queue), wait (waits for completion events)
//                                  CM: 1: with an rdma_cm connection; 0: without
//   peer PLACE                     connects them to those of the peer process, which has printed PLACE
//   go [ADDRESS]                   starts the traffic; with an address, connects to its listener
//   check N                        posts N more requests on each queue pair, in addition to those of TRAFFIC
//   end                            destroys queue pairs and the connection
//   quit                           exits with status 0, as at the end of the input
//
// Reports, one per line, on standard output; times are of CLOCK_MONOTONIC, in ns:
//   ready ADDRESS | place PLACE | connected | going | ended
//   request TIME | established TIME | disconnected TIME | refused EVENT STATUS TIME   of the rdma_cm connection
//   continues                      the requests of the last `check` and all before have completed without an error
//   failed QUEUE_PAIR STATUS REQUESTS FLUSHED FIRST LAST
//     All requests of a queue pair have ended after an error: status of the first failed one, number of failed ones,
//     number of flushed ones among them, and times at which the first and the last completion was polled.
//
// Exit status 1, after a sentence on standard error, on any other error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kWrite, kSend, kRead, kCm, kQueuePairs };
enum {
  kPort = 7471,
  kDepth = 8,
  kReceives = 8,
  kLargest = 1 << 16,
  kTimeout = 14,  // 67 ms
  kRetries = 3,
  kRnrTimer = 12,  // 0.64 ms
  kFirstPsn = 0x5a5a,
  kPollsBetweenLooks = 64,
};

// Regions of the registered memory. The pattern is the same in both processes and constant.
enum {
  kPattern = 0,
  kWritten = kPattern + 2 * kLargest,  // by RDMA WRITEs of the peer
  kReceived = kWritten + 2 * kLargest,
  kReadBack = kReceived + kQueuePairs * kReceives * kLargest,
  kBytes = kReadBack + kQueuePairs * kDepth * kLargest,
};

struct place {  // connection data for the peer process
  union ibv_gid gid;
  uint64_t address;
  uint32_t rkey;
  uint32_t qpn[kCm];
};

struct flow {
  struct ibv_qp* qp;
  int runs;
  unsigned posted, completed;
  unsigned target;  // value of `completed`, set by `check`
  unsigned failed, flushed;
  enum ibv_wc_status status;  // of the first failed request
  int64_t first, last;
  int64_t next_post;        // light traffic
  uint32_t sent, received;  // messages
  struct {
    uint32_t offset, bytes;
    int reads;
  } requests[kDepth];
};

static struct {
  enum { kFull, kLight, kStill } traffic;
  int polls, with_cm, going, checked;
  uint64_t random;
} mode;

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_comp_channel* completion_events;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static unsigned char* bytes;
static union ibv_gid gid;
static int gid_index;
static struct rdma_event_channel* events;
static struct rdma_cm_id *listener, *connection;
static int active;  // this process requests the connection
static struct flow flows[kQueuePairs];
static struct place peer;

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s (errno %d: %s)\n", what, errno, strerror(errno));
  exit(1);
}

__attribute__((format(printf, 1, 2))) static void report(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  line[length] = '\n';
  if (write(STDOUT_FILENO, line, (size_t)length + 1) != length + 1) exit(1);  // the driver has exited
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// xorshift64*.
static uint32_t draw(uint32_t below) {
  mode.random ^= mode.random >> 12;
  mode.random ^= mode.random << 25;
  mode.random ^= mode.random >> 27;
  return (uint32_t)((mode.random * UINT64_C(0x2545F4914F6CDD1D)) >> 33) % below;
}

static uint32_t draw_size(void) {
  const uint32_t magnitude = UINT32_C(1) << draw(17);
  return magnitude - draw(magnitude);
}

// ----------------------------------------------------------------------------------------------------------------
// requests

// Offset of message n of a queue pair in the pattern.
static uint32_t offset_of_message(uint32_t n) { return n * 2654435761U % kLargest; }

static int is_pattern(uint32_t at, uint32_t offset, uint32_t length) {
  return bytes[at] == bytes[kPattern + offset] &&
         bytes[at + length - 1] == bytes[kPattern + offset + length - 1];
}

static uint32_t receive_slot(int index, uint32_t n) {
  return kReceived + ((uint32_t)index * kReceives + n % kReceives) * kLargest;
}

static uint32_t read_slot(int index, uint32_t n) {
  return kReadBack + ((uint32_t)index * kDepth + n % kDepth) * kLargest;
}

// wr_id: queue pair, receive flag, and number of the request.
static uint64_t id_of(int index, int receives, uint32_t n) {
  return (uint64_t)n << 8 | (uint64_t)receives << 4 | (uint64_t)index;
}

static void post_receive(int index, uint32_t n) {
  struct ibv_sge sge = {(uintptr_t)bytes + receive_slot(index, n), kLargest, mr->lkey};
  struct ibv_recv_wr request = {.wr_id = id_of(index, 1, n), .sg_list = &sge, .num_sge = 1}, *bad = NULL;
  must(ibv_post_recv(flows[index].qp, &request, &bad) == 0, "cannot post a receive");
}

static void post_request(int index) {
  struct flow* flow = &flows[index];
  const uint32_t n = flow->posted, length = draw_size();
  const int kind = index == kCm ? (int)draw(kCm) : index;
  const uint32_t offset = kind == kSend ? offset_of_message(flow->sent) : draw(kLargest);
  struct ibv_sge sge = {(uintptr_t)bytes + kPattern + offset, length, mr->lkey};
  struct ibv_send_wr request = {.wr_id = id_of(index, 0, n),
                                .sg_list = &sge,
                                .num_sge = 1,
                                .send_flags = IBV_SEND_SIGNALED},
                     *bad = NULL;
  request.wr.rdma.rkey = peer.rkey;
  switch (kind) {
    case kWrite:
      request.opcode = IBV_WR_RDMA_WRITE;
      request.wr.rdma.remote_addr = peer.address + kWritten + offset;
      break;
    case kSend:
      request.opcode = IBV_WR_SEND_WITH_IMM;
      request.imm_data = htonl(flow->sent++);
      break;
    case kRead:
      request.opcode = IBV_WR_RDMA_READ;
      request.wr.rdma.remote_addr = peer.address + kPattern + offset;
      sge.addr = (uintptr_t)bytes + read_slot(index, n);
      break;
  }
  flow->requests[n % kDepth].offset = offset;
  flow->requests[n % kDepth].bytes = length;
  flow->requests[n % kDepth].reads = kind == kRead;
  must(ibv_post_send(flow->qp, &request, &bad) == 0, "cannot post a request");
  ++flow->posted;
}

static void post_requests(int64_t time) {
  for (int i = 0; i < kQueuePairs; ++i) {
    struct flow* flow = &flows[i];
    if (!flow->runs || flow->failed > 0) continue;
    const unsigned outstanding = flow->posted - flow->completed;
    unsigned most = 0;
    if ((int)(flow->target - flow->posted) > 0) most = kDepth;
    if (mode.traffic == kFull) most = kDepth;
    if (mode.traffic == kLight && time >= flow->next_post && most == 0) most = 1;
    for (unsigned n = outstanding; n < most; ++n) {
      if (mode.traffic == kStill && flow->posted == flow->target) break;
      post_request(i);
    }
  }
}

static void on_receive(int index, const struct ibv_wc* wc) {
  struct flow* flow = &flows[index];
  if (wc->status == IBV_WC_WR_FLUSH_ERR) return;
  must(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
  const uint32_t n = (uint32_t)(wc->wr_id >> 8);
  must(ntohl(wc->imm_data) == flow->received, "a message is missing, or was received twice");
  must(is_pattern(receive_slot(index, n), offset_of_message(flow->received), wc->byte_len),
       "a message has other data");
  ++flow->received;
  post_receive(index, n + kReceives);
}

static void on_completion(const struct ibv_wc* wc, int64_t time) {
  const int index = (int)(wc->wr_id & 0xf);
  struct flow* flow = &flows[index];
  if ((wc->wr_id & 0x10) != 0) return on_receive(index, wc);
  const uint32_t n = (uint32_t)(wc->wr_id >> 8);
  must(n == flow->completed, "requests complete in another order");
  ++flow->completed;
  flow->next_post = time + 200000 + draw(1500000);
  if (wc->status == IBV_WC_SUCCESS) {
    must(flow->failed == 0, "a request succeeds after one that failed");
    const uint32_t slot = n % kDepth;
    if (flow->requests[slot].reads)
      must(is_pattern(read_slot(index, n), flow->requests[slot].offset, flow->requests[slot].bytes),
           "a READ has returned other data");
    return;
  }
  if (flow->failed++ == 0) {
    flow->status = wc->status;
    flow->first = time;
  }
  flow->flushed += wc->status == IBV_WC_WR_FLUSH_ERR;
  flow->last = time;
  if (flow->completed == flow->posted)
    report("failed %d %d %u %u %lld %lld", index, (int)flow->status, flow->failed, flow->flushed,
           (long long)flow->first, (long long)flow->last);
}

// The data that the peer has written must match the pattern.
static void check_written(void) {
  for (uint32_t i = 0; i < 2 * kLargest; ++i)
    must(bytes[kWritten + i] == 0 || bytes[kWritten + i] == bytes[kPattern + i], "a WRITE has other data");
}

static void note_checked(void) {
  if (!mode.checked) return;
  for (int i = 0; i < kQueuePairs; ++i) {
    if (flows[i].runs && (int)(flows[i].completed - flows[i].target) < 0) return;
    if (flows[i].failed > 0) mode.checked = 0;  // the failure is reported instead
  }
  if (!mode.checked) return;
  check_written();
  report("continues");
  mode.checked = 0;
}

// Returns whether there were completions.
static int poll_completions(void) {
  struct ibv_wc found[16];
  int any = 0;
  for (;;) {
    const int count = ibv_poll_cq(cq, 16, found);
    must(count >= 0, "the completion queue cannot be polled");
    const int64_t time = now();
    for (int i = 0; i < count; ++i) on_completion(&found[i], time);
    any |= count > 0;
    if (count > 0) note_checked();
    if (mode.going) post_requests(time);
    if (count < 16) return any;
  }
}

// ------------------------------------------------------------------------------------------------------------- queue pairs

static struct ibv_qp_cap capabilities(void) {
  return (struct ibv_qp_cap){
      .max_send_wr = kDepth, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1};
}

static void start_flow(int index, struct ibv_qp* qp) {
  flows[index] = (struct flow){.qp = qp};
  for (uint32_t n = 0; n < kReceives; ++n) post_receive(index, n);
}

static void make_queue_pair(int index) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = capabilities(), .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  must(qp != NULL, "cannot create a queue pair");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "cannot modify a queue pair to INIT");
  start_flow(index, qp);
}

static void connect_queue_pair(int index) {
  struct ibv_qp* qp = flows[index].qp;
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_4096,
      .dest_qp_num = peer.qpn[index],
      .rq_psn = kFirstPsn,
      .max_dest_rd_atomic = 4,
      .min_rnr_timer = kRnrTimer,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = peer.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
  };
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "cannot modify a queue pair to RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = kTimeout,
                              .retry_cnt = kRetries,
                              .rnr_retry = 7,
                              .sq_psn = kFirstPsn,
                              .max_rd_atomic = 4};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "cannot modify a queue pair to RTS");
}

// -------------------------------------------------------------------------------------------------------------- connection

// The queue pair must be in RTS. librdmacm sets the longest timer, 655 ms.
static void set_rnr_timer(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.min_rnr_timer = kRnrTimer};
  must(ibv_modify_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER) == 0, "cannot set the RNR timer");
}

static void make_connection_queue_pair(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = capabilities(), .qp_type = IBV_QPT_RC};
  must(rdma_create_qp(id, pd, &init) == 0, "cannot create the connection's queue pair");
  start_flow(kCm, id->qp);
  uint8_t timeout = kTimeout;
  must(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout) == 0,
       "cannot set the time-out");
}

static struct rdma_conn_param parameters(void) {
  return (struct rdma_conn_param){
      .responder_resources = 4, .initiator_depth = 4, .retry_count = kRetries, .rnr_retry_count = 7};
}

static void start_connection(const char* address) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  must(inet_pton(AF_INET, address, &to.sin_addr) == 1, "not an IPv4 address");
  must(rdma_create_id(events, &connection, NULL, RDMA_PS_TCP) == 0, "cannot create an identifier");
  must(rdma_resolve_addr(connection, NULL, (struct sockaddr*)&to, 2000) == 0, "cannot resolve an address");
}

static void end_connection(void) {
  if (connection == NULL) return;
  rdma_disconnect(connection);  // fails without a connection
  if (connection->qp != NULL) rdma_destroy_qp(connection);
  must(rdma_destroy_id(connection) == 0, "cannot destroy an identifier");
  connection = NULL;
}

static void on_request(struct rdma_cm_event* event) {
  struct rdma_cm_id* id = event->id;
  const int wanted = mode.with_cm && connection == NULL;
  rdma_ack_cm_event(event);
  if (!wanted) {  // from an earlier peer
    rdma_reject(id, NULL, 0);
    must(rdma_destroy_id(id) == 0, "cannot destroy an identifier");
    return;
  }
  connection = id;
  report("request %lld", (long long)now());
  make_connection_queue_pair(id);
  struct rdma_conn_param given = parameters();
  if (rdma_accept(id, &given) != 0) return report("refused accept %d %lld", errno, (long long)now());
  set_rnr_timer(id->qp);
}

static void on_event(void) {
  struct rdma_cm_event* event = NULL;
  must(rdma_get_cm_event(events, &event) == 0, "no event");
  const int64_t time = now();
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(event);
  must(event->id == connection, "an event is of another identifier");
  struct rdma_conn_param wanted = parameters();
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      must(rdma_resolve_route(connection, 2000) == 0, "cannot resolve the route");
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      make_connection_queue_pair(connection);
      must(rdma_connect(connection, &wanted) == 0, "cannot connect");
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (active) set_rnr_timer(connection->qp);
      flows[kCm].runs = 1;
      flows[kCm].target = flows[kCm].posted;
      report("established %lld", (long long)time);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      report("disconnected %lld", (long long)time);
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      break;
    default:
      report("refused %s %d %lld", rdma_event_str(event->event), event->status, (long long)time);
  }
  rdma_ack_cm_event(event);
}

// ---------------------------------------------------------------------------------------------------------------- commands

static void begin(const char* words) {
  char traffic[8], waiting[8];
  int numbers = 0;  // offset of the numbers
  must(sscanf(words, "%7s %7s %n", traffic, waiting, &numbers) == 2 && numbers > 0, "begin: four words");
  char* rest = NULL;
  mode.with_cm = (int)strtol(words + numbers, &rest, 10);
  const unsigned long long seed = strtoull(rest, &rest, 10);
  must(*rest == 0, "begin: four words");
  mode.traffic = strcmp(traffic, "full") == 0 ? kFull : strcmp(traffic, "light") == 0 ? kLight : kStill;
  mode.polls = strcmp(waiting, "poll") == 0;
  mode.random = seed | 1;
  struct place own = {.gid = gid, .address = (uintptr_t)bytes, .rkey = mr->rkey};
  for (int i = 0; i < kCm; ++i) {
    make_queue_pair(i);
    own.qpn[i] = flows[i].qp->qp_num;
  }
  char text[2 * sizeof own + 1];
  for (size_t i = 0; i < sizeof own; ++i) sprintf(text + 2 * i, "%02x", ((const unsigned char*)&own)[i]);
  report("place %s", text);
}

static void connect_to(const char* words) {
  must(strlen(words) == 2 * sizeof peer, "peer: a place");
  for (size_t i = 0; i < sizeof peer; ++i) {
    const char digits[3] = {words[2 * i], words[2 * i + 1], 0};
    ((unsigned char*)&peer)[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  for (int i = 0; i < kCm; ++i) connect_queue_pair(i);
  report("connected");
}

static void go(const char* words) {
  for (int i = 0; i < kCm; ++i) flows[i].runs = 1;
  mode.going = 1;
  active = *words != 0;
  if (active) start_connection(words);
  report("going");
}

static void check(const char* words) {
  for (int i = 0; i < kQueuePairs; ++i)
    flows[i].target = flows[i].posted + (unsigned)strtoul(words, NULL, 10);
  mode.checked = 1;
}

static void end(void) {
  mode.going = mode.checked = mode.with_cm = mode.polls = 0;
  end_connection();
  for (int i = 0; i < kCm; ++i) {
    if (flows[i].qp != NULL) must(ibv_destroy_qp(flows[i].qp) == 0, "cannot destroy a queue pair");
  }
  memset(flows, 0, sizeof flows);
  report("ended");
}

static void on_command(char* line) {
  const size_t length = strcspn(line, " ");
  const char* words = line[length] == ' ' ? line + length + 1 : line + length;
  line[length] = 0;
  if (strcmp(line, "begin") == 0) return begin(words);
  if (strcmp(line, "peer") == 0) return connect_to(words);
  if (strcmp(line, "go") == 0) return go(words);
  if (strcmp(line, "check") == 0) return check(words);
  if (strcmp(line, "end") == 0) return end();
  must(strcmp(line, "quit") == 0, "there is no such command");
  exit(0);
}

static void on_input(void) {
  static char text[4096];
  static size_t used;
  const ssize_t count = read(STDIN_FILENO, text + used, sizeof text - 1 - used);
  must(count >= 0, "standard input");
  if (count == 0) exit(0);
  used += (size_t)count;
  text[used] = 0;
  char* line = text;
  for (char* stop = NULL; (stop = strchr(line, '\n')) != NULL; line = stop + 1) {
    *stop = 0;
    on_command(line);
  }
  used = (size_t)(text + used - line);
  memmove(text, line, used);
}

// ------------------------------------------------------------------------------------------------------------------- start

static void open_device(void) {
  // The context that rdma_cm identifiers use, so that their queue pairs can use the same protection domain.
  struct ibv_context** devices = rdma_get_devices(NULL);
  must(devices != NULL && devices[0] != NULL, "there is no device");
  context = devices[0];
  static const unsigned char kMapped[12] = {[10] = 0xff, [11] = 0xff};  // IPv4-mapped address
  while (ibv_query_gid(context, 1, gid_index, &gid) == 0 && memcmp(gid.raw, kMapped, sizeof kMapped) != 0)
    ++gid_index;
  must(memcmp(gid.raw, kMapped, sizeof kMapped) == 0, "the device has no IPv4 address");
  pd = ibv_alloc_pd(context);
  completion_events = ibv_create_comp_channel(context);
  cq = ibv_create_cq(context, kQueuePairs * (kDepth + kReceives), NULL, completion_events, 0);
  bytes = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(pd != NULL && completion_events != NULL && cq != NULL && bytes != MAP_FAILED,
       "no domain, completion queue or memory");
  for (uint32_t i = 0; i < 2 * kLargest; ++i) bytes[kPattern + i] = (unsigned char)(i * 167 + (i >> 8) * 13);
  mr = ibv_reg_mr(pd, bytes, kBytes,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  must(mr != NULL, "cannot register memory");
}

static void listen_for_requests(void) {
  events = rdma_create_event_channel();
  must(events != NULL, "no event channel");
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  must(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) == 0, "cannot create an identifier");
  must(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "cannot bind");
  must(rdma_listen(listener, 16) == 0, "cannot listen");
}

// Waits for input, an event or, with `waiting`, a completion.
static void wait_for_any(int milliseconds, int waiting) {
  struct pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = events->fd, .events = POLLIN},
                           {.fd = completion_events->fd, .events = POLLIN}};
  const int count = poll(files, waiting ? 3 : 2, milliseconds);
  must(count >= 0 || errno == EINTR, "poll");
  if (count <= 0) return;
  if (waiting && files[2].revents != 0) {
    struct ibv_cq* of = NULL;
    void* user = NULL;
    must(ibv_get_cq_event(completion_events, &of, &user) == 0, "no completion event");
    ibv_ack_cq_events(of, 1);
  }
  if (files[1].revents != 0) on_event();
  if (files[0].revents != 0) on_input();
}

int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  open_device();
  listen_for_requests();
  char address[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, gid.raw + 12, address, sizeof address);
  report("ready %s", address);
  for (unsigned round = 0;; ++round) {
    if (mode.polls) {
      poll_completions();
      if (round % kPollsBetweenLooks == 0) wait_for_any(0, 0);
      continue;
    }
    poll_completions();
    must(ibv_req_notify_cq(cq, 0) == 0, "cannot request a completion event");
    if (poll_completions()) continue;
    wait_for_any(mode.going && mode.traffic == kLight ? 1 : -1, 1);
  }
}
