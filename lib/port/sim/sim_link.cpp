#include "port/sim/sim_link.hpp"

#include <algorithm>

#include "port/sim/sim_channel.hpp"

namespace roci {

// The port at one end: it sends on one direction of the link and receives from the other.
class SimLink::End : public Port {
 public:
  End(std::string name, MacAddress mac, uint16_t mtu, uint16_t queues, const std::atomic<bool>& up,
      Channel& out, Channel& in)
      : name_(std::move(name)), mac_(mac), up_(up), out_(out), in_(in) {
    for (uint16_t i = 1; i < queues; ++i) others_.push_back(std::make_unique<Queue>(*this, i));
    capabilities_.mtu = mtu;
    capabilities_.tx_multi_segment = true;
    capabilities_.rx_multi_segment = true;
    capabilities_.link_rate = out.line.rate();
  }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return receive(0, out, now); }
  [[nodiscard]] Nanos next_arrival() const override { return in_.next_arrival(0); }
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return in_.waiting(0, seen_); }
  [[nodiscard]] uint16_t queues() const override { return static_cast<uint16_t>(1 + others_.size()); }
  [[nodiscard]] PortQueue& queue(uint16_t index) override {
    if (index == 0) return *this;
    return *others_[index - 1U];
  }

  uint16_t receive(uint16_t queue, std::span<rte_mbuf*> out, Nanos now) {
    seen_ = now;
    uint16_t count = 0;
    uint64_t bytes = 0;
    const size_t most = std::min<size_t>(out.size(), UINT16_MAX);
    while (count < most) {
      rte_mbuf* frame = in_.receive(queue, now);
      if (frame == nullptr) break;
      bytes += frame->pkt_len;
      out[count++] = frame;
    }
    bump(stats_.rx_packets, count);
    bump(stats_.rx_bytes, bytes);
    return count;
  }

  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
    const size_t most = std::min<size_t>(frames.size(), UINT16_MAX);
    uint16_t count = 0;
    for (; count < most; ++count) {
      rte_mbuf* frame = frames[count];
      const uint32_t bytes = frame->pkt_len;
      if (exceeds_mtu(*frame, capabilities_.mtu)) {
        bump(stats_.tx_dropped);
        rte_pktmbuf_free(frame);
        continue;
      }
      if (!out_.send(frame, now, up_)) break;
      bump(stats_.tx_packets);
      bump(stats_.tx_bytes, bytes);
    }
    bump(stats_.tx_refused, frames.size() - count);
    return count;
  }

  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] PortStats stats() const override { return stats_; }
  [[nodiscard]] bool link_up() const override { return up_; }

 private:
  // Queue 1 and higher; they send on the same line.
  class Queue final : public PortQueue {
   public:
    Queue(End& end, uint16_t index) : end_(end), index_(index) {}
    uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return end_.receive(index_, out, now); }
    uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override { return end_.tx_burst(frames, now); }
    [[nodiscard]] Nanos next_arrival() const override { return end_.in_.next_arrival(index_); }
    [[nodiscard]] std::optional<uint32_t> waiting() const override {
      return end_.in_.waiting(index_, end_.seen_);
    }

   private:
    End& end_;
    uint16_t index_;
  };

  std::string name_;
  MacAddress mac_;
  const std::atomic<bool>& up_;  // of the link
  Channel& out_;
  Channel& in_;
  PortCapabilities capabilities_;
  PortStats stats_;
  Nanos seen_{0};  // time of the last receive()
  std::vector<std::unique_ptr<Queue>> others_;
};

class SimLink::Waker final : public Poller {
 public:
  Waker(const std::string& link, Channel& channel) : link_(link), channel_(channel) {}
  bool poll(Nanos now) override { return channel_.wake(now); }
  [[nodiscard]] Nanos next_deadline() const override { return channel_.next_free(); }
  [[nodiscard]] std::string_view name() const override { return link_; }

 private:
  const std::string& link_;
  Channel& channel_;
};

SimLink::SimLink(const SimLinkConfig& config, std::shared_ptr<MbufPool> copies)
    : name_(config.name), copies_(std::move(copies)) {
  Rng rng{config.seed};
  const std::array directions = {&config.a_to_b, &config.b_to_a};
  for (size_t i = 0; i < 2; ++i)
    channels_[i] =
        std::make_unique<Channel>(*directions[i], config.queues[1 - i], rng.fork(), copies_->get());
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t address = rng.next();
    const MacAddress mac = config.macs[i].is_zero() ? MacAddress::local(address) : config.macs[i];
    ends_[i] = std::make_unique<End>(name_ + (i == 0 ? ":a" : ":b"), mac, config.mtu, config.queues[i], up_,
                                     *channels_[i], *channels_[1 - i]);
    wakers_[i] = std::make_unique<Waker>(name_, *channels_[i]);
  }
}

SimLink::~SimLink() = default;

Port& SimLink::a() { return *ends_[0]; }
Port& SimLink::b() { return *ends_[1]; }
const SimDirectionStats& SimLink::stats(Direction direction) const { return channels_[direction]->stats; }
void SimLink::set_faults(Direction direction, const SimFaults& faults) {
  channels_[direction]->faults = faults;
}
void SimLink::set_script(Direction direction, SimScript script) {
  channels_[direction]->script = std::move(script);
}
void SimLink::set_rate(Direction direction, BitsPerSec rate) { channels_[direction]->line.set_rate(rate); }

void SimLink::listen(Direction direction, ArrivalListener& listener) {
  channels_[direction]->listen(&listener);
}
Poller& SimLink::waker(Direction direction) { return *wakers_[direction]; }

bool SimLink::poll(Nanos now) {
  const bool woke_a = wakers_[0]->poll(now);
  const bool woke_b = wakers_[1]->poll(now);
  return woke_a || woke_b;
}

Nanos SimLink::next_deadline() const {
  return std::min(wakers_[0]->next_deadline(), wakers_[1]->next_deadline());
}

}  // namespace roci
