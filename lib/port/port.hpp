// A port: where frames leave and arrive. Behind it is an ethdev of DPDK (ethdev_port.hpp) or a simulated port
// on a link (sim_link.hpp); nobody above can tell which.
//
// Ownership: an mbuf belongs to the caller until tx_burst() has accepted it and from rx_burst() on; in
// between it is the port's. Threads: one thread at a time per queue; a port that has one queue is that queue. Any
// thread may call stats().
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "wire/headers.hpp"

namespace roci {

class PeerPresence;  // port/peer_presence.hpp
class Placement;     // port/placement.hpp
class PortWakeup;    // port/wakeup.hpp

// What this port can do; what it cannot, the callers do in software.
struct PortCapabilities {
  uint16_t mtu = 1500;  // largest IP packet in bytes; the frame is up to 14 + 4 for each of two tags longer
  bool tx_multi_segment = false;  // accepts chained mbufs
  bool rx_multi_segment = false;  // may deliver chained mbufs
  bool direct_buffers = false;    // take_direct() may return some
  BitsPerSec link_rate{0};        // as the device says; 0 when it does not know
  // false: nothing on the way alters frames, so that RoCEv2 packets need no ICRC: the field is 0 and is not checked.
  bool needs_icrc = true;
};

// Single-writer counters; readable from any thread. A copy is what they were at some moment each.
struct PortStats {
  PortStats() = default;
  PortStats(const PortStats& other) { add(other); }
  PortStats& operator=(const PortStats&) = delete;
  void add(const PortStats& other) {
    rx_packets += other.rx_packets;
    rx_bytes += other.rx_bytes;
    tx_packets += other.tx_packets;
    tx_bytes += other.tx_bytes;
    tx_refused += other.tx_refused;
    tx_dropped += other.tx_dropped;
    rx_dropped += other.rx_dropped;
  }

  std::atomic<uint64_t> rx_packets{0}, rx_bytes{0};
  std::atomic<uint64_t> tx_packets{0}, tx_bytes{0};
  std::atomic<uint64_t> tx_refused{0};  // frames tx_burst() did not take because the device was full
  std::atomic<uint64_t> tx_dropped{0};  // frames freed because the device can never send them (too long)
  std::atomic<uint64_t> rx_dropped{0};  // frames freed on arrival because they exceed this port's MTU
};

// A pair of receive and transmit queue, for one thread at a time.
class PortQueue {
 public:
  PortQueue() = default;
  PortQueue(const PortQueue&) = delete;
  PortQueue& operator=(const PortQueue&) = delete;
  virtual ~PortQueue() = default;

  // Takes up to out.size() frames that have arrived by `now`. Returns how many; they are the caller's to
  // free.
  virtual uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) = 0;

  // Offers frames in order. Returns how many of the first were accepted (or dropped for good and counted);
  // the rest stays the caller's, to be offered again. Never blocks.
  virtual uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) = 0;

  // A buffer in memory of the receiver's, without anything in it, for a frame of exactly `bytes` to `to`: the caller writes the frame
  // where it is read. Such frames go to tx_burst() unchanged and in the order in which they were taken, or are freed. tx_burst()
  // always accepts them. They hold room until then: when it refuses another frame, the caller offers the direct buffers next.
  struct DirectBuffer {
    enum class Outcome : uint8_t {
      kTaken,
      kFull,         // for the moment: no other buffer for that address now, or frames would be reordered
      kUnavailable,  // a buffer of the caller's
    };
    Outcome outcome = Outcome::kUnavailable;
    rte_mbuf* frame = nullptr;
  };
  virtual DirectBuffer take_direct(const MacAddress& /*to*/, uint32_t /*bytes*/, Nanos /*now*/) { return {}; }

  // From now on received frames may lie in memory of the port: their readers free them before the next rx_burst(), on the same
  // thread or under the same lock, and use hold() to keep one for longer.
  virtual void receive_in_place() {}

  // When the next frame can be taken by rx_burst(): the exact time on a simulated port, Nanos{0} ("ask me")
  // on a real one, kNever when nothing is on its way.
  [[nodiscard]] virtual Nanos next_arrival() const = 0;

  // Frames that have arrived and wait for rx_burst(); nothing when the port cannot tell.
  [[nodiscard]] virtual std::optional<uint32_t> waiting() const { return std::nullopt; }
};

// As a queue, a port is its queue 0, which is all there is unless several were asked for when it was opened. With several
// the port spreads what arrives by flow (receive side scaling), so all packets of a flow come through one queue, which
// nobody chooses; what is no IP packet comes through queue 0.
class Port : public PortQueue {
 public:
  [[nodiscard]] virtual uint16_t queues() const { return 1; }
  // `index` is below queues().
  [[nodiscard]] virtual PortQueue& queue(uint16_t /*index*/) { return *this; }

  [[nodiscard]] virtual const PortCapabilities& capabilities() const = 0;
  [[nodiscard]] virtual MacAddress mac() const = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual PortStats stats() const = 0;  // of all queues
  // Counters and queue lengths of this kind of port, beyond stats(). Any thread.
  struct Detail {
    const char* name;
    uint64_t value;
  };
  [[nodiscard]] virtual std::vector<Detail> details() const { return {}; }
  // Whether the other end is there. Any thread; may be a system call, so not for every round.
  [[nodiscard]] virtual bool link_up() const { return true; }
  // How to wait for frames without polling; null where the port has no such way. Any thread.
  [[nodiscard]] virtual PortWakeup* wakeup() { return nullptr; }
  // What is known of the processes behind addresses; null where nothing is.
  [[nodiscard]] virtual PeerPresence* peers() { return nullptr; }
  // Writing into the memory of the processes behind addresses; null where it is not possible or not wanted.
  [[nodiscard]] virtual Placement* placement() { return nullptr; }
};

// A reference to a received frame that may be kept for as long as wanted: the frame itself, or a copy where a part of it lies in
// memory of the port. Null without a buffer.
inline rte_mbuf* hold(rte_mbuf* frame) {
  if (frame->next != nullptr && RTE_MBUF_HAS_EXTBUF(frame->next)) [[unlikely]]
    return rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
  rte_pktmbuf_refcnt_update(frame, 1);
  return frame;
}

// Whether a frame carries more than `mtu` bytes of IP packet. The Ethernet header and up to two tags, VLAN tags or one of
// congestion notification, do not count: as many as ports' buffers have room for.
inline bool exceeds_mtu(const rte_mbuf& frame, uint16_t mtu) {
  uint32_t limit = uint32_t{mtu} + sizeof(EthernetHeader);
  if (frame.pkt_len <= limit) return false;
  const auto is_tag = [&](uint32_t offset) {
    if (frame.data_len < offset + 2) return false;
    const uint16_t type = rte_pktmbuf_mtod_offset(&frame, const Be16*, offset)->get();
    return type == kEtherTypeVlan || type == kEtherTypeSTag || type == kEtherTypeCnTag;
  };
  for (uint32_t offset = 12; offset <= 16 && is_tag(offset); offset += 4) limit += sizeof(VlanHeader);
  return frame.pkt_len > limit;
}

// For single-writer counters: a relaxed load and store, no read-modify-write on the bus.
inline void bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace roci
