#include "initiator.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/tcp.h"

enum {
  SLOT_BYTES = BT_MAX_BLOCKS * BT_BLOCK,
  PATIENCE_MS = 10000,
  ROUNDS_BETWEEN_LOOKS = 512, /* without a completion, before the TCP connection is checked */
  LONGEST_SLEEP = 200,        /* ms */
};

/* Work request ids: receives have this bit set; the id of a send is its slot. */
static const uint64_t RECEIVE = UINT64_C(1) << 32;

static int lose(struct initiator* i, const char* why, int error) {
  i->lost = why;
  return -error;
}

static int post_receive(struct initiator* i, uint32_t index) {
  struct ibv_sge sge = {(uintptr_t)&i->responses[index], sizeof i->responses[index], i->responses_mr->lkey};
  struct ibv_recv_wr request = {.wr_id = RECEIVE | index, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
  return ibv_post_recv(i->qp, &request, &bad) == 0 ? 0 : lose(i, "posting a receive failed", EIO);
}

static int greet(struct initiator* i, const char* host, const char* port, uint32_t depth) {
  struct bt_hello own, peer;
  i->fd = tcp_connect(host, port, PATIENCE_MS);
  if (i->fd < 0) return i->fd;
  bt_describe(&i->endpoint, i->qp, depth, &own);
  int status = tcp_send(i->fd, &own, sizeof own, PATIENCE_MS);
  if (status == 0) status = tcp_receive(i->fd, &peer, sizeof peer, PATIENCE_MS);
  if (status != 0) return status;
  if (peer.magic != BT_MAGIC) return -EPROTO;
  if (peer.refused != 0) return -(int)peer.refused;
  if (peer.depth == 0 || peer.depth > depth) return -EPROTO;
  i->depth = peer.depth;
  return bt_connect_qp(&i->endpoint, i->qp, &own, &peer);
}

static int set_up(struct initiator* i, const char* host, const char* port, uint32_t depth) {
  /* The target may read and write only the data buffers. */
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  int status = bt_create_qp(&i->endpoint, depth, depth, sizeof(struct bt_command), access, &i->qp);
  if (status != 0) return status;
  i->data = calloc(depth, SLOT_BYTES);
  if (i->data == NULL) return -ENOMEM;
  i->data_mr = ibv_reg_mr(i->endpoint.pd, i->data, (size_t)depth * SLOT_BYTES, access);
  i->responses_mr = ibv_reg_mr(i->endpoint.pd, i->responses, sizeof i->responses, IBV_ACCESS_LOCAL_WRITE);
  if (i->data_mr == NULL || i->responses_mr == NULL) return -errno;
  for (uint32_t k = 0; k < depth && status == 0; k++) status = post_receive(i, k);
  return status != 0 ? status : greet(i, host, port, depth);
}

int initiator_open(struct initiator* i, const struct bt_endpoint_options* options, const char* host,
                   const char* port, uint32_t depth) {
  memset(i, 0, sizeof *i);
  i->fd = -1;
  if (depth == 0 || depth > BT_MAX_DEPTH) return -EINVAL;
  int status = bt_open(&i->endpoint, options, (int)depth * 2);
  if (status != 0) return status;
  status = set_up(i, host, port, depth);
  if (status != 0) initiator_close(i);
  return status;
}

void initiator_close(struct initiator* i) {
  if (i->qp != NULL) ibv_destroy_qp(i->qp);
  if (i->responses_mr != NULL) ibv_dereg_mr(i->responses_mr);
  if (i->data_mr != NULL) ibv_dereg_mr(i->data_mr);
  free(i->data);
  bt_close(&i->endpoint);
  if (i->fd >= 0) close(i->fd);
  memset(i, 0, sizeof *i);
  i->fd = -1;
}

int initiator_slot(struct initiator* i) {
  for (uint32_t k = 0; k < i->depth; k++) {
    if (!i->slots[k].busy) return (int)k;
  }
  return -EAGAIN;
}

char* initiator_data(struct initiator* i, int slot) { return i->data + (size_t)slot * SLOT_BYTES; }

int initiator_submit(struct initiator* i, int slot, enum bt_opcode opcode, uint64_t lba, uint32_t blocks) {
  const bool has_buffer = opcode != BT_FLUSH;
  const struct bt_command command = {
      .opcode = (uint8_t)opcode,
      .blocks = blocks,
      .lba = lba,
      .address = has_buffer ? (uintptr_t)initiator_data(i, slot) : 0,
      .length = has_buffer ? SLOT_BYTES : 0,
      .rkey = has_buffer ? i->data_mr->rkey : 0,
  };
  return initiator_submit_raw(i, slot, &command, sizeof command);
}

int initiator_submit_raw(struct initiator* i, int slot, const struct bt_command* command, size_t size) {
  struct slot* s = &i->slots[slot];
  if (i->lost != NULL) return -ECONNRESET;
  *s = (struct slot){.busy = true, .command = *command};
  s->command.id = (uint16_t)slot;
  struct ibv_sge sge = {(uintptr_t)&s->command, (uint32_t)size, 0};
  struct ibv_send_wr request = {.wr_id = (uint64_t)slot, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  return ibv_post_send(i->qp, &request, &bad) == 0 ? 0 : lose(i, "posting a command failed", EIO);
}

/* Reposts the receive before the credit is reused. */
static int on_response(struct initiator* i, uint32_t receive, uint32_t length) {
  const struct bt_response response = i->responses[receive];
  if (length != sizeof response || response.id >= i->depth || !i->slots[response.id].busy ||
      i->slots[response.id].responded)
    return lose(i, "unexpected response of the target", ECONNRESET);
  i->slots[response.id].status = (enum bt_status)response.status;
  i->slots[response.id].responded = true;
  return post_receive(i, receive);
}

static int on_completion(struct initiator* i, const struct ibv_wc* wc) {
  if (wc->status != IBV_WC_SUCCESS) return lose(i, ibv_wc_status_str(wc->status), ETIMEDOUT);
  if ((wc->wr_id & RECEIVE) != 0) return on_response(i, (uint32_t)wc->wr_id, wc->byte_len);
  i->slots[wc->wr_id].sent = true;
  return 0;
}

/* Returns the number of completions, or -errno. */
static int progress(struct initiator* i) {
  struct ibv_wc completions[8];
  const int count = bt_poll(&i->endpoint, 8, completions);
  if (count < 0) return lose(i, "the completion queue failed", EIO);
  for (int k = 0; k < count; k++) {
    const int status = on_completion(i, &completions[k]);
    if (status != 0) return status;
  }
  return count;
}

/* Returns the slot of a completed command, -EAGAIN if none has completed, or -ENOENT if there is no command. */
static int find_done(struct initiator* i, enum bt_status* status) {
  bool any = false;
  for (uint32_t k = 0; k < i->depth; k++) {
    struct slot* s = &i->slots[k];
    any = any || s->busy;
    if (s->busy && s->sent && s->responded) {
      s->busy = false;
      *status = s->status;
      return (int)k;
    }
  }
  return any ? -EAGAIN : -ENOENT;
}

static int sleep_until_event(struct initiator* i) {
  int status = bt_arm(&i->endpoint);
  if (status != 0) return status;
  status = progress(i);
  if (status != 0) return status < 0 ? status : 0;
  struct pollfd descriptors[2] = {{i->endpoint.channel->fd, POLLIN, 0}, {i->fd, POLLIN, 0}};
  if (poll(descriptors, 2, LONGEST_SLEEP) < 0 && errno != EINTR) return -errno;
  bt_disarm(&i->endpoint);
  return 0;
}

int initiator_wait(struct initiator* i, enum bt_status* status) {
  for (int rounds = 1;; rounds++) {
    if (i->lost != NULL) return -ECONNRESET;
    const int count = progress(i);
    if (count < 0) return count;
    const int slot = find_done(i, status);
    if (slot != -EAGAIN) return slot;
    if (count > 0) continue;
    int failed = 0;
    if (i->endpoint.channel != NULL) {
      failed = sleep_until_event(i);
    } else {
      sched_yield();
    }
    if (failed != 0) return failed;
    if ((i->endpoint.channel != NULL || rounds % ROUNDS_BETWEEN_LOOKS == 0) && tcp_is_closed(i->fd))
      return lose(i, "the target closed the connection", ECONNRESET);
  }
}

const char* bt_status_text(enum bt_status status) {
  static const char* const texts[] = {
      [BT_OK] = "ok",
      [BT_BAD_OPCODE] = "unknown command",
      [BT_BAD_FIELD] = "a field of the command is invalid",
      [BT_OUT_OF_RANGE] = "beyond the end of the disk",
      [BT_TOO_LONG] = "too many blocks",
      [BT_SHORT_BUFFER] = "the buffer is too short",
      [BT_IO_ERROR] = "the disk failed",
  };
  return (unsigned)status < sizeof texts / sizeof texts[0] ? texts[status] : "unknown status";
}
