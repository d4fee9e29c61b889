// odd-peer DEVICE IPV4-GID-INDEX IPV6-GID-INDEX PORT: one queue pair, controlled by text lines over TCP, for
// tests/live/odd_packets.py. Linked with the system's libibverbs; the same binary runs in the guest on rxe0 and,
// through roci-run, on a Rocinante device.
//
// Each command is a line "NAME KEY=VALUE...". The answer is any number of lines, of which the last begins with "ok"
// or "error".
//   probe peer= peer_qpn= psn=         makes the RC queue pair whose ACKs show that all earlier frames were processed
//   fresh kind=rc|uc|ud peer= ...      replaces the queue pair under test, its completion queues and its regions
//   receive n= length=                 posts receive requests
//   post op= length= ...               posts a send request
//   state to=reset|rts|sqd|error       modifies the queue pair
//   report                             completions, events, state of the queue pair, and changed memory since `fresh`
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// Memory layout. Only the first kRegion bytes of the target are registered, so that writes beyond them are detected.
enum {
  kRegion = 8192,
  kTarget = 16384,
  kReceives = 16384,
  kLocal = 16384,
  kBytes = kTarget + kReceives + kLocal
};
enum { kDepth = 64, kGrh = 40, kQkey = 0x11111111 };

static struct ibv_context* device;
static struct ibv_pd *domain, *other_domain;
static struct ibv_comp_channel* channel;
static struct ibv_cq *send_queue, *receive_queue, *probe_queue;
static struct ibv_qp *tested, *probed;
static struct ibv_mr *target, *receives, *local, *foreign;
static unsigned char* memory;
static uint32_t ipv4_gid_index, ipv6_gid_index, receive_at;
static FILE* out;

static char* words[64];
static int word_count;

static const char* text_of(const char* key, const char* otherwise) {
  const size_t length = strlen(key);
  for (int i = 1; i < word_count; ++i)
    if (strncmp(words[i], key, length) == 0 && words[i][length] == '=') return words[i] + length + 1;
  return otherwise;
}
static uint64_t number_of(const char* key, uint64_t otherwise) {
  const char* text = text_of(key, NULL);
  return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static int error(const char* what) {
  fprintf(out, "error %s: %s\n", what, strerror(errno));
  return 0;
}

static unsigned char initial(uint32_t at) { return (at * 7 + (at >> 8)) & 0x7f; }

static uint32_t crc32_of(const unsigned char* bytes, size_t length) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < length; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc;
}

static int access_of(const char* letters) {
  int access = 0;
  for (; *letters != 0; ++letters) {
    if (*letters == 'l') access |= IBV_ACCESS_LOCAL_WRITE;
    if (*letters == 'w') access |= IBV_ACCESS_REMOTE_WRITE;
    if (*letters == 'r') access |= IBV_ACCESS_REMOTE_READ;
    if (*letters == 'a') access |= IBV_ACCESS_REMOTE_ATOMIC;
    if (*letters == 'b') access |= IBV_ACCESS_MW_BIND;
  }
  return access;
}

static int make_ready(struct ibv_qp* qp, const char* to) {
  const int is_datagram = qp->qp_type == IBV_QPT_UD;
  const int is_reliable = qp->qp_type == IBV_QPT_RC;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qkey = kQkey,
                             .qp_access_flags = (unsigned)access_of(text_of("access", "wra"))};
  int mask =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  if ((errno = ibv_modify_qp(qp, &attr, mask)) != 0) return 0;
  if (strcmp(to, "init") == 0) return 1;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = number_of("mtu", 1024) == 256 ? IBV_MTU_256 : IBV_MTU_1024,
                              .dest_qp_num = number_of("peer_qpn", 0),
                              .rq_psn = number_of("rq_psn", 0),
                              .max_dest_rd_atomic = number_of("reads", 16),
                              .min_rnr_timer = number_of("rnr_timer", 12)};
  mask = IBV_QP_STATE;
  if (!is_datagram) {
    attr.ah_attr = (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = ipv4_gid_index, .hop_limit = 64}};
    uint8_t* const gid = attr.ah_attr.grh.dgid.raw;
    const char* peer = text_of("peer", "");
    gid[10] = gid[11] = 0xff;
    if (strchr(peer, ':') != NULL) attr.ah_attr.grh.sgid_index = ipv6_gid_index;
    if (inet_pton(AF_INET, peer, gid + 12) != 1 && inet_pton(AF_INET6, peer, gid) != 1) return 0;
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (is_reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if ((errno = ibv_modify_qp(qp, &attr, mask)) != 0) return 0;
  if (strcmp(to, "rtr") == 0) return 1;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .sq_psn = number_of("sq_psn", 0),
                              .timeout = number_of("timeout", 20),
                              .retry_cnt = number_of("retry", 7),
                              .rnr_retry = number_of("rnr_retry", 7),
                              .max_rd_atomic = number_of("reads", 16)};
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (is_reliable) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return (errno = ibv_modify_qp(qp, &attr, mask)) == 0;
}

static struct ibv_qp* make_qp(enum ibv_qp_type type, struct ibv_cq* send_cq, struct ibv_cq* receive_cq) {
  struct ibv_qp_init_attr init = {
      .send_cq = send_cq,
      .recv_cq = receive_cq,
      .qp_type = type,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 2, .max_recv_sge = 2}};
  return ibv_create_qp(domain, &init);
}

static int probe(void) {
  probe_queue = ibv_create_cq(device, kDepth, NULL, NULL, 0);
  if (probe_queue == NULL) return error("ibv_create_cq");
  probed = make_qp(IBV_QPT_RC, probe_queue, probe_queue);
  if (probed == NULL || !make_ready(probed, "rts")) return error("the probed queue pair");
  return fprintf(out, "ok qpn=%u\n", probed->qp_num);
}

static void remove_all(void) {
  if (tested != NULL) ibv_destroy_qp(tested);
  struct ibv_mr** const regions[] = {&target, &receives, &local, &foreign};
  for (size_t i = 0; i < sizeof regions / sizeof *regions; ++i) {
    if (*regions[i] != NULL) ibv_dereg_mr(*regions[i]);
    *regions[i] = NULL;
  }
  if (receive_queue != NULL) {
    struct ibv_cq* queue = NULL;
    void* context = NULL;
    while (ibv_get_cq_event(channel, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
    ibv_destroy_cq(receive_queue);
  }
  if (send_queue != NULL) ibv_destroy_cq(send_queue);
  struct ibv_async_event event;
  while (ibv_get_async_event(device, &event) == 0) ibv_ack_async_event(&event);
  tested = NULL;
  send_queue = receive_queue = NULL;
}

static int post_receives(void) {
  const uint32_t length = number_of("length", 1024);
  for (uint64_t n = number_of("n", 1); n > 0; --n) {
    struct ibv_sge piece = {(uintptr_t)memory + kTarget + receive_at, length, receives->lkey};
    struct ibv_recv_wr request = {.wr_id = receive_at, .sg_list = &piece, .num_sge = 1}, *bad = NULL;
    receive_at += (length + 63) & ~63U;
    if (receive_at > kReceives || (errno = ibv_post_recv(tested, &request, &bad)) != 0)
      return error("ibv_post_recv");
  }
  return 1;
}

static int fresh(void) {
  remove_all();
  for (uint32_t i = 0; i < kBytes; ++i) memory[i] = initial(i);
  receive_at = 0;
  send_queue = ibv_create_cq(device, kDepth, NULL, NULL, 0);
  receive_queue = ibv_create_cq(device, kDepth, NULL, channel, 0);
  if (send_queue == NULL || receive_queue == NULL) return error("ibv_create_cq");
  if ((errno = ibv_req_notify_cq(receive_queue, 1)) != 0) return error("ibv_req_notify_cq");
  struct ibv_mr* const gone = ibv_reg_mr(domain, memory, kRegion, access_of("lwra"));
  if (gone == NULL) return error("ibv_reg_mr");
  const uint32_t gone_key = gone->rkey;
  ibv_dereg_mr(gone);
  target = ibv_reg_mr(domain, memory, kRegion, access_of(text_of("region", "lwrab")));
  receives = ibv_reg_mr(domain, memory + kTarget, kReceives, IBV_ACCESS_LOCAL_WRITE);
  local = ibv_reg_mr(domain, memory + kTarget + kReceives, kLocal, IBV_ACCESS_LOCAL_WRITE);
  foreign = ibv_reg_mr(other_domain, memory, kRegion, access_of("lwra"));
  if (target == NULL || receives == NULL || local == NULL || foreign == NULL) return error("ibv_reg_mr");
  const char* kind = text_of("kind", "rc");
  tested = make_qp(strcmp(kind, "rc") == 0   ? IBV_QPT_RC
                   : strcmp(kind, "uc") == 0 ? IBV_QPT_UC
                                             : IBV_QPT_UD,
                   send_queue, receive_queue);
  if (tested == NULL) return error("ibv_create_qp");
  if (!make_ready(tested, text_of("to", "rts"))) return error("ibv_modify_qp");
  return fprintf(out, "ok qpn=%u va=%" PRIuPTR " rkey=%u foreign=%u gone=%u receives_key=%u\n",
                 tested->qp_num, (uintptr_t)memory, target->rkey, foreign->rkey, gone_key, receives->rkey);
}

static int post(void) {
  static const struct {
    const char* name;
    enum ibv_wr_opcode opcode;
  } operations[] = {{"send", IBV_WR_SEND},
                    {"send_imm", IBV_WR_SEND_WITH_IMM},
                    {"write", IBV_WR_RDMA_WRITE},
                    {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
                    {"read", IBV_WR_RDMA_READ},
                    {"swap", IBV_WR_ATOMIC_CMP_AND_SWP},
                    {"add", IBV_WR_ATOMIC_FETCH_AND_ADD}};
  const char* name = text_of("op", "send");
  const uint32_t length = number_of("length", 16);
  struct ibv_sge piece = {(uintptr_t)memory + kTarget + kReceives + number_of("at", 0), length, local->lkey};
  struct ibv_send_wr request = {.wr_id = number_of("id", 0),
                                .sg_list = &piece,
                                .num_sge = length != 0,
                                .send_flags = IBV_SEND_SIGNALED,
                                .imm_data = htonl(7)};
  size_t i = 0;
  while (i < sizeof operations / sizeof *operations && strcmp(operations[i].name, name) != 0) ++i;
  if (i == sizeof operations / sizeof *operations) return fprintf(out, "error no operation %s\n", name);
  request.opcode = operations[i].opcode;
  if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    piece.length = 8;
    request.num_sge = 1;
    request.wr.atomic.remote_addr = number_of("raddr", 0);
    request.wr.atomic.rkey = number_of("rkey", 0);
    request.wr.atomic.compare_add = 1;
    request.wr.atomic.swap = 2;
  } else {
    request.wr.rdma.remote_addr = number_of("raddr", 0);
    request.wr.rdma.rkey = number_of("rkey", 0);
  }
  struct ibv_send_wr* bad = NULL;
  for (uint64_t n = number_of("n", 1); n > 0; --n, ++request.wr_id)
    if ((errno = ibv_post_send(tested, &request, &bad)) != 0) return error("ibv_post_send");
  return fprintf(out, "ok\n");
}

static int change_state(void) {
  static const char* const names[] = {"reset", "init", "rtr",  "rts",
                                      "sqd",   "sqe",  "error"};  // In the order of ibv_qp_state.
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
  while (attr.qp_state < IBV_QPS_ERR && strcmp(names[attr.qp_state], text_of("to", "")) != 0) ++attr.qp_state;
  if ((errno = ibv_modify_qp(tested, &attr, IBV_QP_STATE)) != 0) return error("ibv_modify_qp");
  return fprintf(out, "ok\n");
}

// The network header before a datagram contains addresses and does not count as changed memory.
static void print_completions(const char* name, struct ibv_cq* queue, int is_datagram) {
  struct ibv_wc wc;
  while (ibv_poll_cq(queue, 1, &wc) > 0) {
    for (uint32_t at = wc.wr_id; is_datagram && *name == 'r' && at < wc.wr_id + kGrh; ++at)
      memory[kTarget + at] = initial(kTarget + at);
    fprintf(out, "completion %s status=%d", name, wc.status);
    if (wc.status == IBV_WC_SUCCESS) {
      fprintf(out, " opcode=%d", wc.opcode);
      if (*name == 'r') fprintf(out, " bytes=%u", wc.byte_len);
      if (*name == 'r' && is_datagram)
        fprintf(out, " source=%u grh=%d", wc.src_qp, (wc.wc_flags & IBV_WC_GRH) != 0);
      if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) fprintf(out, " immediate=%u", ntohl(wc.imm_data));
      if ((wc.wc_flags & IBV_WC_WITH_INV) != 0) fprintf(out, " invalidated=1");
    }
    fputc('\n', out);
  }
}

// Prints the byte ranges that differ from the initial contents written by `fresh`.
static void print_changes(const char* name, uint32_t from, uint32_t length) {
  for (uint32_t at = 0; at < length; ++at) {
    uint32_t end = at;
    while (end < length && memory[from + end] != initial(from + end)) ++end;
    if (end == at) continue;
    fprintf(out, "changed %s at=%u length=%u ", name, at, end - at);
    if (end - at > 16) {
      fprintf(out, "crc=%08x\n", crc32_of(memory + from + at, end - at));
    } else {
      for (; at < end; ++at) fprintf(out, "%02x", memory[from + at]);
      fputc('\n', out);
    }
    at = end;
  }
}

static int report(void) {
  const int is_datagram = tested->qp_type == IBV_QPT_UD;
  print_completions("send", send_queue, is_datagram);
  print_completions("receive", receive_queue, is_datagram);
  struct ibv_cq* queue = NULL;
  void* context = NULL;
  while (ibv_get_cq_event(channel, &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    fprintf(out, "notified\n");
  }
  struct ibv_async_event event;
  while (ibv_get_async_event(device, &event) == 0) {
    fprintf(out, "event %d\n", event.event_type);
    ibv_ack_async_event(&event);
  }
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  if ((errno = ibv_query_qp(tested, &attr, IBV_QP_STATE, &init)) != 0) return error("ibv_query_qp");
  print_changes("region", 0, kTarget);
  print_changes("receives", kTarget, kReceives);
  print_changes("local", kTarget + kReceives, kLocal);
  return fprintf(out, "ok state=%d\n", attr.qp_state);
}

static int execute(char* line) {
  word_count = 0;
  for (char* word = strtok(line, " \r\n"); word != NULL && word_count < 64; word = strtok(NULL, " \r\n"))
    words[word_count++] = word;
  if (word_count == 0) return 1;
  const char* name = words[0];
  if (strcmp(name, "quit") == 0) return 0;
  if (strcmp(name, "probe") == 0) {
    probe();
  } else if (strcmp(name, "fresh") == 0) {
    fresh();
  } else if (tested == NULL) {
    fprintf(out, "error no queue pair\n");
  } else if (strcmp(name, "receive") == 0) {
    if (post_receives()) fprintf(out, "ok\n");
  } else if (strcmp(name, "post") == 0) {
    post();
  } else if (strcmp(name, "state") == 0) {
    change_state();
  } else if (strcmp(name, "report") == 0) {
    report();
  } else {
    fprintf(out, "error no command %s\n", name);
  }
  fflush(out);
  return 1;
}

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "odd-peer: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void open_device(const char* name) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  must(devices != NULL, "ibv_get_device_list");
  for (int i = 0; devices[i] != NULL && device == NULL; ++i)
    if (strcmp(ibv_get_device_name(devices[i]), name) == 0) device = ibv_open_device(devices[i]);
  must(device != NULL, name);
  ibv_free_device_list(devices);
  domain = ibv_alloc_pd(device);
  other_domain = ibv_alloc_pd(device);
  channel = ibv_create_comp_channel(device);
  must(domain != NULL && other_domain != NULL && channel != NULL,
       "protection domains and completion channel");
  must(fcntl(device->async_fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0,
       "fcntl");
  memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
}

static int connection_on(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0, "SO_REUSEADDR");
  must(bind(listener, (const struct sockaddr*)&address, sizeof address) == 0 && listen(listener, 1) == 0,
       "listen");
  const int connection = accept(listener, NULL, NULL);
  must(connection >= 0, "accept");
  must(setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
  close(listener);
  return connection;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: odd-peer DEVICE IPV4-GID-INDEX IPV6-GID-INDEX PORT\n");
    return 2;
  }
  open_device(argv[1]);
  ipv4_gid_index = strtoul(argv[2], NULL, 0);
  ipv6_gid_index = strtoul(argv[3], NULL, 0);
  const int connection = connection_on(strtoul(argv[4], NULL, 0));
  FILE* const in = fdopen(connection, "r");
  out = fdopen(dup(connection), "w");
  must(in != NULL && out != NULL, "fdopen");
  char line[1024];
  while (fgets(line, sizeof line, in) != NULL && execute(line)) {
  }
  remove_all();
  return 0;
}
