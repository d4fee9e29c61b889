/* What the target has of one initiator: a queue pair, a receive for each credit, and a context for each command under way.
 *
 *   command arrives --> context free? --no--> held; its receive is not posted again, its credit not given back
 *                           | yes: the receive is posted again
 *                           v
 *        identify, read: data into the context's buffer, RDMA WRITE and the response behind it
 *        write:          RDMA READ into the context's buffer --> onto the disk --> response
 *        flush, refused: response
 *                           |
 *                           v
 *        the response is complete: so is what was posted before it, the context is free
 *
 * So there is never a command without a receive: commands that may still come are fewer than credits, which are those of
 * responses that have left, whose receives are posted. */
#ifndef BLOCK_TARGET_SESSION_H
#define BLOCK_TARGET_SESSION_H

#include <stddef.h>

#include "disk.h"
#include "endpoint.h"

struct context {
  struct bt_command command;
  int next_free; /* -1: the last one */
};

struct session {
  int fd;
  uint32_t number; /* of the queue pair; stays when that is gone */
  struct ibv_qp* qp;
  struct ibv_mr* commands_mr;
  struct ibv_mr* data_mr;
  struct disk* disk;
  uint32_t depth;
  uint32_t unanswered;
  struct bt_command commands[BT_MAX_DEPTH]; /* what receives receive into */
  struct context contexts[BT_MAX_DEPTH];
  int free_context;
  uint32_t held[BT_MAX_DEPTH]; /* receives whose commands wait, in order, from first_held on */
  uint32_t first_held, held_count;
  char* data; /* BT_MAX_BLOCKS blocks for each context */
  /* The greeting. */
  struct bt_hello hello;
  size_t heard; /* bytes of it */
  bool greeted;
  long long since;   /* ms */
  const char* ended; /* why it has to go, once it has */
};

/* Takes the descriptor in any case. 0 or an errno with a minus. */
int session_open(struct session** session, int fd, struct bt_endpoint* endpoint, struct disk* disk);
void session_close(struct session* session);
/* Once the hello is there. */
int session_greet(struct session* session, struct bt_endpoint* endpoint, uint32_t depth);
/* One of its completions. Sets `ended` when the session is over. */
void session_complete(struct session* session, const struct ibv_wc* wc);

#endif
