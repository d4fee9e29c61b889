// A memif client that moves nothing. The frames that it sends lie in its memory from the beginning, one in each buffer, and
// are sent again and again by counting on; of those that it receives it reads the length at most. So the device at the
// other end works and this end does not, and what is measured is the device.
//
// One thread.
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
  // Of each buffer; not a power of two, with which all frames would begin in few sets of the caches.
  static constexpr uint32_t kBufferBytes = 2048 + 64;

  // A switch that sends on several queues of its port needs a ring for each, and takes no more.
  static Result<std::unique_ptr<MemifClient>> create(unsigned switch_queues = 1);
  MemifClient(const MemifClient&) = delete;
  MemifClient& operator=(const MemifClient&) = delete;
  ~MemifClient();

  // With the server at that path, or of that name without a file when it begins with @. It may come later than this.
  Status connect(const std::string& path, std::chrono::steady_clock::time_point deadline);
  // Whether the server is still there.
  [[nodiscard]] bool connected() const;

  // What the buffer sends from now on. The server must have taken all that was offered.
  void prepare(uint16_t buffer, std::span<const uint8_t> frame);
  // Offers the frames of the next buffers, `most` of them, if the server has taken so many. How many it were.
  uint16_t send(uint16_t most) {
    const uint16_t head = to_server_->head;
    const auto room = static_cast<uint16_t>(kSize - static_cast<uint16_t>(head - taken()));
    if (room < most) return 0;
    publish(to_server_->head, static_cast<uint16_t>(head + most));
    return most;
  }
  [[nodiscard]] uint16_t waiting() const { return static_cast<uint16_t>(to_server_->head - taken()); }

  // How many frames have come since the last call, of rings with `least`; their buffers are the server's again.
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
  // The same with a look at each.
  uint16_t receive(const std::function<void(std::span<const uint8_t>)>& look);

  // The server's part, by a device that takes every frame and sends one of `length` bytes for it without touching either.
  // Both are how many.
  uint16_t take_all();
  uint16_t answer(uint16_t count, uint32_t length);

 private:
  struct FromServer {
    MemifRing* ring;
    int event;
    uint16_t received = 0;  // counted on, like a head
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
