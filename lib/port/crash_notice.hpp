// Crash notification: frames for the peers of a process that is killed or calls _exit(). The process keeps
// them in a file, which is locked while the process runs. After the process has exited, the switch at the
// other end of its port sends the frames (apps/roci-switch/crash_notice_sender.hpp). In a network without a
// switch each peer reads its own (net/peer_watch.hpp).
//
// The file is an array of slots: the length of the frame (32 bits, host byte order, 0: empty), then the frame.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/os/file_lock.hpp"
#include "base/result.hpp"

namespace roci {

struct CrashNoticeSlot {
  static constexpr size_t kMaxBytes = 380;  // a management datagram over IPv6 with a VLAN tag has 350
  uint32_t length = 0;
  std::array<uint8_t, kMaxBytes> frame{};
};

// Writer of the file, in the process itself. Any thread, one at a time.
class CrashNoticeFile {
 public:
  using Slot = uint32_t;
  static constexpr Slot kNone = ~Slot{0};
  static constexpr Slot kMax = 65536;

  // Creates the file `name` in `folder`, and the folder if it does not exist.
  static Result<std::unique_ptr<CrashNoticeFile>> open(const std::filesystem::path& folder,
                                                       const std::string& name);
  // Keeps the file and releases its lock.
  ~CrashNoticeFile();
  CrashNoticeFile(const CrashNoticeFile&) = delete;
  CrashNoticeFile& operator=(const CrashNoticeFile&) = delete;

  // Stores a frame, in place of the frame of `slot` unless that is kNone, and returns the
  // frame's slot. Returns kNone if the frame is empty or too long (`slot` is then freed),
  // if kMax frames are stored, or if the file system is full.
  Slot store(Slot slot, std::span<const uint8_t> frame);
  void remove(Slot slot);

 private:
  CrashNoticeFile(ProcessLock lock, CrashNoticeSlot* slots) : lock_(std::move(lock)), slots_(slots) {}
  bool grow();

  ProcessLock lock_;
  CrashNoticeSlot* slots_;  // kMax are mapped, the file has `size_`
  Slot size_ = 0;
  std::vector<Slot> free_;
};

// Reader of the frames of a process that has exited. One thread.
class CrashNoticeReader {
 public:
  // Locks the file. No value while the process runs or another process has locked the file.
  static Result<std::optional<CrashNoticeReader>> take(const std::filesystem::path& file);
  // Opens the file without a lock, for one of several readers that know that
  // the process has exited. No value if the file does not exist.
  static std::optional<CrashNoticeReader> read(const std::filesystem::path& file);

  // Returns the next frame, valid until the next call; empty at the end. Invalid lengths are skipped. The file ends
  // after CrashNoticeFile::kMax slots: any process of the network can make it longer.
  std::span<const uint8_t> next();

  // Removes the file, unless another file has replaced it: that of a successor with the same slot and process id.
  void remove(const std::filesystem::path& file) const;

 private:
  CrashNoticeReader(std::optional<ProcessLock> lock, int fd) : lock_(std::move(lock)), file_(fd) {}

  class File {
   public:
    explicit File(int fd) : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&&) = delete;
    ~File();
    [[nodiscard]] int fd() const { return fd_; }

   private:
    int fd_;
  };

  [[nodiscard]] int fd() const { return lock_ ? lock_->fd() : file_.fd(); }

  std::optional<ProcessLock> lock_;
  File file_;  // if opened without the lock
  std::vector<CrashNoticeSlot> read_;
  size_t at_ = 0;
  uint64_t slot_ = 0;  // the slot after `read_`
};

}  // namespace roci
