// A connection to the telemetry socket of a DPDK process: one question, one answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace roci::top {

// Owned by one thread. A process that does not answer within kPatience is given up.
class Asker {
 public:
  static constexpr int kPatienceMillis = 500;

  static Result<Asker> connect(const std::string& path);
  Asker(Asker&& other) noexcept;
  Asker& operator=(Asker&& other) noexcept;
  ~Asker();

  [[nodiscard]] int pid() const { return pid_; }
  // The answer without the question that DPDK puts around it; null when the process does not know the question.
  Result<nlohmann::json> ask(const std::string& question);

 private:
  explicit Asker(int fd) : fd_(fd) {}
  Result<nlohmann::json> receive();

  int fd_;
  int pid_ = 0;
};

}  // namespace roci::top
