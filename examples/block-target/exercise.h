/* Random commands at full queue depth. Every byte is compared with a copy in memory. */
#ifndef BLOCK_TARGET_EXERCISE_H
#define BLOCK_TARGET_EXERCISE_H

#include "initiator.h"

struct exercise {
  uint64_t seed;
  uint64_t operations;
  uint64_t first;      /* first block of the range used */
  uint64_t blocks;     /* blocks in the range; no other process may write to them */
  uint64_t max_blocks; /* maximum per command */
};

/* Returns 0, or 1 after printing an error. */
int exercise_run(struct initiator* initiator, const struct exercise* exercise);

#endif
