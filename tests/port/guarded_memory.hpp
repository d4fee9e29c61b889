// Memory between two inaccessible pages: an access before or after it terminates the test program.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <stdexcept>

namespace roci::test {

class GuardedMemory {
 public:
  // `bytes`: a multiple of the page size.
  explicit GuardedMemory(size_t bytes) : bytes_(bytes) {
    void* const at = mmap(nullptr, bytes + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("guarded memory: cannot be mapped");
    data_ = static_cast<std::byte*>(at) + kGuard;
    if (mprotect(data_, bytes, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("guarded memory: cannot be made accessible");
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(data_ - kGuard, bytes_ + 2 * kGuard); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return bytes_; }
  // Whether [at, at + length) is inside.
  [[nodiscard]] bool contains(const void* at, size_t length) const {
    const auto* const first = static_cast<const std::byte*>(at);
    return first >= data_ && first <= data_ + bytes_ && length <= static_cast<size_t>(data_ + bytes_ - first);
  }

 private:
  static constexpr size_t kGuard = 64 * 1024;
  const size_t bytes_;
  std::byte* data_;
};

}  // namespace roci::test
