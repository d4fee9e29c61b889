#include "roci-top/questions.hpp"

#include "roci-top/processes.hpp"

namespace roci::top {

// Limit for replies of other processes; more than exist in practice.
constexpr size_t kMostNames = 1024;

Result<std::vector<std::string>> read_names(Asker& asker, const std::string& question, bool paged) {
  std::vector<std::string> names;
  for (;;) {
    const auto answer = asker.ask(paged ? question + "," + std::to_string(names.size()) : question);
    if (!answer) return fail(answer.error());
    if (!answer->is_array()) return names;
    const size_t before = names.size();
    for (const auto& name : *answer) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
    if (!paged || names.size() == before || names.size() >= kMostNames) return names;
  }
}

Status read_counted(Asker& asker, const std::string& question, Counted& counted) {
  const auto answer = asker.ask(question);
  if (!answer) return fail(answer.error());
  counted = Counted::from(*answer, steady_now());
  return {};
}

}  // namespace roci::top
