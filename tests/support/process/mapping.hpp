// Memory mapping that a test can unmap or protect while it is registered.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace roci::test {

inline constexpr size_t kPage = 4096;

class Mapping {
 public:
  enum class Of : uint8_t { kNothing, kFile };
  // Readable, writable, zeroed.
  explicit Mapping(size_t pages, Of of = Of::kNothing) : bytes_(pages * kPage) {
    if (of == Of::kFile) {
      file_ = memfd_create("mapping", 0);
      if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0)
        throw std::runtime_error("no file in memory");
    }
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          file_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no memory to map");
    data_ = static_cast<uint8_t*>(at);
  }
  ~Mapping() {
    munmap(data_, bytes_);
    if (file_ >= 0) close(file_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size() const { return bytes_; }
  [[nodiscard]] uint64_t address(size_t offset = 0) const {
    return reinterpret_cast<uint64_t>(data_) + offset;
  }

  // Unmaps page `first` and all pages after it.
  void unmap(size_t first) { check(munmap(data_ + first * kPage, bytes_ - first * kPage)); }
  void protect(size_t first, int rights) {
    check(mprotect(data_ + first * kPage, bytes_ - first * kPage, rights));
  }
  void cut_file(size_t first) { check(ftruncate(file_, static_cast<off_t>(first * kPage))); }

 private:
  static void check(int result) {
    if (result != 0) throw std::runtime_error("memory could not be taken away");
  }

  size_t bytes_;
  uint8_t* data_ = nullptr;
  int file_ = -1;
};

}  // namespace roci::test
