// Waiting, done in one place: while one side waits for completions, bytes in memory or the other side's word, its
// device must go on, a vanished peer must be noticed, and nothing may wait for ever.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/poller.hpp"
#include "base/waiting.hpp"
#include "roci-perf/exchange.hpp"
#include "roci/device.hpp"

namespace roci::perf {

struct WaitLimits {
  Nanos stall = 20s;  // a wait in which nothing moves for this long has failed
  Nanos grace = 5s;   // how long completions may still come after the control connection has gone
};
// Long enough for a queue pair with these attributes to give up first and tell why.
WaitLimits limits_for(unsigned qp_timeout, unsigned retry_count);

Nanos now();  // the monotonic clock
inline Nanos from_seconds(double seconds) { return Nanos{static_cast<int64_t>(seconds * 1e9)}; }

// Owned by one thread. The caller's loops look like
//   while (!arrived()) ROCI_TRY(control.round(did_something));
class Control {
 public:
  // `channel` may be null: a peer that speaks no exchange. `others` are polled in every round of this thread.
  Control(Device& device, std::unique_ptr<Channel> channel, std::string peer_name, WaitLimits limits,
          std::vector<Poller*> others = {});

  // To be called once per turn of a waiting loop. Fails when the user interrupted, the other side reported an error
  // or went away, or nothing has moved for too long.
  Status round(bool worked);
  // The same for a loop that polls no completion queue: drives the device itself.
  Status round() { return round(device_.progress()); }

  // The same as round() for the side that only serves: it drives the device, and is patient, because how long the other side
  // takes is not its business as long as that is there.
  Status serve(bool worked);

  Status tell(const Json& message);
  // The next message of the other side if one is there.
  bool take(Json* message);
  // Waits for a message that has `key`; anything else is a breach of the exchange.
  Result<Json> expect(const char* key);

  // Whether completions can still tell why the other side is gone.
  void set_outstanding(bool outstanding) { outstanding_ = outstanding; }
  // Counts up while the thread is alive; for the watchdog.
  [[nodiscard]] const std::atomic<uint64_t>& heartbeat() const { return heartbeat_; }
  [[nodiscard]] const std::string& peer_name() const { return peer_name_; }
  [[nodiscard]] bool has_channel() const { return channel_ != nullptr; }

 private:
  Status look_around();
  Status read_channel();

  Device& device_;
  std::unique_ptr<Channel> channel_;
  std::string peer_name_;  // "the server"
  WaitLimits limits_;
  std::vector<Poller*> others_;
  EmptyPolls empty_polls_;
  unsigned rounds_ = 0;
  bool worked_ = false;
  bool outstanding_ = false;
  Nanos last_work_;
  Nanos closed_at_ = kNever;
  std::deque<Json> inbox_;
  std::atomic<uint64_t> heartbeat_{0};
};

}  // namespace roci::perf
