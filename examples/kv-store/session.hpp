// The server's state of one client: its TCP connection, its queue pair, and a buffer per outstanding request.
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
  // Takes ownership of the descriptor, also on failure.
  static roci::Result<std::unique_ptr<Session>> open(int fd, roci::ProtectionDomain& pd,
                                                     roci::CompletionQueue& cq);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] roci::QueuePair& queue_pair() { return *queue_pair_; }
  [[nodiscard]] uint32_t number() const { return queue_pair_->qp_num(); }
  [[nodiscard]] std::chrono::steady_clock::time_point since() const { return since_; }

  // Receives available bytes of the client's hello. Returns true when it is complete. ECONNRESET if the client has
  // closed the connection.
  roci::Result<bool> receive_hello();
  [[nodiscard]] const ClientHello& hello() const { return hello_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  void set_greeted() { greeted_ = true; }

  // Posts the receive of a slot: initially, and again after the slot's answer was sent.
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
  size_t hello_bytes_ = 0;  // received bytes of hello_
  bool greeted_ = false;
  std::vector<Slot> slots_;
  std::unique_ptr<roci::MemoryRegion> region_;
  std::unique_ptr<roci::QueuePair> queue_pair_;
};

// In a work request id: marks answers; the other bits are the slot.
inline constexpr uint64_t kAnswerFlag = 1U << 16;

}  // namespace kv
