/* Random commands at full queue depth, every byte checked against a copy in memory. */
#ifndef BLOCK_TARGET_EXERCISE_H
#define BLOCK_TARGET_EXERCISE_H

#include "initiator.h"

struct exercise {
  uint64_t seed;
  uint64_t operations;
  uint64_t first;      /* of the blocks that it may use, and */
  uint64_t blocks;     /* how many these are; nobody else may write to them */
  uint64_t max_blocks; /* of one command */
};

/* 0, or 1 after a sentence on standard error. */
int exercise_run(struct initiator* initiator, const struct exercise* exercise);

#endif
