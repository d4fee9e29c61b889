// A process that exchanges messages with several others over RC queue pairs: `process-star center PEERS FOLDER` and,
// for each number below PEERS, `process-star peer NUMBER FOLDER`. They connect by sockets in the folder. After the
// exchange all block in ibv_get_cq_event until they are killed.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { kBytes = 4096, kMessages = 100, kMaxPeers = 31 };

struct address {
  union ibv_gid gid;
  uint32_t qpn;
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_comp_channel* channel;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static unsigned char bytes[kBytes];

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "process-star: %s failed\n", what);
  exit(1);
}

static void open_device(void) {
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  must(devices != NULL && devices[0] != NULL, "ibv_get_device_list");
  context = ibv_open_device(devices[0]);
  must(context != NULL, "ibv_open_device");
  ibv_free_device_list(devices);
  pd = ibv_alloc_pd(context);
  channel = ibv_create_comp_channel(context);
  cq = ibv_create_cq(context, 8192, NULL, channel, 0);
  mr = ibv_reg_mr(pd, bytes, kBytes, IBV_ACCESS_LOCAL_WRITE);
  must(pd != NULL && channel != NULL && cq != NULL && mr != NULL, "creation of objects");
}

static struct ibv_qp* create_qp(void) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  init.cap = (struct ibv_qp_cap){.max_send_wr = 16, .max_recv_wr = 256, .max_send_sge = 1, .max_recv_sge = 1};
  struct ibv_qp* const qp = ibv_create_qp(pd, &init);
  must(qp != NULL, "ibv_create_qp");
  return qp;
}

static void connect_qp(struct ibv_qp* qp, int socket) {
  struct address own = {.qpn = qp->qp_num};
  struct address peer;
  must(ibv_query_gid(context, 1, 1, &own.gid) == 0, "ibv_query_gid");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "INIT");
  for (int i = 0; i < kMessages; ++i) {
    struct ibv_sge sge = {(uintptr_t)bytes, kBytes, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
  }
  must(write(socket, &own, sizeof own) == sizeof own &&
           recv(socket, &peer, sizeof peer, MSG_WAITALL) == sizeof peer,
       "exchange of addresses");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_4096,
                              .dest_qp_num = peer.qpn,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 12};
  attr.ah_attr = (struct ibv_ah_attr){
      .is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = 1, .hop_limit = 64}};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "RTR");
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "RTS");
  char ready = 0;  // both sides are in RTS
  must(write(socket, &ready, 1) == 1 && recv(socket, &ready, 1, MSG_WAITALL) == 1, "exchange of readiness");
}

static void wait_for(int completions) {
  struct ibv_wc wc;
  while (completions > 0) {
    const int found = ibv_poll_cq(cq, 1, &wc);
    must(found >= 0 && (found == 0 || wc.status == IBV_WC_SUCCESS), "a request");
    completions -= found;
  }
}

static void send_all(struct ibv_qp* const* qps, int count) {
  for (int message = 0; message < kMessages; ++message) {
    for (int i = 0; i < count; ++i) {
      struct ibv_sge sge = {(uintptr_t)bytes, kBytes, mr->lkey};
      struct ibv_send_wr wr = {
          .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
      struct ibv_send_wr* bad = NULL;
      must(ibv_post_send(qps[i], &wr, &bad) == 0, "ibv_post_send");
    }
    wait_for(2 * count);  // completions of its own sends, and receives of the peers' messages
  }
}

static struct sockaddr_un name_in(const char* folder) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  must(snprintf(name.sun_path, sizeof name.sun_path, "%s/star", folder) < (int)sizeof name.sun_path,
       "a name for the socket");
  return name;
}

int main(int argc, char** argv) {
  const int center = argc == 4 && strcmp(argv[1], "center") == 0;
  const long number = argc == 4 ? strtol(argv[2], NULL, 10) : -1;
  if (number < 0 || (center && (number < 1 || number > kMaxPeers))) {
    fprintf(stderr, "usage: process-star center PEERS FOLDER | peer NUMBER FOLDER; 1 to %d peers\n",
            kMaxPeers);
    return 2;
  }
  open_device();
  struct ibv_qp* qps[kMaxPeers];
  const struct sockaddr_un name = name_in(argv[3]);
  const int peers = center ? (int)number : 1;
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (center)
    must(bind(listener, (const struct sockaddr*)&name, sizeof name) == 0 && listen(listener, peers) == 0,
         "listening");
  for (int i = 0; i < peers; ++i) {
    qps[i] = create_qp();
    int with = listener;
    if (center) {
      with = accept(listener, NULL, NULL);
    } else {
      for (int tries = 0; connect(listener, (const struct sockaddr*)&name, sizeof name) != 0; ++tries) {
        must(tries < 3000, "connect");
        usleep(10000);
      }
    }
    must(with >= 0, "accept");
    connect_qp(qps[i], with);
  }
  send_all(qps, peers);
  printf("all have exchanged messages\n");
  fflush(stdout);
  must(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
  struct ibv_cq* of = NULL;
  void* user = NULL;
  return ibv_get_cq_event(channel, &of, &user);  // blocks forever
}
