// Model of flows that share one link, in virtual time, for algorithms that react to their own packets. Senders obey
// the decisions (window, rate, gap, Not-ECT), each on a port with the link's rate. Each packet gets an
// acknowledgment; after a loss the sender goes back (go-back-N).
//
//   sender --84 ns, 1 us--> [queue: marks, drops, telemetry] --84 ns, 1 us--> receiver --2 us--> sender
#pragma once

#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "cc/driver.hpp"

namespace roci::test {

struct BottleneckQueue {
  double mark_from = 13'000;  // queue in bytes with marking probability 0
  double mark_all = 52'000;   // queue in bytes with marking probability 1
  double drop_not_ect = 26'000;
  double capacity = 64e6;
  uint64_t seed = 1;  // of the marks
};

class Bottleneck {
 public:
  using Queue = BottleneckQueue;
  struct Result {
    double goodput;     // payload, Gb/s
    double mean_queue;  // bytes, sampled when packets leave
    double most_queue;  // of the complete run
    double fairness;    // Jain's index
    uint64_t drops;     // of the complete run
    uint64_t late_drops;
  };
  static constexpr uint64_t kPacketTime = 84;  // ns: 1048 bytes at 100 Gb/s
  static constexpr uint64_t kPacket = 1048, kPayload = 1000;

  static roci_cc_flow flow() {
    roci_cc_flow flow = Driver::usual_flow();
    flow.base_rtt_ns = 4168;
    return flow;
  }

  Bottleneck(const char* name, unsigned flows, const Driver::Values& values = {}, const Queue& queue = {})
      : queue_(queue), rng_(queue.seed) {
    for (unsigned i = 0; i < flows; ++i) {
      roci_cc_flow on = flow();
      on.seed = i;
      senders_.push_back(std::make_unique<Sender>(plugin(name), values, on));
      at(i * 13, kWake, i);
    }
  }

  // The results are those of the second half, unless stated otherwise.
  Result run(uint64_t nanos) {
    while (!events_.empty() && events_.top().time < nanos) {
      const Event event = events_.top();
      events_.pop();
      if (now_ < nanos / 2 && event.time >= nanos / 2) begin_counting();
      now_ = event.time;
      switch (event.kind) {
        case kWake:
          if (event.time == senders_[event.flow]->wake) senders_[event.flow]->wake = 0;
          send(event.flow);
          break;
        case kAtSwitch:
          enqueue(event);
          break;
        case kLeaves:
          dequeue();
          break;
        case kAtReceiver:
          receive(event);
          break;
        case kAnswer:
          answer(event);
          break;
        case kSilence:
          silence(event.flow);
          break;
      }
    }
    double sum = 0, squares = 0;
    for (const auto& sender : senders_) {
      const auto bytes = static_cast<double>(sender->delivered - sender->delivered_before);
      sum += bytes;
      squares += bytes * bytes;
    }
    const auto count = static_cast<double>(senders_.size());
    return {.goodput = sum * 8 / (static_cast<double>(nanos) / 2),
            .mean_queue = left_ == 0 ? 0 : queue_sum_ / static_cast<double>(left_),
            .most_queue = most_queue_,
            .fairness = squares == 0 ? 0 : sum * sum / (count * squares),
            .drops = drops_,
            .late_drops = drops_ - drops_before_};
  }

  [[nodiscard]] Driver& driver(unsigned flow) { return senders_[flow]->driver; }

 private:
  enum Kind { kWake, kAtSwitch, kLeaves, kAtReceiver, kAnswer, kSilence };
  struct Event {
    uint64_t time;
    uint64_t order;
    Kind kind;
    unsigned flow;
    uint64_t sequence;
    uint64_t sent_at;
    bool ect, marked, nak;
    roci_cc_hop hop;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Sender {
    Sender(const roci_cc_plugin& plugin, const Driver::Values& values, const roci_cc_flow& on)
        : driver(plugin, values, on) {}
    Driver driver;
    uint64_t next = 0;   // sequence number of the next packet to send, possibly a retransmission
    uint64_t fresh = 0;  // of the next packet that was never sent
    uint64_t acked = 0;
    uint64_t expected = 0;  // by the receiver
    bool nak_sent = false;
    uint64_t may_leave = 0, port_free = 0, left = 0;
    uint64_t wake = 0;  // time of the next scheduled check; 0: none
    uint64_t heard = 0;
    uint64_t delivered = 0, delivered_before = 0;
  };

  void at(uint64_t time, Kind kind, unsigned flow, Event more = {}) {
    more.time = time;
    more.order = ++order_;
    more.kind = kind;
    more.flow = flow;
    events_.push(more);
  }

  void send(unsigned index) {
    Sender& s = *senders_[index];
    const roci_cc_decision& d = s.driver.decision;
    while (true) {
      const uint64_t in_flight = (s.next - s.acked) / kPayload * kPacket;
      if (in_flight > 0 && in_flight + kPacket > d.window) return;
      // The current gap applies, not that of the last departure.
      const uint64_t by_gap = s.left == 0 ? 0 : s.left + d.gap_ns;
      const uint64_t when = std::max({s.may_leave, s.port_free, by_gap});
      if (when > now_) {
        if (s.wake > now_ && s.wake <= when) return;
        s.wake = when;
        return at(when, kWake, index);
      }
      Event packet{};
      packet.sequence = s.next;
      packet.sent_at = now_;
      const bool last = in_flight + 2 * kPacket > d.window;
      packet.ect = s.next < s.fresh || s.next >= d.not_ect_below || last;
      at(now_ + kPacketTime + 1000, kAtSwitch, index, packet);
      if (s.next == s.acked) {
        s.heard = now_;
        at(now_ + kTimeout, kSilence, index);
      }
      s.next += kPayload;
      s.fresh = std::max(s.fresh, s.next);
      s.port_free = now_ + kPacketTime;
      const double by_rate = 8e9 * static_cast<double>(kPacket) / static_cast<double>(d.rate);
      s.may_leave = now_ + static_cast<uint64_t>(by_rate);
      s.left = now_;
    }
  }

  void enqueue(Event packet) {
    const double all = queue_.mark_all, from = queue_.mark_from;
    const bool full = queued_ + static_cast<double>(kPacket) > queue_.capacity;
    if (full || (!packet.ect && queued_ >= queue_.drop_not_ect)) {
      ++drops_;
      return;
    }
    const double chance = queued_ >= all ? 1 : queued_ < from ? 0 : (queued_ - from) / (all - from);
    if (packet.ect && static_cast<double>(rng_() >> 11) * 0x1p-53 < chance) packet.marked = true;
    queued_ += kPacket;
    most_queue_ = std::max(most_queue_, queued_);
    waiting_.push_back(packet);
    if (waiting_.size() == 1) at(now_ + kPacketTime, kLeaves, packet.flow);
  }

  void dequeue() {
    Event packet = waiting_.front();
    waiting_.pop_front();
    queued_ -= kPacket;
    sent_ += kPacket;
    queue_sum_ += queued_;
    ++left_;
    packet.hop = {.node = 1,
                  .port = 1,
                  .time_ns = static_cast<uint32_t>(now_),
                  .sent_units = static_cast<uint32_t>(sent_ / 8),
                  .rate = 100'000'000'000,
                  .queue_bytes = static_cast<uint32_t>(queued_),
                  .reserved = 0};
    at(now_ + 1000, kAtReceiver, packet.flow, packet);
    if (!waiting_.empty()) at(now_ + kPacketTime, kLeaves, 0);
  }

  void receive(Event packet) {
    Sender& s = *senders_[packet.flow];
    if (packet.sequence == s.expected) {
      s.expected += kPayload;
      s.delivered += kPayload;
      s.nak_sent = false;
    } else if (packet.sequence > s.expected) {
      if (s.nak_sent) return;
      packet.nak = s.nak_sent = true;
    }
    packet.sequence = s.expected;
    at(now_ + 2000, kAnswer, packet.flow, packet);
  }

  void answer(const Event& packet) {
    Sender& s = *senders_[packet.flow];
    roci_cc_event& event = s.driver.event;
    const auto packets = static_cast<uint32_t>((std::max(packet.sequence, s.acked) - s.acked) / kPayload);
    s.acked = std::max(s.acked, packet.sequence);
    s.heard = now_;
    if (packet.nak) s.next = s.acked;
    s.next = std::max(s.next, s.acked);
    fill(s);
    event.acked_packets = packets;
    event.acked_bytes = packets * kPacket;
    event.marked_packets = packets > 0 && packet.marked ? 1 : 0;
    event.rtt_ns = static_cast<uint32_t>(now_ - packet.sent_at);
    event.losses = packet.nak ? 1 : 0;
    roci_cc_path path{};
    path.hops = 1;
    path.hop[0] = packet.hop;
    event.path = &path;
    uint32_t kinds = ROCI_CC_ON_RTT | ROCI_CC_ON_TELEMETRY;
    if (packets > 0) kinds |= ROCI_CC_ON_ACK;
    if (packet.nak) kinds |= ROCI_CC_ON_LOSS;
    s.driver.call(kinds);
    send(packet.flow);
  }

  void silence(unsigned index) {
    Sender& s = *senders_[index];
    if (s.next == s.acked) return;
    if (now_ < s.heard + kTimeout) return at(s.heard + kTimeout, kSilence, index);
    s.next = s.acked;
    s.heard = now_;
    s.nak_sent = false;
    fill(s);
    s.driver.event.timeouts = 1;
    s.driver.call(ROCI_CC_ON_TIMEOUT);
    send(index);
  }

  void fill(Sender& s) const {
    roci_cc_event& event = s.driver.event;
    event.now_ns = now_;
    event.acked = s.acked;
    event.next = s.fresh;
    event.in_flight = (s.next - s.acked) / kPayload * kPacket;
  }

  void begin_counting() {
    for (auto& sender : senders_) sender->delivered_before = sender->delivered;
    queue_sum_ = 0;
    left_ = 0;
    drops_before_ = drops_;
  }

  static constexpr uint64_t kTimeout = 500'000;
  Queue queue_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<Event> waiting_;
  std::mt19937_64 rng_;
  uint64_t now_ = 0, order_ = 0, sent_ = 0, left_ = 0, drops_ = 0, drops_before_ = 0;
  double queued_ = 0, queue_sum_ = 0, most_queue_ = 0;
};

}  // namespace roci::test
