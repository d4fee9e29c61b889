// Frames of a worker on their way to the port: buffers for new frames, and finished frames that wait for one burst.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/receive/loopback.hpp"
#include "engine/transmit/tx_buffers.hpp"
#include "engine/worker/worker_context.hpp"
#include "engine/worker/worker_handoff.hpp"
#include "port/neighbors/neighbors.hpp"
#include "port/port.hpp"
#include "transport/packet_sink.hpp"

namespace roci {

// Sends to the port queue of its worker or, without one, to the worker's relay. Owned by the worker.
class TransmitStage final : public PacketSink, public FrameSink {
 public:
  TransmitStage(const WorkerContext& context, uint32_t index, WorkerHandoff& handoff, Loopback& loopback,
                Counters& counters);
  ~TransmitStage() override;

  void begin_round(Nanos now) {
    now_ = now;
    blocked_ = receiver_full_ = false;
    if (shares_port_) [[unlikely]]
      begin_shared_round();
  }
  // Whether the current queue pair cannot continue: the port or the receiver's memory is full, or the pool is empty.
  [[nodiscard]] bool blocked() const { return blocked_; }
  // The same, until the next round and for all queue pairs. If only one receiver's memory was full, others may send.
  [[nodiscard]] bool port_blocked() {
    if (!blocked_) return false;
    if (std::exchange(receiver_full_, false)) blocked_ = false;
    return blocked_;
  }
  [[nodiscard]] bool receiver_full() const { return receiver_full_; }
  void block() { blocked_ = true; }
  // Bytes that were sent since begin_turn().
  [[nodiscard]] uint64_t turn_bytes() const { return turn_bytes_; }
  void begin_turn() { turn_bytes_ = 0; }

  // PacketSink and FrameSink.
  rte_mbuf* allocate() override;
  rte_mbuf* allocate_direct(const MacAddress& to, uint32_t bytes) override;
  void send(rte_mbuf* frame) override;
  void count_bytes(uint64_t bytes) override { turn_bytes_ += bytes; }
  // Sends a frame ahead of all staged data: frames that slow down senders must not wait for a congested line. These
  // frames keep their order, because receivers of signed ones check sequence numbers. False without buffer or space.
  bool send_first(std::span<const uint8_t> bytes);

  // Stages frames of workers without a port queue, while at most half of the stage is in use. While the port is full,
  // each of them stages as many frames as this worker. Returns whether there were any.
  bool relay();
  // At the end of a round: reports to the other workers of this port queue whether frames wait.
  void publish_wait() {
    if (!relayed_.empty()) [[unlikely]]
      port_state_.store((uint64_t{port_passed_} << 1) | (staged_count_ > 0 ? 1 : 0),
                        std::memory_order_relaxed);
  }
  // Passes staged frames to the port. Returns whether the port accepted any.
  bool flush() { return staged_count_ > 0 && flush_staged(); }

  [[nodiscard]] bool empty() const { return staged_count_ == 0; }
  // The frames that wait for a port that has accepted others lately. Without a port queue: the frames that may wait in
  // the ring to the relay or at the relay.
  [[nodiscard]] UnsentFrames unsent(Nanos now) const {
    const bool waits = staged_count_ > 0 || (outgoing_ != nullptr && (in_ring_ > 0 || relay_waits()));
    if (!waits || now - port_accepted_ >= kPortStalled) return {};
    return {outgoing_ != nullptr ? relay_passed_ : passed_, static_cast<uint16_t>(passed_ + staged_count_)};
  }
  // Whether buffers may be in the receiver's memory: the port supports it, and there is one worker.
  [[nodiscard]] bool sends_direct() const { return sends_direct_; }
  // Number of buffers allocated from the pool for future frames.
  [[nodiscard]] uint32_t buffers_held() const { return buffers_.held(); }

 private:
  // A port that has accepted no frame for this time counts as stalled.
  static constexpr Nanos kPortStalled{100'000'000};
  static constexpr size_t kStage = 64;
  static constexpr size_t kFirst = 16;  // additional slots for send_first() while the port is full
  // A relay that has passed this number of frames since it took a frame from a ring has passed that frame too: the
  // stage, and as many frames as it can pass until it publishes its count.
  static constexpr uint32_t kRelayed = 16 * kStage;

  bool has_space();
  void begin_shared_round();
  void follow_relay(uint16_t left_ring);
  [[nodiscard]] bool relay_waits() const { return (port_state_.load(std::memory_order_relaxed) & 1) != 0; }
  [[gnu::cold, gnu::noinline]] void loop_back(rte_mbuf* frame);
  bool flush_staged();
  bool flush_direct();

  PortQueue* const queue_;     // null: frames are sent through the relay
  FrameRing* const outgoing_;  // to the relay
  const std::span<FrameRing* const> relayed_;
  const bool shares_port_;             // is a relay or has one
  std::atomic<uint64_t>& port_state_;  // Handoff::port_state()
  size_t next_relayed_ = 0;
  uint64_t sent_at_relay_ = 0;  // own frames before the last relay() that staged others
  uint32_t in_ring_ = 0;        // frames in the ring to the relay, at most
  Loopback& loopback_;
  Counters& counters_;
  const uint64_t own_mac_;  // MacAddress::bits() of the port
  const size_t limit_;      // maximum number of frames that wait for the port
  size_t own_limit_;        // the same for frames of this worker, while others share the port queue
  const bool sends_direct_;
  bool blocked_ = false;
  bool receiver_full_ = false;  // blocked_ is due to one receiver
  Nanos now_{0};                // time of the current round
  Nanos port_accepted_{0};      // time at which the port, or the relay, last accepted a frame
  uint64_t turn_bytes_ = 0;
  uint16_t passed_ = 0;  // frames that the port queue, or the ring to the relay, has accepted; modulo 2^16
  uint16_t relay_passed_ = 0;  // of them, at least the frames that the relay has passed to the port
  uint16_t relay_mark_ = 0;    // frames that have been passed once the relay has passed relay_goal_ frames
  uint32_t relay_goal_ = 0;
  uint32_t port_passed_ = 0;  // of a relay: frames that the port has accepted, modulo 2^32
  TxBuffers buffers_;
  size_t staged_count_ = 0;
  size_t staged_first_ = 0;  // number of leading frames of send_first()
  std::array<rte_mbuf*, kStage + kFirst> staged_{};
};

}  // namespace roci
