// What the server has of one client: its connection, its queue pair, and a buffer for each request that may be under way.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "protocol.hpp"
#include "roci/device.hpp"

namespace kv {

class Session {
 public:
  // Takes the descriptor in any case.
  static roci::Result<std::unique_ptr<Session>> open(int fd, roci::ProtectionDomain& pd,
                                                     roci::CompletionQueue& cq);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] roci::QueuePair& queue_pair() { return *queue_pair_; }
  [[nodiscard]] uint32_t number() const { return queue_pair_->qp_num(); }
  [[nodiscard]] std::chrono::steady_clock::time_point since() const { return since_; }

  // Takes what has come of the client's hello; true once it is whole. ECONNRESET when the client is gone.
  roci::Result<bool> hear_hello();
  [[nodiscard]] const ClientHello& hello() const { return hello_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  void set_greeted() { greeted_ = true; }

  // A receive is posted for each slot, and again once the answer from the same slot has left.
  roci::Status post_receive(uint32_t slot);
  [[nodiscard]] std::span<const char> request(uint32_t slot, uint32_t length) const;
  roci::Status send(uint32_t slot, const Answer& answer);

 private:
  struct Slot {
    std::array<char, kMaxRequest> request;
    Answer answer;
  };
  explicit Session(int fd) : fd_(fd), slots_(kCredits) {}
  [[nodiscard]] ibv_sge piece(const void* bytes, size_t length) const;

  int fd_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  ClientHello hello_{};
  size_t heard_ = 0;  // bytes of it
  bool greeted_ = false;
  std::vector<Slot> slots_;
  std::unique_ptr<roci::MemoryRegion> region_;
  std::unique_ptr<roci::QueuePair> queue_pair_;
};

// What the numbers of work requests say.
inline constexpr uint64_t kAnswerFlag = 1U << 16;

}  // namespace kv
