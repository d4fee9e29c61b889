#include "roci-perf/measurement/latency.hpp"

#include <atomic>
#include <cstdio>

namespace roci::perf {
namespace {

constexpr uint32_t kQueuePair = 0;          // a latency test has one queue pair
constexpr size_t kExpectedTimed = 1 << 16;  // reserved samples if their number is not known
// Longer than a thread takes to copy one packet, even if it is preempted.
constexpr Nanos kPlacing = 10ms;

std::string round_trips(double per_second) {
  char text[40];
  std::snprintf(text, sizeof text, "%.0f round trips/s", per_second);
  return text;
}

// One side of the exchange of single messages.
class PingPong {
 public:
  PingPong(Control& control, Endpoint& endpoint, const Parameters& p, Traffic& traffic)
      : control_(control), endpoint_(endpoint), p_(p), traffic_(traffic) {}

  // Posts message `n` as soon as the previous message in its slot has completed.
  Status post(uint64_t n) {
    while (n - traffic_.completed(kQueuePair) >= endpoint_.layout().out_slots) ROCI_TRY(turn());
    if (p_.verify) traffic_.prepare(kQueuePair, 0);
    if (is_write()) last_byte(endpoint_.out(kQueuePair, n)).store(marker(n), std::memory_order_relaxed);
    ready_ = now();
    return traffic_.post(kQueuePair, 1, true);
  }

  // Polls once. Returns whether message `n` of the peer has arrived.
  Result<bool> arrived(uint64_t n) {
    ROCI_TRY(turn());
    if (is_write()) {
      return last_byte(endpoint_.in(kQueuePair, n)).load(std::memory_order_acquire) == marker(n);
    }
    return received_ > n;
  }

  // Processes an arrived message: checks it, and reposts its receive.
  Status take_in(uint64_t n) {
    const std::span<uint8_t> data = endpoint_.in(kQueuePair, n);
    if (p_.operation == Operation::kSend) {
      if (p_.verify) {
        if (bytes_ != data.size()) {
          return fail("verification failed: message " + std::to_string(n) + " has " + std::to_string(bytes_) +
                          " bytes, not " + std::to_string(data.size()),
                      EBADMSG);
        }
        ROCI_TRY(traffic_.check(kQueuePair, n, data));
      }
      return endpoint_.post_receive(kQueuePair, n + endpoint_.layout().in_slots);
    }
    if (!p_.verify) return {};
    // If the device has its own thread, the marker byte may be visible before the rest of its packet. A mismatch is
    // reported only if it persists for kPlacing.
    const Nanos placing_deadline = now() + kPlacing;
    for (;;) {
      Status right = traffic_.check(kQueuePair, n, data, 1);
      if (right || now() >= placing_deadline) return right;
      ROCI_TRY(turn());
    }
  }

  Status finish() {
    while (!traffic_.all_complete()) ROCI_TRY(turn());
    return {};
  }

  // One iteration of waiting: polls completions and the device.
  Status turn() {
    auto events = traffic_.poll();
    if (!events) return fail(events.error());
    for (const Event& event : *events) {
      if (event.receive) {
        ++received_;
        bytes_ = event.bytes;
      }
    }
    return control_.round(!events->empty());
  }

  [[nodiscard]] Nanos ready() const { return ready_; }  // when the newest message was about to be posted

 private:
  [[nodiscard]] bool is_write() const { return p_.operation == Operation::kWrite; }
  // Value of the last byte of WRITE number `n`. It differs from that of the message before. As the bytes of a message
  // are placed in order, this byte shows that the message has arrived.
  static uint8_t marker(uint64_t n) { return static_cast<uint8_t>(n + 1); }
  static std::atomic_ref<uint8_t> last_byte(std::span<uint8_t> data) {
    return std::atomic_ref<uint8_t>(data.back());
  }

  Control& control_;
  Endpoint& endpoint_;
  const Parameters& p_;
  Traffic& traffic_;
  uint64_t received_ = 0;
  uint32_t bytes_ = 0;  // length of the newest receive
  Nanos ready_{0};
};

// Time of message `n` from post to the arrival of the answer, halved for WRITE and SEND. Also checks the message.
Result<Nanos> round_trip(PingPong& side, Control& control, const Parameters& p, Traffic& traffic,
                         uint64_t n) {
  control.set_outstanding(true);
  if (p.operation == Operation::kRead) {
    ROCI_TRY(side.post(n));
    while (traffic.completed(kQueuePair) <= n) ROCI_TRY(side.turn());
    const Nanos span = now() - side.ready();
    if (p.verify) ROCI_TRY(traffic.check_read(kQueuePair, n));
    return span;
  }
  ROCI_TRY(side.post(n));
  for (;;) {
    auto there = side.arrived(n);
    if (!there) return fail(there.error());
    if (*there) break;
  }
  const Nanos span = now() - side.ready();
  ROCI_TRY(side.take_in(n));
  return span / 2;
}

}  // namespace

Traffic latency_traffic(Endpoint& endpoint, const Parameters& parameters) {
  return {endpoint, parameters, 1, 1};
}

Status prepare_for_latency(Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  if (p.operation == Operation::kRead && p.verify) traffic.prepare_offer();
  if (p.operation == Operation::kSend) {
    for (uint32_t n = 0; n < endpoint.layout().in_slots; ++n) ROCI_TRY(endpoint.post_receive(kQueuePair, n));
  }
  return {};
}

Result<LatencySamples> run_latency(Control& control, Endpoint& endpoint, const Parameters& p,
                                   ProgressLine& progress, Traffic& traffic) {
  PingPong side(control, endpoint, p, traffic);
  const bool timed = p.duration > 0;
  const uint64_t end = p.warm_up + p.iterations;
  LatencySamples samples(timed ? kExpectedTimed : p.iterations);
  Nanos start = now();
  const auto span = Nanos{static_cast<int64_t>(p.duration * 1e9)};
  progress.start("RDMA " + std::string(to_string(p.operation)) + " latency, " +
                     std::to_string(endpoint.layout().size) + " bytes",
                 start);
  Nanos time = start;
  for (uint64_t n = 0; timed ? time - start < span : n < end; ++n) {
    auto sample = round_trip(side, control, p, traffic, n);
    if (!sample) return fail(sample.error());
    if (n >= p.warm_up) samples.add(*sample);
    time = now();
    // The duration starts after the warm-up, except without a control channel: there the peer counts from its own
    // start.
    if (n < p.warm_up && control.has_channel()) start = time;
    const double fraction =
        timed ? static_cast<double>((time - start).count()) / static_cast<double>(span.count())
              : static_cast<double>(n) / static_cast<double>(end);
    progress.update(time, fraction, n, round_trips);
  }
  ROCI_TRY(side.finish());
  control.set_outstanding(false);
  progress.clear();
  return samples;
}

Result<Json> serve_latency(Control& control, Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  PingPong side(control, endpoint, p, traffic);
  const Nanos end = control.has_channel() ? kNever : now() + Nanos{static_cast<int64_t>(p.duration * 1e9)};
  Json message;
  const auto over = [&]() -> Result<bool> {
    if (!control.take(&message)) return now() >= end;
    if (message.contains("done")) return true;
    return fail("the client violated the protocol with " + message.dump(), EPROTO);
  };
  for (uint64_t n = 0;;) {
    auto done = over();
    if (!done) return fail(done.error());
    if (*done) break;
    if (p.operation == Operation::kRead) {  // the device responds without the application
      ROCI_TRY(control.serve(false));
      continue;
    }
    auto there = side.arrived(n);
    if (!there) return fail(there.error());
    if (!*there) continue;
    ROCI_TRY(side.take_in(n));
    ROCI_TRY(side.post(n++));
  }
  ROCI_TRY(side.finish());
  return message;
}

}  // namespace roci::perf
