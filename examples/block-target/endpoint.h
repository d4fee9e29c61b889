/* What both sides do with verbs before the first command: open a device, make a queue pair, connect it, wait for completions.
 * Functions return 0 or an errno with a minus. */
#ifndef BLOCK_TARGET_ENDPOINT_H
#define BLOCK_TARGET_ENDPOINT_H

#include <stdbool.h>

#include "protocol.h"

struct bt_endpoint {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel; /* NULL: completions are polled for */
  struct ibv_cq* cq;
  union ibv_gid gid;
  enum ibv_mtu mtu;
  uint8_t gid_index;
  uint8_t timeout; /* ibv_qp_attr::timeout */
};

struct bt_endpoint_options {
  const char* device; /* NULL: the first one */
  int gid_index;
  int timeout;
  bool events; /* sleep on a completion channel instead of polling */
};

int bt_open(struct bt_endpoint* endpoint, const struct bt_endpoint_options* options, int completions);
void bt_close(struct bt_endpoint* endpoint);

/* In INIT, so that receives may be posted. Sends of up to `inline_bytes` may be inline. */
int bt_create_qp(struct bt_endpoint* endpoint, uint32_t sends, uint32_t receives, uint32_t inline_bytes,
                 unsigned access, struct ibv_qp** qp);
void bt_describe(const struct bt_endpoint* endpoint, const struct ibv_qp* qp, uint32_t depth,
                 struct bt_hello* hello);
/* RTR and RTS. */
int bt_connect_qp(const struct bt_endpoint* endpoint, struct ibv_qp* qp, const struct bt_hello* own,
                  const struct bt_hello* peer);

/* Up to `count` completions, without waiting: how many, or -EIO. */
int bt_poll(struct bt_endpoint* endpoint, int count, struct ibv_wc* completions);
/* With events: after it the next completion makes the channel readable. Poll once more before you sleep. */
int bt_arm(struct bt_endpoint* endpoint);
/* Takes the events that have woken us. */
void bt_disarm(struct bt_endpoint* endpoint);

#endif
