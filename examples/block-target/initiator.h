/* The initiator's side as a library: commands are submitted as long as there are credits, and end in any order. One thread.
 * Functions return 0 or an errno with a minus; once one has returned -ECONNRESET or -ETIMEDOUT nothing works any more. */
#ifndef BLOCK_TARGET_INITIATOR_H
#define BLOCK_TARGET_INITIATOR_H

#include <stddef.h>

#include "endpoint.h"

/* A credit: one command and its buffer. */
struct slot {
  bool busy;
  bool sent;      /* its send is complete: the device is done with the command */
  bool responded; /* and so is the target */
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
  const char* lost; /* why the connection is lost, once it is */
};

int initiator_open(struct initiator* initiator, const struct bt_endpoint_options* options, const char* host,
                   const char* port, uint32_t depth);
void initiator_close(struct initiator* initiator);

/* A free slot, or -EAGAIN when all credits are used. */
int initiator_slot(struct initiator* initiator);
/* Its buffer of BT_MAX_BLOCKS blocks, the caller's while the slot is free or completed. */
char* initiator_data(struct initiator* initiator, int slot);
/* Sends a command with the slot's buffer. */
int initiator_submit(struct initiator* initiator, int slot, enum bt_opcode opcode, uint64_t lba,
                     uint32_t blocks);
/* Sends any command as it is, but for its id; `size` bytes of it. */
int initiator_submit_raw(struct initiator* initiator, int slot, const struct bt_command* command,
                         size_t size);
/* Waits until a command is complete: its slot, which is free again, with the target's word in `status`. -ENOENT when none is
 * under way. */
int initiator_wait(struct initiator* initiator, enum bt_status* status);

const char* bt_status_text(enum bt_status status);

#endif
