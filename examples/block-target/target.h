/* The target: sessions of initiators on one disk. One thread. */
#ifndef BLOCK_TARGET_TARGET_H
#define BLOCK_TARGET_TARGET_H

#include <signal.h>

#include "session.h"

struct target {
  struct bt_endpoint* endpoint;
  struct disk* disk;
  int listener;
  uint32_t depth;
  uint32_t most_sessions;
  uint32_t count;
  struct session** sessions; /* `most_sessions` places */
};

/* Completions that the queue must hold for all of them. */
int target_completions(uint32_t most_sessions);
/* Until *stop. 0, or an errno with a minus when the device or the socket fails. */
int target_run(struct target* target, const volatile sig_atomic_t* stop);
void target_close(struct target* target);

#endif
