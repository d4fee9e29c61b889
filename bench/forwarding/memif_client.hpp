// A memif client without per-frame work. The frames that it sends are prepared in its buffers and sent repeatedly by
// advancing the ring's head. Of received frames it reads at most the length. So the measured cost is that of the device
// at the other side.
//
// Used by one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "forwarding/memif_protocol.hpp"

namespace roci::bench {

class MemifClient {
 public:
  static constexpr uint8_t kLog2Size = 10;
  static constexpr uint16_t kSize = 1 << kLog2Size;
  // Not a power of two, so that the starts of frames are distributed over the sets of the caches.
  static constexpr uint32_t kBufferBytes = 2048 + 64;

  // The number of rings from the switch must equal the number of queues on which it sends.
  static Result<std::unique_ptr<MemifClient>> create(unsigned switch_queues = 1);
  MemifClient(const MemifClient&) = delete;
  MemifClient& operator=(const MemifClient&) = delete;
  ~MemifClient();

  // Connects to the server at a path, or at an abstract socket name that starts with @. Retries until `deadline`.
  Status connect(const std::string& path, std::chrono::steady_clock::time_point deadline);
  // Whether the connection is open.
  [[nodiscard]] bool connected() const;

  // Sets the frame of a buffer. The server must have received all offered frames.
  void prepare(uint16_t buffer, std::span<const uint8_t> frame);
  // Offers the frames of the next `most` buffers, if the ring has space. Returns their number, or 0.
  uint16_t send(uint16_t most) {
    const uint16_t head = to_server_->head;
    const auto space = static_cast<uint16_t>(kSize - static_cast<uint16_t>(head - taken()));
    if (space < most) return 0;
    publish(to_server_->head, static_cast<uint16_t>(head + most));
    return most;
  }
  [[nodiscard]] uint16_t waiting() const { return static_cast<uint16_t>(to_server_->head - taken()); }

  // Returns the number of frames received since the last call, for rings with at least `least` frames, and returns
  // their buffers to the server.
  uint16_t receive(uint16_t least) {
    uint16_t sum = 0;
    for (FromServer& way : from_server_) {
      const uint16_t count = arrived(way);
      if (count < least) continue;
      give_back(way, count);
      sum = static_cast<uint16_t>(sum + count);
    }
    return sum;
  }
  // The same for all frames, with a call of `look` for each.
  uint16_t receive(const std::function<void(std::span<const uint8_t>)>& look);

  // The server's side, for a device that receives all frames and sends frames of `length` bytes without accessing their
  // contents. Both return a number of frames.
  uint16_t take_all();
  uint16_t answer(uint16_t count, uint32_t length);

 private:
  struct FromServer {
    MemifRing* ring;
    int event;
    uint16_t received = 0;  // running count, like a head
  };

  MemifClient() = default;
  Status make_memory(unsigned switch_queues);
  Result<bool> handshake(const std::string& path);
  [[nodiscard]] uint16_t taken() const { return read(to_server_->tail); }
  [[nodiscard]] static uint16_t arrived(const FromServer& way) {
    return static_cast<uint16_t>(read(way.ring->tail) - way.received);
  }
  static void give_back(FromServer& way, uint16_t count);
  void start_rings();
  static uint16_t read(uint16_t& counter) {
    return std::atomic_ref<uint16_t>{counter}.load(std::memory_order_acquire);
  }
  static void publish(uint16_t& counter, uint16_t value) {
    std::atomic_ref<uint16_t>{counter}.store(value, std::memory_order_release);
  }
  static MemifDescriptor& descriptor(MemifRing* ring, unsigned index) {
    return reinterpret_cast<MemifDescriptor*>(ring + 1)[index % kSize];
  }

  int memory_file_ = -1;
  int to_server_event_ = -1;
  int socket_ = -1;
  uint8_t* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  MemifRing* to_server_ = nullptr;
  std::vector<FromServer> from_server_;
};

}  // namespace roci::bench
