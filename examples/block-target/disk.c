#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol.h"

int disk_open(struct disk* disk, uint64_t blocks, const char* file) {
  const uint64_t size = blocks * BT_BLOCK;
  int fd = -1;
  if (file != NULL) {
    struct stat now;
    fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    /* posix_fallocate reports a full file system here instead of by SIGBUS on a later write. */
    int error = fstat(fd, &now) != 0 ? errno : 0;
    if (error == 0 && (uint64_t)now.st_size < size) error = posix_fallocate(fd, 0, (off_t)size);
    if (error != 0) {
      close(fd);
      return -error;
    }
  }
  void* bytes =
      mmap(NULL, size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
  const int error = bytes == MAP_FAILED ? errno : 0;
  if (fd >= 0) close(fd);
  if (error != 0) return -error;
  *disk = (struct disk){.bytes = bytes, .blocks = blocks, .is_file = fd >= 0};
  return 0;
}

void disk_close(struct disk* disk) {
  if (disk->bytes != NULL) munmap(disk->bytes, disk->blocks * BT_BLOCK);
  disk->bytes = NULL;
}

int disk_flush(struct disk* disk) {
  if (!disk->is_file) return 0;
  return msync(disk->bytes, disk->blocks * BT_BLOCK, MS_SYNC) == 0 ? 0 : -errno;
}

bool disk_has(const struct disk* disk, uint64_t lba, uint64_t blocks) {
  return blocks <= disk->blocks && lba <= disk->blocks - blocks; /* the sum lba + blocks could overflow */
}

char* disk_block(struct disk* disk, uint64_t lba) { return disk->bytes + lba * BT_BLOCK; }
