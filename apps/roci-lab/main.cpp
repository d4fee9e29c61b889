// roci-lab: runs experiments in virtual or real time with the production stack, switch and congestion control
// algorithms.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/os/standard_output.hpp"
#include "common/command_line.hpp"
#include "roci-lab/compare_command.hpp"
#include "roci-lab/explain_command.hpp"
#include "roci-lab/export_command.hpp"
#include "roci-lab/import_command.hpp"
#include "roci-lab/list_command.hpp"
#include "roci-lab/run_command.hpp"
#include "roci/version.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "Runs network experiments in virtual or real time with the production stack, switch and congestion "
      "control.",
      "roci-lab"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "roci-lab " ROCI_VERSION, "print the version and exit");
  roci::lab::RunOptions options;
  CLI::App* run = app.add_subcommand("run", "Runs a scenario file");
  run->add_option("file", options.file, "Scenario file, such as config/lab/incast.yaml")->required();
  run->add_option("--set", options.set, "Overrides a key of the file, for example traffic[0].load=0.5")
      ->type_name("KEY=VALUE");
  run->add_option("--only", options.only, "Selects the runs (variants and sweeps) with these names")
      ->type_name("NAME");
  run->add_option("--seeds", options.seeds,
                  "Number of seeds per run, starting with the file's seed, 1 to 10000 [1]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  run->add_option("--jobs", options.jobs,
                  "Concurrent runs, 1 to 1024 [1]; under mpirun this applies to the first rank, others "
                  "execute one run "
                  "at a time")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  run->add_option("--threads", options.threads, "Threads per run [number of CPUs divided by --jobs]")
      ->type_name("N");
  bool in_virtual_time = false;  // not read: virtual time is the default
  CLI::Option* real = run->add_flag(
      "--real", options.real,
      "Limits virtual time to the speed of the clock, and uses the file's real ports (key ports)");
  run->add_flag("--virtual", in_virtual_time, "Runs in virtual time, as fast as possible (the default)")
      ->excludes(real);
  run->add_option("-o,--out", options.out, "Folder for results [lab-NAME]")->type_name("FOLDER");
  run->add_flag("--ns3-results", options.ns3_results,
                "Also writes fct.txt, qlen.txt and pfc.txt in the formats of HPCC's ns-3 simulator");
  run->add_flag("-q,--quiet", options.quiet, "Prints no progress");
  CLI::App* explain = app.add_subcommand("explain", "Describes a scenario file without running it");
  explain->add_option("file", options.file, "Scenario file")->required();
  explain->add_option("--set", options.set, "Overrides a key of the file")->type_name("KEY=VALUE");
  explain->add_option("--only", options.only, "Selects the runs (variants and sweeps) with these names")
      ->type_name("NAME");
  std::vector<std::string> folders = {"config/lab"};
  CLI::App* list = app.add_subcommand("list", "Lists the scenario files in folders");
  list->add_option("folder", folders, "Folders [config/lab]");
  roci::lab::CompareOptions comparison;
  CLI::App* compare = app.add_subcommand("compare", "Prints results side by side, and writes a report");
  compare
      ->add_option("folder", comparison.folders,
                   "Folder of a run or of several runs, or file with completion times of another simulator")
      ->required();
  compare->add_option("-o,--out", comparison.out, "Report file [compare.html]")->type_name("FILE");
  roci::lab::Ns3ImportOptions imported;
  CLI::App* import = app.add_subcommand(
      "import", "Writes a scenario file for a configuration file of HPCC's ns-3 simulator");
  import->add_option("file", imported.config, "Configuration file of the simulator")->required();
  import->add_option("-o,--out", imported.out, "Scenario file [NAME.yaml in the current folder]")
      ->type_name("FILE");
  import
      ->add_option("--base", imported.base,
                   "Folder of the files that the configuration names [its folder, the parent folder, or the "
                   "current folder]")
      ->type_name("FOLDER");
  std::string exported;
  CLI::App* to_ns3 =
      app.add_subcommand("export", "Writes the files of HPCC's ns-3 simulator for a run of a scenario file");
  to_ns3->add_option("file", options.file, "Scenario file")->required();
  to_ns3->add_option("folder", exported, "Folder for the files")->required();
  to_ns3->add_option("--set", options.set, "Overrides a key of the file")->type_name("KEY=VALUE");
  to_ns3->add_option("--only", options.only, "Selects the run with this name")->type_name("NAME");
  if (const auto status = roci::parse_command_line(app, "roci-lab", argc, argv)) return *status;
  if (compare->parsed()) return roci::lab::compare_command(comparison);
  if (import->parsed()) return roci::lab::import_command(std::move(imported));
  if (to_ns3->parsed()) return roci::lab::export_command(options, exported);
  if (explain->parsed()) return roci::lab::explain_command(options);
  if (list->parsed()) return roci::lab::list_command(folders);
  return roci::lab::run_command(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return roci::checked_exit_status("roci-lab", run(argc, argv), 1);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "roci-lab: %s\n", failure.what());
    return 1;
  }
}
