#include "roci-lab/run_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "lab/experiment.hpp"
#include "lab/results.hpp"
#include "lab/scenario.hpp"
#include "roci-lab/compare_command.hpp"
#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

// One run with everything decided.
struct Job {
  std::string name;  // of its folder; empty when there is one
  std::string run;   // of the file's
  std::string seed;  // where there are several
  std::vector<ConfigChange> changes;
};

Result<std::vector<Job>> jobs_of(const RunOptions& options) {
  std::vector<ConfigChange> given;
  for (const std::string& text : options.set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail("--set takes path=value, such as traffic[0].load=0.5, and got '" + text + "'");
    given.push_back({text.substr(0, equals), text.substr(equals + 1), "--set " + text.substr(0, equals)});
  }
  auto runs = read_runs(options.file, given);
  if (!runs) return fail(runs.error());
  std::vector<Job> jobs;
  for (const RunSpec& run : *runs) {
    if (!options.only.empty() && std::ranges::find(options.only, run.name) == options.only.end()) continue;
    std::vector<ConfigChange> changes = run.changes;
    // What stands on the command line precedes.
    changes.insert(changes.end(), given.begin(), given.end());
    auto scenario = read_scenario(options.file, changes);
    if (!scenario) return fail(scenario.error());
    for (uint32_t i = 0; i < options.seeds; ++i) {
      Job job{run.name, run.name, "", changes};
      if (options.seeds > 1) {
        job.seed = std::to_string(scenario->seed + i);
        job.name += (job.name.empty() ? "" : " ") + ("seed=" + job.seed);
        job.changes.push_back({"seed", job.seed, "--seeds"});
      }
      jobs.push_back(std::move(job));
    }
  }
  if (!jobs.empty()) return jobs;
  std::string names;
  for (const RunSpec& run : *runs) names += (names.empty() ? "" : ", ") + run.name;
  return fail("--only names none of its runs, which are: " + names);
}

std::string folder_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == ' ') c = '_';
  return name;
}

// What makes this run again.
std::string command_of(const RunOptions& options, const Job& job) {
  std::string text = "roci-lab run " + options.file;
  if (!job.run.empty()) text += " --only '" + job.run + "'";
  for (const std::string& set : options.set) text += " --set '" + set + "'";
  if (!job.seed.empty()) text += " --set seed=" + job.seed;
  return text;
}

// The line at the bottom of a terminal that shows how far a run is.
class ProgressLine {
 public:
  ProgressLine(std::string name, Nanos duration, bool wanted)
      : name_(std::move(name)), duration_(duration), shown_(wanted && ::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ExperimentProgress& at) {
    if (!shown_) return;
    const double part =
        std::min(1.0, static_cast<double>(at.now.count()) / static_cast<double>(duration_.count()));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(part * kWidth);
    std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f %%  %s of %s  %s packet-hops/s", name_.c_str(),
                 std::string(static_cast<size_t>(filled), '#').c_str(),
                 std::string(static_cast<size_t>(kWidth - filled), ' ').c_str(), part * 100,
                 span(at.now).c_str(), span(duration_).c_str(),
                 short_number(static_cast<double>(at.packet_hops) / seconds).c_str());
    std::fflush(stderr);
  }
  void clear() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  std::string name_;
  Nanos duration_;
  bool shown_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

Status run_one(const RunOptions& options, const Job& job, const fs::path& folder, unsigned threads) {
  auto scenario = read_scenario(options.file, job.changes);
  if (!scenario) return fail(scenario.error());
  const std::string name = job.name.empty() ? scenario->name : job.name;
  ProgressLine line(name, scenario->duration, !options.quiet);
  ExperimentOptions how;
  how.threads = threads;
  how.progress = [&](const ExperimentProgress& at) { line.show(at); };
  auto measured = run_experiment(*scenario, how);
  line.clear();
  if (!measured) return fail(measured.error().within(name));
  ROCI_TRY(write_results(folder.string(), *scenario, {name, command_of(options, job), threads}, *measured));
  std::printf("%s\n", result_line(name, *measured).c_str());
  return {};
}

}  // namespace

int run_command(const RunOptions& options) {
  auto jobs = jobs_of(options);
  if (!jobs) {
    std::fprintf(stderr, "roci-lab: %s\n", jobs.error().message.c_str());
    return 2;
  }
  const fs::path out =
      options.out.empty() ? fs::path("lab-" + fs::path(options.file).stem().string()) : fs::path(options.out);
  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  int status = 0;
  std::vector<std::string> folders;  // of the runs that did not fail
  std::printf("%s\n", result_heading().c_str());
  for (const Job& job : *jobs) {
    const fs::path folder = jobs->size() == 1 ? out : out / folder_name(job.name);
    if (Status done = run_one(options, job, folder, threads); !done) {
      std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
      status = 1;
    } else {
      folders.push_back(folder.string());
    }
  }
  std::printf("results: %s\n", out.string().c_str());
  if (folders.empty()) return status;
  if (Status done = report_folders((out / "report.html").string(), folders); !done) {
    std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
    status = 1;
  }
  return status;
}

}  // namespace roci::lab
