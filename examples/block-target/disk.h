/* The disk behind the target: memory, which may be that of a file. */
#ifndef BLOCK_TARGET_DISK_H
#define BLOCK_TARGET_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct disk {
  char* bytes;
  uint64_t blocks;
  bool is_file;
};

/* Without a file its blocks are 0. A file is made as long as needed and keeps what it has. 0 or an errno with a minus. */
int disk_open(struct disk* disk, uint64_t blocks, const char* file);
void disk_close(struct disk* disk);
/* What was written is in the file. 0 or an errno with a minus. */
int disk_flush(struct disk* disk);
/* Whether all of these blocks are there. */
bool disk_has(const struct disk* disk, uint64_t lba, uint64_t blocks);
/* The first byte of a block that is there. */
char* disk_block(struct disk* disk, uint64_t lba);

#endif
