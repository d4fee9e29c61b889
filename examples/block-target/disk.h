/* The disk that the target exports: anonymous memory, or a mapped file. */
#ifndef BLOCK_TARGET_DISK_H
#define BLOCK_TARGET_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct disk {
  char* bytes;
  uint64_t blocks;
  bool is_file;
};

/* Without a file, all blocks are 0. A file is extended to the size of the disk; its contents are kept. Returns 0 or
 * -errno. */
int disk_open(struct disk* disk, uint64_t blocks, const char* file);
void disk_close(struct disk* disk);
/* Writes all changes to the file. Returns 0 or -errno. */
int disk_flush(struct disk* disk);
/* Whether the disk has all of these blocks. */
bool disk_has(const struct disk* disk, uint64_t lba, uint64_t blocks);
/* The first byte of a valid block. */
char* disk_block(struct disk* disk, uint64_t lba);

#endif
