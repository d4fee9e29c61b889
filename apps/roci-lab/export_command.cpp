#include "roci-lab/export_command.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lab/exchange/ns3_export.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

Status write_exported(const fs::path& folder, const Ns3Export& exported) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return fail("'" + folder.string() + "' cannot be created: " + failure.message());
  for (const Ns3ListFile& file : exported.files) {
    std::ofstream out{folder / file.name, std::ios::binary};
    out << file.text;
    out.close();
    if (!out) return fail("'" + (folder / file.name).string() + "' cannot be written", EIO);
  }
  return {};
}

// Name of the files: of the scenario, and of the run if the file has several.
std::string export_name(const Scenario& scenario, const Job& job) {
  std::string name = scenario.name + (job.run.name.empty() ? "" : "-" + job.run.name);
  for (char& c : name)
    if (c == '/' || static_cast<unsigned char>(c) <= ' ') c = '_';
  return name;
}

Status export_run(const RunOptions& options, const std::string& folder) {
  auto plan = plan_jobs(options);
  if (!plan) return fail(plan.error());
  if (plan->jobs.size() != 1)
    return fail(options.file + ": has " + std::to_string(plan->jobs.size()) +
                " runs; select one with --only");
  const Job& job = plan->jobs.front();
  auto scenario = read_scenario(options.file, job.changes);
  if (!scenario) return fail(scenario.error());
  const std::string name = export_name(*scenario, job);
  auto exported = export_ns3(*scenario, name);
  if (!exported) return fail(exported.error().within(options.file));
  ROCI_TRY(write_exported(folder, *exported));
  for (const std::string& note : exported->notes) std::fprintf(stderr, "roci-lab: %s\n", note.c_str());
  std::printf("configuration: %s\n", (fs::path(folder) / exported->files.front().name).c_str());
  return {};
}

}  // namespace

int export_command(const RunOptions& options, const std::string& folder) {
  const Status done = export_run(options, folder);
  if (done) return 0;
  std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
  return 2;
}

}  // namespace roci::lab
