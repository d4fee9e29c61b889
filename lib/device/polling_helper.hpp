// The thread that drives a host for an application that does not poll it, on a port that cannot be waited for. It polls in busy
// periods while the application is silent, and sleeps in between. Ports with a wakeup have WaitingHelper instead.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/types.hpp"

namespace roci {

class Host;

class PollingHelper {
 public:
  explicit PollingHelper(Host& host);
  ~PollingHelper();
  PollingHelper(const PollingHelper&) = delete;
  PollingHelper& operator=(const PollingHelper&) = delete;

 private:
  void run();
  [[nodiscard]] bool is_silent() const;
  void stand_in();
  void nap();
  bool busy_period();
  void be_prompt();

  Host& host_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  Nanos linger_{0};      // of busy_period()
  bool prompt_ = false;  // it may have the highest priority
  int usual_ = 0;        // the priority of the program
  std::thread thread_;
};

}  // namespace roci
