// A runtime folder of a test's own, and in it a network whose switch seems to run: this process has its lock.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "net/file_lock.hpp"
#include "net/net_config.hpp"
#include "net/runtime_folder.hpp"

namespace roci::test {

class NetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "roci-net-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    setenv("ROCI_RUNTIME", root_.c_str(), 1);
    unsetenv("ROCI_CC");
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
    unsetenv("ROCI_CC");
  }

  std::filesystem::path make_net(const NetConfig& config) {
    const std::filesystem::path folder = root_ / config.name;
    std::filesystem::create_directories(folder / kNetPlaces);
    std::ofstream{folder / kNetFile} << net_text(config);
    auto lock = SharedLock::take(folder / kNetSwitchLock);
    EXPECT_TRUE(lock && *lock);
    if (lock && *lock) switch_lock_.emplace(std::move(**lock));
    return folder;
  }

  std::filesystem::path root_;
  std::optional<SharedLock> switch_lock_;
};

// A child that does something, says whether it could, and then waits to be killed.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      const char good = work() ? 1 : 0;
      if (write(ends[1], &good, 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    char good = 0;
    done_ = read(ends[0], &good, 1) == 1 && good == 1;
    close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(SIGKILL); }
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
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
