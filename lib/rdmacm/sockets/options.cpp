#include "rdmacm/sockets/options.hpp"

#include <rdma/rsocket.h>

#include <algorithm>

namespace roci::rdmacm::sockets {
namespace {

// Limits as in rdma-core, except kMaxInline, which is the limit of the device.
constexpr uint32_t kMinQueue = 16, kMaxQueue = 0xfffe;
constexpr uint32_t kMinRing = 4096, kMaxRing = 1U << 28;
constexpr uint32_t kMaxInline = 1024;
constexpr uint32_t kMaxMappings = 0x7f00;  // limit of the protocol

// Doubled as in Linux, within limits. The result is even, because the ring is granted in halves.
uint32_t ring_for(uint32_t asked) {
  return std::clamp(std::min(asked, kMaxRing / 2) * 2, kMinRing, kMaxRing);
}

}  // namespace

Clock::duration duration_of(const timeval& time) {
  constexpr time_t kMost = 1'000'000'000;  // s
  return std::chrono::seconds(std::clamp(time.tv_sec, time_t{0}, kMost)) +
         std::chrono::microseconds(time.tv_usec);
}

Clock::time_point deadline(Clock::duration timeout) {
  return timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max();
}

timeval timeval_of(Clock::duration duration) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return {us / 1'000'000, us % 1'000'000};
}

bool set_size(Sizes& sizes, int level, int option, int number) {
  const auto size = static_cast<uint32_t>(std::max(number, 0));
  if (level == SOL_SOCKET && option == SO_SNDBUF) {
    sizes.send_ring = ring_for(size);
  } else if (level == SOL_SOCKET && option == SO_RCVBUF) {
    sizes.receive_ring = ring_for(size);
  } else if (level == SOL_RDMA && option == RDMA_SQSIZE) {
    sizes.send_queue = std::clamp(size, kMinQueue, kMaxQueue);
  } else if (level == SOL_RDMA && option == RDMA_RQSIZE) {
    sizes.receive_queue = std::clamp(size, kMinQueue, kMaxQueue);
  } else if (level == SOL_RDMA && option == RDMA_INLINE) {
    sizes.most_inline = std::min(size, kMaxInline);
  } else if (level == SOL_RDMA && option == RDMA_IOMAPSIZE) {
    sizes.mappings = unscaled(scaled(std::min(size, kMaxMappings)));
  } else {
    return false;
  }
  return true;
}

std::optional<int> size_of(const Sizes& sizes, int level, int option) {
  if (level == SOL_SOCKET && option == SO_SNDBUF) return static_cast<int>(sizes.send_ring);
  if (level == SOL_SOCKET && option == SO_RCVBUF) return static_cast<int>(sizes.receive_ring);
  if (level != SOL_RDMA) return std::nullopt;
  switch (option) {
    case RDMA_SQSIZE:
      return static_cast<int>(sizes.send_queue);
    case RDMA_RQSIZE:
      return static_cast<int>(sizes.receive_queue);
    case RDMA_INLINE:
      return static_cast<int>(sizes.most_inline);
    case RDMA_IOMAPSIZE:
      return sizes.mappings;
    default:
      return std::nullopt;
  }
}

}  // namespace roci::rdmacm::sockets
