#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/tcp.h"

enum {
  BATCH = 32,
  IDLE_ROUNDS = 1000,   /* before it sleeps or checks the sockets */
  BUSY_ROUNDS = 64,     /* between two checks of the sockets */
  LONGEST_SLEEP = 200,  /* ms */
  HELLO_TIMEOUT = 5000, /* ms */
  REFUSAL_MS = 1000,
};

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Per session and credit: a command and two sends. Doubled for devices that keep the completions of a destroyed queue
 * pair until they are polled; Rocinante removes them. */
int target_completions(uint32_t most_sessions) { return (int)(most_sessions * BT_MAX_DEPTH * 3 * 2); }

static struct session* session_of(struct target* t, uint32_t number) {
  for (uint32_t i = 0; i < t->count; i++) {
    if (t->sessions[i]->number == number) return t->sessions[i];
  }
  return NULL;
}

/* Returns the number of completions, or -errno. */
static int serve(struct target* t) {
  struct ibv_wc completions[BATCH];
  const int count = bt_poll(t->endpoint, BATCH, completions);
  for (int i = 0; i < count; i++) {
    struct session* s = session_of(t, completions[i].qp_num);
    if (s != NULL) session_complete(s, &completions[i]);
  }
  return count;
}

static void refuse(int fd, int error) {
  const struct bt_hello hello = {.magic = BT_MAGIC, .refused = (uint32_t)error};
  if (tcp_send(fd, &hello, sizeof hello, REFUSAL_MS) != 0)
    fprintf(stderr, "an initiator disconnected before its rejection was sent\n");
}

/* Existing initiators are served meanwhile. The first of several errors is printed. */
static int pause_accepting(struct target* t, int status) {
  if (tcp_accept_is_over(status)) return status;
  if (!t->accept_failed) fprintf(stderr, "cannot accept initiators: %s; trying again\n", strerror(-status));
  t->accept_failed = 1;
  t->accepts_from = now_ms() + ACCEPT_PAUSE_MS;
  return 0;
}

static int accept_initiators(struct target* t) {
  if (now_ms() < t->accepts_from) return 0;
  for (;;) {
    const int fd = tcp_accept(t->listener);
    if (fd == -EAGAIN) return 0;
    if (fd < 0) return pause_accepting(t, fd);
    t->accept_failed = 0;
    if (t->count == t->most_sessions) {
      refuse(fd, EUSERS);
      close(fd);
      continue;
    }
    const int status = session_open(&t->sessions[t->count], fd, t->endpoint, t->disk);
    if (status != 0) {
      fprintf(stderr, "cannot accept an initiator: error %d\n", -status);
    } else {
      t->sessions[t->count++]->since = now_ms();
    }
  }
}

/* Reads a session's TCP connection: the hello, afterwards only its close. */
static void read_hello(struct target* t, struct session* s) {
  if (s->greeted) {
    if (tcp_is_closed(s->fd)) s->ended = "it disconnected";
    return;
  }
  const int got =
      tcp_receive_some(s->fd, (char*)&s->hello + s->hello_bytes, sizeof s->hello - s->hello_bytes);
  if (got < 0) {
    s->ended = "it disconnected before its hello message";
    return;
  }
  s->hello_bytes += (size_t)got;
  if (s->hello_bytes == sizeof s->hello) {
    const int status = session_greet(s, t->endpoint, t->depth);
    if (status != 0) {
      refuse(s->fd, -status);
      s->ended = "connection failed";
    }
  } else if (now_ms() - s->since > HELLO_TIMEOUT) {
    s->ended = "no hello message";
  }
}

static void bury(struct target* t) {
  for (uint32_t i = 0; i < t->count;) {
    struct session* s = t->sessions[i];
    if (s->ended == NULL) {
      i++;
      continue;
    }
    printf("initiator %u: %s\n", s->number, s->ended);
    fflush(stdout);
    session_close(s);
    t->sessions[i] = t->sessions[--t->count];
  }
}

/* With events: requests one, polls once more, and sleeps until an event or TCP activity. */
static int wait_for_work(struct target* t) {
  if (t->endpoint->channel == NULL) {
    sched_yield();
    return 0;
  }
  int status = bt_arm(t->endpoint);
  if (status != 0) return status;
  status = serve(t);
  if (status != 0) return status < 0 ? status : 0;
  struct pollfd* descriptors = calloc(t->count + 2, sizeof *descriptors);
  if (descriptors == NULL) return -ENOMEM;
  descriptors[0] = (struct pollfd){.fd = t->endpoint->channel->fd, .events = POLLIN};
  const bool accepts = now_ms() >= t->accepts_from;
  /* poll() ignores negative descriptors. */
  descriptors[1] = (struct pollfd){.fd = accepts ? t->listener : -1, .events = POLLIN};
  for (uint32_t i = 0; i < t->count; i++)
    descriptors[i + 2] = (struct pollfd){.fd = t->sessions[i]->fd, .events = POLLIN};
  status = poll(descriptors, t->count + 2, accepts ? LONGEST_SLEEP : ACCEPT_PAUSE_MS);
  status = status < 0 && errno != EINTR ? -errno : 0;
  free(descriptors);
  bt_disarm(t->endpoint);
  return status;
}

int target_run(struct target* t, const volatile sig_atomic_t* stop) {
  int idle = 0, busy = 0;
  while (!*stop) {
    const int served = serve(t);
    if (served < 0) return served;
    bury(t);
    if (served > 0) {
      idle = 0;
      if (++busy % BUSY_ROUNDS != 0) continue;
    } else if (++idle < IDLE_ROUNDS) {
      continue;
    } else {
      idle = 0;
      const int status = wait_for_work(t);
      if (status != 0) return status;
    }
    const int status = accept_initiators(t);
    if (status != 0) return status;
    for (uint32_t i = 0; i < t->count; i++) {
      if (t->sessions[i]->ended == NULL) read_hello(t, t->sessions[i]);
    }
  }
  return 0;
}

void target_close(struct target* t) {
  for (uint32_t i = 0; i < t->count; i++) session_close(t->sessions[i]);
  free(t->sessions);
  if (t->listener >= 0) close(t->listener);
}
