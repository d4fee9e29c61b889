#include "roci-perf/connection/control.hpp"

#include <algorithm>
#include <cstdio>

#include "base/os/interrupt.hpp"
#include "base/time/tick_clock.hpp"

namespace roci::perf {
namespace {

constexpr unsigned kRoundsBetweenChecks = 64;

double in_seconds(Nanos span) { return static_cast<double>(span.count()) * 1e-9; }

}  // namespace

WaitLimits limits_for(unsigned qp_timeout, unsigned retry_count) {
  // IBTA 9.7.6.1.3: the time-out is 4.096 us x 2^n; detection may take up to four times as long.
  const auto one = Nanos{static_cast<int64_t>(4096ULL << std::min(qp_timeout, 31U))};
  const Nanos gives_up = one * 4 * static_cast<int64_t>(retry_count + 1);
  WaitLimits limits;
  limits.grace = std::clamp<Nanos>(gives_up + 1s, 2s, 60s);
  limits.stall = std::max<Nanos>(20s, gives_up + 5s);
  return limits;
}

Nanos now() {
  static thread_local TickClock clock;
  return clock.now();
}

Control::Control(Device& device, std::unique_ptr<Channel> channel, std::string peer_name, WaitLimits limits,
                 std::vector<Poller*> others)
    : device_(device),
      channel_(std::move(channel)),
      peer_name_(std::move(peer_name)),
      limits_(limits),
      others_(std::move(others)),
      last_work_(now()) {}

Status Control::round(bool worked) {
  if (!others_.empty()) {
    const Nanos time = now();
    for (Poller* other : others_) worked |= other->poll(time);
  }
  worked_ |= worked;
  empty_polls_.note(worked, now());
  if (++rounds_ % kRoundsBetweenChecks != 0) return {};
  return check_progress();
}

Status Control::serve(bool worked) {
  worked_ = true;
  return round(device_.progress() || worked);
}

Status Control::check_progress() {
  heartbeat_.store(heartbeat_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (interrupted()) return fail("interrupted", EINTR);
  ROCI_TRY(read_channel());
  const Nanos time = now();
  if (worked_) {
    worked_ = false;
    last_work_ = time;
  } else if (time - last_work_ > limits_.stall) {
    char text[160];
    std::snprintf(text, sizeof text, "no progress for %.0f s while waiting for %s; aborted",
                  in_seconds(time - last_work_), peer_name_.c_str());
    return fail(text, ETIMEDOUT);
  }
  return {};
}

Status Control::read_channel() {
  if (channel_ == nullptr || closed_at_ != kNever) {
    if (closed_at_ != kNever && (!outstanding_ || now() - closed_at_ > limits_.grace)) {
      return fail(peer_name_ + " closed the control connection during the test", ECONNRESET);
    }
    return {};
  }
  for (;;) {
    auto message = channel_->poll();
    if (!message) {
      if (message.error().code != ECONNRESET) return fail(message.error().within(peer_name_));
      if (!inbox_.empty()) return {};  // deliver the received messages first
      closed_at_ = now();
      return read_channel();
    }
    if (!*message) return {};
    if ((*message)->contains("error")) {
      const Json& error = (**message)["error"];
      return fail(peer_name_ + " reports: " + (error.is_string() ? error.get<std::string>() : error.dump()),
                  EREMOTEIO);
    }
    worked_ = true;
    inbox_.push_back(std::move(**message));
  }
}

Status Control::send_message(const Json& message) {
  if (channel_ == nullptr) return {};
  if (auto sent = channel_->send(message); !sent) {
    // An error message that the peer sent before it closed the connection explains more than the send error.
    if (auto pending = read_channel(); !pending) return pending;
    return fail(sent.error().within(peer_name_));
  }
  return {};
}

bool Control::take(Json* message) {
  if (inbox_.empty()) return false;
  *message = std::move(inbox_.front());
  inbox_.pop_front();
  return true;
}

Result<Json> Control::expect(const char* key) {
  Json message;
  ROCI_TRY(read_channel());
  while (!take(&message)) ROCI_TRY(round());
  if (!message.contains(key)) {
    return fail(peer_name_ + " violated the protocol: a message with \"" + key + "\" is required, but " +
                    message.dump() + " was received",
                EPROTO);
  }
  return message;
}

}  // namespace roci::perf
