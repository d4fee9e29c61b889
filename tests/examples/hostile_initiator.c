/* hostile-initiator HOST PORT CASE: violates one rule of the block target's protocol, and prints the status from the
 * target, or the reason for the loss of the connection. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/block-target/initiator.h"

/* Returns a correct read command for the first block, with the slot's buffer. */
static struct bt_command sound(struct initiator* i, int slot) {
  return (struct bt_command){.opcode = BT_READ,
                             .blocks = 1,
                             .address = (uintptr_t)initiator_data(i, slot),
                             .length = BT_MAX_BLOCKS * BT_BLOCK,
                             .rkey = i->data_mr->rkey};
}

struct change {
  const char* name;
  struct bt_command set; /* fields that are not 0 replace those of the correct command */
  size_t size;           /* 0: the correct size */
};

static const struct change changes[] = {
    {"opcode", {.opcode = 99}, 0},
    {"reserved", {.zero = 1}, 0},
    {"beyond", {.lba = 65536}, 0},
    {"wraps", {.lba = UINT64_MAX}, 0},
    {"crosses", {.lba = 65535, .blocks = 2}, 0},
    {"long", {.blocks = BT_MAX_BLOCKS + 1}, 0},
    {"endless", {.blocks = UINT32_MAX}, 0},
    {"short-buffer", {.blocks = 2, .length = BT_BLOCK}, 0},
    {"wrong-key", {.rkey = 0xdeadbeef}, 0},
    {"wrong-key-write", {.opcode = BT_WRITE, .rkey = 0xdeadbeef}, 0},
    {"wrong-address", {.address = 4096}, 0},
    {"half", {.opcode = BT_READ}, sizeof(struct bt_command) / 2},
    {"nothing", {.opcode = BT_FLUSH}, 0}, /* a flush with blocks and a buffer */
};

static struct bt_command changed(struct bt_command command, const struct bt_command* set) {
  if (set->opcode != 0) command.opcode = set->opcode;
  if (set->zero != 0) command.zero = set->zero;
  if (set->blocks != 0) command.blocks = set->blocks;
  if (set->lba != 0) command.lba = set->lba;
  if (set->address != 0) command.address = set->address;
  if (set->length != 0) command.length = set->length;
  if (set->rkey != 0) command.rkey = set->rkey;
  return command;
}

static int report(struct initiator* i, int slot, enum bt_status status) {
  if (slot >= 0) {
    printf("%s\n", bt_status_text(status));
    return 0;
  }
  printf("lost: %s\n", i->lost != NULL ? i->lost : strerror(-slot));
  return 0;
}

static int break_rule(struct initiator* i, const struct change* change) {
  enum bt_status status = BT_OK;
  const struct bt_command command = changed(sound(i, 0), &change->set);
  int slot = initiator_submit_raw(i, 0, &command, change->size != 0 ? change->size : sizeof command);
  if (slot == 0) slot = initiator_wait(i, &status);
  return report(i, slot, status);
}

/* Sends `depth` writes at once, more than the target allows, until the target closes the connection. The target first
 * reads the data of a write, so it does not answer at once. Repeats, because a command that finds no receive is
 * retransmitted later, when the target may have answered others. */
static int flood(struct initiator* i, uint32_t depth) {
  enum { ROUNDS = 1000 };
  i->depth = depth; /* instead of the depth that the target has granted */
  enum bt_status status = BT_OK;
  for (int round = 0; round < ROUNDS; round++) {
    int slot = 0;
    for (uint32_t k = 0; k < depth && slot >= 0; k++)
      slot = initiator_submit(i, (int)k, BT_WRITE, k * BT_MAX_BLOCKS, BT_MAX_BLOCKS);
    while (slot >= 0) slot = initiator_wait(i, &status);
    if (slot != -ENOENT) return report(i, slot, status);
  }
  printf("all of %d floods were answered\n", ROUNDS);
  return 0;
}

int main(int count, char** words) {
  enum { DEPTH = 32 };
  if (count != 4) {
    fprintf(stderr, "usage: hostile-initiator HOST PORT CASE\n");
    return 2;
  }
  struct initiator initiator;
  const struct bt_endpoint_options how = {.gid_index = 1, .timeout = 15};
  const int status = initiator_open(&initiator, &how, words[1], words[2], DEPTH);
  if (status != 0) {
    fprintf(stderr, "hostile-initiator: %s\n", strerror(-status));
    return 1;
  }
  int failed = 2;
  if (strcmp(words[3], "flood") == 0) failed = flood(&initiator, DEPTH);
  for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
    if (strcmp(words[3], changes[k].name) == 0) failed = break_rule(&initiator, &changes[k]);
  }
  if (failed == 2) fprintf(stderr, "hostile-initiator: there is no case %s\n", words[3]);
  initiator_close(&initiator);
  return failed;
}
