// Program of the verbs API, linked with the system's libibverbs: two processes, forked before the device is opened.
// The first sends requests to the second, which they connect through a socket pair. `verbs-check NAME` runs one
// check. Exit status 1, after a sentence, on any error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 1 << 16, kDepth = 64, kPatience = 20, kInline = 64, kThreads = 4, kPosts = 500 };

struct place {  // connection data for the peer process
  union ibv_gid gid;
  uint32_t qpn[kThreads];
  uint64_t address;
  uint32_t rkey;
};

struct side {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq_ex* cq_ex;
  struct ibv_cq* cq;  // the same queue
  struct ibv_qp* qp[kThreads];
  struct ibv_mr* mr;
  unsigned char* bytes;
  int socket;
  struct place peer;
};

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void say(const struct side* s, const void* data, size_t length) {
  must(write(s->socket, data, length) == (ssize_t)length, "the other process has gone");
}
static void hear(const struct side* s, void* data, size_t length) {
  must(recv(s->socket, data, length, MSG_WAITALL) == (ssize_t)length, "the other process has gone");
}

static void open_side(struct side* s) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  must(devices != NULL && devices[0] != NULL, "there is no device");
  s->context = ibv_open_device(devices[0]);
  must(s->context != NULL, "the device does not open");
  ibv_free_device_list(devices);
  s->pd = ibv_alloc_pd(s->context);
  struct ibv_cq_init_attr_ex queue = {.cqe = 2 * kDepth * kThreads, .wc_flags = IBV_WC_STANDARD_FLAGS};
  s->cq_ex = ibv_create_cq_ex(s->context, &queue);
  must(s->cq_ex != NULL, "no completion queue");
  s->cq = ibv_cq_ex_to_cq(s->cq_ex);
  s->bytes = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(s->pd != NULL && s->bytes != MAP_FAILED, "no domain, queue or memory");
  s->mr = ibv_reg_mr(s->pd, s->bytes, kBytes,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
  must(s->mr != NULL, "the memory cannot be registered");
}

static struct ibv_qp* make_qp(const struct side* s) {
  struct ibv_qp_init_attr_ex init = {
      .send_cq = s->cq,
      .recv_cq = s->cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = kDepth,
              .max_recv_wr = kDepth,
              .max_send_sge = 2,
              .max_recv_sge = 1,
              .max_inline_data = kInline},
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = s->pd,
      .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
                        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                        IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                        IBV_QP_EX_WITH_BIND_MW,
  };
  struct ibv_qp* qp = ibv_create_qp_ex(s->context, &init);
  must(qp != NULL, "no queue pair");
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
  must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "no INIT");
  return qp;
}

static void connect_qp(struct ibv_qp* qp, const struct place* peer, uint32_t qpn) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = qpn,
      .max_dest_rd_atomic = 4,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
  };
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "no RTR");
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "no RTS");
}

static void connect_sides(struct side* s) {
  struct place mine = {.address = (uintptr_t)s->bytes, .rkey = s->mr->rkey};
  must(ibv_query_gid(s->context, 1, 1, &mine.gid) == 0, "the port has no GID 1");
  for (int i = 0; i < kThreads; i++) {
    s->qp[i] = make_qp(s);
    mine.qpn[i] = s->qp[i]->qp_num;
  }
  say(s, &mine, sizeof mine);
  hear(s, &s->peer, sizeof s->peer);
  for (int i = 0; i < kThreads; i++) connect_qp(s->qp[i], &s->peer, s->peer.qpn[i]);
  char ready = 1;
  say(s, &ready, 1);
  hear(s, &ready, 1);
}

static struct ibv_wc completion(const struct side* s) {
  struct ibv_wc wc;
  const time_t end = time(NULL) + kPatience;
  int found = 0;
  while ((found = ibv_poll_cq(s->cq, 1, &wc)) == 0) must(time(NULL) < end, "no completion came");
  must(found == 1, "the queue cannot be asked");
  return wc;
}

static void expect(const struct side* s, enum ibv_wc_opcode opcode, uint64_t id, const char* what) {
  const struct ibv_wc wc = completion(s);
  if (wc.status == IBV_WC_SUCCESS && wc.opcode == opcode && wc.wr_id == id) return;
  fprintf(stderr, "%s: %s, opcode %d (not %d), request %llu\n", what, ibv_wc_status_str(wc.status),
          (int)wc.opcode, (int)opcode, (unsigned long long)wc.wr_id);
  exit(1);
}

// Each request has a slot of its own in the second half of the memory.
enum { kPlace = 64 };
static unsigned char* payload_target(const struct side* s, uint64_t id) {
  return s->bytes + kBytes / 2 + id * kPlace;
}

static void post_receive(const struct side* s, uint64_t id) {
  struct ibv_sge sge = {(uintptr_t)payload_target(s, id), kPlace, s->mr->lkey};
  struct ibv_recv_wr request = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  must(ibv_post_recv(s->qp[0], &request, &bad) == 0, "no receive request");
}

// ------------------------------------------------------------------------------------- one request of each opcode

enum { kReceives = 4, kImmediate = 0x1234 };  // immediate of request i: kImmediate + i

// Text of request i.
enum { kMessage = 22 };
static const char* message(int i) {
  static char text[kMessage + 1];
  snprintf(text, sizeof text, "message %d of two parts", i);
  return text;
}

static void wr_peer(struct side* s) {
  struct ibv_mw* window = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
  must(window != NULL, "no memory window");
  struct ibv_qp_ex* q = ibv_qp_to_qp_ex(s->qp[0]);
  const uint32_t rkey = ibv_inc_rkey(window->rkey);
  ibv_wr_start(q);
  q->wr_id = 50;
  q->wr_flags = IBV_SEND_SIGNALED;
  const struct ibv_mw_bind_info bind = {s->mr, (uintptr_t)s->bytes, 4096, IBV_ACCESS_REMOTE_WRITE};
  ibv_wr_bind_mw(q, window, rkey, &bind);
  must(ibv_wr_complete(q) == 0, "ibv_wr_bind_mw is refused");
  expect(s, IBV_WC_BIND_MW, 50, "ibv_wr_bind_mw");
  for (int i = 0; i < kReceives; i++) post_receive(s, (uint64_t)i);
  say(s, &rkey, sizeof rkey);
  for (int i = 0; i < kReceives; i++) {
    const struct ibv_wc wc = completion(s);
    must(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i, "a receive fails");
    const int is_write = i == 3;
    must(wc.opcode == (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV), "a receive has another opcode");
    if (i == 1 || is_write)
      must((wc.wc_flags & IBV_WC_WITH_IMM) != 0 && ntohl(wc.imm_data) == (uint32_t)(kImmediate + i),
           "immediate data");
    if (i == 2)
      must((wc.wc_flags & IBV_WC_WITH_INV) != 0 && wc.invalidated_rkey == rkey, "what was invalidated");
    if (!is_write)
      must(wc.byte_len == kMessage && memcmp(payload_target(s, (uint64_t)i), message(i), kMessage) == 0,
           "what was sent");
  }
  char done = 0;
  hear(s, &done, 1);
  must(ibv_dealloc_mw(window) == 0, "the memory window stays");
}

static void set_message(struct ibv_qp_ex* q, const struct side* s, int i, int inline_data) {
  unsigned char* from = s->bytes + i * kPlace;
  memcpy(from, message(i), kMessage);
  const struct ibv_data_buf buffers[2] = {{from, 10}, {from + 10, kMessage - 10}};
  const struct ibv_sge list[2] = {{(uintptr_t)from, 10, s->mr->lkey},
                                  {(uintptr_t)from + 10, kMessage - 10, s->mr->lkey}};
  if (inline_data)
    ibv_wr_set_inline_data_list(q, 2, buffers);
  else
    ibv_wr_set_sge_list(q, 2, list);
}

static void wr_asker(struct side* s) {
  uint32_t window = 0;
  hear(s, &window, sizeof window);
  struct ibv_qp_ex* q = ibv_qp_to_qp_ex(s->qp[0]);

  ibv_wr_start(q);
  q->wr_flags = IBV_SEND_SIGNALED;
  q->wr_id = 1;
  ibv_wr_send(q);
  set_message(q, s, 0, 0);
  q->wr_id = 2;
  ibv_wr_send_imm(q, htonl(kImmediate + 1));
  set_message(q, s, 1, 1);
  q->wr_id = 3;
  ibv_wr_rdma_write(q, window, s->peer.address);
  ibv_wr_set_inline_data(q, "through the window", 18);
  q->wr_id = 4;
  ibv_wr_send_inv(q, window);
  set_message(q, s, 2, 0);
  q->wr_id = 5;
  ibv_wr_rdma_write_imm(q, s->peer.rkey, s->peer.address + 64, htonl(kImmediate + 3));
  ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)s->bytes, kMessage);
  must(ibv_wr_complete(q) == 0, "a list of requests is refused");
  expect(s, IBV_WC_SEND, 1, "ibv_wr_send");
  expect(s, IBV_WC_SEND, 2, "ibv_wr_send_imm");
  expect(s, IBV_WC_RDMA_WRITE, 3, "ibv_wr_rdma_write");
  expect(s, IBV_WC_SEND, 4, "ibv_wr_send_inv");
  expect(s, IBV_WC_RDMA_WRITE, 5, "ibv_wr_rdma_write_imm");

  ibv_wr_start(q);
  q->wr_id = 6;
  q->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_read(q, s->peer.rkey, s->peer.address);
  ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)s->bytes + 1024, 128);
  must(ibv_wr_complete(q) == 0, "ibv_wr_rdma_read is refused");
  expect(s, IBV_WC_RDMA_READ, 6, "ibv_wr_rdma_read");
  must(memcmp(s->bytes + 1024, "through the window", 18) == 0,
       "what was written through the window is not there");
  must(memcmp(s->bytes + 1024 + 64, message(0), kMessage) == 0, "what was written is not there");

  const uint64_t number = s->peer.address + 4096;  // contains 0
  uint64_t* before = (uint64_t*)(void*)(s->bytes + 2048);
  ibv_wr_start(q);
  q->wr_flags = IBV_SEND_SIGNALED;
  q->wr_id = 7;
  ibv_wr_atomic_fetch_add(q, s->peer.rkey, number, 41);
  ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)before, 8);
  q->wr_id = 8;
  ibv_wr_atomic_cmp_swp(q, s->peer.rkey, number, 41, 1000);
  ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)(before + 1), 8);
  q->wr_id = 9;
  ibv_wr_atomic_fetch_add(q, s->peer.rkey, number, 0);
  ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)(before + 2), 8);
  must(ibv_wr_complete(q) == 0, "atomics are refused");
  expect(s, IBV_WC_FETCH_ADD, 7, "ibv_wr_atomic_fetch_add");
  expect(s, IBV_WC_COMP_SWAP, 8, "ibv_wr_atomic_cmp_swp");
  expect(s, IBV_WC_FETCH_ADD, 9, "ibv_wr_atomic_fetch_add");
  must(before[0] == 0 && before[1] == 41 && before[2] == 1000, "atomics give other numbers");

  // An aborted request is not sent.
  ibv_wr_start(q);
  q->wr_id = 10;
  ibv_wr_rdma_write(q, s->peer.rkey, s->peer.address);
  ibv_wr_set_inline_data(q, "never", 5);
  ibv_wr_abort(q);
  // Binds and invalidates a local window.
  struct ibv_mw* own = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
  must(own != NULL, "no memory window");
  const uint32_t rkey = ibv_inc_rkey(own->rkey);
  const struct ibv_mw_bind_info bind = {s->mr, (uintptr_t)s->bytes, 4096, IBV_ACCESS_REMOTE_WRITE};
  ibv_wr_start(q);
  q->wr_flags = IBV_SEND_SIGNALED;
  q->wr_id = 11;
  ibv_wr_bind_mw(q, own, rkey, &bind);
  q->wr_id = 12;
  ibv_wr_local_inv(q, rkey);
  must(ibv_wr_complete(q) == 0, "ibv_wr_local_inv is refused");
  expect(s, IBV_WC_BIND_MW, 11, "ibv_wr_bind_mw");
  expect(s, IBV_WC_LOCAL_INV, 12, "ibv_wr_local_inv");
  must(ibv_dealloc_mw(own) == 0, "the memory window stays");
  const char done = 1;
  say(s, &done, 1);
}

// -------------------------------------------------------------------------------------- memory that is unmapped

static void post_write(const struct side* s, struct ibv_qp* qp, uint64_t id, uint64_t address, uint32_t rkey,
                       uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)s->bytes, length, s->mr->lkey};
  struct ibv_send_wr request = {.wr_id = id,
                                .sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  struct ibv_send_wr* bad = NULL;
  must(ibv_post_send(qp, &request, &bad) == 0, "no send request");
}

static void write_to_peer(const struct side* s, int i, uint64_t id, uint32_t length) {
  post_write(s, s->qp[i], id, s->peer.address, s->peer.rkey, length);
}

static void unmapped_peer(struct side* s) {
  char step = 0;
  hear(s, &step, 1);
  must(munmap(s->bytes, kBytes) == 0, "the memory stays");
  say(s, &step, 1);
  hear(s, &step, 1);
}

static void unmapped_asker(struct side* s) {
  char step = 1;
  write_to_peer(s, 0, 1, 8192);
  expect(s, IBV_WC_RDMA_WRITE, 1, "a WRITE to memory that is there");
  say(s, &step, 1);
  hear(s, &step, 1);
  write_to_peer(s, 0, 2, 8192);
  must(completion(s).status == IBV_WC_REM_ACCESS_ERR,
       "a WRITE to the peer's unmapped memory is no remote access error");
  must(munmap(s->bytes, kBytes) == 0, "the memory stays");
  write_to_peer(s, 1, 3, 8192);
  must(completion(s).status == IBV_WC_LOC_PROT_ERR, "a WRITE of unmapped memory is no protection error");
  say(s, &step, 1);
}

// ------------------------------------------------------------------------------------------------------- fork

static void wait_for_asker(struct side* s) {
  char done = 0;
  hear(s, &done, 1);
}

static void fork_asker(struct side* s) {
  const pid_t child = fork();
  must(child >= 0, "no child");
  if (child == 0) {
    struct ibv_wc wc;
    struct ibv_send_wr request = {.opcode = IBV_WR_SEND};
    struct ibv_send_wr* bad = NULL;
    must(ibv_poll_cq(s->cq, 1, &wc) < 0, "the child can ask a queue");
    must(ibv_post_send(s->qp[0], &request, &bad) == EIO && bad == &request, "the child can send");
    struct ibv_qp_ex* q = ibv_qp_to_qp_ex(s->qp[0]);
    ibv_wr_start(q);
    ibv_wr_send(q);
    must(ibv_wr_complete(q) == EIO, "the child can send what it builds");
    struct ibv_poll_cq_attr none = {0};
    must(ibv_start_poll(s->cq_ex, &none) == EIO, "the child can begin to read a queue");
    must(ibv_dereg_mr(s->mr) == EIO, "the child can take memory away");
    must(ibv_alloc_pd(s->context) == NULL && errno == EIO, "the child gets a domain");
    struct ibv_device** devices = ibv_get_device_list(NULL);
    must(devices == NULL || devices[0] == NULL || (ibv_open_device(devices[0]) == NULL && errno == EIO),
         "the child can open the device");
    _exit(0);
  }
  int status = 0;
  must(waitpid(child, &status, 0) == child && status == 0, "the child is not content");
  write_to_peer(s, 0, 1, 8192);
  expect(s, IBV_WC_RDMA_WRITE, 1, "a WRITE of the parent");
  const char done = 1;
  say(s, &done, 1);
}

// --------------------------------------------------------------------------------------- many threads

static int completed;  // by all threads

struct worker {
  const struct side* side;
  int number;
  unsigned posted;
};

static void* work(void* argument) {
  struct worker* w = argument;
  const struct side* s = w->side;
  const time_t end = time(NULL) + kPatience;
  unsigned last_objects = 0;  // value of `posted` when this thread last created and destroyed objects
  while (__atomic_load_n(&completed, __ATOMIC_RELAXED) < kThreads * kPosts) {
    must(time(NULL) < end, "the threads do not come to an end");
    // Other threads may have polled this thread's completions, so the total of all threads limits the outstanding
    // requests.
    if (w->posted < kPosts &&
        w->posted < (unsigned)__atomic_load_n(&completed, __ATOMIC_RELAXED) / kThreads + kDepth / kThreads) {
      write_to_peer(s, w->number, (uint64_t)w->number, 512);
      w->posted++;
    }
    struct ibv_wc wc[8];
    const int found = ibv_poll_cq(s->cq, 8, wc);
    must(found >= 0, "the queue cannot be asked");
    for (int i = 0; i < found; i++) must(wc[i].status == IBV_WC_SUCCESS, "a WRITE fails");
    __atomic_add_fetch(&completed, found, __ATOMIC_RELAXED);
    if (w->posted % 50 == 0 && last_objects != w->posted) {  // while other threads post
      last_objects = w->posted;
      struct ibv_cq* cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
      struct ibv_mr* mr = ibv_reg_mr(s->pd, s->bytes, 4096, IBV_ACCESS_LOCAL_WRITE);
      struct ibv_pd* pd = ibv_alloc_pd(s->context);
      must(cq != NULL && mr != NULL && pd != NULL, "a thread gets no objects");
      struct ibv_qp* qp = make_qp(s);
      must(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 &&
               ibv_dealloc_pd(pd) == 0,
           "an object stays");
    }
  }
  return NULL;
}

static void threads_asker(struct side* s) {
  pthread_t threads[kThreads];
  struct worker workers[kThreads];
  for (int i = 0; i < kThreads; i++) {
    workers[i] = (struct worker){.side = s, .number = i};
    must(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
  }
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  must(completed == kThreads * kPosts, "other completions than requests");
  const char done = 1;
  say(s, &done, 1);
}

// A signal that all threads of the program block stays pending until sigtimedwait(). If a thread of the library did
// not block it, it would end the process.
static void signals_asker(struct side* s) {
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR2);
  must(pthread_sigmask(SIG_BLOCK, &mine, NULL) == 0, "the signal cannot be blocked");
  must(kill(getpid(), SIGUSR2) == 0, "the signal cannot be sent");
  const struct timespec patience = {.tv_sec = kPatience};
  must(sigtimedwait(&mine, NULL, &patience) == SIGUSR2, "somebody else took the signal");
  const char done = 1;
  say(s, &done, 1);
}

// A program may see an event with poll(), and poll the completion for another reason first. ibv_get_cq_event() must
// then not block.
static void take_stale_event(struct side* s, struct ibv_comp_channel* channel, struct ibv_qp* qp,
                             int extended) {
  must(ibv_req_notify_cq(s->cq, 0) == 0, "no notification");
  struct ibv_sge sge = {(uintptr_t)s->bytes, 64, s->mr->lkey};
  struct ibv_send_wr request = {
      .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = (uintptr_t)s->bytes + kBytes / 2;
  request.wr.rdma.rkey = s->mr->rkey;
  struct ibv_send_wr* bad = NULL;
  must(ibv_post_send(qp, &request, &bad) == 0, "no send request");
  struct pollfd events = {.fd = channel->fd, .events = POLLIN};
  must(poll(&events, 1, kPatience * 1000) == 1, "no event");
  if (extended) {
    struct ibv_poll_cq_attr none = {0};
    must(ibv_start_poll(s->cq_ex, &none) == 0 && s->cq_ex->status == IBV_WC_SUCCESS, "no completion");
    const uint64_t at = ibv_wc_read_completion_wallclock_ns(s->cq_ex);
    for (int i = 0; i < 1000; i++)
      must(ibv_wc_read_completion_wallclock_ns(s->cq_ex) == at, "the time of a completion changes");
    ibv_end_poll(s->cq_ex);
    struct timespec now;
    must(clock_gettime(CLOCK_REALTIME, &now) == 0, "no time");
    const uint64_t end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    must(at <= end && end - at < 60000000000, "the time of a completion is not that of the clock");
  } else {
    must(completion(s).status == IBV_WC_SUCCESS, "the WRITE failed");
  }
  struct ibv_cq* told = NULL;
  void* user = NULL;
  alarm(kPatience);  // limits a blocking call
  must(ibv_get_cq_event(channel, &told, &user) == 0 && told == s->cq, "no event to take");
  alarm(0);
  ibv_ack_cq_events(told, 1);
}

static void* destroy_queue(void* cq) {
  must(ibv_destroy_cq(cq) == 0, "the queue is not destroyed");
  return NULL;
}

// ibv_destroy_cq() waits until another thread has acknowledged the events of the queue.
static void destroy_with_unacknowledged_event(struct side* s, struct ibv_comp_channel* channel,
                                              struct ibv_qp* qp) {
  must(ibv_req_notify_cq(s->cq, 0) == 0, "no notification");
  post_write(s, qp, 1, (uintptr_t)s->bytes + kBytes / 2, s->mr->rkey, 64);
  struct ibv_cq* told = NULL;
  void* user = NULL;
  must(ibv_get_cq_event(channel, &told, &user) == 0 && told == s->cq, "no event to take");
  must(completion(s).status == IBV_WC_SUCCESS, "the WRITE failed");
  must(ibv_destroy_qp(qp) == 0, "the queue pair is not destroyed");
  pthread_t thread;
  must(pthread_create(&thread, NULL, destroy_queue, s->cq) == 0, "no thread");
  usleep(50000);
  must(pthread_tryjoin_np(thread, NULL) == EBUSY, "the queue is destroyed before its event is acknowledged");
  ibv_ack_cq_events(told, 1);
  must(pthread_join(thread, NULL) == 0, "the thread does not end");
}

static void events_asker(struct side* s) {
  struct side own = *s;
  struct ibv_comp_channel* channel = ibv_create_comp_channel(s->context);
  must(channel != NULL, "no channel");
  struct ibv_cq_init_attr_ex queue = {
      .cqe = kDepth,
      .channel = channel,
      .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
  own.cq_ex = ibv_create_cq_ex(s->context, &queue);
  must(own.cq_ex != NULL, "no completion queue");
  own.cq = ibv_cq_ex_to_cq(own.cq_ex);
  struct ibv_qp* qp = make_qp(&own);
  struct place here = {0};
  must(ibv_query_gid(s->context, 1, 1, &here.gid) == 0, "the port has no GID 1");
  connect_qp(qp, &here, qp->qp_num);
  for (int extended = 0; extended < 2; extended++)
    for (int i = 0; i < 3; i++) take_stale_event(&own, channel, qp, extended);
  destroy_with_unacknowledged_event(&own, channel, qp);
  must(ibv_destroy_comp_channel(channel) == 0, "an object stays");
  const char done = 1;
  say(s, &done, 1);
}

// ------------------------------------------------------------------------------------------ blocking calls and signals

struct blocked {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;  // null: asynchronous events
  int result;
  int error;
};

static int signals_handled;

static void count_signal(int number) {
  (void)number;
  __atomic_add_fetch(&signals_handled, 1, __ATOMIC_RELAXED);
}

static void* block(void* argument) {
  struct blocked* b = argument;
  if (b->channel != NULL) {
    struct ibv_cq* cq = NULL;
    void* user = NULL;
    b->result = ibv_get_cq_event(b->channel, &cq, &user);
  } else {
    struct ibv_async_event event;
    b->result = ibv_get_async_event(b->context, &event);
  }
  b->error = errno;
  return NULL;
}

static pthread_t start_blocked(struct blocked* b) {
  pthread_t thread;
  must(pthread_create(&thread, NULL, block, b) == 0, "no thread");
  usleep(20000);
  return thread;
}

static void handle_signals(int flags) {
  struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
  must(sigaction(SIGUSR1, &action, NULL) == 0, "no handler");
}

static void interrupt_calls(struct side* s, struct ibv_comp_channel* channel) {
  struct blocked b = {.context = s->context, .channel = channel};
  pthread_t thread = start_blocked(&b);
  handle_signals(SA_RESTART);
  for (int i = 0; i < 3; i++) {
    const int before = __atomic_load_n(&signals_handled, __ATOMIC_RELAXED);
    must(pthread_kill(thread, SIGUSR1) == 0, "no signal");
    while (__atomic_load_n(&signals_handled, __ATOMIC_RELAXED) == before) usleep(100);
    usleep(10000);
    must(pthread_tryjoin_np(thread, NULL) == EBUSY, "a handler with SA_RESTART ends the call");
  }
  handle_signals(0);
  do must(pthread_kill(thread, SIGUSR1) == 0, "no signal");
  while (usleep(10000), pthread_tryjoin_np(thread, NULL) == EBUSY);
  must(b.result == -1 && b.error == EINTR, "a handler without SA_RESTART does not end the call with EINTR");
  thread = start_blocked(&b);
  must(pthread_cancel(thread) == 0, "the thread is not canceled");
  void* result = NULL;
  must(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "the call is no cancellation point");
}

// A channel may be destroyed while a thread is in ibv_get_cq_event().
static void destroy_channel_of_reader(struct side* s) {
  for (int i = 0; i < 5; i++) {
    struct blocked b = {.context = s->context, .channel = ibv_create_comp_channel(s->context)};
    must(b.channel != NULL, "no channel");
    pthread_t thread = start_blocked(&b);
    must(ibv_destroy_comp_channel(b.channel) == 0, "the channel is not destroyed");
    usleep(1000);
    must(pthread_tryjoin_np(thread, NULL) == EBUSY, "the destruction ends the call");
    if (i == 0) {
      must(pthread_cancel(thread) == 0, "the thread is not canceled");
      must(pthread_join(thread, NULL) == 0, "the thread does not end");
      continue;
    }
    do must(pthread_kill(thread, SIGUSR1) == 0, "no signal");
    while (usleep(1000), pthread_tryjoin_np(thread, NULL) == EBUSY);
    must(b.result == -1 && b.error == EINTR, "another result");
  }
}

// A device may be closed while a thread is in ibv_get_async_event().
static void close_context_of_reader(struct side* s) {
  for (int i = 0; i < 2; i++) {
    struct blocked b = {.context = ibv_import_device(dup(s->context->cmd_fd))};
    must(b.context != NULL, "the device cannot be imported");
    pthread_t thread = start_blocked(&b);
    must(ibv_close_device(b.context) == 0, "the device does not close");
    usleep(1000);
    must(pthread_tryjoin_np(thread, NULL) == EBUSY, "the call ends");
    if (i == 0) {
      must(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0, "the thread does not end");
      continue;
    }
    do must(pthread_kill(thread, SIGUSR1) == 0, "no signal");
    while (usleep(1000), pthread_tryjoin_np(thread, NULL) == EBUSY);
    must(b.result == -1 && b.error == EINTR, "another result");
  }
}

static void interrupts_asker(struct side* s) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(s->context);
  must(channel != NULL, "no channel");
  interrupt_calls(s, channel);
  interrupt_calls(s, NULL);
  must(ibv_destroy_comp_channel(channel) == 0, "an object stays");
  destroy_channel_of_reader(s);
  close_context_of_reader(s);
  const char done = 1;
  say(s, &done, 1);
}

// ------------------------------------------------------------------------------------------ destruction and errno

// The call returns the error and sets errno to it, as those of rdma-core do.
#define MUST_FAIL(call, error)                                                                     \
  do {                                                                                             \
    errno = 0;                                                                                     \
    const int result = (call);                                                                     \
    if (result == (error) && errno == (error)) break;                                              \
    fprintf(stderr, "%s returns %d and sets errno to %d, not %s\n", #call, result, errno, #error); \
    exit(1);                                                                                       \
  } while (0)

static void handles_asker(struct side* s) {
  MUST_FAIL(ibv_dealloc_pd(s->pd), EBUSY);
  MUST_FAIL(ibv_destroy_cq(s->cq), EBUSY);

  struct ibv_pd* pd = ibv_alloc_pd(s->context);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(s->context);
  struct ibv_cq* cq = ibv_create_cq(s->context, 1, NULL, channel, 0);
  must(pd != NULL && channel != NULL && cq != NULL, "no domain, channel or queue");
  MUST_FAIL(ibv_destroy_comp_channel(channel), EBUSY);
  struct ibv_mr* mr = ibv_reg_mr(pd, s->bytes, kBytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  struct ibv_srq_init_attr of_srq = {.attr = {.max_wr = 1, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &of_srq);
  struct ibv_ah_attr to = {
      .is_global = 1, .port_num = 1, .grh = {.dgid = s->peer.gid, .sgid_index = 1, .hop_limit = 64}};
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  struct ibv_qp_init_attr of_qp = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &of_qp);
  struct ibv_alloc_dm_attr of_dm = {.length = 64};
  struct ibv_dm* dm = ibv_alloc_dm(s->context, &of_dm);
  must(mr != NULL && window != NULL && srq != NULL && ah != NULL && qp != NULL && dm != NULL,
       "an object cannot be created");
  // With the kernel's verbs, the number of a handle identifies the object.
  struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
  pd->handle ^= 1, cq->handle ^= 1, qp->handle ^= 1, mr->handle ^= 1, ah->handle ^= 1;
  MUST_FAIL(ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            ENOENT);
  MUST_FAIL(ibv_destroy_qp(qp), ENOENT);
  MUST_FAIL(ibv_dereg_mr(mr), ENOENT);
  MUST_FAIL(ibv_destroy_cq(cq), ENOENT);
  MUST_FAIL(ibv_dealloc_pd(pd), ENOENT);
  must(ibv_create_qp(s->pd, &of_qp) == NULL && errno == EINVAL, "a queue with another number is used");
  must(ibv_reg_mr(pd, s->bytes, 1, 0) == NULL && errno == ENOENT, "a domain with another number is used");
  must(ibv_alloc_mw(pd, IBV_MW_TYPE_1) == NULL && errno == ENOENT, "a domain with another number is used");
  MUST_FAIL(ibv_destroy_ah(ah), ENOENT);
  pd->handle ^= 1, cq->handle ^= 1, qp->handle ^= 1, mr->handle ^= 1, ah->handle ^= 1;
  struct ibv_context other = *s->context;  // a number is valid in its context only
  pd->context = &other;
  MUST_FAIL(ibv_dealloc_pd(pd), ENOENT);
  pd->context = s->context;
  must(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->bytes, 0, 0) == IBV_REREG_MR_ERR_INPUT,
       "ibv_rereg_mr does not return IBV_REREG_MR_ERR_INPUT for length 0");
  must(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) ==
           IBV_REREG_MR_ERR_CMD,
       "ibv_rereg_mr does not return IBV_REREG_MR_ERR_CMD for access flags that the device refuses");
  must(ibv_destroy_qp(qp) == 0 && ibv_destroy_ah(ah) == 0 && ibv_destroy_srq(srq) == 0 &&
           ibv_dealloc_mw(window) == 0 && ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0 &&
           ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0 && ibv_dealloc_pd(pd) == 0,
       "an object stays");
  MUST_FAIL(ibv_destroy_qp(qp), ENOENT);
  MUST_FAIL(ibv_destroy_ah(ah), ENOENT);
  MUST_FAIL(ibv_destroy_srq(srq), ENOENT);
  MUST_FAIL(ibv_dereg_mr(mr), ENOENT);
  MUST_FAIL(ibv_destroy_cq(cq), ENOENT);
  MUST_FAIL(ibv_destroy_comp_channel(channel), ENOENT);
  MUST_FAIL(ibv_dealloc_pd(pd), ENOENT);
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = ibv_open_device(devices[0]);
  must(context != NULL && ibv_close_device(context) == 0, "the device does not open and close");
  MUST_FAIL(ibv_close_device(context), EINVAL);
  ibv_free_device_list(devices);
  const char done = 1;
  say(s, &done, 1);
}

// ---------------------------------------------------------------------------------- imported objects, device memory

static void imports_asker(struct side* s) {
  must(ibv_import_device(s->socket) == NULL && errno == EOPNOTSUPP, "a socket is imported as a device");
  must(ibv_import_device(-1) == NULL && errno == EBADF, "descriptor -1 is imported as a device");
  struct ibv_context* context = ibv_import_device(dup(s->context->cmd_fd));
  must(context != NULL, "the device cannot be imported");
  must(ibv_import_pd(context, 0xffffffff) == NULL && errno == EINVAL, "an unknown domain is imported");
  struct ibv_pd* pd = ibv_import_pd(context, s->pd->handle);
  must(pd != NULL, "the domain cannot be imported");
  struct ibv_mr* mr = ibv_import_mr(pd, s->mr->handle);
  must(mr != NULL && mr->lkey == s->mr->lkey && mr->rkey == s->mr->rkey && mr->length == kBytes &&
           mr->addr == NULL,
       "the imported region is not that of the process");
  // A queue pair of the imported domain uses the region.
  struct side other = *s;
  other.pd = pd;
  struct ibv_qp* one = make_qp(s);
  struct ibv_qp* two = make_qp(&other);
  struct place self = s->peer;
  must(ibv_query_gid(context, 1, 1, &self.gid) == 0, "the port has no GID 1");
  connect_qp(one, &self, two->qp_num);
  connect_qp(two, &self, one->qp_num);
  memcpy(s->bytes, "imported", 8);
  post_write(s, two, 1, (uintptr_t)s->bytes + 4096, mr->rkey,
             8);  // the L_Key is that of the imported region too
  expect(s, IBV_WC_RDMA_WRITE, 1, "a WRITE through the imported domain");
  must(memcmp(s->bytes + 4096, "imported", 8) == 0, "what was written is not there");
  must(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(two) == 0, "a queue pair stays");
  ibv_unimport_mr(mr);
  ibv_unimport_pd(pd);

  struct ibv_alloc_dm_attr size = {.length = 64};
  struct ibv_dm* dm = ibv_alloc_dm(s->context, &size);
  must(dm != NULL, "no device memory");
  struct ibv_dm* same = ibv_import_dm(context, dm->handle);
  must(same != NULL, "device memory cannot be imported");
  char copy[8];
  must(ibv_memcpy_to_dm(dm, 8, "imported", 8) == 0 && ibv_memcpy_from_dm(copy, same, 8, 8) == 0 &&
           memcmp(copy, "imported", 8) == 0,
       "imported device memory has other bytes");
  MUST_FAIL(ibv_memcpy_to_dm(dm, 2, "imported", 8), EINVAL);
  MUST_FAIL(ibv_memcpy_to_dm(dm, 4, "imported", 6), EINVAL);
  MUST_FAIL(ibv_memcpy_to_dm(dm, 60, "imported", 8), EINVAL);
  MUST_FAIL(ibv_memcpy_from_dm(copy, dm, 1, 4), EINVAL);
  ibv_unimport_dm(same);
  must(ibv_free_dm(dm) == 0, "device memory stays");
  must(ibv_close_device(context) == 0, "the imported device does not close");
  const char done = 1;
  say(s, &done, 1);
}

// -------------------------------------------------------------------------------- memory windows, zero-based regions

static void write_and_expect(const struct side* s, uint64_t address, uint32_t rkey, enum ibv_wc_status status,
                             int i) {
  post_write(s, s->qp[i], 1, address, rkey, 8);
  must(completion(s).status == status, "a WRITE completes with another status");
}

struct opened {  // by the peer
  uint32_t type_1, type_2, zero_based;
};

// Binds with local write access, and type 2 with only the low 8 bits of the key.
static void windows_peer(struct side* s) {
  struct opened keys;
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  struct ibv_mw* one = ibv_alloc_mw(s->pd, IBV_MW_TYPE_1);
  struct ibv_mw* two = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
  must(one != NULL && two != NULL, "no memory window");
  struct ibv_mw_bind bind = {
      .wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = {s->mr, (uintptr_t)s->bytes, 4096, access}};
  must(ibv_bind_mw(s->qp[0], one, &bind) == 0, "a window of type 1 cannot be bound");
  expect(s, IBV_WC_BIND_MW, 1, "ibv_bind_mw");
  keys.type_1 = one->rkey;
  keys.type_2 = (two->rkey & ~0xffU) | 0x5a;
  struct ibv_send_wr request = {.wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
  request.bind_mw.mw = two;
  request.bind_mw.rkey = 0x5a;
  request.bind_mw.bind_info = bind.bind_info;
  struct ibv_send_wr* bad = NULL;
  must(ibv_post_send(s->qp[0], &request, &bad) == 0, "a window of type 2 cannot be bound");
  expect(s, IBV_WC_BIND_MW, 2, "IBV_WR_BIND_MW");
  must(two->rkey == keys.type_2, "the key of the window is not its index with the low 8 bits of the request");
  // Not constant: verbs.h then calls ibv_reg_mr_iova2() with the address.
  volatile int zero_based = (int)access | IBV_ACCESS_ZERO_BASED;
  struct ibv_mr* mr = ibv_reg_mr(s->pd, s->bytes + 8192, 4096, zero_based);
  must(mr != NULL, "a zero-based region cannot be registered");
  keys.zero_based = mr->rkey;
  say(s, &keys, sizeof keys);
  char done = 0;
  hear(s, &done, 1);
  must(memcmp(s->bytes, "windows", 8) == 0 && memcmp(s->bytes + 64, "windows", 8) == 0 &&
           memcmp(s->bytes + 8192 + 16, "windows", 8) == 0,
       "what was written is not there");
  must(ibv_dealloc_mw(one) == 0 && ibv_dealloc_mw(two) == 0 && ibv_dereg_mr(mr) == 0, "an object stays");
}

static void windows_asker(struct side* s) {
  struct opened keys;
  hear(s, &keys, sizeof keys);
  memcpy(s->bytes, "windows", 8);
  write_and_expect(s, s->peer.address, keys.type_1, IBV_WC_SUCCESS, 0);
  write_and_expect(s, s->peer.address + 64, keys.type_2, IBV_WC_SUCCESS, 0);
  write_and_expect(s, 16, keys.zero_based, IBV_WC_SUCCESS, 0);
  write_and_expect(s, s->peer.address + 8192, keys.type_2, IBV_WC_REM_ACCESS_ERR, 0);
  write_and_expect(s, 4096, keys.zero_based, IBV_WC_REM_ACCESS_ERR, 1);
  const char done = 1;
  say(s, &done, 1);
}

// ------------------------------------------------------------------------------------------ null regions

static void null_region_asker(struct side* s) {
  char ready = 0;
  hear(s, &ready, 1);
  struct ibv_pd* pd = ibv_alloc_pd(s->context);
  struct ibv_mr* null = ibv_alloc_null_mr(pd);
  must(null != NULL && null->addr == NULL && null->length == SIZE_MAX && null->pd == pd, "no null region");
  MUST_FAIL(ibv_dealloc_pd(pd), EBUSY);
  must(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) != 0,
       "a null region is re-registered");
  struct ibv_sge nothing = {0, 64, null->lkey};
  MUST_FAIL(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &nothing, 1), ENOENT);
  must(ibv_dereg_mr(null) == 0 && ibv_dealloc_pd(pd) == 0, "an object stays");
  null = ibv_alloc_null_mr(s->pd);
  must(null != NULL, "no null region");
  nothing.lkey = null->lkey;
  struct ibv_send_wr request = {
      .sg_list = &nothing, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = s->peer.address;
  request.wr.rdma.rkey = s->peer.rkey;
  struct ibv_send_wr* bad = NULL;
  must(ibv_post_send(s->qp[0], &request, &bad) == 0, "no send request");
  must(completion(s).status == IBV_WC_SUCCESS, "the WRITE of zeros failed");
  must(ibv_dereg_mr(null) == 0, "an object stays");
  const char done = 1;
  say(s, &done, 1);
}

static void null_region_peer(struct side* s) {
  memset(s->bytes, 1, 65);
  const char ready = 1;
  say(s, &ready, 1);
  wait_for_asker(s);
  for (int i = 0; i < 64; i++) must(s->bytes[i] == 0, "other bytes than zeros");
  must(s->bytes[64] == 1, "too many bytes");
}

// ------------------------------------------------------------------------------------------ unsupported calls

static void unsupported_asker(struct side* s) {
  struct ibv_counters_init_attr counters = {0};
  must(ibv_create_counters(s->context, &counters) == NULL && errno == EOPNOTSUPP, "counters objects");
  struct ibv_counters objects = {.context = s->context};
  must(ibv_destroy_counters(&objects) == EOPNOTSUPP &&
           ibv_attach_counters_point_flow(&objects, NULL, NULL) == EOPNOTSUPP &&
           ibv_read_counters(&objects, NULL, 0, 0) == EOPNOTSUPP,
       "counters objects");
  struct ibv_qp_ex* extended = ibv_qp_to_qp_ex(s->qp[0]);
  must(extended != NULL && extended->wr_send_tso == NULL, "segmentation");
  struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};
  must(ibv_modify_cq(s->cq, &moderation) == EOPNOTSUPP, "moderation of completion queues");
  must(ibv_reg_dmabuf_mr(s->pd, 0, 4096, 0, 0, 0) == NULL && errno == EOPNOTSUPP, "dmabuf");
  struct ibv_flow_action_esp_attr esp = {0};
  must(ibv_create_flow_action_esp(s->context, &esp) == NULL && errno == EOPNOTSUPP, "flow actions");
  struct ibv_flow_action action = {.context = s->context};
  must(ibv_modify_flow_action_esp(&action, &esp) == EOPNOTSUPP &&
           ibv_destroy_flow_action(&action) == EOPNOTSUPP,
       "flow actions");
  struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000};
  must(ibv_modify_qp_rate_limit(s->qp[0], &limit) == EOPNOTSUPP, "a rate limit");
  struct ibv_ops_wr operation = {.opcode = IBV_WR_TAG_ADD};
  struct ibv_ops_wr* bad = NULL;
  struct ibv_srq_init_attr sizes = {.attr = {.max_wr = 1, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(s->pd, &sizes);
  must(srq != NULL && ibv_post_srq_ops(srq, &operation, &bad) == EOPNOTSUPP, "tag matching");
  must(ibv_destroy_srq(srq) == 0, "an object stays");
  struct ibv_cq_init_attr_ex queue = {
      .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
  must(ibv_create_cq_ex(s->context, &queue) == NULL && errno == EOPNOTSUPP, "a queue that ignores overruns");
  struct ibv_qp_init_attr_ex init = {.send_cq = s->cq,
                                     .recv_cq = s->cq,
                                     .qp_type = IBV_QPT_RC,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                     .pd = s->pd,
                                     .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
  must(ibv_create_qp_ex(s->context, &init) == NULL && errno == EOPNOTSUPP, "flags of a queue pair");
  const char done = 1;
  say(s, &done, 1);
}

// ------------------------------------------------------------------------------------------ advice

static int resident(void* page) {
  unsigned char state = 0;
  must(mincore(page, 1, &state) == 0, "mincore");
  return state & 1;
}

// The address of an advice is that of work requests.
static void advice_asker(struct side* s) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char* bytes = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(bytes != MAP_FAILED, "no memory");
  struct ibv_mr* shifted =
      ibv_reg_mr_iova(s->pd, bytes, 8 * page, 0x10000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  struct ibv_mr* zero = ibv_reg_mr(s->pd, bytes, 8 * page, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED);
  struct ibv_pd* other = ibv_alloc_pd(s->context);
  must(shifted != NULL && zero != NULL && other != NULL, "no region or domain");
  const unsigned now = IBV_ADVISE_MR_FLAG_FLUSH;
  struct ibv_sge sge = {0x10000 + 2 * page, (uint32_t)page, shifted->lkey};
  must(!resident(bytes + 2 * page), "the page is already there");
  must(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, now, &sge, 1) == 0,
       "no advice with an iova");
  must(resident(bytes + 2 * page) && !resident(bytes + 3 * page), "other pages are faulted in");
  must(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == 0, "no advice without the flag");
  MUST_FAIL(ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, now, &sge, 1), EPERM);
  sge.length = (uint32_t)(7 * page);
  MUST_FAIL(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, now, &sge, 1), EFAULT);
  sge = (struct ibv_sge){4 * page, (uint32_t)page, zero->lkey};
  must(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, now, &sge, 1) == 0, "no advice from address 0");
  must(resident(bytes + 4 * page), "the page is not faulted in");
  MUST_FAIL(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, now, &sge, 1), EPERM);
  sge.lkey ^= 0x5a;
  MUST_FAIL(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, now, &sge, 1), ENOENT);
  must(munmap(bytes + 6 * page, page) == 0, "munmap");
  sge = (struct ibv_sge){6 * page, (uint32_t)page, zero->lkey};
  MUST_FAIL(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, now, &sge, 1), EFAULT);
  must(ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == 0,
       "the advice reports unmapped memory");
  must(ibv_dereg_mr(shifted) == 0 && ibv_dereg_mr(zero) == 0 && ibv_dealloc_pd(other) == 0,
       "an object stays");
  const char done = 1;
  say(s, &done, 1);
}

// ------------------------------------------------------------------------------------------ receive work queues

enum { kQueueRequests = 64, kFrames = 24 };  // more frames than the completion queue holds

static const unsigned char kGroup[6] = {1, 0, 0x5e, 1, 2, 3};

// Multicast frames return to the flow rules of the sender.
static void send_frames(const struct side* s, struct ibv_qp* qp, int count) {
  memset(s->bytes, 0, 64);
  memcpy(s->bytes, kGroup, sizeof kGroup);
  s->bytes[6] = 2;
  s->bytes[12] = 0x88;
  s->bytes[13] = 0xb5;
  for (int i = 0; i < count; i++) {
    struct ibv_sge sge = {(uintptr_t)s->bytes, 64, s->mr->lkey};
    struct ibv_send_wr request = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(qp, &request, &bad) == 0, "no send request");
    must(completion(s).status == IBV_WC_SUCCESS, "the frame is not sent");
  }
}

static void* destroy_work_queue(void* wq) {
  must(ibv_destroy_wq(wq) == 0, "the work queue is not destroyed");
  return NULL;
}

// A receive work queue whose completion queue overflows reports IBV_EVENT_WQ_FATAL. Its destruction waits for the
// acknowledgment.
static void work_queues_asker(struct side* s) {
  struct ibv_cq* cq = ibv_create_cq(s->context, 4, NULL, NULL, 0);
  must(cq != NULL, "no completion queue");
  struct ibv_wq_init_attr init = {
      .wq_type = IBV_WQT_RQ, .max_wr = kQueueRequests, .max_sge = 1, .pd = s->pd, .cq = cq};
  struct ibv_wq* wq = ibv_create_wq(s->context, &init);
  must(wq != NULL, "no work queue");
  struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
  must(ibv_modify_wq(wq, &ready) == 0, "the work queue is not ready");
  for (int i = 0; i < kQueueRequests; i++) {
    struct ibv_sge sge = {(uintptr_t)s->bytes + 4096, 2048, s->mr->lkey};
    struct ibv_recv_wr request = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_wq_recv(wq, &request, &bad) == 0, "no receive request");
  }
  struct ibv_rwq_ind_table_init_attr entries = {.ind_tbl = &wq};
  struct ibv_rwq_ind_table* table = ibv_create_rwq_ind_table(s->context, &entries);
  must(table != NULL, "no indirection table");
  unsigned char key[40] = {1};
  struct ibv_qp_init_attr_ex distributes = {
      .qp_type = IBV_QPT_RAW_PACKET,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
      .pd = s->pd,
      .rwq_ind_tbl = table,
      .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                       .rx_hash_key_len = sizeof key,
                       .rx_hash_key = key,
                       .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4}};
  struct ibv_qp* receiver = ibv_create_qp_ex(s->context, &distributes);
  must(receiver != NULL, "no queue pair for the table");
  struct {
    struct ibv_flow_attr attr;
    struct ibv_flow_spec_eth ethernet;
  } rule = {.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof rule, .num_of_specs = 1, .port = 1},
            .ethernet = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof rule.ethernet}};
  memcpy(rule.ethernet.val.dst_mac, kGroup, sizeof kGroup);
  memset(rule.ethernet.mask.dst_mac, 0xff, sizeof kGroup);
  struct ibv_flow* flow = ibv_create_flow(receiver, &rule.attr);
  must(flow != NULL, "no flow rule");
  struct ibv_qp_init_attr raw = {.send_cq = s->cq,
                                 .recv_cq = s->cq,
                                 .qp_type = IBV_QPT_RAW_PACKET,
                                 .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1}};
  struct ibv_qp* sender = ibv_create_qp(s->pd, &raw);
  must(sender != NULL, "no raw packet queue pair");
  const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
  for (int i = 0; i < 3; i++) {
    struct ibv_qp_attr attr = {.qp_state = states[i], .port_num = 1};
    must(ibv_modify_qp(sender, &attr, IBV_QP_STATE | (i == 0 ? IBV_QP_PORT : 0)) == 0,
         "the sender is not ready");
  }
  send_frames(s, sender, kFrames);
  struct ibv_async_event event;
  alarm(kPatience);
  for (int queues = 0; queues < 2;) {
    must(ibv_get_async_event(s->context, &event) == 0, "no event");
    if (event.event_type == IBV_EVENT_CQ_ERR) must(event.element.cq == cq, "another completion queue");
    if (event.event_type == IBV_EVENT_CQ_ERR || event.event_type == IBV_EVENT_WQ_FATAL) queues++;
    if (event.event_type != IBV_EVENT_WQ_FATAL) {
      ibv_ack_async_event(&event);
    } else {
      must(event.element.wq == wq, "another work queue");
    }
  }
  alarm(0);
  must(ibv_destroy_flow(flow) == 0 && ibv_destroy_qp(receiver) == 0 && ibv_destroy_qp(sender) == 0 &&
           ibv_destroy_rwq_ind_table(table) == 0,
       "an object stays");
  pthread_t thread;
  must(pthread_create(&thread, NULL, destroy_work_queue, wq) == 0, "no thread");
  usleep(50000);
  must(pthread_tryjoin_np(thread, NULL) == EBUSY, "the queue is destroyed before its event is acknowledged");
  event.event_type = IBV_EVENT_WQ_FATAL;
  event.element.wq = wq;
  ibv_ack_async_event(&event);
  must(pthread_join(thread, NULL) == 0, "the thread does not end");
  must(ibv_destroy_cq(cq) == 0, "the completion queue stays");
  const char done = 1;
  say(s, &done, 1);
}

static const struct check {
  const char* name;
  void (*asker)(struct side*);
  void (*peer)(struct side*);
} checks[] = {
    {"wr", wr_asker, wr_peer},
    {"unmapped", unmapped_asker, unmapped_peer},
    {"fork", fork_asker, wait_for_asker},
    {"threads", threads_asker, wait_for_asker},
    {"signals", signals_asker, wait_for_asker},
    {"events", events_asker, wait_for_asker},
    {"handles", handles_asker, wait_for_asker},
    {"imports", imports_asker, wait_for_asker},
    {"windows", windows_asker, windows_peer},
    {"null_region", null_region_asker, null_region_peer},
    {"unsupported", unsupported_asker, wait_for_asker},
    {"advice", advice_asker, wait_for_asker},
    {"work_queues", work_queues_asker, wait_for_asker},
    {"interrupts", interrupts_asker, wait_for_asker},
};

static int run(const struct check* check, int socket, int is_asker) {
  struct side s = {.socket = socket};
  open_side(&s);
  connect_sides(&s);
  (is_asker ? check->asker : check->peer)(&s);
  for (int i = 0; i < kThreads; i++) must(ibv_destroy_qp(s.qp[i]) == 0, "a queue pair stays");
  must(ibv_dereg_mr(s.mr) == 0 && ibv_destroy_cq(s.cq) == 0 && ibv_dealloc_pd(s.pd) == 0, "an object stays");
  must(ibv_close_device(s.context) == 0, "the device does not close");
  return 0;
}

int main(int count, char** words) {
  for (size_t i = 0; count == 2 && i < sizeof checks / sizeof checks[0]; i++) {
    if (strcmp(checks[i].name, words[1]) != 0) continue;
    int sockets[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "no sockets");
    const pid_t peer = fork();
    must(peer >= 0, "no second process");
    close(sockets[peer == 0 ? 0 : 1]);
    if (peer == 0) return run(&checks[i], sockets[1], 0);
    run(&checks[i], sockets[0], 1);
    int status = 0;
    must(waitpid(peer, &status, 0) == peer && status == 0, "the second process is not content");
    printf("%s: as it should be\n", words[1]);
    return 0;
  }
  fprintf(stderr,
          "usage: verbs-check "
          "wr|unmapped|fork|threads|signals|events|handles|imports|windows|null_region|unsupported|"
          "advice|work_queues|interrupts\n");
  return 2;
}
