#include "port/shm/shm_switch.hpp"

namespace roci {

class ShmSwitch::MemberPort final : public Port {
 public:
  MemberPort(ShmSwitch& of, PortConfig config)
      : switch_(of),
        config_(std::move(config)),
        link_(of.owner_.segment(), kShmSwitchSlot, config_.slot),
        mac_(MacAddress::local(kShmSwitchSlot)) {
    capabilities_.mtu = config_.mtu;
    capabilities_.tx_multi_segment = true;
  }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override {
    switch_.note_poll(now);
    if (!is_ready()) return 0;
    const auto received = link_.receive(out, *config_.pool, config_.mtu, ShmLink::Payload::kCopied, stats_);
    if (received.all) {
      const uint64_t ready = switch_.ready_.load(std::memory_order_relaxed);
      switch_.ready_.store(ready & ~slot_bit(config_.slot), std::memory_order_relaxed);
    }
    if (const uint64_t malformed = link_.take_malformed(); malformed != 0) [[unlikely]]
      bump(stats_.rx_dropped, malformed);
    return received.frames;
  }

  // Accepts frames until the ring is full. Frames to a slot without an owner are dropped.
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
    uint16_t count = 0;
    uint64_t sent = 0, bytes = 0;
    const bool taken = link_up();
    for (const rte_mbuf* const frame : frames) {
      const bool sendable = !exceeds_mtu(*frame, config_.mtu) && frame->data_len >= kShmLeastFrame;
      if (taken && sendable) {
        if (!link_.out.has_space(frame->pkt_len)) {
          if (link_.must_wake_reader(now)) switch_.owner_.notify(config_.slot, true, now);
          break;
        }
        link_.write(*frame);
        ++sent;
        bytes += frame->pkt_len;
      }
      ++count;
    }
    if (sent != 0) {
      link_.publish();
      switch_.owner_.notify(config_.slot, link_.take_urgent(), now);
    }
    bump(stats_.tx_packets, sent);
    bump(stats_.tx_bytes, bytes);
    bump(stats_.tx_dropped, count - sent);
    bump(stats_.tx_refused, frames.size() - count);
    rte_pktmbuf_free_bulk(frames.data(), count);
    return count;
  }

  [[nodiscard]] Nanos next_arrival() const override {
    return is_ready() || switch_.owner_.has_pending() ? Nanos{0} : kNever;
  }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return config_.name; }
  [[nodiscard]] PortStats stats() const override { return stats_; }
  [[nodiscard]] bool link_up() const override { return switch_.is_taken(config_.slot); }
  [[nodiscard]] PortWakeup* wakeup() override { return &switch_.wakeup(); }

 private:
  [[nodiscard]] bool is_ready() const {
    return (switch_.ready_.load(std::memory_order_relaxed) & slot_bit(config_.slot)) != 0;
  }

  ShmSwitch& switch_;
  const PortConfig config_;
  ShmLink link_;
  const MacAddress mac_;
  PortCapabilities capabilities_;
  PortStats stats_;
};

ShmSwitch::ShmSwitch(std::shared_ptr<ShmSegment> segment)
    : owner_(std::move(segment), kShmSwitchSlot, slot_bit(kShmSwitchSlot) - 1,
             [this] { return ready_.load(std::memory_order_relaxed) != 0; }) {}

Result<std::unique_ptr<Port>> ShmSwitch::open_port(PortConfig config) {
  if (config.slot >= kShmSwitchSlot)
    return fail("port " + config.name + ": slot " + std::to_string(config.slot) +
                "; a network has slots 0 to " + std::to_string(kShmSwitchSlot - 1));
  if ((opened_ & slot_bit(config.slot)) != 0)
    return fail("port " + config.name + ": slot " + std::to_string(config.slot) + " already has a port");
  if (config.mtu > kShmMostMtu)
    return fail("port " + config.name + ": mtu " + std::to_string(config.mtu) + " exceeds " +
                std::to_string(kShmMostMtu));
  opened_ |= slot_bit(config.slot);
  return std::unique_ptr<Port>{std::make_unique<MemberPort>(*this, std::move(config))};
}

}  // namespace roci
