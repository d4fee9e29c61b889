// Temporary runtime folder with a network. This process holds the lock of the network's switch, so that one seems to
// run.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/os/file_lock.hpp"
#include "net/net_config.hpp"
#include "net/runtime_folder.hpp"
#include "port/shm/shm_join.hpp"
#include "support/process/child.hpp"
#include "support/process/folder.hpp"

namespace roci::test {

class NetTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ROCI_RUNTIME", root_.c_str(), 1);
    unsetenv("ROCI_CC");
  }
  void TearDown() override { unsetenv("ROCI_CC"); }

  std::filesystem::path make_net(const NetConfig& config) {
    const std::filesystem::path folder = root_ / config.name;
    std::filesystem::create_directories(folder / kShmSlotFolder);
    std::ofstream{folder / kNetFile} << net_text(config);
    auto lock = SharedLock::take(folder / kNetSwitchLock);
    EXPECT_TRUE(lock && *lock);
    if (lock && *lock) switch_lock_.emplace(std::move(**lock));
    return folder;
  }

  const Folder of_this_test_;
  const std::filesystem::path& root_ = of_this_test_.path();
  std::optional<SharedLock> switch_lock_;
};

}  // namespace roci::test
