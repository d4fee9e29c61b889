/* The target: sessions of initiators that share one disk. Used by one thread. */
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
  struct session** sessions; /* array of `most_sessions` */
  long long accepts_from;    /* ms, after an error of the listener */
  int accept_failed;
};

/* Number of completion queue entries for all sessions. */
int target_completions(uint32_t most_sessions);
/* Runs until *stop is set. Returns 0, or -errno if the device or the listening socket fails. */
int target_run(struct target* target, const volatile sig_atomic_t* stop);
void target_close(struct target* target);

#endif
