// Delivery of crash notifications at the ports of a switch.
#include "roci-switch/crash_notice_sender.hpp"

#include <sys/stat.h>

#include "support/process/child.hpp"
#include "support/process/folder.hpp"
#include "support/process/telemetry_socket.hpp"

namespace roci {
namespace {

// The worker is stopped, so that the switch cannot insert the frames before it gives up.
TEST(CrashNoticeSender, notices_are_kept_while_the_worker_does_not_respond) {
  test::start_with_telemetry();
  const test::Folder folder;
  SwitchFile file;
  file.eal = EalConfig{.telemetry = true};
  file.sw.name = "s1";
  file.sw.ports.push_back({.name = "slot0"});
  file.devices.push_back({.device = "net_null0"});
  file.faults.resize(1);
  file.crash_notices = folder.path().string();
  auto process = SwitchProcess::start(file, "test");
  ASSERT_TRUE(process) << process.error().message;
  (*process)->stop();
  const test::Child exited{[&] {
    auto notices = CrashNoticeFile::open(folder.path(), "slot0.17");
    return notices && (*notices)->store(CrashNoticeFile::kNone, std::vector<uint8_t>(100, 1)) == 0;
  }};
  ASSERT_TRUE(exited.done());
  CrashNoticeSender sender{**process};
  EXPECT_LT(sender.work(1s), 2s);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "slot0.17"));
}

}  // namespace
}  // namespace roci
