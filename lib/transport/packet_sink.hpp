// What a queue pair sees of the outside while it works: where packets go, what time it is, whose memory it may touch.
#pragma once

#include <rte_mbuf.h>

#include "base/types.hpp"
#include "memory/memory_table.hpp"
#include "port/peer_presence.hpp"
#include "port/placement.hpp"
#include "telemetry/counters.hpp"
#include "transport/address_path.hpp"
#include "transport/event_sink.hpp"
#include "transport/heard_peers.hpp"
#include "transport/packet_hops.hpp"

namespace roci {

// Takes finished frames towards the port.
class PacketSink {
 public:
  PacketSink() = default;
  PacketSink(const PacketSink&) = delete;
  PacketSink& operator=(const PacketSink&) = delete;
  virtual ~PacketSink() = default;

  // An empty frame buffer that holds a whole frame in one segment, or null when there is no room or no buffer; then
  // the caller stops and is asked again later.
  virtual rte_mbuf* allocate() = 0;
  // The same for a frame of exactly `bytes` to `to` to which nothing is added: the buffer may lie where the receiver reads it. The
  // caller sends or frees it before it allocates the next one, and does not read from it what it depends on: the receiver may
  // change it.
  virtual rte_mbuf* allocate_direct(const MacAddress& /*to*/, uint32_t /*bytes*/) { return allocate(); }
  // Takes over a frame that one of these gave. Always succeeds.
  virtual void send(rte_mbuf* frame) = 0;
};

class CompletionBatch;

// What became of a packet that was to be sent.
enum class SendOutcome : uint8_t {
  kSent,
  kNoRoom,   // the sink had no buffer; later
  kGivenUp,  // its contents could not be had
};

// Lent by the engine for one call into a queue pair.
struct TransportContext {
  Nanos now;
  PacketSink& sink;
  MemoryTable& memory;
  Counters& counters;
  EventSink& events;
  PathSource& paths;
  CompletionBatch* completions = nullptr;  // shown by the engine; null: each at once
  uint32_t flows = 0;                      // queue pairs of the host that have received of late
  const PacketHops* telemetry = nullptr;   // of the packets of this burst (FrameView::telemetry)
  bool frames_wait = false;                // the port has more of what has arrived by `now`
  bool frames_unsent = false;              // frames wait for the port, which has taken others lately
  bool direct = false;                     // sink.allocate_direct() may differ from allocate()
  HeardPeers* heard = nullptr;             // null: not known
  PeerPresence* peers = nullptr;           // what the port knows of peers' processes; null: nothing
  Placement* placement = nullptr;          // of WRITEs, by the port; null: none

  void raise(ibv_event_type type, const EventObject& object) const {
    if (!events.raise({type, object})) counters.add(Counter::kEventsLost);
  }
};

}  // namespace roci
