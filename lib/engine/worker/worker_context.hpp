// Objects that the workers of a host share, and objects that the parts of one worker share.
#pragma once

#include <memory>
#include <vector>

#include "base/containers/id_table.hpp"
#include "base/containers/sparse_arena.hpp"
#include "base/id_source.hpp"
#include "engine/congestion/congestion_control.hpp"
#include "engine/congestion/congestion_flows.hpp"
#include "engine/management/extension_terms.hpp"
#include "engine/management/multicast_table.hpp"
#include "engine/management/steering_table.hpp"
#include "engine/worker/attached_queue_pair.hpp"
#include "engine/worker/flow_control.hpp"
#include "engine/worker/flow_count.hpp"
#include "engine/worker/handoff.hpp"
#include "memory/memory_table.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "telemetry/counters.hpp"
#include "transport/event_sink.hpp"

namespace roci {

class Loopback;
class Management;
class Neighbors;
class TransmitStage;
class WorkerHandoff;

// Objects that the workers of a host share. Must outlive the workers.
struct WorkerContext {
  Port& port;
  MemoryTable& memory;            // only modified while all tokens are held, except by work requests
  const MulticastTable& groups;   // only modified while all tokens are held
  const SteeringTable& steering;  // only modified while all tokens are held
  EventSink& events;
  Handoff& hand_over;
  FlowCounts& flows;
  std::shared_ptr<MbufPool> tx_pool;  // each buffer holds a whole frame in one segment
  const ExtensionConfig& extensions;
  const HostTelemetryConfig& telemetry;
  FlowControl& flow_control;
  const CongestionConfig& congestion;
  CongestionFlows& congestion_flows;
  const CongestionControlConfig& control;
  // Cores that run algorithms; empty: the workers run them.
  const std::vector<std::unique_ptr<ControlCore>>& control_cores;
  SparseArena& arena;
  IdSource& ids;
  bool check_before_placing;
  uint32_t packets_per_turn;
  bool header_only;

  [[nodiscard]] bool has_one_worker() const { return hand_over.workers() == 1; }
  // Of the port, each for one thread only. Null if the port has none, and with several workers.
  [[nodiscard]] PeerPresence* peers() const { return has_one_worker() ? port.peers() : nullptr; }
  [[nodiscard]] Placement* placement() const { return has_one_worker() ? port.placement() : nullptr; }
};

// Objects of one worker that its receive pipeline and transmit scheduler use. Owned by the worker.
struct WorkerParts {
  // Number of queue pairs that stay in the CPU caches without prefetching.
  static constexpr size_t kCachedQueuePairs = 64;

  uint32_t index;
  uint16_t vlan_id;
  Counters& counters;
  const IdTable<AttachedQueuePair>& queue_pairs;  // attached ones, by number
  Neighbors& neighbors;
  PeerExtensions& extensions;
  CongestionControl& control;
  Management* management;  // null except in the first worker
  WorkerHandoff& handoff;
  Loopback& loopback;
  TransmitStage& stage;
};

}  // namespace roci
