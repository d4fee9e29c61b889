// Crash notification: frames for the peers of a process that is killed or calls _exit(). They are in a file that is locked while
// the process lives. After its exit the switch at the other end of its port sends them (apps/roci-switch/last_words_speaker.hpp); in a
// network without a switch each peer reads its own (net/peer_watch.hpp).
//
// The file is a row of slots: the length of a frame, 32 bits of this machine's order, 0 when there is none; and the frame.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/file_lock.hpp"
#include "base/result.hpp"

namespace roci {

struct LastWordsSlot {
  static constexpr size_t kMostBytes = 380;  // a management datagram over IPv6 with a VLAN tag has 350
  uint32_t length = 0;
  std::array<uint8_t, kMostBytes> frame{};
};

// Of the process itself. Any thread, one at a time.
class LastWords {
 public:
  using Slot = uint32_t;
  static constexpr Slot kNone = ~Slot{0};
  static constexpr Slot kMost = 65536;

  // Makes the file `name` in `folder`, and the folder when it is not there.
  static Result<std::unique_ptr<LastWords>> open(const std::filesystem::path& folder,
                                                 const std::string& name);
  // The file stays, without its lock.
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  // Keeps a frame, in the place of what `slot` has unless that is kNone. The slot that has it then; kNone when the frame is too
  // long, when there are kMost or the file system has no room for more.
  Slot keep(Slot slot, std::span<const uint8_t> frame);
  void forget(Slot slot);

 private:
  LastWords(ProcessLock lock, LastWordsSlot* slots) : lock_(std::move(lock)), slots_(slots) {}
  bool grow();

  ProcessLock lock_;
  LastWordsSlot* slots_;  // kMost of them, of which the file has `size_`
  Slot size_ = 0;
  std::vector<Slot> free_;
};

// What a process that is gone has left. One thread.
class LeftWords {
 public:
  // Nothing as long as the process lives, or when somebody else has taken them.
  static Result<std::optional<LeftWords>> take(const std::filesystem::path& file);
  // The same for one of several that read it, and know that the process is gone. Nothing when there is no such file.
  static std::optional<LeftWords> read(const std::filesystem::path& file);

  // The next one, valid until the next call; empty when there is none any more. What is no frame is passed over.
  std::span<const uint8_t> next();

 private:
  LeftWords(std::optional<ProcessLock> lock, int fd) : lock_(std::move(lock)), file_(fd) {}

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

  std::optional<ProcessLock> lock_;
  File file_;  // when it is read without the lock
  std::vector<LastWordsSlot> read_;
  size_t at_ = 0;
  uint64_t slot_ = 0;  // that comes after `read_`
};

}  // namespace roci
