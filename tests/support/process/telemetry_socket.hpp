// Client of this process's own DPDK telemetry socket.
#pragma once

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "port/dpdk/eal.hpp"
#include "telemetry/runtime_folder.hpp"

namespace roci::test {

class TelemetrySocket {
 public:
  TelemetrySocket() : fd_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    const auto path = std::filesystem::path{rte_eal_get_runtime_dir()} / kTelemetrySocket;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.native().copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      ADD_FAILURE() << path << ": " << std::strerror(errno);
    greeting_ = receive();
  }
  ~TelemetrySocket() { close(fd_); }
  TelemetrySocket(const TelemetrySocket&) = delete;
  TelemetrySocket& operator=(const TelemetrySocket&) = delete;

  [[nodiscard]] const std::string& greeting() const { return greeting_; }
  // Returns the response as JSON.
  std::string ask(const std::string& question) {
    EXPECT_EQ(send(fd_, question.data(), question.size(), 0), static_cast<ssize_t>(question.size()));
    return receive();
  }

 private:
  std::string receive() {
    std::string text(1U << 16, '\0');
    const ssize_t bytes = recv(fd_, text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return text;
  }

  int fd_;
  std::string greeting_;
};

// Starts DPDK with telemetry in a temporary directory, which is removed when the program exits.
inline void start_with_telemetry() {
  static const bool once = [] {
    std::string folder = "/tmp/roci-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return false;
    setenv("RUNTIME_DIRECTORY", folder.c_str(), 1);
    return std::atexit([] {
             std::error_code ignored;
             std::filesystem::remove_all(std::getenv("RUNTIME_DIRECTORY"), ignored);
           }) == 0;
  }();
  ASSERT_TRUE(once);
  const Status started = start_eal({.telemetry = true});
  ASSERT_TRUE(started) << started.error().message;
}

}  // namespace roci::test
