#include "port/shm/shm_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/os/file_size_limit.hpp"
#include "base/os/memory_file.hpp"

namespace roci {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The kernel of the creating process may have added the seal against execution.
bool has_seals(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & ~kSealOfNotExecutable) == kSeals;
}

}  // namespace

Result<std::shared_ptr<ShmSegment>> ShmSegment::map(int fd) {
  void* const memory =
      mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) {
    const int code = errno;
    close(fd);
    return fail("the network's shared memory: " + std::to_string(sizeof(Layout) >> 20) +
                    " MiB of address space cannot be mapped: " + std::strerror(code) + " (ulimit -v)",
                code);
  }
  madvise(memory, sizeof(Layout), MADV_DONTDUMP);
  return std::shared_ptr<ShmSegment>(new ShmSegment(fd, static_cast<Layout*>(memory)));
}

Result<std::shared_ptr<ShmSegment>> ShmSegment::create() {
  const int fd = create_memory_file("rocinante", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return fail(std::string{"the network's shared memory: memfd_create: "} + std::strerror(errno), errno);
  const bool too_large = exceeds_file_size_limit(sizeof(Layout));
  if (too_large) errno = EFBIG;
  if (too_large || ftruncate(fd, sizeof(Layout)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    const int code = errno;
    close(fd);
    return fail("the network's shared memory: a memfd of " + std::to_string(sizeof(Layout) >> 20) +
                    " MiB cannot be created: " + std::strerror(code) + " (ulimit -f)",
                code);
  }
  auto segment = map(fd);
  if (segment) (*segment)->layout_->magic = kMagic;
  return segment;
}

Result<std::shared_ptr<ShmSegment>> ShmSegment::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail("the network's shared memory: '" + path + "': " + std::strerror(errno), errno);
  struct stat found {};
  if (fstat(fd, &found) != 0 || found.st_size != sizeof(Layout) || !has_seals(fd)) {
    close(fd);
    return fail("the network's shared memory: '" + path + "' is not a segment of this version of Rocinante",
                EPROTO);
  }
  auto segment = map(fd);
  if (segment && (*segment)->layout_->magic != kMagic)
    return fail("the network's shared memory: '" + path +
                    "' has another layout; programs of one network must use one version of Rocinante",
                EPROTO);
  return segment;
}

ShmSegment::~ShmSegment() {
  munmap(layout_, sizeof(Layout));
  close(fd_);
}

}  // namespace roci
