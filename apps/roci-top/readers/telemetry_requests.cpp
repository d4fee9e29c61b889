#include "roci-top/readers/telemetry_requests.hpp"

#include "roci-top/readers/processes.hpp"

namespace roci::top {

// Limit for replies of other processes; more than exist in practice.
constexpr size_t kMaxNames = 1024;

Result<std::vector<std::string>> read_names(TelemetryClient& client, const std::string& command, bool paged) {
  std::vector<std::string> names;
  for (;;) {
    const auto answer = client.request(paged ? command + "," + std::to_string(names.size()) : command);
    if (!answer) return fail(answer.error());
    if (!answer->is_array()) return names;
    const size_t before = names.size();
    for (const auto& name : *answer) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
    if (!paged || names.size() == before || names.size() >= kMaxNames) return names;
  }
}

Status read_counted(TelemetryClient& client, const std::string& command, Counted& counted) {
  const auto answer = client.request(command);
  if (!answer) return fail(answer.error());
  counted = Counted::from(*answer, steady_now());
  return {};
}

}  // namespace roci::top
