// roci-naps: how often a thread that sleeps gets to look at something on a core where another thread spins. That is what serves a
// program which waits for memory to change and calls nobody meanwhile (ib_write_lat): no library can be quicker there than half
// of the time between two looks.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// On the first of the cores that this thread may use.
bool stay_on_one_core() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  int first = 0;
  while (first < CPU_SETSIZE && !CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&allowed);
  CPU_SET(first, &allowed);
  return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How often a thread that sleeps looks at something on a core where another one spins."};
  unsigned nap_us = 20;
  double seconds = 1;
  app.add_option("--nap", nap_us, "microseconds that it sleeps [20]")->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--seconds", seconds, "how long [1]")->check(CLI::Range(0.001, 60.0));
  CLI11_PARSE(app, argc, argv);
  if (!stay_on_one_core()) {
    std::perror("roci-naps: cannot stay on one core");
    return 1;
  }

  std::atomic<bool> stop{false};
  std::vector<double> between;  // looks, in ns
  bool first_of_all = false;
  std::thread sleeper([&] {
    prctl(PR_SET_TIMERSLACK, 1UL);
    constexpr int kFirst = -20;
    first_of_all = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kFirst) == 0;
    for (auto last = Clock::now(); !stop.load(std::memory_order_relaxed);) {
      std::this_thread::sleep_for(std::chrono::microseconds{nap_us});
      const auto now = Clock::now();
      between.push_back(std::chrono::duration<double, std::nano>(now - last).count());
      last = now;
    }
  });
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
  }
  stop.store(true, std::memory_order_relaxed);
  sleeper.join();
  if (between.empty()) {
    std::fputs("roci-naps: the thread never woke up\n", stderr);
    return 1;
  }
  std::ranges::sort(between);
  std::printf("naps of %u us, %s: %zu looks, median %.0f ns apart, 99 %% within %.0f ns\n", nap_us,
              first_of_all ? "with the highest priority" : "with no higher priority than others",
              between.size(), between[between.size() / 2], between[between.size() * 99 / 100]);
  return 0;
}
