#include "port/crash_notice.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/os/file_size_limit.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

static_assert(sizeof(CrashNoticeSlot) == 384 && std::is_trivially_copyable_v<CrashNoticeSlot>);

constexpr CrashNoticeFile::Slot kGrowth = 1024;
constexpr size_t kReadAtOnce = 128;
static_assert(CrashNoticeFile::kMax % kReadAtOnce == 0);
constexpr size_t kMapped = CrashNoticeFile::kMax * sizeof(CrashNoticeSlot);

// The process may die between any two stores: a reader must find a complete frame or none.
void set_length(CrashNoticeSlot& slot, uint32_t length) {
  std::atomic_ref(slot.length).store(length, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

Result<std::unique_ptr<CrashNoticeFile>> CrashNoticeFile::open(const std::filesystem::path& folder,
                                                               const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail("'" + folder.string() + "' cannot be created: " + error.message(), error.value());
  // The file is locked before it gets its name: an unlocked file under its name means that the process has exited.
  const std::filesystem::path file = folder / name, draft = folder / ("." + name);
  auto lock = ProcessLock::take(draft);
  if (!lock) return fail(lock.error());
  if (!*lock) return fail("'" + draft.string() + "' is in use by another process", EBUSY);
  if (ftruncate((*lock)->fd(), 0) != 0 || std::rename(draft.c_str(), file.c_str()) != 0)
    return fail("'" + file.string() + "' cannot be created: " + std::strerror(errno), errno);
  void* const mapped = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, (*lock)->fd(), 0);
  if (mapped == MAP_FAILED)
    return fail("'" + file.string() + "' cannot be mapped: " + std::strerror(errno), errno);
  return std::unique_ptr<CrashNoticeFile>{
      new CrashNoticeFile{std::move(**lock), static_cast<CrashNoticeSlot*>(mapped)}};
}

CrashNoticeFile::~CrashNoticeFile() { munmap(slots_, kMapped); }

// Allocates the file's blocks: a store into a page that the file system cannot allocate would raise SIGBUS.
bool CrashNoticeFile::grow() {
  if (size_ == kMax) return false;
  const auto offset = static_cast<off_t>(size_ * sizeof(CrashNoticeSlot));
  if (exceeds_file_size_limit((size_ + kGrowth) * sizeof(CrashNoticeSlot))) return false;
  if (posix_fallocate(lock_.fd(), offset, kGrowth * sizeof(CrashNoticeSlot)) != 0) return false;
  free_.reserve(size_ + kGrowth);
  for (Slot slot = size_ + kGrowth; slot > size_; --slot) free_.push_back(slot - 1);
  size_ += kGrowth;
  return true;
}

CrashNoticeFile::Slot CrashNoticeFile::store(Slot slot, std::span<const uint8_t> frame) {
  if (frame.empty() || frame.size() > CrashNoticeSlot::kMaxBytes) {
    remove(slot);
    return kNone;
  }
  if (slot == kNone) {
    if (free_.empty() && !grow()) return kNone;
    slot = free_.back();
    free_.pop_back();
  }
  CrashNoticeSlot& kept = slots_[slot];
  set_length(kept, 0);
  std::copy(frame.begin(), frame.end(), kept.frame.begin());
  set_length(kept, static_cast<uint32_t>(frame.size()));
  return slot;
}

void CrashNoticeFile::remove(Slot slot) {
  if (slot == kNone) return;
  set_length(slots_[slot], 0);
  free_.push_back(slot);
}

Result<std::optional<CrashNoticeReader>> CrashNoticeReader::take(const std::filesystem::path& file) {
  auto lock = ProcessLock::take(file);
  if (!lock) return fail(lock.error());
  if (!*lock) return std::nullopt;
  return std::optional{CrashNoticeReader{std::move(*lock), -1}};
}

std::optional<CrashNoticeReader> CrashNoticeReader::read(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  return CrashNoticeReader{std::nullopt, fd};
}

CrashNoticeReader::File::~File() {
  if (fd_ >= 0) close(fd_);
}

void CrashNoticeReader::remove(const std::filesystem::path& file) const {
  struct stat own {};
  struct stat named {};
  if (fstat(fd(), &own) != 0 || lstat(file.c_str(), &named) != 0) return;
  if (own.st_dev == named.st_dev && own.st_ino == named.st_ino) unlink(file.c_str());
}

std::span<const uint8_t> CrashNoticeReader::next() {
  for (;;) {
    for (; at_ < read_.size(); ++at_) {
      const CrashNoticeSlot& one = read_[at_];
      if (one.length < sizeof(EthernetHeader) || one.length > CrashNoticeSlot::kMaxBytes) continue;
      ++at_;
      return std::span(one.frame).first(one.length);
    }
    read_.resize(slot_ < CrashNoticeFile::kMax ? kReadAtOnce : 0);
    at_ = 0;
    if (read_.empty()) return {};
    const ssize_t bytes = pread(fd(), read_.data(), kReadAtOnce * sizeof(CrashNoticeSlot),
                                static_cast<off_t>(slot_ * sizeof(CrashNoticeSlot)));
    read_.resize(bytes > 0 ? static_cast<size_t>(bytes) / sizeof(CrashNoticeSlot) : 0);
    if (read_.empty()) return {};
    slot_ += read_.size();
  }
}

}  // namespace roci
