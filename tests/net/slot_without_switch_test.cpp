// Slots of a network whose processes exchange frames through shared memory, without a switch process.
#include <sys/stat.h>

#include <atomic>
#include <set>
#include <thread>

#include "net/net_control.hpp"
#include "net/net_slot.hpp"
#include "net_fixture.hpp"
#include "support/process/pid_namespace.hpp"

namespace roci {
namespace {

class SlotWithoutSwitch : public test::NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    config_.slots = 3;
    folder_ = make_net(config_);
    switch_lock_.reset();
  }
  [[nodiscard]] std::filesystem::path place_file(uint32_t place) const {
    return folder_ / kShmSlotFolder / std::to_string(place);
  }
  // Inode of the shared memory of a slot's owner, as another process finds it; 0: none.
  [[nodiscard]] ino_t memory_of(pid_t pid, uint32_t place) const {
    int fd = -1;
    std::ifstream{place_file(place)} >> fd;
    struct stat found {};
    return stat(("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd)).c_str(), &found) == 0
               ? found.st_ino
               : 0;
  }
  // A process that takes a slot and keeps it.
  [[nodiscard]] std::unique_ptr<test::Child> other_process() const {
    return std::make_unique<test::Child>([this] {
      auto place = NetSlot::take(folder_);
      return place && place->release() != nullptr;
    });
  }
  static std::set<std::string> files_of_shared_memory() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      names.insert(entry.path().filename().string());
    return names;
  }

  NetConfig config_;
  std::filesystem::path folder_;
};

TEST_F(SlotWithoutSwitch, take_fails_when_the_network_has_another_description) {
  setenv(kNetDescriptionVariable, description_id(config_).c_str(), 1);
  EXPECT_TRUE(NetSlot::take(folder_));
  NetConfig other = config_;
  other.sender_placement = true;
  setenv(kNetDescriptionVariable, description_id(other).c_str(), 1);
  const auto refused = NetSlot::take(folder_);
  unsetenv(kNetDescriptionVariable);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EBUSY);
  EXPECT_NE(refused.error().message.find("another description"), std::string::npos);
  EXPECT_TRUE(NetSlot::take(folder_)) << "any description";
}

TEST_F(SlotWithoutSwitch, description_file_is_complete_at_any_time) {
  std::atomic<bool> stop{false};
  std::thread others{[&] {
    while (!stop.load()) {
      const auto made = ensure_net({.net = config_, .exactly = false, .program = {}});
      EXPECT_TRUE(made) << made.error().message;
    }
  }};
  for (int reads = 0; reads < 2000; ++reads) {
    const auto net = read_net_file((folder_ / kNetFile).string());
    ASSERT_TRUE(net) << net.error().message;
  }
  stop.store(true);
  others.join();
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_FALSE(entry.path().filename().string().starts_with("net.yaml.")) << entry.path();
}

TEST_F(SlotWithoutSwitch, take_returns_the_lowest_free_slot_without_a_switch_process) {
  ASSERT_FALSE(config_.needs_switch());
  auto first = NetSlot::take(folder_);
  ASSERT_TRUE(first) << first.error().message;
  auto second = NetSlot::take(folder_);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*first)->number(), 0U);
  EXPECT_EQ((*second)->number(), 1U);
  const DeviceFile& device = (*second)->device();
  EXPECT_EQ(device.port.device, "shm1");
  EXPECT_EQ(device.device.addresses, (std::vector<std::string>{"10.77.0.2/16", "fd77::2/64"}));
  EXPECT_EQ(device.port.mac, config_.mac(1));
  first->reset();
  EXPECT_EQ((*NetSlot::take(folder_))->number(), 0U) << "free again";
}

TEST_F(SlotWithoutSwitch, slot_is_free_after_its_process_is_killed) {
  const auto other = other_process();
  ASSERT_TRUE(other->done());
  EXPECT_EQ((*NetSlot::take(folder_))->number(), 1U);
  other->end(SIGKILL);
  EXPECT_EQ((*NetSlot::take(folder_))->number(), 0U);
}

// A process cannot open the shared memory of another PID namespace, and must not create a second one in the network.
TEST_F(SlotWithoutSwitch, process_of_another_pid_namespace_cannot_join) {
  const auto first = other_process();
  ASSERT_TRUE(first->done());
  const auto notice = folder_ / kNetCrashNotices / ("slot0." + std::to_string(first->pid()));
  std::filesystem::create_directories(notice.parent_path());
  std::ofstream{notice} << "notice";
  NetConfig other = config_;
  other.sender_placement = true;
  const auto result = test::in_another_pid_namespace([&] {
    const auto second = NetSlot::take(folder_);
    const auto changed = ensure_net({.net = other, .exactly = true, .program = {}});
    return !second && second.error().code == EXDEV && !changed && changed.error().code == EXDEV;
  });
  ROCI_REQUIRE_PID_NAMESPACE(result);
  EXPECT_TRUE(*result);
  EXPECT_TRUE(std::filesystem::exists(notice)) << "of a running process";
  EXPECT_EQ(description_id(*read_net_file((folder_ / kNetFile).string())), description_id(config_));
}

TEST_F(SlotWithoutSwitch, processes_share_one_memory_until_the_last_exits) {
  const auto files_before = files_of_shared_memory();
  ino_t shared = 0;
  {
    const auto first = other_process(), second = other_process();
    ASSERT_TRUE(first->done() && second->done());
    shared = memory_of(first->pid(), 0);
    ASSERT_NE(shared, 0U);
    EXPECT_EQ(memory_of(second->pid(), 1), shared);
    // The process that created it has exited. The other process still has it.
    first->end(SIGKILL);
    auto third = NetSlot::take(folder_);
    ASSERT_TRUE(third) << third.error().message;
    EXPECT_EQ((*third)->number(), 0U);
    EXPECT_EQ(memory_of(getpid(), 0), shared);
    auto fourth = NetSlot::take(folder_);
    ASSERT_TRUE(fourth) << fourth.error().message;
    EXPECT_EQ(memory_of(getpid(), 2), shared) << "a process may have several slots";
    EXPECT_EQ(files_of_shared_memory(), files_before) << "it has no name in a file system";
  }
  const auto next = NetSlot::take(folder_);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_NE(memory_of(getpid(), 0), shared);
}

TEST_F(SlotWithoutSwitch, take_fails_when_all_slots_are_in_use) {
  std::vector<std::unique_ptr<NetSlot>> places;
  for (int i = 0; i < 3; ++i) {
    auto place = NetSlot::take(folder_);
    ASSERT_TRUE(place) << place.error().message;
    places.push_back(std::move(*place));
  }
  const auto more = NetSlot::take(folder_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, EUSERS);
}

TEST_F(SlotWithoutSwitch, ignores_slot_files_of_exited_processes) {
  for (const char* name : {"0", "1", "2"}) std::ofstream{folder_ / kShmSlotFolder / name} << "4711\n";
  auto place = NetSlot::take(folder_);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ((*place)->number(), 0U);
}

TEST_F(SlotWithoutSwitch, take_fails_when_a_process_publishes_an_invalid_descriptor) {
  // The process has the slot, but its descriptor refers to another file.
  const test::Child other{[this] {
    auto lock = ProcessLock::take(place_file(0));
    if (!lock || !*lock) return false;
    static const ProcessLock held = std::move(**lock);
    return pwrite(held.fd(), "0\n", 2, 0) == 2;
  }};
  ASSERT_TRUE(other.done());
  const auto place = NetSlot::take(folder_);
  ASSERT_FALSE(place);
  EXPECT_NE(place.error().message.find("network 'default'"), std::string::npos) << place.error().message;
}

TEST_F(SlotWithoutSwitch, take_waits_for_a_process_that_is_exiting) {
  // The kernel closes the descriptors of a killed process first, and then releases its locks one by one.
  const test::Child other{[this] {
    auto lock = ProcessLock::take(place_file(0));
    if (!lock || !*lock) return false;
    static const ProcessLock held = std::move(**lock);
    ualarm(50'000, 0);
    return pwrite(held.fd(), "4711\n", 5, 0) == 5;
  }};
  ASSERT_TRUE(other.done());
  const auto place = NetSlot::take(folder_);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_NE(memory_of(getpid(), (*place)->number()), 0U);
}

TEST_F(SlotWithoutSwitch, first_process_removes_crash_notices_of_earlier_processes) {
  const auto left = folder_ / kNetCrashNotices / "slot1.4711";
  std::filesystem::create_directories(left.parent_path());
  std::ofstream{left} << "x";
  ASSERT_TRUE(NetSlot::take(folder_));
  EXPECT_FALSE(std::filesystem::exists(left));
  // Not removed while other processes exist, which may still have to read it.
  const auto other = other_process();
  ASSERT_TRUE(other->done());
  std::ofstream{left} << "x";
  ASSERT_TRUE(NetSlot::take(folder_));
  EXPECT_TRUE(std::filesystem::exists(left));
}

// The file of this process id may be that of the process itself before exec().
TEST_F(SlotWithoutSwitch, stale_crash_notices_are_those_of_other_processes) {
  const auto other = other_process();
  ASSERT_TRUE(other->done());
  const auto notices = folder_ / kNetCrashNotices;
  std::filesystem::create_directories(notices);
  for (const int slot : {0, 1, 2}) {
    for (const pid_t pid : {getpid(), getpid() + 1})
      std::ofstream{notices / ("slot" + std::to_string(slot) + "." + std::to_string(pid))} << "x";
  }
  const auto slot = NetSlot::take(folder_);
  ASSERT_TRUE(slot) << slot.error().message;
  const auto earlier =
      notices / ("slot" + std::to_string((*slot)->number()) + "." + std::to_string(getpid() + 1));
  EXPECT_EQ((*slot)->stale_files(), std::vector{earlier});
}

TEST_F(SlotWithoutSwitch, take_requires_a_running_switch_when_the_description_needs_one) {
  const auto described = [](auto change) {
    NetConfig config;
    change(config);
    return config.needs_switch();
  };
  EXPECT_FALSE(described([](NetConfig&) {}));
  EXPECT_FALSE(described([](NetConfig& net) { net.telemetry.enabled = false; }));
  EXPECT_TRUE(described([](NetConfig& net) { net.always_switch = true; }));
  EXPECT_TRUE(described([](NetConfig& net) { net.rate = BitsPerSec{1'000'000'000}; }));
  EXPECT_TRUE(described([](NetConfig& net) { net.queue = 1_MiB; }));
  EXPECT_TRUE(described([](NetConfig& net) { net.queue_frames = 12; }));
  EXPECT_TRUE(described([](NetConfig& net) { net.faults.emplace(); }));
  EXPECT_TRUE(described([](NetConfig& net) { net.uplink.emplace(); }));
  config_.name = "limited";
  config_.rate = BitsPerSec{1'000'000'000};
  const auto folder = make_net(config_);
  EXPECT_FALSE(NetSlot::take(folder)) << "its switch has not joined";
  const auto the_switch = take_switch_slot(folder);
  ASSERT_TRUE(the_switch) << the_switch.error().message;
  EXPECT_FALSE(take_switch_slot(folder)) << "it has a switch";
  const auto place = NetSlot::take(folder);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ((*place)->device().port.device, "shm0");
  switch_lock_.reset();
  EXPECT_FALSE(NetSlot::take(folder)) << "its switch does not run";
}

}  // namespace
}  // namespace roci
