// Start and stop of a switch, which is a shell script here.
#include "net/net_control.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "net_fixture.hpp"

namespace roci {
namespace {

class NetControl : public test::NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    start_.net.name = "one";
    start_.net.always_switch = true;
    start_.timeout = 20s;
  }
  // The error of starting a switch that executes these commands and exits.
  std::string start(const std::string& commands) {
    start_.program = root_ / "program";
    std::ofstream{start_.program} << "#!/bin/sh\n" << commands << "\n";
    chmod(start_.program.c_str(), 0700);
    const auto folder = ensure_switch(start_);
    return folder ? "it started" : folder.error().message;
  }
  static std::string content_of(const std::filesystem::path& file) {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  SwitchStart start_;
  const std::filesystem::path folder_ = root_ / "one";
};

TEST_F(NetControl, error_has_the_last_line_of_the_switch) {
  EXPECT_EQ(start("echo first; echo last"), "the switch of the network 'one' did not start: last");
  struct stat found {};
  for (const char* name : {kNetFile, kNetSwitchFile, kNetSwitchLog}) {
    ASSERT_EQ(stat((folder_ / name).c_str(), &found), 0) << name;
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << name;
  }
  ASSERT_EQ(stat(folder_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
}

TEST_F(NetControl, log_is_not_written_through_a_link) {
  std::filesystem::create_directory(folder_);
  const auto victim = root_ / "victim";
  std::ofstream{victim} << "content";
  // The log of the previous switch cannot be renamed.
  std::filesystem::create_directories(folder_ / (std::string{kNetSwitchLog} + ".1") / "x");
  std::filesystem::create_symlink(victim, folder_ / kNetSwitchLog);
  const std::string message = start("echo overwritten");
  EXPECT_EQ(content_of(victim), "content");
  EXPECT_NE(message.find("File exists"), std::string::npos) << message;
}

TEST_F(NetControl, description_is_not_read_or_written_through_a_link) {
  std::filesystem::create_directory(folder_);
  const auto victim = root_ / "victim";
  for (const char* name : {kNetFile, kNetSwitchFile}) {
    std::ofstream{victim} << "net: {name: one}\n";
    std::filesystem::remove(folder_ / name);
    std::filesystem::create_symlink(victim, folder_ / name);
    const auto folder = PrivateFolder::open(folder_);
    ASSERT_TRUE(folder) << folder.error().message;
    if (name == std::string{kNetFile}) {
      EXPECT_EQ(read_net(*folder).error().code, ELOOP);
    }
    EXPECT_EQ(start("echo x"), "the switch of the network 'one' did not start: x");
    EXPECT_EQ(content_of(victim), "net: {name: one}\n");
  }
}

TEST_F(NetControl, switch_inherits_the_lock_and_no_other_descriptor) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, 70'001);
  limit.rlim_cur = wanted;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const int low = open("/dev/null", O_RDONLY);
  const int high = fcntl(low, F_DUPFD, static_cast<int>(wanted) - 1);
  ASSERT_GE(high, 0);
  // The limit does not affect descriptors that are already open.
  limit.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::string message = start(
      "for fd in /proc/$$/fd/*; do case $(readlink $fd) in */switch.lock) lock=1;; /dev/null) "
      "list=\"$list ${fd##*/}\";; esac; done; echo null:$list lock:$lock");
  setrlimit(RLIMIT_NOFILE, &before);
  close(low);
  close(high);
  EXPECT_EQ(message, "the switch of the network 'one' did not start: null: 0 lock:1");
}

// A process that holds the locks of a switch of this network, and waits for signals.
class NetStop : public NetControl {
 protected:
  void SetUp() override {
    NetControl::SetUp();
    std::filesystem::create_directories(folder_ / kShmSlotFolder);
  }
  [[nodiscard]] auto locks(bool slot) const {
    return [this, slot] {
      static auto shared = SharedLock::take(folder_ / kNetSwitchLock);
      if (!shared || !*shared) return false;
      if (!slot) return true;
      static auto own = ProcessLock::take(shm_slot_file(folder_, kShmSwitchSlot));
      return own && own->has_value();
    };
  }
  void announce(pid_t pid) const { std::ofstream{folder_ / kNetSwitchPid} << pid << "\n"; }
  static bool is_alive(const test::Child& child) { return waitpid(child.pid(), nullptr, WNOHANG) == 0; }
};

TEST_F(NetStop, ends_the_process_that_holds_the_locks) {
  const test::Child child{locks(true)};
  ASSERT_TRUE(child.done());
  announce(child.pid());
  const auto stopped = stop_switch(folder_, 5s);
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(*stopped);
}

TEST_F(NetStop, does_not_signal_a_process_that_does_not_hold_the_lock) {
  const test::Child owner{locks(true)};
  ASSERT_TRUE(owner.done());
  const test::Child other{[] { return true; }};
  ASSERT_TRUE(other.done());
  announce(other.pid());
  const auto stopped = stop_switch(folder_, 100ms);
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("does not hold the lock"), std::string::npos)
      << stopped.error().message;
  EXPECT_TRUE(is_alive(other));
  EXPECT_TRUE(is_alive(owner));
}

// Another process looks whether the lock is taken, while the ready file is that of a killed switch.
TEST_F(NetStop, ready_file_of_a_killed_switch_is_not_that_of_a_running_one) {
  const test::Child looks{locks(false)};
  ASSERT_TRUE(looks.done());
  pid_t killed = 0;
  {
    const test::Child child{[] { return true; }};
    ASSERT_TRUE(child.done());
    killed = child.pid();
  }
  announce(killed);
  start_.timeout = 100ms;
  EXPECT_NE(start("echo x").find("is not ready"), std::string::npos);
}

// As for a switch in another PID namespace, where the number is that of another process here.
TEST_F(NetStop, does_not_signal_a_process_if_the_holder_of_the_lock_is_unknown) {
  const test::Child owner{locks(false)};
  ASSERT_TRUE(owner.done());
  const test::Child other{[] { return true; }};
  ASSERT_TRUE(other.done());
  announce(other.pid());
  const auto stopped = stop_switch(folder_, 50ms);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ETIMEDOUT);
  EXPECT_TRUE(is_alive(other));
}

}  // namespace
}  // namespace roci
