// Context of a queue pair that is called directly, without a worker: no frame can be allocated, and no path is known.
#pragma once

#include "base/id_source.hpp"
#include "transport/packet_sink.hpp"

namespace roci::test {

class IgnoredEvents final : public EventSink {
 public:
  bool raise(const AsyncEvent& /*event*/) override { return true; }
};

class BareContext {
  class NoFrames final : public PacketSink {
   public:
    rte_mbuf* allocate() override { return nullptr; }
    void send(rte_mbuf* /*frame*/) override {}
  };
  class NoPaths final : public PathSource {
   public:
    Answer find(AddressPath& /*to*/, Nanos /*now*/) override { return {}; }
    void loop_back(const rte_mbuf& /*frame*/, const IpAddress& /*group*/) override {}
    void loop_back_frame(const rte_mbuf& /*frame*/) override {}
  };

  NoFrames frames_;
  NoPaths paths_;
  IdSource ids_{1};
  MemoryTable no_memory_{ids_};

 public:
  // `memory`: of a host; null: no memory is registered.
  explicit BareContext(EventSink& events, MemoryTable* memory = nullptr)
      : context{.now = Nanos{0},
                .sink = frames_,
                .memory = memory != nullptr ? *memory : no_memory_,
                .counters = counters,
                .events = events,
                .paths = paths_} {}

  Counters counters;
  TransportContext context;
};

}  // namespace roci::test
