#include "roci-perf/measurement/bandwidth.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "roci-perf/connection/control.hpp"
#include "roci-perf/measurement/statistics.hpp"

namespace roci::perf {
namespace {

constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();

// Maximum of outstanding messages per queue pair. With --verify each outstanding message requires its own slot.
uint32_t outstanding_limit(const Parameters& p, const Layout& layout) {
  if (!p.verify) return p.tx_depth;
  const uint32_t slots =
      p.operation == Operation::kSend ? layout.out_slots : std::min(layout.out_slots, layout.in_slots);
  return std::min(p.tx_depth, slots);
}

std::string gigabits(double bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f Gb/s", bytes_per_second * 8e-9);
  return text;
}

// Ring of the queue pairs that may have messages to post, in arrival order, each at most once. With up to 100,000 queue
// pairs, only these are examined.
class Turns {
 public:
  explicit Turns(uint32_t count) : ring_(count), listed_(count, false) { add_all(); }

  void add(uint32_t queue_pair) {
    if (listed_[queue_pair]) return;
    listed_[queue_pair] = true;
    ring_[(head_ + size_++) % ring_.size()] = queue_pair;
  }
  void add_all() {
    for (uint32_t i = 0; i < ring_.size(); ++i) add(i);
  }
  [[nodiscard]] uint32_t size() const { return size_; }
  uint32_t take() {
    const uint32_t queue_pair = ring_[head_];
    head_ = (head_ + 1) % ring_.size();
    --size_;
    listed_[queue_pair] = false;
    return queue_pair;
  }

 private:
  std::vector<uint32_t> ring_;
  std::vector<bool> listed_;
  size_t head_ = 0;
  uint32_t size_ = 0;
};
constexpr uint32_t kTurnsBetweenPolls = 32;

class Run {
 public:
  Run(Control& control, Endpoint& endpoint, const Parameters& p, const Options& options,
      ProgressLine& progress, Traffic& traffic)
      : control_(control),
        endpoint_(endpoint),
        p_(p),
        progress_(progress),
        traffic_(traffic),
        depth_(outstanding_limit(p, endpoint.layout())),
        post_list_(options.post_list),
        timed_(p.duration > 0),
        in_batches_(p.verify && p.operation == Operation::kWrite),
        end_(timed_ ? kNoEnd : p.warm_up + p.iterations_for(endpoint.layout().size)) {
    margin_ = from_seconds(options.margin >= 0 ? options.margin : std::min(2.0, p.duration / 10));
  }

  Result<BandwidthResult> run() {
    const Nanos start = now();
    Nanos time = start;
    if (timed_) {
      stop_at_ = start + from_seconds(p_.duration);
      meter_ = BandwidthMeter(start + margin_, stop_at_ - margin_);
    } else if (p_.warm_up > 0) {
      stage_end_ = p_.warm_up;
    } else {
      meter_ = BandwidthMeter(start);
    }
    advance_gate();
    progress_.start("RDMA " + std::string(to_string(p_.operation)) + ", " +
                        std::to_string(endpoint_.layout().size) + " bytes",
                    start);
    control_.set_outstanding(true);
    for (;;) {
      bool worked = false;
      for (uint32_t left = std::min(turns_.size(), kTurnsBetweenPolls); left > 0; --left) {
        auto posted = post_more(turns_.take());
        if (!posted) return fail(posted.error());
        worked |= *posted;
      }
      auto events = traffic_.poll();
      if (!events) return fail(events.error());
      time = now();
      if (!events->empty()) {
        worked = true;
        ROCI_TRY(retire(*events, time));
      }
      if (time >= stop_at_ && !stopping_) {
        stopping_ = true;
        turns_.add_all();  // to complete their unsignaled messages
      }
      if (batch_is_over()) {
        if (in_batches_) ROCI_TRY(have_checked());
        if (stopping_ || gate_ == end_) break;
        if (gate_ == stage_end_) {  // end of the warm-up
          stage_end_ = end_;
          meter_ = BandwidthMeter(now());
        }
        advance_gate();
        turns_.add_all();
        worked = true;
      }
      progress_.update(time, fraction(start, time), done_bytes_, gigabits);
      ROCI_TRY(control_.round(worked));
    }
    control_.set_outstanding(false);
    progress_.clear();
    return result();
  }

 private:
  // Posts messages up to the depth. Returns whether it posted any.
  Result<bool> post_more(uint32_t i) {
    bool worked = false;
    for (;;) {
      const uint64_t posted = traffic_.posted(i);
      const uint64_t space = depth_ - (posted - traffic_.completed(i));
      uint64_t count = 0;
      if (!stopping_) {
        count = std::min({uint64_t{post_list_}, gate_ - posted, space});
      } else if (traffic_.has_silent_tail(i)) {
        // One more, signaled message: its completion also completes the unsignaled ones.
        count = std::min<uint64_t>(1, space);
      }
      if (count == 0) return worked;
      if (p_.verify) {
        for (uint32_t k = 0; k < count; ++k) traffic_.prepare(i, k);
      }
      ROCI_TRY(traffic_.post(i, static_cast<uint32_t>(count), stopping_ || posted + count == gate_));
      worked = true;
    }
  }

  Status retire(std::span<const Event> events, Nanos time) {
    for (const Event& event : events) {
      if (event.receive) continue;
      turns_.add(event.queue_pair);
      const uint64_t messages = event.last - event.first;
      if (p_.verify && p_.operation == Operation::kRead) {
        for (uint64_t n = event.first; n < event.last; ++n)
          ROCI_TRY(traffic_.check_read(event.queue_pair, n));
      }
      done_ += messages;
      done_bytes_ += messages * endpoint_.layout().size;
      meter_.add(time, messages, messages * endpoint_.layout().size);
    }
    return {};
  }

  void advance_gate() { gate_ = in_batches_ ? std::min(stage_end_, gate_ + depth_) : stage_end_; }

  [[nodiscard]] bool batch_is_over() const {
    if (!traffic_.all_complete()) return false;
    if (stopping_) return true;
    for (uint32_t i = 0; i < endpoint_.count(); ++i) {
      if (traffic_.posted(i) != gate_) return false;
    }
    return true;
  }

  // A WRITE causes no completion at the responder: the client sends the ranges of messages in the server's memory and
  // waits for the answer that they are checked.
  Status have_checked() {
    Json counts = Json::array();
    for (uint32_t i = 0; i < endpoint_.count(); ++i) {
      counts.push_back({checked_[i], traffic_.posted(i)});
      checked_[i] = traffic_.posted(i);
    }
    control_.set_outstanding(false);
    ROCI_TRY(control_.send_message({{"check", counts}}));
    auto answer = control_.expect("checked");
    control_.set_outstanding(true);
    if (!answer) return fail(answer.error());
    return {};
  }

  [[nodiscard]] double fraction(Nanos start, Nanos time) const {
    if (timed_)
      return static_cast<double>((time - start).count()) / static_cast<double>((stop_at_ - start).count());
    return static_cast<double>(done_) / (static_cast<double>(end_) * endpoint_.count());
  }

  [[nodiscard]] BandwidthResult result() const {
    return {endpoint_.layout().size,
            meter_.messages(),
            static_cast<double>(meter_.elapsed().count()) * 1e-9,
            meter_.peak_bits_per_second(),
            meter_.bits_per_second(),
            meter_.messages_per_second()};
  }

  Control& control_;
  Endpoint& endpoint_;
  const Parameters& p_;
  ProgressLine& progress_;
  Traffic& traffic_;
  const uint32_t depth_;
  const uint32_t post_list_;
  const bool timed_;
  const bool in_batches_;  // the server checks between batches
  const uint64_t end_;     // messages per queue pair
  // A completion may complete messages of several posts. The warm-up is therefore a stage of its own, which ends when
  // all its messages have completed.
  uint64_t stage_end_ = end_;  // messages per queue pair at the end of the warm-up, or of the test
  uint64_t gate_ = 0;          // messages that each queue pair may post up to now
  Nanos stop_at_ = kNever;
  Nanos margin_{0};
  bool stopping_ = false;
  BandwidthMeter meter_{kNever};
  uint64_t done_ = 0, done_bytes_ = 0;
  Turns turns_{endpoint_.count()};
  std::vector<uint64_t> checked_ = std::vector<uint64_t>(endpoint_.count(), 0);
};

// Processes received messages on the serving side of SEND.
class Receiver {
 public:
  Receiver(Endpoint& endpoint, const Parameters& p, Traffic& traffic)
      : endpoint_(endpoint), p_(p), traffic_(traffic), received_(endpoint.count(), 0) {}

  Result<bool> poll() {
    auto events = traffic_.poll();
    if (!events) return fail(events.error());
    for (const Event& event : *events) {
      if (!event.receive) continue;
      const uint64_t number = received_[event.queue_pair]++;
      if (p_.verify) {
        if (event.bytes != endpoint_.layout().size) {
          return fail("verification failed: message " + std::to_string(number) + " of queue pair " +
                          std::to_string(event.queue_pair) + " has " + std::to_string(event.bytes) +
                          " bytes, not " + std::to_string(endpoint_.layout().size),
                      EBADMSG);
        }
        ROCI_TRY(traffic_.check(event.queue_pair, number, endpoint_.in(event.queue_pair, event.first)));
      }
      ROCI_TRY(
          endpoint_.post_receive(event.queue_pair, event.first + posted_receives(p_, endpoint_.layout())));
    }
    return !events->empty();
  }

  // Receives posted per queue pair. With --verify each receive has its own slot.
  static uint32_t posted_receives(const Parameters& p, const Layout& layout) {
    return p.verify ? std::min(p.rx_depth, layout.in_slots) : p.rx_depth;
  }

  // Whether each queue pair has received as many messages as the client sent on it.
  [[nodiscard]] bool has(const std::vector<uint64_t>& sent) const {
    return std::equal(sent.begin(), sent.end(), received_.begin());
  }

 private:
  Endpoint& endpoint_;
  const Parameters& p_;
  Traffic& traffic_;
  std::vector<uint64_t> received_;
};

Status check_written(const Json& ranges, Endpoint& endpoint, Traffic& traffic) {
  if (!ranges.is_array() || ranges.size() != endpoint.count())
    return fail("the client requests verification of the wrong queue pairs", EPROTO);
  for (uint32_t i = 0; i < endpoint.count(); ++i) {
    const auto [first, last] = ranges[i].get<std::pair<uint64_t, uint64_t>>();
    if (last < first || last - first > endpoint.layout().in_slots) {
      return fail("the client requests verification of more messages than the buffers hold", EPROTO);
    }
    for (uint64_t n = first; n < last; ++n) ROCI_TRY(traffic.check(i, n, endpoint.in(i, n)));
  }
  return {};
}

}  // namespace

Traffic bandwidth_traffic(Endpoint& endpoint, const Parameters& p, const Options& options) {
  const uint32_t depth = outstanding_limit(p, endpoint.layout());
  const uint32_t wanted = options.cq_mod != 0 ? options.cq_mod : std::max(1U, p.tx_depth / 4);
  return {endpoint, p, std::min(wanted, depth), options.post_list};
}

Result<BandwidthResult> run_bandwidth(Control& control, Endpoint& endpoint, const Parameters& parameters,
                                      const Options& options, ProgressLine& progress, Traffic& traffic) {
  return Run(control, endpoint, parameters, options, progress, traffic).run();
}

Status prepare_to_serve_bandwidth(Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  if (p.operation == Operation::kRead && p.verify) traffic.prepare_offer();
  if (p.operation == Operation::kSend) {
    for (uint32_t i = 0; i < endpoint.count(); ++i) {
      for (uint32_t n = 0; n < Receiver::posted_receives(p, endpoint.layout()); ++n)
        ROCI_TRY(endpoint.post_receive(i, n));
    }
  }
  return {};
}

Result<Json> serve_bandwidth(Control& control, Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  Receiver receiver(endpoint, p, traffic);
  Json final_message;
  std::vector<uint64_t> counts;
  while (final_message.is_null() || !receiver.has(counts)) {
    Json message;
    bool worked = control.take(&message);
    try {
      if (message.contains("check")) {
        ROCI_TRY(check_written(message["check"], endpoint, traffic));
        ROCI_TRY(control.send_message({{"checked", true}}));
      } else if (message.contains("done")) {
        if (p.operation == Operation::kSend) {
          message.at("messages").get_to(counts);
          if (counts.size() != endpoint.count())
            return fail("the client reports counts for the wrong queue pairs", EPROTO);
        }
        final_message = std::move(message);
      } else if (!message.is_null()) {
        return fail("the client violated the protocol with " + message.dump(), EPROTO);
      }
    } catch (const Json::exception& e) {
      return fail(std::string("the client violated the protocol: ") + e.what(), EPROTO);
    }
    auto received = receiver.poll();
    if (!received) return fail(received.error());
    ROCI_TRY(control.serve(worked || *received));
  }
  return final_message;
}

Status serve_one_sided(Control& control, Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  Receiver receiver(endpoint, p, traffic);
  const Nanos end = now() + from_seconds(p.duration);
  while (now() < end) {
    auto received = receiver.poll();
    if (!received) return fail(received.error());
    ROCI_TRY(control.serve(*received));
  }
  return {};
}

}  // namespace roci::perf
