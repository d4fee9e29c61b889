#include "roci-lab/import_command.hpp"

#include <cstdio>
#include <filesystem>

namespace roci::lab {
namespace {

Status import_and_write(const Ns3ImportOptions& options) {
  auto imported = import_ns3(options);
  if (!imported) return fail(imported.error());
  ROCI_TRY(write_ns3_import(options, *imported));
  for (const std::string& note : imported->notes) std::fprintf(stderr, "roci-lab: %s\n", note.c_str());
  std::printf("scenario: %s\n", options.out.c_str());
  return {};
}

}  // namespace

int import_command(Ns3ImportOptions options) {
  if (options.out.empty()) options.out = std::filesystem::path(options.config).stem().string() + ".yaml";
  const Status done = import_and_write(options);
  if (done) return 0;
  std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
  return 2;
}

}  // namespace roci::lab
