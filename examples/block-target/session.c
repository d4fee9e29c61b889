#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/tcp.h"

enum { CONTEXT_BYTES = BT_MAX_BLOCKS * BT_BLOCK, GREETING_MS = 1000 };

/* Upper half of a work request id. The lower half is the number of the receive or of the context. */
enum work { RECEIVE, FETCH, PUSH, RESPONSE };
static uint64_t work_id(enum work work, uint32_t index) { return (uint64_t)work << 32 | index; }

static char* data_of(struct session* s, uint32_t context) {
  return s->data + (size_t)context * CONTEXT_BYTES;
}

static void post_receive(struct session* s, uint32_t index) {
  struct ibv_sge sge = {(uintptr_t)&s->commands[index], sizeof s->commands[index], s->commands_mr->lkey};
  struct ibv_recv_wr request = {.wr_id = work_id(RECEIVE, index), .sg_list = &sge, .num_sge = 1}, *bad = NULL;
  if (ibv_post_recv(s->qp, &request, &bad) != 0) s->ended = "posting a receive failed";
}

int session_open(struct session** opened, int fd, struct bt_endpoint* endpoint, struct disk* disk) {
  struct session* s = calloc(1, sizeof *s);
  if (s == NULL) {
    close(fd);
    return -ENOMEM;
  }
  s->fd = fd;
  s->disk = disk;
  /* Each command has at most two sends in flight: its data and its response. The initiator has no access to the
   * target's memory. */
  int status = bt_create_qp(endpoint, 2 * BT_MAX_DEPTH, BT_MAX_DEPTH, sizeof(struct bt_response),
                            IBV_ACCESS_LOCAL_WRITE, &s->qp);
  if (status != 0) {
    session_close(s);
    return status;
  }
  s->number = s->qp->qp_num;
  *opened = s;
  return 0;
}

void session_close(struct session* s) {
  /* Destroyed first: no data transfer is active afterwards. */
  if (s->qp != NULL) ibv_destroy_qp(s->qp);
  if (s->commands_mr != NULL) ibv_dereg_mr(s->commands_mr);
  if (s->data_mr != NULL) ibv_dereg_mr(s->data_mr);
  free(s->data);
  close(s->fd);
  free(s);
}

int session_greet(struct session* s, struct bt_endpoint* endpoint, uint32_t depth) {
  struct bt_hello own;
  if (s->hello.magic != BT_MAGIC || s->hello.depth == 0) return -EPROTO;
  s->depth = s->hello.depth < depth ? s->hello.depth : depth;
  s->data = calloc(s->depth, CONTEXT_BYTES);
  if (s->data == NULL) return -ENOMEM;
  s->data_mr = ibv_reg_mr(endpoint->pd, s->data, (size_t)s->depth * CONTEXT_BYTES, IBV_ACCESS_LOCAL_WRITE);
  s->commands_mr = ibv_reg_mr(endpoint->pd, s->commands, sizeof s->commands, IBV_ACCESS_LOCAL_WRITE);
  if (s->data_mr == NULL || s->commands_mr == NULL) return -ENOMEM;
  for (uint32_t i = 0; i < s->depth; i++) {
    s->contexts[i].next_free = i + 1 < s->depth ? (int)i + 1 : -1;
    post_receive(s, i);
  }
  if (s->ended != NULL) return -EIO;
  bt_describe(endpoint, s->qp, s->depth, &own);
  const int status = bt_connect_qp(endpoint, s->qp, &own, &s->hello);
  if (status != 0) return status;
  s->greeted = true;
  return tcp_send(s->fd, &own, sizeof own, GREETING_MS);
}

/* Transfers the data of a context to or from the initiator's buffer. */
static void move(struct session* s, uint32_t index, enum ibv_wr_opcode opcode, uint32_t bytes) {
  const struct bt_command* command = &s->contexts[index].command;
  struct ibv_sge sge = {(uintptr_t)data_of(s, index), bytes, s->data_mr->lkey};
  struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad = NULL;
  request.wr.rdma.remote_addr = command->address;
  request.wr.rdma.rkey = command->rkey;
  request.wr_id = work_id(opcode == IBV_WR_RDMA_READ ? FETCH : PUSH, index);
  /* An RDMA WRITE needs no completion: the completion of the response after it implies its own. */
  if (opcode == IBV_WR_RDMA_READ) request.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(s->qp, &request, &bad) != 0) s->ended = "data transfer failed";
}

static void respond(struct session* s, uint32_t index, enum bt_status status) {
  struct bt_response response = {.id = s->contexts[index].command.id, .status = (uint16_t)status};
  struct ibv_sge sge = {(uintptr_t)&response, sizeof response, 0};
  struct ibv_send_wr request = {.wr_id = work_id(RESPONSE, index), .sg_list = &sge, .num_sge = 1},
                     *bad = NULL;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE; /* inline: copied now, may be on the stack */
  s->unanswered--;
  if (ibv_post_send(s->qp, &request, &bad) != 0) s->ended = "posting a response failed";
}

/* Validates all fields of a command. The device validates the address and rkey of the buffer. */
static enum bt_status check(const struct session* s, const struct bt_command* c) {
  if (c->zero != 0) return BT_BAD_FIELD;
  switch (c->opcode) {
    case BT_IDENTIFY:
      if (c->lba != 0 || c->blocks != 0) return BT_BAD_FIELD;
      return c->length < sizeof(struct bt_identity) ? BT_SHORT_BUFFER : BT_OK;
    case BT_FLUSH:
      return c->lba != 0 || c->blocks != 0 || c->length != 0 ? BT_BAD_FIELD : BT_OK;
    case BT_READ:
    case BT_WRITE:
      if (c->blocks == 0) return BT_BAD_FIELD;
      if (c->blocks > BT_MAX_BLOCKS) return BT_TOO_LONG;
      if (!disk_has(s->disk, c->lba, c->blocks)) return BT_OUT_OF_RANGE;
      return c->length < c->blocks * BT_BLOCK ? BT_SHORT_BUFFER : BT_OK;
    default:
      return BT_BAD_OPCODE;
  }
}

/* Starts a command. Data passes through the context's buffer instead of directly to or from the disk. So a write is
 * applied only when all data has arrived, and a retransmitted read has the same data. */
static void begin(struct session* s, uint32_t index) {
  const struct bt_command* c = &s->contexts[index].command;
  const enum bt_status status = check(s, c);
  const uint32_t bytes = status == BT_OK ? c->blocks * BT_BLOCK : 0;
  if (status != BT_OK) {
    respond(s, index, status);
  } else if (c->opcode == BT_FLUSH) {
    respond(s, index, disk_flush(s->disk) == 0 ? BT_OK : BT_IO_ERROR);
  } else if (c->opcode == BT_WRITE) {
    move(s, index, IBV_WR_RDMA_READ, bytes);
  } else if (c->opcode == BT_READ) {
    memcpy(data_of(s, index), disk_block(s->disk, c->lba), bytes);
    move(s, index, IBV_WR_RDMA_WRITE, bytes);
    respond(s, index, BT_OK);
  } else {
    const struct bt_identity identity = {s->disk->blocks, BT_BLOCK, BT_MAX_BLOCKS, s->depth,
                                         s->disk->is_file};
    memcpy(data_of(s, index), &identity, sizeof identity);
    move(s, index, IBV_WR_RDMA_WRITE, sizeof identity);
    respond(s, index, BT_OK);
  }
}

/* Starts held commands while contexts are available. */
static void take_held(struct session* s) {
  while (s->held_count > 0 && s->free_context >= 0 && s->ended == NULL) {
    const uint32_t receive = s->held[s->first_held];
    s->first_held = (s->first_held + 1) % BT_MAX_DEPTH;
    s->held_count--;
    const int index = s->free_context;
    s->free_context = s->contexts[index].next_free;
    s->contexts[index].command = s->commands[receive];
    post_receive(s, receive);
    begin(s, (uint32_t)index);
  }
}

static void on_command(struct session* s, uint32_t receive, uint32_t length) {
  if (length != sizeof(struct bt_command)) {
    s->ended = "it sent an invalid command";
  } else if (++s->unanswered > s->depth) {
    s->ended = "it sent more commands than it has credits";
  } else {
    s->held[(s->first_held + s->held_count++) % BT_MAX_DEPTH] = receive;
    take_held(s);
  }
}

void session_complete(struct session* s, const struct ibv_wc* wc) {
  const uint32_t index = (uint32_t)wc->wr_id;
  if (s->ended != NULL) return;
  if (wc->status != IBV_WC_SUCCESS) {
    s->ended = ibv_wc_status_str(wc->status);
    return;
  }
  switch ((enum work)(wc->wr_id >> 32)) {
    case RECEIVE:
      on_command(s, index, wc->byte_len);
      break;
    case FETCH: {
      const struct bt_command* c = &s->contexts[index].command;
      memcpy(disk_block(s->disk, c->lba), data_of(s, index), (size_t)c->blocks * BT_BLOCK);
      respond(s, index, BT_OK);
      break;
    }
    case PUSH: /* unsignaled: completes only with an error */
      break;
    case RESPONSE:
      s->contexts[index].next_free = s->free_context;
      s->free_context = (int)index;
      take_held(s);
      break;
  }
}
