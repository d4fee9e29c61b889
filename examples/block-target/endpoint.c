#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct ibv_context* open_by_name(const char* name) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  struct ibv_context* context = NULL;
  for (int i = 0; list != NULL && i < count && context == NULL; i++) {
    if (name == NULL || strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  return context;
}

int bt_open(struct bt_endpoint* endpoint, const struct bt_endpoint_options* options, int completions) {
  struct ibv_port_attr port;
  memset(endpoint, 0, sizeof *endpoint);
  endpoint->gid_index = (uint8_t)options->gid_index;
  endpoint->timeout = (uint8_t)options->timeout;
  endpoint->context = open_by_name(options->device);
  if (endpoint->context == NULL) return -ENODEV;
  int error = ibv_query_port(endpoint->context, 1, &port);
  if (error == 0 && ibv_query_gid(endpoint->context, 1, options->gid_index, &endpoint->gid) != 0)
    error = ENOENT;
  if (error == 0) {
    endpoint->mtu = port.active_mtu;
    endpoint->pd = ibv_alloc_pd(endpoint->context);
    if (endpoint->pd == NULL) error = errno;
  }
  if (error == 0 && options->events) {
    endpoint->channel = ibv_create_comp_channel(endpoint->context);
    /* Nonblocking: an event may have been consumed before it is read. */
    if (endpoint->channel == NULL || fcntl(endpoint->channel->fd, F_SETFL, O_NONBLOCK) != 0) error = errno;
  }
  if (error == 0) {
    endpoint->cq = ibv_create_cq(endpoint->context, completions, NULL, endpoint->channel, 0);
    if (endpoint->cq == NULL) error = errno;
  }
  if (error != 0) bt_close(endpoint);
  return -error;
}

void bt_close(struct bt_endpoint* endpoint) {
  if (endpoint->cq != NULL) ibv_destroy_cq(endpoint->cq);
  if (endpoint->channel != NULL) ibv_destroy_comp_channel(endpoint->channel);
  if (endpoint->pd != NULL) ibv_dealloc_pd(endpoint->pd);
  if (endpoint->context != NULL) ibv_close_device(endpoint->context);
  memset(endpoint, 0, sizeof *endpoint);
}

int bt_create_qp(struct bt_endpoint* endpoint, uint32_t sends, uint32_t receives, uint32_t inline_bytes,
                 unsigned access, struct ibv_qp** qp) {
  struct ibv_qp_init_attr init = {
      .send_cq = endpoint->cq,
      .recv_cq = endpoint->cq,
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 0,
      .cap = {sends, receives, 1, 1, inline_bytes},
  };
  *qp = ibv_create_qp(endpoint->pd, &init);
  if (*qp == NULL) return -errno;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
  const int error =
      ibv_modify_qp(*qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) {
    ibv_destroy_qp(*qp);
    *qp = NULL;
  }
  return -error;
}

void bt_describe(const struct bt_endpoint* endpoint, const struct ibv_qp* qp, uint32_t depth,
                 struct bt_hello* hello) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memset(hello, 0, sizeof *hello);
  hello->magic = BT_MAGIC;
  hello->depth = depth;
  hello->qp_num = qp->qp_num;
  /* Must differ from the PSN of the previous queue pair with the same number; need not be random. */
  hello->psn = (uint32_t)(now.tv_nsec ^ now.tv_sec * 7919) & 0xffffff;
  hello->mtu = (uint32_t)endpoint->mtu;
  hello->gid = endpoint->gid;
}

int bt_connect_qp(const struct bt_endpoint* endpoint, struct ibv_qp* qp, const struct bt_hello* own,
                  const struct bt_hello* peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = (enum ibv_mtu)(own->mtu < peer->mtu ? own->mtu : peer->mtu),
      .dest_qp_num = peer->qp_num,
      .rq_psn = peer->psn,
      .max_dest_rd_atomic = 16,
      .min_rnr_timer = 12, /* 0.64 ms */
      .ah_attr =
          {
              .is_global = 1,
              .port_num = 1,
              .grh = {.dgid = peer->gid, .sgid_index = endpoint->gid_index, .hop_limit = 64},
          },
  };
  int error = ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return -error;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = own->psn;
  attr.timeout = endpoint->timeout;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7; /* unlimited */
  attr.max_rd_atomic = 16;
  error = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  return -error;
}

int bt_poll(struct bt_endpoint* endpoint, int count, struct ibv_wc* completions) {
  const int got = ibv_poll_cq(endpoint->cq, count, completions);
  return got < 0 ? -EIO : got;
}

int bt_arm(struct bt_endpoint* endpoint) { return -ibv_req_notify_cq(endpoint->cq, 0); }

void bt_disarm(struct bt_endpoint* endpoint) {
  struct ibv_cq* cq = NULL;
  void* context = NULL;
  unsigned events = 0;
  while (ibv_get_cq_event(endpoint->channel, &cq, &context) == 0) events++;
  ibv_ack_cq_events(endpoint->cq, events);
}
