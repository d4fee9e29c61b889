#include "roci-lab/output_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

// Files of one run, and of a command.
constexpr std::array<std::string_view, 8> kResultFiles = {
    "summary.json", "run.json", "results.h5", "fct.txt", "qlen.txt", "pfc.txt", "claims.json", "report.html"};

bool has_summary(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "summary.json", ignored);
}

// The scenario file of the results in a folder; empty if unknown.
std::string file_of_results(const fs::path& folder) {
  std::ifstream in{folder / "run.json", std::ios::binary};
  const auto run = nlohmann::json::parse(in, nullptr, false);
  return run.is_object() && run.contains("file") && run["file"].is_string() ? run["file"].get<std::string>()
                                                                            : "";
}

// The folder and its subfolders, as far as they have results.
std::vector<fs::path> folders_with_results(const fs::path& folder) {
  std::vector<fs::path> out;
  if (has_summary(folder)) out.push_back(folder);
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    if (has_summary(at->path())) out.push_back(at->path());
  return out;
}

void remove_results(const fs::path& folder) {
  std::error_code ignored;
  for (const std::string_view name : kResultFiles) fs::remove(folder / name, ignored);
}

}  // namespace

bool is_result_file(std::string_view name) {
  return std::ranges::find(kResultFiles, name) != kResultFiles.end();
}

fs::path output_folder(const RunOptions& options) {
  return options.out.empty() ? fs::path("lab-" + fs::path(options.file).stem().string())
                             : fs::path(options.out);
}

Status prepare_output(const RunOptions& options, const Plan& plan) {
  const fs::path out = output_folder(options);
  std::error_code failure;
  fs::create_directories(out, failure);
  if (failure) return fail("'" + out.string() + "' cannot be created: " + failure.message(), failure.value());
  if (::access(out.c_str(), W_OK | X_OK) != 0)
    return fail("'" + out.string() + "' is not writable: " + std::generic_category().message(errno), errno);
  const std::vector<fs::path> earlier = folders_with_results(out);
  const auto is_replaced = [&](const fs::path& folder) {
    return std::ranges::any_of(
        plan.jobs, [&](const Job& job) { return folder == (job.folder.empty() ? out : out / job.folder); });
  };
  for (const fs::path& folder : earlier) {
    if (!is_replaced(folder) && file_of_results(folder) != options.file)
      return fail("'" + folder.string() +
                  "' has results of another scenario file; select another folder with --out");
  }
  for (const fs::path& folder : earlier) {
    remove_results(folder);
    if (folder != out) fs::remove(folder, failure);  // unless it has other files
  }
  remove_results(out);
  return {};
}

}  // namespace roci::lab
