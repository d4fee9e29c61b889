// Two ports of one process joined back to back that hand over bytes under a lock, so that ThreadSanitizer sees how the
// two sides are ordered; it cannot see into the rings of DPDK's library.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "port/eal.hpp"
#include "port/port.hpp"
#include "support/frames.hpp"

namespace roci::test {

class ByteLinkPort final : public Port {
  struct Queue {
    std::mutex mutex;
    std::deque<std::vector<uint8_t>> frames;
  };

 public:
  static std::pair<std::unique_ptr<Port>, std::unique_ptr<Port>> make_pair(uint16_t mtu) {
    auto one = std::make_shared<Queue>();
    auto other = std::make_shared<Queue>();
    return {std::make_unique<ByteLinkPort>(mtu, 1, one, other),
            std::make_unique<ByteLinkPort>(mtu, 2, other, one)};
  }

  ByteLinkPort(uint16_t mtu, uint64_t number, std::shared_ptr<Queue> in, std::shared_ptr<Queue> out)
      : mac_(MacAddress::local(number)), in_(std::move(in)), out_(std::move(out)) {
    capabilities_.mtu = mtu;
    // A pool for each side: buffers do not change sides.
    pool_ = MbufPool::create("byte_link", 512, static_cast<uint16_t>(mtu + 100)).value();
  }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    const std::scoped_lock guard(in_->mutex);
    uint16_t count = 0;
    for (; count < out.size() && !in_->frames.empty(); ++count) {
      out[count] = to_mbuf(*pool_, in_->frames.front());
      if (out[count] == nullptr) break;
      in_->frames.pop_front();
    }
    return count;
  }

  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) override {
    const std::scoped_lock guard(out_->mutex);
    uint16_t count = 0;
    for (; count < frames.size() && out_->frames.size() < kCapacity; ++count) {
      out_->frames.push_back(bytes_of(frames[count]));
      rte_pktmbuf_free(frames[count]);
    }
    return count;
  }

  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return "byte link"; }
  [[nodiscard]] PortStats stats() const override { return stats_; }

 private:
  static constexpr size_t kCapacity = 512;
  MacAddress mac_;
  std::shared_ptr<Queue> in_, out_;
  std::shared_ptr<MbufPool> pool_;
  PortCapabilities capabilities_;
  PortStats stats_;
};

}  // namespace roci::test
