// Child process of a test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace roci::test {

// A child process that performs `work`, reports whether it succeeded, and waits to be killed. Create it while this
// process has a single thread: fork() copies locks that other threads hold.
class Child {
 public:
  // When this process waits for the end of the work.
  enum class Wait { kAtOnce, kWhenAsked };

  template <class Work>
  explicit Child(Work work, Wait wait = Wait::kAtOnce) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const char good = work() ? 1 : 0;
      if (::write(ends[1], &good, 1) != 1) _exit(1);
      for (;;) ::pause();
    }
    close(ends[1]);
    said_ = ends[0];
    if (wait == Wait::kAtOnce) done();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end(SIGKILL);
    if (said_ >= 0) close(said_);
  }
  void end(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  bool done() const {
    if (said_ < 0) return done_;
    char good = 0;
    done_ = ::read(said_, &good, 1) == 1 && good == 1;
    close(said_);
    said_ = -1;
    return done_;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  mutable int said_ = -1;  // closed and -1 after the result was read
  mutable bool done_ = false;
};

}  // namespace roci::test
