// Environment of a queue pair during a call: packet output, time, memory table, counters, events and address
// resolution.
#pragma once

#include <rte_mbuf.h>

#include "base/types.hpp"
#include "memory/memory_table.hpp"
#include "port/peer_presence.hpp"
#include "port/placement.hpp"
#include "telemetry/counters.hpp"
#include "transport/address_path.hpp"
#include "transport/event_sink.hpp"
#include "transport/packet_hops.hpp"
#include "transport/peer_activity.hpp"

namespace roci {

// Accepts finished frames for transmission.
class PacketSink {
 public:
  PacketSink() = default;
  PacketSink(const PacketSink&) = delete;
  PacketSink& operator=(const PacketSink&) = delete;
  virtual ~PacketSink() = default;

  // Returns an empty buffer for a whole frame in one segment. Null when the port is full or the pool is empty: the
  // caller stops and is served again later.
  virtual rte_mbuf* allocate() = 0;
  // The same for a frame of exactly `bytes` to `to` that is not extended later. The buffer may be in memory that the
  // receiver reads and can change. The caller sends or frees it before it allocates the next one, and must not rely on
  // data read back from it.
  virtual rte_mbuf* allocate_direct(const MacAddress& /*to*/, uint32_t /*bytes*/) { return allocate(); }
  // Takes ownership of a frame from allocate() or allocate_direct(). Always succeeds.
  virtual void send(rte_mbuf* frame) = 0;
  // Counts bytes that the caller has transferred without a frame as sent.
  virtual void count_bytes(uint64_t /*bytes*/) {}
};

class CompletionBatch;

// Result of an attempt to send a packet.
enum class SendOutcome : uint8_t {
  kSent,
  kBackpressure,  // the sink had no buffer; retry later
  kAborted,       // the payload was not accessible; the buffer was freed
};

// Frames on their way to the port, in the order in which queue pairs sent them. Positions count modulo 2^16.
struct UnsentFrames {
  uint16_t passed = 0;  // the port has accepted the frames before this position
  // Position after the last frame. Equal to `passed`: none waits, or the port has not accepted any lately.
  uint16_t end = 0;
  [[nodiscard]] bool any() const { return passed != end; }
  [[nodiscard]] bool any_before(uint16_t position) const {
    return any() && static_cast<int16_t>(static_cast<uint16_t>(passed - position)) < 0;
  }
};

// Environment of one call into a queue pair. Created by the engine.
struct TransportContext {
  Nanos now;
  PacketSink& sink;
  MemoryTable& memory;
  Counters& counters;
  EventSink& events;
  PathSource& paths;
  CompletionBatch* completions = nullptr;  // published by the engine; null: each at once
  uint32_t flows = 0;                     // queue pairs of the host that received requests lately (FlowCount)
  const PacketHops* telemetry = nullptr;  // of the packets of this burst (FrameView::telemetry)
  bool frames_wait = false;               // the port has more frames that arrived before `now`
  UnsentFrames unsent{};                  // when the timers expire
  bool direct = false;                    // sink.allocate_direct() may differ from allocate()
  PeerActivity* peer_activity = nullptr;  // null: not known
  PeerPresence* peers = nullptr;          // state of peer processes, from the port; null: not known
  Placement* placement = nullptr;         // of WRITEs, by the port; null: not supported

  void raise(ibv_event_type type, const EventObject& object) const {
    if (!events.raise({type, object})) counters.add(Counter::kEventsLost);
  }
};

}  // namespace roci
