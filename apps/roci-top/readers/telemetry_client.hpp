// A connection to the telemetry socket of a DPDK process: one request, one reply.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace roci::top {

// Telemetry client. Owned by one thread. Requests fail after kTimeoutMillis without a reply.
class TelemetryClient {
 public:
  static constexpr int kTimeoutMillis = 500;

  static Result<TelemetryClient> connect(const std::string& path);
  TelemetryClient(TelemetryClient&& other) noexcept;
  TelemetryClient& operator=(TelemetryClient&& other) noexcept;
  ~TelemetryClient();

  [[nodiscard]] int pid() const { return pid_; }
  // Returns the contents of the reply without the outer object that DPDK adds; null for a command that the process does
  // not have.
  Result<nlohmann::json> request(const std::string& command);

 private:
  explicit TelemetryClient(int fd) : fd_(fd) {}
  Result<nlohmann::json> receive();

  int fd_;
  int pid_ = 0;
};

}  // namespace roci::top
