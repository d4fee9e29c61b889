// A connection to the telemetry socket of a DPDK process: one request, one reply.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace roci::top {

// Telemetry client. Owned by one thread. Requests fail after kPatienceMillis without a reply.
class Asker {
 public:
  static constexpr int kPatienceMillis = 500;

  static Result<Asker> connect(const std::string& path);
  Asker(Asker&& other) noexcept;
  Asker& operator=(Asker&& other) noexcept;
  ~Asker();

  [[nodiscard]] int pid() const { return pid_; }
  // Returns the contents of the reply without the outer object that DPDK adds; null for a command that the process does
  // not have.
  Result<nlohmann::json> ask(const std::string& question);

 private:
  explicit Asker(int fd) : fd_(fd) {}
  Result<nlohmann::json> receive();

  int fd_;
  int pid_ = 0;
};

}  // namespace roci::top
