#include "roci-lab/jobs.hpp"

#include <algorithm>
#include <map>

#include "roci-lab/output_folder.hpp"

namespace roci::lab {
namespace {

Result<std::vector<ConfigChange>> changes_of(const std::vector<std::string>& set) {
  std::vector<ConfigChange> changes;
  for (const std::string& text : set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail("--set: path=value is required, such as traffic[0].load=0.5, not '" + text + "'");
    changes.push_back({text.substr(0, equals), text.substr(equals + 1), "--set " + text.substr(0, equals)});
  }
  return changes;
}

std::string folder_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == ' ') c = '_';
  return name;
}

// Folders must differ, and from the files that a run writes into the output folder.
Status check_folders(const std::vector<Job>& jobs) {
  std::map<std::string, std::string> names;  // by folder
  for (const Job& job : jobs) {
    if (job.folder.empty() || job.folder == "." || job.folder == ".." || is_result_file(job.folder))
      return fail("run '" + job.name + "': the name cannot be that of a results folder; rename the run");
    const auto [other, is_new] = names.emplace(job.folder, job.name);
    if (!is_new)
      return fail("runs '" + other->second + "' and '" + job.name + "' have the same results folder '" +
                  job.folder + "'; rename one of them");
  }
  return {};
}

std::string names_of(const std::vector<RunSpec>& runs) {
  std::string names;
  for (const RunSpec& run : runs) names += (names.empty() ? "" : ", ") + run.called();
  return names;
}

}  // namespace

std::string Job::command(const RunOptions& options) const {
  std::string text = "roci-lab run " + options.file;
  if (!run.name.empty()) text += " --only '" + run.name + "'";
  for (const std::string& set : options.set) text += " --set '" + set + "'";
  if (!seed.empty()) text += " --set seed=" + seed;
  if (options.real) text += " --real";
  return text;
}

Result<Plan> plan_jobs(const RunOptions& options) {
  auto given = changes_of(options.set);
  if (!given) return fail(given.error());
  auto runs = read_runs(options.file, *given);
  if (!runs) return fail(runs.error());
  auto expectations = read_expectations(options.file, *runs);
  if (!expectations) return fail(expectations.error());
  Plan plan{std::move(*runs), {}, std::move(*expectations)};
  for (const std::string& name : options.only) {
    if (std::ranges::none_of(plan.runs, [&](const RunSpec& run) { return run.called() == name; }))
      return fail("--only: unknown run '" + name + "'; available are: " + names_of(plan.runs));
  }
  for (const RunSpec& run : plan.runs) {
    if (!options.only.empty() && std::ranges::find(options.only, run.called()) == options.only.end())
      continue;
    std::vector<ConfigChange> changes = run.changes;
    // --set has precedence over the changes of a run.
    changes.insert(changes.end(), given->begin(), given->end());
    auto scenario = read_scenario(options.file, changes);
    if (!scenario) return fail(scenario.error());
    if (options.real) ROCI_TRY(check_real(*scenario));
    for (uint32_t i = 0; i < options.seeds; ++i) {
      Job job{run.name, "", run, "", changes};
      if (options.seeds > 1) {
        job.seed = std::to_string(scenario->seed + i);
        job.name += (job.name.empty() ? "" : " ") + ("seed=" + job.seed);
        job.changes.push_back({"seed", job.seed, "--seeds"});
      }
      if (job.name.empty()) job.name = scenario->name;
      plan.jobs.push_back(std::move(job));
    }
  }
  if (plan.jobs.size() > 1) {
    for (Job& job : plan.jobs) job.folder = folder_name(job.name);
    if (Status different = check_folders(plan.jobs); !different)
      return fail(different.error().within(options.file));
  }
  return plan;
}

}  // namespace roci::lab
