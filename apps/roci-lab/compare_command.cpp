#include "roci-lab/compare_command.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "lab/exchange/fct_file.hpp"
#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

bool has_results(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "summary.json", ignored);
}

// The folder itself if it has results; otherwise its subfolders with results, in natural order (seed=2 before seed=10).
std::vector<fs::path> folders_of_runs(const fs::path& folder) {
  if (has_results(folder)) return {folder};
  std::vector<fs::path> out;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    if (has_results(at->path())) out.push_back(at->path());
  std::ranges::sort(out, [](const fs::path& one, const fs::path& other) {
    return ::strverscmp(one.c_str(), other.c_str()) < 0;
  });
  return out;
}

std::string name_of(const StoredRun& run) { return run.run.value("name", std::string()); }

// The distinct names of the scenarios, separated by commas.
std::string title_of(const std::vector<StoredRun>& runs) {
  std::vector<std::string> names;
  for (const StoredRun& run : runs) {
    const std::string name = run.summary.value("scenario", std::string());
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string title;
  for (const std::string& name : names) title += (title.empty() ? "" : ", ") + name;
  return title.empty() ? "Results" : title;
}

}  // namespace

Result<std::vector<StoredRun>> read_folders(const std::vector<std::string>& folders) {
  std::vector<StoredRun> out;
  std::vector<std::string> places;
  std::map<std::string, unsigned> names;
  for (const std::string& folder : folders) {
    const auto found = folders_of_runs(folder);
    if (found.empty())
      return fail("'" + folder + "' has no results; a results folder of 'roci-lab run' is required");
    for (const fs::path& place : found) {
      auto run = read_results(place.string());
      if (!run) return fail(run.error());
      if (!run->summary.is_object())
        return fail("'" + (place / "summary.json").string() + "' is not the summary of a run");
      ++names[name_of(*run)];
      places.push_back(place.lexically_normal().string());
      out.push_back(std::move(*run));
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (names[name_of(out[i])] > 1) out[i].run["name"] = places[i];
  return out;
}

Status write_shown_report(const std::string& file, const std::vector<StoredRun>& runs,
                          const std::vector<Claim>& claims) {
  ROCI_TRY(write_report(file, title_of(runs), runs, claims));
  std::printf("report: %s\n", file.c_str());
  return {};
}

namespace {

// Adds the completion times of other simulators, with the minimum durations of the runs that have the same flows.
Status add_other_simulators(const std::vector<std::string>& files, std::vector<StoredRun>& runs) {
  const std::vector<StoredRun> own = runs;
  for (const std::string& file : files) {
    auto records = read_fct(file);
    if (!records) return fail(records.error());
    runs.push_back(run_of_fct(file, *records, own));
    std::printf("%s: %s\n", file.c_str(), runs.back().run.value("about", std::string()).c_str());
  }
  return {};
}

Status compare(const CompareOptions& options) {
  std::vector<std::string> folders, files;
  std::error_code ignored;
  for (const std::string& one : options.folders)
    (fs::is_regular_file(one, ignored) ? files : folders).push_back(one);
  auto runs = read_folders(folders);
  if (!runs) return fail(runs.error());
  ROCI_TRY(add_other_simulators(files, *runs));
  std::printf("%s\n", result_heading().c_str());
  std::vector<std::pair<std::string, const StoredRun*>> named;
  for (const StoredRun& run : *runs) {
    named.emplace_back(name_of(run), &run);
    std::printf("%s\n", result_line(name_of(run), run).c_str());
  }
  if (!files.empty()) std::printf("\n%s\n", slowdown_table(named).c_str());
  return write_shown_report(options.out, *runs, {});
}

}  // namespace

int compare_command(const CompareOptions& options) {
  const Status done = compare(options);
  if (done) return 0;
  std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
  return 1;
}

}  // namespace roci::lab
