// Program of a lab host: posts messages at their start times and polls completions, like a verbs program but with the
// API of Device.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "lab/traffic/flow_plan.hpp"
#include "roci/device.hpp"
#include "roci/poller.hpp"

namespace roci::lab {

// Result of a flow. Times are relative to the start of the traffic.
struct FlowResult {
  Nanos end = kNever;  // last byte acknowledged (READ: received); kNever: not finished
  bool failed = false;
};

// Result of a message of a closed loop.
struct LoopResult {
  uint32_t loop = 0;  // index in the plan's loops
  uint64_t bytes = 0;
  Nanos start{0}, end{0};
};

// Sequence of messages from one queue pair to its peer.
struct Stream {
  std::unique_ptr<QueuePair> qp;
  std::unique_ptr<QueuePair> peer;  // on the other host
  uint64_t remote = 0;
  uint32_t rkey = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  uint64_t message = 0;
  Nanos start{0}, stop = kNever;
  bool unlimited = false;
  uint64_t left = 0;  // bytes to be posted; not used by unlimited streams
  uint32_t in_flight = 0;
  uint32_t depth = 2;            // maximum number of messages in flight
  FlowResult* result = nullptr;  // of a flow; null for a loop
  // Used by loops only:
  uint32_t loop = 0;
  const TrafficSpec* spec = nullptr;
  std::unique_ptr<Rng> rng;
  struct Message {
    uint64_t bytes = 0;
    Nanos start{0};
  };
  std::vector<Message> messages;  // in flight, by slot
  bool over = false;              // ended or failed: nothing is posted, and completions are ignored
};

class HostProgram {
 public:
  // Capacity of a new host's completion queue; streams and receivers enlarge it.
  static constexpr int kFirstCompletions = 64;

  // `memory` must hold one message. Results are relative to the time of set_origin().
  HostProgram(Device& device, CompletionQueue& cq, const MemoryRegion& memory);

  // Must be called between runs of the host's node. The stream starts at its `start`. Returns its number.
  uint32_t add(Stream stream);
  // Receiver of SENDs: keeps receive requests posted.
  void receive(QueuePair& qp, uint32_t length);
  [[nodiscard]] Stream& stream(uint32_t number) { return streams_[number]; }
  // Streams start no message from `now` on.
  void stop(Nanos now) { stopped_ = now; }
  // Number of flows that have not ended, without unlimited ones.
  [[nodiscard]] uint32_t busy() const { return busy_; }
  void set_origin(Nanos origin) { origin_ = origin; }

  [[nodiscard]] Poller& start_poller() { return start_poller_; }
  [[nodiscard]] Poller& completion_poller() { return completion_poller_; }
  // First error; empty without errors.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::vector<LoopResult>& loop_results() { return loop_results_; }

 private:
  // Wakes up when a stream, or a message of a loop, is due to start.
  class StartPoller final : public Poller {
   public:
    explicit StartPoller(HostProgram& of) : of_(of) {}
    bool poll(Nanos now) override { return of_.begin_due(now); }
    [[nodiscard]] Nanos next_deadline() const override {
      return of_.starts_.empty() ? kNever : of_.starts_.top().at;
    }
    [[nodiscard]] std::string_view name() const override { return "program"; }

   private:
    HostProgram& of_;
  };
  // Polls completions in each round of the host.
  class CompletionPoller final : public Poller {
   public:
    explicit CompletionPoller(HostProgram& of) : of_(of) {}
    bool poll(Nanos now) override { return of_.take(now); }
    [[nodiscard]] Nanos next_deadline() const override { return Nanos{0}; }
    [[nodiscard]] std::string_view name() const override { return "program"; }

   private:
    HostProgram& of_;
  };
  struct Start {
    Nanos at;
    uint32_t stream;
    uint32_t slot;  // of the message, in a loop
    bool operator>(const Start& other) const {
      return at != other.at           ? at > other.at
             : stream != other.stream ? stream > other.stream
                                      : slot > other.slot;
    }
  };

  bool begin_due(Nanos now);
  bool take(Nanos now);
  void fill(uint32_t number, Nanos now);
  void begin_message(uint32_t number, uint32_t slot, Nanos now);
  bool post(uint32_t number, uint32_t slot, ibv_wr_opcode opcode, uint64_t bytes);
  void post_receive(uint32_t number);
  // Enlarges the completion queue for `count` more completions.
  void expect_completions(uint32_t count);
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
  uint64_t expected_ = 0;                  // maximum number of pending completions
  uint32_t capacity_ = kFirstCompletions;  // of the completion queue
  std::string error_;
  StartPoller start_poller_{*this};
  CompletionPoller completion_poller_{*this};
};

}  // namespace roci::lab
