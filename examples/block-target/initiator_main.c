/* block-initiator [options] HOST identify | read LBA BLOCKS | write LBA | flush | exercise
 *
 * read writes to the standard output; write reads whole blocks from the standard input up to its end. exercise sends
 * random commands and checks every byte. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "exercise.h"

static const char* const usage =
    "usage: block-initiator [--device NAME] [--gid-index N] [--timeout T] [--port P] [--depth N] [--events]\n"
    "                       [--seed S] [--operations N] [--first LBA] [--blocks N] [--max-blocks N]\n"
    "                       HOST identify | read LBA BLOCKS | write LBA | flush | exercise\n";

static int complain(const char* what) {
  fprintf(stderr, "block-initiator: %s\n", what);
  return 1;
}

/* Executes one command. Returns the slot whose buffer it used, or -1 after printing an error. */
static int carry_out(struct initiator* i, enum bt_opcode opcode, uint64_t lba, uint32_t blocks) {
  enum bt_status status = BT_OK;
  int slot = initiator_submit(i, 0, opcode, lba, blocks);
  if (slot == 0) slot = initiator_wait(i, &status);
  if (slot < 0) {
    complain(i->lost != NULL ? i->lost : strerror(-slot));
    return -1;
  }
  if (status == BT_OK) return slot;
  complain(bt_status_text(status));
  return -1;
}

static int identify(struct initiator* i) {
  struct bt_identity identity;
  const int slot = carry_out(i, BT_IDENTIFY, 0, 0);
  if (slot < 0) return 1;
  memcpy(&identity, initiator_data(i, slot), sizeof identity);
  printf("%" PRIu64 " blocks of %u bytes, at most %u per command, %u outstanding commands, %s\n",
         identity.blocks, identity.block_size, identity.max_blocks, identity.depth,
         identity.is_file ? "in a file" : "in memory");
  return 0;
}

static int read_blocks(struct initiator* i, uint64_t lba, uint64_t blocks) {
  while (blocks > 0) {
    const uint32_t now = blocks < BT_MAX_BLOCKS ? (uint32_t)blocks : BT_MAX_BLOCKS;
    const int slot = carry_out(i, BT_READ, lba, now);
    if (slot < 0) return 1;
    if (fwrite(initiator_data(i, slot), BT_BLOCK, now, stdout) != now) return complain(strerror(errno));
    lba += now;
    blocks -= now;
  }
  return fflush(stdout) == 0 ? 0 : complain(strerror(errno));
}

static int write_blocks(struct initiator* i, uint64_t lba) {
  for (;;) {
    const size_t bytes = fread(initiator_data(i, 0), 1, BT_MAX_BLOCKS * BT_BLOCK, stdin);
    if (ferror(stdin)) return complain(strerror(errno));
    if (bytes % BT_BLOCK != 0) return complain("the size of standard input is not a multiple of 512 bytes");
    if (bytes == 0) return 0;
    if (carry_out(i, BT_WRITE, lba, (uint32_t)(bytes / BT_BLOCK)) < 0) return 1;
    lba += bytes / BT_BLOCK;
  }
}

static int run(struct initiator* i, const struct exercise* exercise, int count, char** words) {
  uint64_t lba = 0, blocks = 0;
  if (count == 1 && strcmp(words[0], "identify") == 0) return identify(i);
  if (count == 1 && strcmp(words[0], "exercise") == 0) return exercise_run(i, exercise);
  if (count == 1 && strcmp(words[0], "flush") == 0) return carry_out(i, BT_FLUSH, 0, 0) < 0;
  if (count == 2 && strcmp(words[0], "write") == 0 && to_number(words[1], UINT64_MAX, &lba))
    return write_blocks(i, lba);
  if (count == 3 && strcmp(words[0], "read") == 0 && to_number(words[1], UINT64_MAX, &lba) &&
      to_number(words[2], UINT64_MAX, &blocks))
    return read_blocks(i, lba, blocks);
  fputs(usage, stderr);
  return 2;
}

int main(int count, char** words) {
  const char *device = NULL, *port = "4421";
  uint64_t gid_index = 1, timeout = 15, depth = 16;
  bool events = false;
  struct exercise exercise = {.seed = 1, .operations = 1000, .first = 0, .blocks = 1024, .max_blocks = 16};
  const struct option_value options[] = {
      {"--device", &device, NULL, NULL, 0},
      {"--gid-index", NULL, &gid_index, NULL, 255},
      {"--timeout", NULL, &timeout, NULL, 31},
      {"--port", &port, NULL, NULL, 0},
      {"--depth", NULL, &depth, NULL, BT_MAX_DEPTH},
      {"--events", NULL, NULL, &events, 0},
      {"--seed", NULL, &exercise.seed, NULL, UINT64_MAX},
      {"--operations", NULL, &exercise.operations, NULL, UINT64_MAX},
      {"--first", NULL, &exercise.first, NULL, UINT64_MAX},
      {"--blocks", NULL, &exercise.blocks, NULL, 1U << 24},
      {"--max-blocks", NULL, &exercise.max_blocks, NULL, BT_MAX_BLOCKS},
  };
  const int rest = take_options("block-initiator", count, words, options, sizeof options / sizeof options[0]);
  if (rest < 0 || count - rest < 2 || depth == 0) {
    fputs(usage, stderr);
    return 2;
  }
  struct initiator initiator;
  const struct bt_endpoint_options how = {device, (int)gid_index, (int)timeout, events};
  const int status = initiator_open(&initiator, &how, words[rest], port, (uint32_t)depth);
  if (status != 0) {
    fprintf(stderr, "block-initiator: no connection to %s port %s: %s\n", words[rest], port,
            strerror(-status));
    return 1;
  }
  const int failed = run(&initiator, &exercise, count - rest - 1, words + rest + 1);
  initiator_close(&initiator);
  return failed;
}
