#include "net/net_slot.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "net_fixture.hpp"
#include "support/process/require_root.hpp"

namespace roci {
namespace {

class SlotWithSwitch : public test::NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    config_.slots = 3;
    config_.always_switch = true;
  }
  std::filesystem::path make_net(const NetConfig& config) {
    auto folder = NetTest::make_net(config);
    auto slot = take_switch_slot(folder);
    EXPECT_TRUE(slot) << slot.error().message;
    if (slot) switch_slot_.emplace(std::move(*slot));
    return folder;
  }
  NetConfig config_;
  std::optional<ShmSwitchSlot> switch_slot_;
};

TEST_F(SlotWithSwitch, take_returns_the_lowest_free_slot_with_its_addresses) {
  const auto folder = make_net(config_);
  auto first = NetSlot::take(folder);
  ASSERT_TRUE(first) << first.error().message;
  auto second = NetSlot::take(folder);
  ASSERT_TRUE(second);
  EXPECT_EQ((*first)->number(), 0U);
  EXPECT_EQ((*second)->number(), 1U);
  const DeviceFile& device = (*second)->device();
  EXPECT_EQ(device.device.name, "roci0");
  EXPECT_EQ(device.device.addresses, (std::vector<std::string>{"10.77.0.2/16", "fd77::2/64"}));
  EXPECT_EQ(device.port.mac, config_.mac(1));
  EXPECT_EQ(device.port.mtu, config_.mtu);
  EXPECT_EQ(device.port.device, "shm1");
  first->reset();
  EXPECT_EQ((*NetSlot::take(folder))->number(), 0U) << "free again";
}

TEST_F(SlotWithSwitch, take_rejects_a_folder_that_other_users_can_write) {
  const auto folder = make_net(config_);
  chmod(root_.c_str(), 0755);
  chmod(folder.c_str(), 0777);
  const auto slot = NetSlot::take(folder);
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().code, EPERM) << slot.error().message;
  EXPECT_EQ(taken_slots(folder, config_.slots)->size(), 0U);
}

TEST_F(SlotWithSwitch, take_rejects_a_folder_of_another_user) {
  ROCI_REQUIRE_ROOT("to change the owner of a folder");
  const auto folder = make_net(config_);
  std::filesystem::remove(folder / kShmJoinLock);
  ASSERT_EQ(chown(folder.c_str(), 12345, 12345), 0);
  const auto slot = NetSlot::take(folder);
  ASSERT_FALSE(slot);
  EXPECT_NE(slot.error().message.find("belongs to another user (12345)"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / kShmJoinLock)) << "a file was created in the folder";
}

TEST_F(SlotWithSwitch, slot_is_free_after_its_process_is_killed) {
  const auto folder = make_net(config_);
  test::Child other{[&] {
    auto place = NetSlot::take(folder);
    return place && place->release() != nullptr;
  }};
  ASSERT_TRUE(other.done());
  EXPECT_EQ((*NetSlot::take(folder))->number(), 1U);
  const auto taken = taken_slots(folder, config_.slots);
  ASSERT_EQ(taken->size(), 1U);
  EXPECT_EQ(taken->front().pid, other.pid());
  other.end(SIGKILL);
  const auto again = NetSlot::take(folder);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->number(), 0U);
}

TEST_F(SlotWithSwitch, take_fails_when_all_slots_are_in_use_and_reports_the_processes) {
  const auto folder = make_net(config_);
  std::vector<std::unique_ptr<NetSlot>> places;
  for (int i = 0; i < 3; ++i) {
    auto place = NetSlot::take(folder);
    ASSERT_TRUE(place);
    places.push_back(std::move(*place));
  }
  const auto more = NetSlot::take(folder);
  ASSERT_FALSE(more);
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(more.error().message, "all 3 slots of the network 'default' are taken (by the processes " + pid +
                                      ", " + pid + ", " + pid +
                                      "); increase 'slots' in the network's configuration");
}

TEST_F(SlotWithSwitch, take_fails_without_a_running_switch) {
  const auto folder = make_net(config_);
  switch_lock_.reset();
  const auto place = NetSlot::take(folder);
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().message,
            "the switch of the network 'default' is not running; start the program with roci-run");
}

TEST_F(SlotWithSwitch, ignores_slot_files_of_exited_processes) {
  const auto folder = make_net(config_);
  for (const char* name : {"0", "1", "2"}) std::ofstream{folder / kShmSlotFolder / name} << "4711\n";
  EXPECT_EQ((*NetSlot::take(folder))->number(), 0U);
}

TEST_F(SlotWithSwitch, enables_telemetry_only_for_algorithms_that_require_it) {
  const auto folder = make_net(config_);
  EXPECT_EQ((*NetSlot::take(folder))->device().device.telemetry.begin, TelemetryBegin::kNone);
  EXPECT_FALSE((*NetSlot::take(folder))->device().device.extensions.timestamps);
  EXPECT_TRUE((*NetSlot::take(folder))->device().device.extensions.selective_repeat);
  setenv("ROCI_CC", "dcqcn", 1);
  EXPECT_EQ((*NetSlot::take(folder))->device().device.telemetry.begin, TelemetryBegin::kNone);
  EXPECT_TRUE((*NetSlot::take(folder))->device().device.extensions.timestamps);
  for (const char* algorithm_or_profile : {"hpcc", "HPCC_receiver", "powertcp", "powertcp_sim"}) {
    setenv("ROCI_CC", algorithm_or_profile, 1);
    EXPECT_EQ((*NetSlot::take(folder))->device().device.telemetry.begin, TelemetryBegin::kAll)
        << algorithm_or_profile;
  }
}

}  // namespace
}  // namespace roci
