// The program on a host of the lab: it posts messages when their time has come, and takes completions. What verbs programs do,
// with the device's API.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/poller.hpp"
#include "base/rng.hpp"
#include "lab/flow_plan.hpp"
#include "roci/device.hpp"

namespace roci::lab {

// What became of a flow. Times are since the traffic began.
struct FlowResult {
  Nanos end = kNever;  // the last byte is acknowledged (of a READ: is here); kNever: it is not
  bool failed = false;
};

// A message of a closed loop.
struct LoopResult {
  uint32_t loop = 0;  // which of the plan's
  uint64_t bytes = 0;
  Nanos start{0}, end{0};
};

// Messages from one queue pair to its peer, one after another.
struct Stream {
  std::unique_ptr<QueuePair> qp;
  std::unique_ptr<QueuePair> peer;  // on the other host
  uint64_t remote = 0;
  uint32_t rkey = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  uint64_t message = 0;
  Nanos start{0}, stop = kNever;
  bool unlimited = false;
  uint64_t left = 0;  // not posted yet; without a meaning where there is no limit
  uint32_t under_way = 0;
  uint32_t depth = 2;            // messages under way
  FlowResult* result = nullptr;  // of a flow; null for a loop
  // Of a loop.
  uint32_t loop = 0;
  const TrafficSpec* spec = nullptr;
  std::unique_ptr<Rng> rng;
  struct Message {
    uint64_t bytes = 0;
    Nanos start{0};
  };
  std::vector<Message> messages;  // under way, by their place
  bool over = false;              // nothing will be posted any more, and nothing is under way
};

class HostProgram {
 public:
  // `memory` holds a message. Time 0 is `origin`.
  HostProgram(Device& device, CompletionQueue& cq, const MemoryRegion& memory);

  // Between the runs of the host's node. The stream begins at its start; its number is for later.
  uint32_t add(Stream stream);
  // The receiving end of SENDs: keeps receives posted.
  void receive(QueuePair& qp, uint32_t length);
  [[nodiscard]] Stream& stream(uint32_t number) { return streams_[number]; }
  // No stream begins anything from then on.
  void stop(Nanos now) { stopped_ = now; }
  [[nodiscard]] uint32_t busy() const {
    return busy_;
  }  // streams that are not over, unlimited ones and loops aside
  void set_origin(Nanos origin) { origin_ = origin; }

  [[nodiscard]] Poller& starter() { return starter_; }
  [[nodiscard]] Poller& taker() { return taker_; }
  // What went wrong first; empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::vector<LoopResult>& loop_results() { return loop_results_; }

 private:
  // Wakes when a stream or a message of a loop is to begin.
  class Starter final : public Poller {
   public:
    explicit Starter(HostProgram& of) : of_(of) {}
    bool poll(Nanos now) override { return of_.begin_due(now); }
    [[nodiscard]] Nanos next_deadline() const override {
      return of_.starts_.empty() ? kNever : of_.starts_.top().at;
    }
    [[nodiscard]] std::string_view name() const override { return "program"; }

   private:
    HostProgram& of_;
  };
  // Looks for completions whenever anything has happened on the host.
  class Taker final : public Poller {
   public:
    explicit Taker(HostProgram& of) : of_(of) {}
    bool poll(Nanos now) override { return of_.take(now); }
    [[nodiscard]] Nanos next_deadline() const override { return Nanos{0}; }
    [[nodiscard]] std::string_view name() const override { return "program"; }

   private:
    HostProgram& of_;
  };
  struct Start {
    Nanos at;
    uint32_t stream;
    uint32_t place;  // of the message, in a loop
    bool operator>(const Start& other) const {
      return at != other.at           ? at > other.at
             : stream != other.stream ? stream > other.stream
                                      : place > other.place;
    }
  };

  bool begin_due(Nanos now);
  bool take(Nanos now);
  void fill(uint32_t number, Nanos now);
  void begin_message(uint32_t number, uint32_t place, Nanos now);
  bool post(uint32_t number, uint32_t place, ibv_wr_opcode opcode, uint64_t bytes);
  void post_receive(uint32_t number);
  void completed(const ibv_wc& wc, Nanos now);
  void end_flow(Stream& stream, Nanos now, bool failed);

  Device& device_;
  CompletionQueue& cq_;
  const MemoryRegion& memory_;
  Nanos origin_{0};
  Nanos stopped_ = kNever;
  std::vector<Stream> streams_;
  struct Receiver {
    QueuePair* qp;
    uint32_t length;
  };
  std::vector<Receiver> receivers_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::vector<LoopResult> loop_results_;
  uint32_t busy_ = 0;
  std::string error_;
  Starter starter_{*this};
  Taker taker_{*this};
};

}  // namespace roci::lab
