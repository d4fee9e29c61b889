// Wait loops of both sides. While one side waits for completions, for bytes in memory or for a control message, Control
// polls its device, detects the loss of the peer, and limits the waiting time.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/os/waiting.hpp"
#include "base/types.hpp"
#include "roci-perf/connection/exchange.hpp"
#include "roci/device.hpp"
#include "roci/poller.hpp"

namespace roci::perf {

struct WaitLimits {
  Nanos stall = 20s;  // limit for a wait without any progress
  Nanos grace = 5s;   // time for completions after the control connection has closed
};
// Limits that let a queue pair with these attributes exhaust its retries first, so that its completion reports the
// cause.
WaitLimits limits_for(unsigned qp_timeout, unsigned retry_count);

Nanos now();  // monotonic clock
inline Nanos from_seconds(double seconds) { return Nanos{static_cast<int64_t>(seconds * 1e9)}; }

// Progress and error checks of wait loops. Owned by one thread. The caller's loops have the form
//   while (!arrived()) ROCI_TRY(control.round(did_something));
class Control {
 public:
  // `channel` may be null: a peer without a control connection. `others` are polled in every round by this thread.
  Control(Device& device, std::unique_ptr<Channel> channel, std::string peer_name, WaitLimits limits,
          std::vector<Poller*> others = {});

  // Called once per iteration of a wait loop. Fails on an interrupt, on an error reported by the peer, after the peer
  // has closed the connection, or without progress for WaitLimits::stall.
  Status round(bool worked);
  // The same for a loop that polls no completion queue: polls the device.
  Status round() { return round(device_.progress()); }

  // The same for the serving side: polls the device, and does not limit the waiting time while the control connection
  // is open.
  Status serve(bool worked);

  Status send_message(const Json& message);
  // Removes the next received message, if there is one.
  bool take(Json* message);
  // Waits for a message that contains `key`; any other message is a protocol error (EPROTO).
  Result<Json> expect(const char* key);

  // Whether completions are outstanding that can report why the peer has closed the connection.
  void set_outstanding(bool outstanding) { outstanding_ = outstanding; }
  // Increases while the thread executes rounds; read by the watchdog.
  [[nodiscard]] const std::atomic<uint64_t>& heartbeat() const { return heartbeat_; }
  [[nodiscard]] const std::string& peer_name() const { return peer_name_; }
  [[nodiscard]] bool has_channel() const { return channel_ != nullptr; }

 private:
  Status check_progress();
  Status read_channel();

  Device& device_;
  std::unique_ptr<Channel> channel_;
  std::string peer_name_;  // for example "the server"
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
