// A process beside the test's own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace roci::test {

// A child that does something, says whether it could, and then waits to be killed.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const char good = work() ? 1 : 0;
      if (::write(ends[1], &good, 1) != 1) _exit(1);
      for (;;) ::pause();
    }
    close(ends[1]);
    char good = 0;
    done_ = ::read(ends[0], &good, 1) == 1 && good == 1;
    close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(SIGKILL); }
  void end(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  bool done_ = false;
};

}  // namespace roci::test
