#include "exercise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A command in progress. */
struct flight {
  bool busy;
  enum bt_opcode opcode;
  uint64_t lba; /* relative to exercise.first */
  uint32_t blocks;
  uint64_t number;
};

struct run {
  struct initiator* initiator;
  const struct exercise* what;
  char* model;
  uint64_t random;
  uint64_t count[BT_FLUSH + 1]; /* by opcode */
  uint64_t overtaken;           /* commands that completed before an earlier one */
  struct flight flights[BT_MAX_DEPTH];
};

/* xorshift64*: a reproducible sequence on all machines. */
static uint64_t draw(struct run* r, uint64_t below) {
  r->random ^= r->random >> 12;
  r->random ^= r->random << 25;
  r->random ^= r->random >> 27;
  return (r->random * UINT64_C(0x2545F4914F6CDD1D) >> 16) % below;
}

static int complain(const struct run* r, const char* what) {
  fprintf(stderr, "block-initiator: %s (seed %" PRIu64 ")\n", what, r->what->seed);
  return 1;
}

static int compare(const struct run* r, const char* got, uint64_t lba, uint32_t blocks) {
  const char* expected = r->model + lba * BT_BLOCK;
  for (uint64_t i = 0; i < (uint64_t)blocks * BT_BLOCK; i++) {
    if (got[i] == expected[i]) continue;
    fprintf(stderr,
            "block-initiator: block %" PRIu64 ", byte %" PRIu64 " is %02x, expected %02x (seed %" PRIu64
            ")\n",
            r->what->first + lba + i / BT_BLOCK, i % BT_BLOCK, (unsigned char)got[i],
            (unsigned char)expected[i], r->what->seed);
    return 1;
  }
  return 0;
}

static int check_identity(const struct run* r, const char* bytes) {
  struct bt_identity identity;
  memcpy(&identity, bytes, sizeof identity);
  const bool sound = identity.block_size == BT_BLOCK && identity.max_blocks == BT_MAX_BLOCKS &&
                     identity.depth == r->initiator->depth &&
                     identity.blocks >= r->what->first + r->what->blocks;
  return sound ? 0 : complain(r, "the target's identity has changed");
}

/* Waits for the completion of one command. */
static int reap(struct run* r) {
  enum bt_status status = BT_OK;
  const int slot = initiator_wait(r->initiator, &status);
  if (slot < 0) return complain(r, r->initiator->lost != NULL ? r->initiator->lost : strerror(-slot));
  if (status != BT_OK) return complain(r, bt_status_text(status));
  struct flight* f = &r->flights[slot];
  f->busy = false;
  for (uint32_t i = 0; i < r->initiator->depth; i++) {
    if (r->flights[i].busy && r->flights[i].number < f->number) {
      r->overtaken++;
      break;
    }
  }
  const char* data = initiator_data(r->initiator, slot);
  if (f->opcode == BT_READ) return compare(r, data, f->lba, f->blocks);
  return f->opcode == BT_IDENTIFY ? check_identity(r, data) : 0;
}

/* Concurrent commands on the same blocks have no defined result if one of them is a write. */
static bool is_in_the_way(const struct run* r, enum bt_opcode opcode, uint64_t lba, uint32_t blocks) {
  for (uint32_t i = 0; i < r->initiator->depth; i++) {
    const struct flight* f = &r->flights[i];
    const bool overlaps = f->busy && lba < f->lba + f->blocks && f->lba < lba + blocks;
    if (overlaps && (opcode == BT_WRITE || f->opcode == BT_WRITE)) return true;
  }
  return false;
}

static int begin(struct run* r, enum bt_opcode opcode, uint64_t lba, uint32_t blocks, uint64_t number) {
  int slot = initiator_slot(r->initiator);
  while (slot < 0 || is_in_the_way(r, opcode, lba, blocks)) {
    if (reap(r) != 0) return 1;
    slot = initiator_slot(r->initiator);
  }
  if (opcode == BT_WRITE) {
    char* data = initiator_data(r->initiator, slot);
    for (uint32_t i = 0; i < blocks * BT_BLOCK; i++) data[i] = (char)draw(r, 256);
    memcpy(r->model + lba * BT_BLOCK, data, blocks * BT_BLOCK);
  } else if (opcode == BT_READ) {
    /* overwrites data of earlier commands, which must not be taken for the data read */
    memset(initiator_data(r->initiator, slot), 0xa5, blocks * BT_BLOCK);
  }
  r->flights[slot] = (struct flight){true, opcode, lba, blocks, number};
  r->count[opcode]++;
  const bool moves = opcode == BT_READ || opcode == BT_WRITE;
  const int status = initiator_submit(r->initiator, slot, opcode, moves ? r->what->first + lba : 0, blocks);
  return status == 0 ? 0 : complain(r, r->initiator->lost != NULL ? r->initiator->lost : strerror(-status));
}

static int drain(struct run* r) {
  for (uint32_t i = 0; i < r->initiator->depth; i++) {
    while (r->flights[i].busy) {
      if (reap(r) != 0) return 1;
    }
  }
  return 0;
}

/* Reads all blocks of the range, to fill the model or to compare it. */
static int sweep(struct run* r, bool into_model) {
  for (uint64_t lba = 0; lba < r->what->blocks; lba += BT_MAX_BLOCKS) {
    const uint64_t left = r->what->blocks - lba;
    const uint32_t blocks = left < BT_MAX_BLOCKS ? (uint32_t)left : BT_MAX_BLOCKS;
    enum bt_status status = BT_OK;
    int slot = initiator_slot(r->initiator);
    const int submitted = initiator_submit(r->initiator, slot, BT_READ, r->what->first + lba, blocks);
    slot = submitted == 0 ? initiator_wait(r->initiator, &status) : submitted;
    if (r->initiator->lost != NULL) return complain(r, r->initiator->lost);
    if (slot < 0) return complain(r, strerror(-slot));
    if (status != BT_OK) return complain(r, bt_status_text(status));
    const char* data = initiator_data(r->initiator, slot);
    if (into_model) {
      memcpy(r->model + lba * BT_BLOCK, data, (size_t)blocks * BT_BLOCK);
    } else if (compare(r, data, lba, blocks) != 0) {
      return 1;
    }
  }
  return 0;
}

static int go(struct run* r) {
  if (sweep(r, true) != 0) return 1;
  for (uint64_t number = 0; number < r->what->operations; number++) {
    const uint64_t dice = draw(r, 100);
    const enum bt_opcode opcode = dice < 48   ? BT_WRITE
                                  : dice < 96 ? BT_READ
                                  : dice < 98 ? BT_FLUSH
                                              : BT_IDENTIFY;
    const bool moves = opcode == BT_READ || opcode == BT_WRITE;
    const uint32_t blocks = moves ? 1 + (uint32_t)draw(r, r->what->max_blocks) : 0;
    const uint64_t lba = moves ? draw(r, r->what->blocks - blocks + 1) : 0;
    if (begin(r, opcode, lba, blocks, number) != 0) return 1;
  }
  return drain(r) != 0 ? 1 : sweep(r, false);
}

int exercise_run(struct initiator* initiator, const struct exercise* what) {
  struct run r = {.initiator = initiator, .what = what, .random = what->seed * 2 + 1};
  if (what->max_blocks == 0 || what->max_blocks > BT_MAX_BLOCKS || what->max_blocks > what->blocks)
    return complain(&r, "--max-blocks must be 1 to 256 and at most --blocks");
  printf("seed %" PRIu64 "\n", what->seed);
  fflush(stdout);
  r.model = malloc(what->blocks * BT_BLOCK);
  if (r.model == NULL) return complain(&r, strerror(ENOMEM));
  const int failed = go(&r);
  free(r.model);
  if (failed) return failed;
  printf("%" PRIu64 " writes, %" PRIu64 " reads, %" PRIu64 " flushes, %" PRIu64 " identifies, %" PRIu64
         " completed out of order; all data is correct\n",
         r.count[BT_WRITE], r.count[BT_READ], r.count[BT_FLUSH], r.count[BT_IDENTIFY], r.overtaken);
  return 0;
}
