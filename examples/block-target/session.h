/* The target's state of one initiator: a queue pair, a receive per credit, and a context per command in progress.
 *
 *   command arrives --> context free? --no--> held: its receive is not reposted, its credit not returned
 *                           | yes: the receive is reposted
 *                           v
 *        identify, read: data into the context's buffer, RDMA WRITE, then response
 *        write:          RDMA READ into the context's buffer --> copy to the disk --> response
 *        flush, error:   response
 *                           |
 *                           v
 *        the response has completed: so have all requests posted before it; the context is free
 *
 * Therefore each command finds a posted receive: a credit is returned by a response, and responses are sent only for
 * commands whose receives have been reposted. */
#ifndef BLOCK_TARGET_SESSION_H
#define BLOCK_TARGET_SESSION_H

#include <stddef.h>

#include "disk.h"
#include "endpoint.h"

struct context {
  struct bt_command command;
  int next_free; /* -1: end of the list */
};

struct session {
  int fd;
  uint32_t number; /* of the queue pair; valid after its destruction */
  struct ibv_qp* qp;
  struct ibv_mr* commands_mr;
  struct ibv_mr* data_mr;
  struct disk* disk;
  uint32_t depth;
  uint32_t unanswered;
  struct bt_command commands[BT_MAX_DEPTH]; /* receive buffers */
  struct context contexts[BT_MAX_DEPTH];
  int free_context;
  uint32_t held[BT_MAX_DEPTH]; /* receives of held commands, in order, from first_held */
  uint32_t first_held, held_count;
  char* data; /* BT_MAX_BLOCKS blocks per context */
  /* The greeting. */
  struct bt_hello hello;
  size_t hello_bytes; /* received bytes of `hello` */
  bool greeted;
  long long since;   /* start of the session, ms */
  const char* ended; /* reason of the session's end, or NULL */
};

/* Takes ownership of the descriptor, also on failure. Returns 0 or -errno. */
int session_open(struct session** session, int fd, struct bt_endpoint* endpoint, struct disk* disk);
void session_close(struct session* session);
/* Connects the queue pair after the whole hello was received. */
int session_greet(struct session* session, struct bt_endpoint* endpoint, uint32_t depth);
/* Processes a completion of the session. Sets `ended` when the session must be closed. */
void session_complete(struct session* session, const struct ibv_wc* wc);

#endif
