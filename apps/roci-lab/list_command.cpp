#include "roci-lab/list_command.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "roci-lab/jobs.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

// Prints one line about the file, or returns its error.
Status list_file(const fs::path& file) {
  RunOptions options;
  options.file = file.string();
  auto plan = plan_jobs(options);
  if (!plan) return fail(plan.error());
  auto scenario = read_scenario(options.file, plan->jobs.front().changes);
  if (!scenario) return fail(scenario.error());
  std::printf("%-34s %4zu %8zu  %s\n", options.file.c_str(), plan->jobs.size(), plan->expectations.size(),
              scenario->about.c_str());
  return {};
}

}  // namespace

int list_command(const std::vector<std::string>& folders) {
  int status = 0;
  std::printf("%-34s %4s %8s  %s\n", "file", "runs", "expected", "about");
  for (const std::string& folder : folders) {
    std::vector<fs::path> files;
    std::error_code failure;
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
      if (at->path().extension() == ".yaml") files.push_back(at->path());
    if (failure) {
      std::fprintf(stderr, "roci-lab: '%s' cannot be read: %s\n", folder.c_str(), failure.message().c_str());
      return 2;
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      if (Status done = list_file(file); !done) {
        std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
        status = 1;
      }
    }
  }
  return status;
}

}  // namespace roci::lab
