// Interface of a port, which sends and receives frames. Implementations are a DPDK ethdev (ethdev_port.hpp), a
// simulated port on a link (sim_link.hpp), a shared-memory port (shm_port.hpp) and ports of a program
// (external_port.hpp). Callers cannot distinguish them.
//
// Ownership: the caller owns an mbuf until tx_burst() accepts it,
// and again from rx_burst() on. In between, the port owns it.
// Threads: one thread at a time per queue; a port with one queue is that queue. Any thread may call stats().
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
#include "wire/headers/headers.hpp"

namespace roci {

class PeerPresence;  // port/peer_presence.hpp
class Placement;     // port/placement.hpp
class PortWakeup;    // port/wakeup.hpp

// Properties of a port, which do not change.
struct PortCapabilities {
  uint16_t mtu = 1500;  // largest IP packet in bytes; a frame adds 14 bytes and 4 for each of two tags
  bool tx_multi_segment = false;  // sends chained mbufs without copying them
  bool rx_multi_segment = false;  // may deliver chained mbufs
  bool direct_buffers = false;    // take_direct() may return direct buffers
  BitsPerSec link_rate{0};        // as reported by the device; 0 if unknown
  // false: the medium does not alter frames, so RoCEv2 packets need no ICRC. The ICRC field is 0 and is not validated.
  bool needs_icrc = true;
};

// Single-writer counters, readable from any thread. A copy is
// not a consistent snapshot: each counter is read separately.
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
  std::atomic<uint64_t> tx_refused{0};  // frames that tx_burst() did not accept because the device was full
  std::atomic<uint64_t> tx_dropped{0};  // frames that were freed because they are too long for the device
  std::atomic<uint64_t> rx_dropped{0};  // received frames that were freed because they exceed this port's MTU
};

// A receive queue and a transmit queue, used by one thread at a time.
class PortQueue {
 public:
  PortQueue() = default;
  PortQueue(const PortQueue&) = delete;
  PortQueue& operator=(const PortQueue&) = delete;
  virtual ~PortQueue() = default;

  // Receives up to out.size() frames that have arrived by `now`,
  // and returns their number. The caller owns and frees them.
  virtual uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) = 0;

  // Sends frames in order. Returns how many of the first were accepted, including frames that were dropped as too long
  // and counted. The caller keeps the rest and may offer them again. Never blocks.
  virtual uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) = 0;

  // Returns an empty buffer in the receiver's memory, for a frame of exactly `bytes` to `to`: the caller writes the
  // frame into the buffer from which the receiver reads it. The caller either frees such frames, or passes them to
  // tx_burst() unchanged and in the order in which they were taken. tx_burst() always accepts them. Until then they
  // occupy space of the receiver: if tx_burst() refuses another frame, the caller passes the direct buffers next.
  struct DirectBuffer {
    enum class Outcome : uint8_t {
      kTaken,
      kFull,         // temporarily: no free buffer for that address, or frames would be reordered
      kUnavailable,  // the caller uses a buffer of its own; always so for the port's own address
    };
    Outcome outcome = Outcome::kUnavailable;
    rte_mbuf* frame = nullptr;
  };
  virtual DirectBuffer take_direct(const MacAddress& /*to*/, uint32_t /*bytes*/, Nanos /*now*/) { return {}; }

  // From now on, received frames may lie in memory of the port. The receiving thread frees them before the next
  // rx_burst(), on the same thread or under the same lock. hold() keeps a frame for longer.
  virtual void receive_in_place() {}

  // When rx_burst() can next return a frame: the exact time on a simulated port, Nanos{0} (unknown: poll now) on a real
  // port, kNever if no frame is in flight.
  [[nodiscard]] virtual Nanos next_arrival() const = 0;

  // Number of frames that have arrived and wait for rx_burst(); no value if the port cannot report it.
  [[nodiscard]] virtual std::optional<uint32_t> waiting() const { return std::nullopt; }
};

// A port with one or more queues. Used as a queue, a port is its queue 0, the only one unless several
// were requested when the port was opened. With several queues, the port distributes received packets by
// flow (receive side scaling): all packets of a flow arrive through one queue, which the caller cannot
// select. Frames without an IP packet arrive through queue 0.
class Port : public PortQueue {
 public:
  [[nodiscard]] virtual uint16_t queues() const { return 1; }
  // `index` is below queues().
  [[nodiscard]] virtual PortQueue& queue(uint16_t /*index*/) { return *this; }

  [[nodiscard]] virtual const PortCapabilities& capabilities() const = 0;
  [[nodiscard]] virtual MacAddress mac() const = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual PortStats stats() const = 0;  // of all queues
  // Counters and queue lengths that are specific to the kind of port, in addition to stats(). Any thread.
  struct Detail {
    const char* name;
    uint64_t value;
  };
  [[nodiscard]] virtual std::vector<Detail> details() const { return {}; }
  // Whether the link to the peer is up. Any thread. May be a system
  // call, so it must not be called in every poll iteration.
  [[nodiscard]] virtual bool link_up() const { return true; }
  // The object that waits for frames without polling; null if the port does not support it. Any thread.
  [[nodiscard]] virtual PortWakeup* wakeup() { return nullptr; }
  // State of the processes that own the peer addresses; null if the port does not know it.
  [[nodiscard]] virtual PeerPresence* peers() { return nullptr; }
  // Placement of data into the memory of the processes that own the peer addresses; null if impossible or disabled.
  [[nodiscard]] virtual Placement* placement() { return nullptr; }
};

// A reference to a received frame without a time limit: the frame itself, or a copy if a part of the frame lies in
// memory of the port. Null if no buffer is free.
inline rte_mbuf* hold(rte_mbuf* frame) {
  if (frame->next != nullptr && RTE_MBUF_HAS_EXTBUF(frame->next)) [[unlikely]]
    return rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
  rte_pktmbuf_refcnt_update(frame, 1);
  return frame;
}

// Whether a frame carries more than `mtu` bytes of IP packet. The Ethernet header and up to two tags (VLAN or
// congestion notification) do not count: the buffers of ports have space for them.
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

// Increments a single-writer counter with a relaxed load and store, without an atomic read-modify-write.
inline void bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace roci
