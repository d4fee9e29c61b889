// Host at the end of a link that sends at line rate and obeys PFC.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/time/line_clock.hpp"
#include "base/types.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/poller.hpp"
#include "support/ports/frames.hpp"
#include "wire/net/pause.hpp"

namespace roci::test {

class LineRateSource final : public Poller {
 public:
  struct Config {
    BitsPerSec rate{0};
    FrameSpec frame;
    uint8_t traffic_class = 0;  // its pauses stop this source
    uint64_t count = UINT64_MAX;
    Nanos begin{0};
  };

  LineRateSource(Port& port, std::shared_ptr<MbufPool> pool, const Config& config)
      : port_(port),
        pool_(std::move(pool)),
        config_(config),
        line_(config.rate),
        bytes_(roce_bytes(config.frame)) {}

  bool poll(Nanos now) override {
    bool worked = receive(now);
    if (sent_ == config_.count || next_deadline() > now) return worked;
    rte_mbuf* frame = to_mbuf(*pool_, bytes_);
    if (frame == nullptr) return worked;
    if (port_.tx_burst({&frame, 1}, now) == 0) {
      rte_pktmbuf_free(frame);
      return worked;
    }
    line_.occupy(now, Bytes{bytes_.size()} + kEthernetLineOverhead);
    ++sent_;
    return true;
  }
  [[nodiscard]] Nanos next_deadline() const override {
    const Nanos arrival = port_.next_arrival();
    if (sent_ == config_.count) return arrival;
    return std::min(arrival, std::max({line_.free_at(), paused_until(), config_.begin}));
  }
  [[nodiscard]] std::string_view name() const override { return "source"; }

  // Also obeys the pauses that the other source on this port receives. The source that is polled first receives the
  // frames.
  void follow(const LineRateSource& other) { other_ = &other; }
  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] uint64_t received_of(const MacAddress& source) const {
    return source.bytes[5] < by_source_.size() ? by_source_[source.bytes[5]] : 0;
  }
  [[nodiscard]] uint64_t pauses() const { return pauses_; }
  [[nodiscard]] bool paused(Nanos now) const { return paused_until_ > now; }

 private:
  [[nodiscard]] Nanos paused_until() const {
    return other_ == nullptr ? paused_until_ : std::max(paused_until_, other_->paused_until_);
  }
  bool receive(Nanos now) {
    std::array<rte_mbuf*, 32> frames;
    const uint16_t count = port_.rx_burst(frames, now);
    for (uint16_t i = 0; i < count; ++i) {
      const std::span<const uint8_t> bytes(rte_pktmbuf_mtod(frames[i], const uint8_t*), frames[i]->data_len);
      if (const ParsedPause pause = parse_pause(bytes, MacAddress{});
          pause.outcome == PauseOutcome::kAccepted) {
        if (pause.message.includes(config_.traffic_class)) {
          paused_until_ = now + pause_time(pause.message.quanta[config_.traffic_class], config_.rate);
          pauses_ += pause.message.quanta[config_.traffic_class] != 0;
        }
      } else {
        ++received_;
        const uint8_t from = bytes[11];
        if (from < by_source_.size()) ++by_source_[from];
      }
      rte_pktmbuf_free(frames[i]);
    }
    return count > 0;
  }

  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  Config config_;
  LineClock line_;
  std::vector<uint8_t> bytes_;
  const LineRateSource* other_ = nullptr;
  Nanos paused_until_{0};
  uint64_t sent_ = 0, received_ = 0, pauses_ = 0;
  std::array<uint64_t, 16> by_source_{};  // index: last byte of the source MAC
};

}  // namespace roci::test
