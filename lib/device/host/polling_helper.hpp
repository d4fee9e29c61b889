// Helper thread that drives a host while the application does not poll it, on a port without PortWakeup. It polls in
// busy periods while the application is silent, and sleeps in between. Ports with a wakeup have WaitingHelper instead.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.hpp"
#include "base/types.hpp"

namespace roci {

class Host;

// Owned by the host. Its thread runs until destruction.
class PollingHelper {
 public:
  // EAGAIN: the thread cannot be started.
  static Result<std::unique_ptr<PollingHelper>> start(Host& host);
  ~PollingHelper();
  PollingHelper(const PollingHelper&) = delete;
  PollingHelper& operator=(const PollingHelper&) = delete;

 private:
  explicit PollingHelper(Host& host) : host_(host) {}
  void run();
  [[nodiscard]] bool is_silent() const;
  void poll_for_application();
  void sleep_briefly();
  bool busy_period();
  void raise_priority();

  Host& host_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  Nanos linger_{0};                  // how long busy_period() polls without work
  bool may_raise_priority_ = false;  // the raised priority is permitted
  int application_nice_ = 0;         // nice value of the application
  std::thread thread_;
};

}  // namespace roci
