/* The initiator as a library. Commands are submitted while credits are available, and complete in any order. Used by
 * one thread. Functions return 0 or -errno. After -ECONNRESET, -ETIMEDOUT or -EIO the connection is lost (`lost` is
 * set). */
#ifndef BLOCK_TARGET_INITIATOR_H
#define BLOCK_TARGET_INITIATOR_H

#include <stddef.h>

#include "endpoint.h"

/* A credit: one command and its buffer. */
struct slot {
  bool busy;
  bool sent;      /* the send has completed: the device no longer reads the command */
  bool responded; /* the response has arrived */
  enum bt_status status;
  struct bt_command command;
};

struct initiator {
  struct bt_endpoint endpoint;
  int fd;
  struct ibv_qp* qp;
  struct ibv_mr* responses_mr;
  struct ibv_mr* data_mr;
  uint32_t depth;
  struct slot slots[BT_MAX_DEPTH];
  struct bt_response responses[BT_MAX_DEPTH];
  char* data;
  const char* lost; /* reason of the connection loss, or NULL */
};

int initiator_open(struct initiator* initiator, const struct bt_endpoint_options* options, const char* host,
                   const char* port, uint32_t depth);
void initiator_close(struct initiator* initiator);

/* Returns a free slot, or -EAGAIN if all credits are in use. */
int initiator_slot(struct initiator* initiator);
/* The slot's buffer of BT_MAX_BLOCKS blocks. The caller owns it while the slot is free or its command has completed. */
char* initiator_data(struct initiator* initiator, int slot);
/* Submits a command with the slot's buffer. */
int initiator_submit(struct initiator* initiator, int slot, enum bt_opcode opcode, uint64_t lba,
                     uint32_t blocks);
/* Submits any command without validation, except that its id is set. Sends `size` bytes of it. */
int initiator_submit_raw(struct initiator* initiator, int slot, const struct bt_command* command,
                         size_t size);
/* Waits for a completed command. Returns its slot, which is free again, and the target's status in `status`. Returns
 * -ENOENT if no command is in progress. */
int initiator_wait(struct initiator* initiator, enum bt_status* status);

const char* bt_status_text(enum bt_status status);

#endif
