/* Verbs setup of both sides: opens a device, creates and connects a queue pair, waits for completions. Functions
 * return 0 or -errno. */
#ifndef BLOCK_TARGET_ENDPOINT_H
#define BLOCK_TARGET_ENDPOINT_H

#include <stdbool.h>

#include "protocol.h"

struct bt_endpoint {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel; /* NULL: completions are polled */
  struct ibv_cq* cq;
  union ibv_gid gid;
  enum ibv_mtu mtu;
  uint8_t gid_index;
  uint8_t timeout; /* ibv_qp_attr::timeout */
};

struct bt_endpoint_options {
  const char* device; /* NULL: the first device */
  int gid_index;
  int timeout;
  bool events; /* sleep on a completion channel instead of polling */
};

int bt_open(struct bt_endpoint* endpoint, const struct bt_endpoint_options* options, int completions);
void bt_close(struct bt_endpoint* endpoint);

/* Creates a queue pair in state INIT, so that receives can be posted. Inline sends: up to `inline_bytes`. */
int bt_create_qp(struct bt_endpoint* endpoint, uint32_t sends, uint32_t receives, uint32_t inline_bytes,
                 unsigned access, struct ibv_qp** qp);
void bt_describe(const struct bt_endpoint* endpoint, const struct ibv_qp* qp, uint32_t depth,
                 struct bt_hello* hello);
/* Changes the queue pair to RTR and RTS. */
int bt_connect_qp(const struct bt_endpoint* endpoint, struct ibv_qp* qp, const struct bt_hello* own,
                  const struct bt_hello* peer);

/* Polls up to `count` completions without blocking. Returns their number, or -EIO. */
int bt_poll(struct bt_endpoint* endpoint, int count, struct ibv_wc* completions);
/* With events: the next completion makes the channel readable. Poll once more before sleeping. */
int bt_arm(struct bt_endpoint* endpoint);
/* Removes and acknowledges the events on the channel. */
void bt_disarm(struct bt_endpoint* endpoint);

#endif
