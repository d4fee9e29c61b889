// Two connected ports of one process that transfer bytes under a lock, so that ThreadSanitizer sees the ordering
// between their threads. It does not see into DPDK's ring library. With several queues, UDP packets are distributed
// to the receiver's queues by source port, as by a NIC; other frames use queue 0. The link can mark packets like a
// congested switch.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "support/ports/frames.hpp"
#include "wire/net/rewrite.hpp"

namespace roci::test {

class ByteLinkPort final : public Port {
  struct Line {
    std::mutex mutex;
    std::deque<std::vector<uint8_t>> frames;
    uint32_t marked = 0;  // frames since the last marked one
  };
  using Lines = std::vector<Line>;  // one per queue of the receiver

 public:
  static std::pair<std::unique_ptr<Port>, std::unique_ptr<Port>> make_pair(uint16_t mtu,
                                                                           uint16_t queues = 1) {
    auto one = std::make_shared<Lines>(queues);
    auto other = std::make_shared<Lines>(queues);
    return {std::make_unique<ByteLinkPort>(mtu, 1, one, other),
            std::make_unique<ByteLinkPort>(mtu, 2, other, one)};
  }

  ByteLinkPort(uint16_t mtu, uint64_t number, std::shared_ptr<Lines> in, std::shared_ptr<Lines> out)
      : mac_(MacAddress::local(number)), in_(std::move(in)), out_(std::move(out)) {
    capabilities_.mtu = mtu;
    // One pool per side: mbufs do not cross the link.
    pool_ = MbufPool::create("byte_link", 512 * static_cast<uint32_t>(in_->size()),
                             static_cast<uint16_t>(mtu + 100))
                .value();
    for (Line& line : *in_) queues_.push_back(std::make_unique<Queue>(*this, line));
  }

  // Marks one of `packets` ECN-capable packets to each queue; 0: none. Call before the first packet.
  void mark_one_in(uint32_t packets) { mark_one_in_ = packets; }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return queues_[0]->rx_burst(out, now); }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
    return queues_[0]->tx_burst(frames, now);
  }
  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] uint16_t queues() const override { return static_cast<uint16_t>(queues_.size()); }
  [[nodiscard]] PortQueue& queue(uint16_t index) override { return *queues_[index]; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return "byte link"; }
  [[nodiscard]] PortStats stats() const override { return stats_; }

 private:
  static constexpr size_t kCapacity = 512;

  class Queue final : public PortQueue {
   public:
    Queue(ByteLinkPort& port, Line& in) : port_(port), in_(in) {}

    uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
      const std::scoped_lock guard(in_.mutex);
      uint16_t count = 0;
      for (; count < out.size() && !in_.frames.empty(); ++count) {
        out[count] = to_mbuf(*port_.pool_, in_.frames.front());
        if (out[count] == nullptr) break;
        in_.frames.pop_front();
      }
      return count;
    }

    uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) override {
      uint16_t count = 0;
      for (; count < frames.size(); ++count) {
        std::vector<uint8_t> bytes = bytes_of(frames[count]);
        Line& line = (*port_.out_)[line_of(bytes)];
        const std::scoped_lock guard(line.mutex);
        if (line.frames.size() >= kCapacity) break;
        if (port_.mark_one_in_ != 0 && ++line.marked >= port_.mark_one_in_ &&
            mark_congestion(bytes.data(), static_cast<uint32_t>(bytes.size())))
          line.marked = 0;
        line.frames.push_back(std::move(bytes));
        rte_pktmbuf_free(frames[count]);
      }
      return count;
    }
    [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }

   private:
    [[nodiscard]] size_t line_of(const std::vector<uint8_t>& bytes) const {
      const auto length = static_cast<uint32_t>(bytes.size());
      const FrameView view = parse_frame(bytes.data(), length, length);
      return view.kind == FrameKind::kRoce ? view.udp().source_port.get() % port_.out_->size() : 0;
    }

    ByteLinkPort& port_;
    Line& in_;
  };

  MacAddress mac_;
  uint32_t mark_one_in_ = 0;
  std::shared_ptr<Lines> in_, out_;
  std::shared_ptr<MbufPool> pool_;
  PortCapabilities capabilities_;
  PortStats stats_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace roci::test
