/* block-target [--file F] [--blocks N] …: exports a disk until SIGINT or SIGTERM. */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/tcp.h"
#include "arguments.h"
#include "target.h"

static const char* const usage =
    "usage: block-target [--device NAME] [--gid-index N] [--timeout T] [--bind ADDRESS] [--port P] [--blocks "
    "N] [--file F]\n"
    "                    [--depth N] [--initiators N] [--events]\n";

static volatile sig_atomic_t stop;
static void on_signal(int signal) {
  (void)signal;
  stop = 1;
}

static int complain(const char* what, int status) {
  fprintf(stderr, "block-target: %s: %s\n", what, strerror(-status));
  return 1;
}

static int serve(struct target* target, const char* address, const char* port) {
  target->listener = tcp_listen(address, port);
  if (target->listener < 0) return complain("cannot listen", target->listener);
  printf("serving %" PRIu64 " blocks on %s port %s\n", target->disk->blocks, address, port);
  fflush(stdout);
  const int status = target_run(target, &stop);
  return status == 0 ? 0 : complain("serving failed", status);
}

int main(int count, char** words) {
  const char *device = NULL, *address = "127.0.0.1", *port = "4421", *file = NULL;
  uint64_t gid_index = 1, timeout = 15, blocks = 65536, depth = 32, initiators = 16;
  bool events = false;
  const struct option_value options[] = {
      {"--device", &device, NULL, NULL, 0},
      {"--gid-index", NULL, &gid_index, NULL, 255},
      {"--timeout", NULL, &timeout, NULL, 31},
      {"--bind", &address, NULL, NULL, 0},
      {"--port", &port, NULL, NULL, 0},
      {"--blocks", NULL, &blocks, NULL, 1U << 30},
      {"--file", &file, NULL, NULL, 0},
      {"--depth", NULL, &depth, NULL, BT_MAX_DEPTH},
      {"--initiators", NULL, &initiators, NULL, 256},
      {"--events", NULL, NULL, &events, 0},
  };
  const int rest = take_options("block-target", count, words, options, sizeof options / sizeof options[0]);
  if (rest != count || blocks == 0 || depth == 0 || initiators == 0) {
    fputs(usage, stderr);
    return 2;
  }
  const struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);

  struct disk disk;
  int status = disk_open(&disk, blocks, file);
  if (status != 0) return complain(file != NULL ? file : "no memory for the disk", status);
  struct bt_endpoint endpoint;
  const struct bt_endpoint_options how = {device, (int)gid_index, (int)timeout, events};
  status = bt_open(&endpoint, &how, target_completions((uint32_t)initiators));
  if (status != 0) {
    disk_close(&disk);
    return complain("no device", status);
  }
  struct target target = {&endpoint, &disk, -1, (uint32_t)depth, (uint32_t)initiators, 0, NULL, 0, 0};
  target.sessions = calloc(initiators, sizeof *target.sessions);
  status = target.sessions == NULL ? complain("no memory", -ENOMEM) : serve(&target, address, port);
  target_close(&target);
  bt_close(&endpoint);
  const int flushed = disk_flush(&disk);
  if (flushed != 0) status = complain("the last flush failed", flushed);
  disk_close(&disk);
  return status;
}
