// roci-lab: runs experiments in virtual or real time with the production stack, switch and congestion control
// algorithms.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "roci-lab/compare_command.hpp"
#include "roci-lab/explain_command.hpp"
#include "roci-lab/list_command.hpp"
#include "roci-lab/run_command.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Runs experiments in virtual time with the real stack, switch and congestion control.",
               "roci-lab"};
  app.require_subcommand(1);
  roci::lab::RunOptions options;
  CLI::App* run = app.add_subcommand("run", "Runs a scenario file");
  run->add_option("file", options.file, "The scenario, such as config/lab/incast.yaml")->required();
  run->add_option("--set", options.set, "Another value for a key of the file: traffic[0].load=0.5");
  run->add_option("--only", options.only, "Of its variants and sweeps, these runs alone, by name");
  run->add_option("--seeds", options.seeds, "Runs each with so many seeds, from the file's on")
      ->check(CLI::Range(1, 10000));
  run->add_option("--jobs", options.jobs,
                  "Runs at a time; under mpirun those of the first rank, others have one each")
      ->check(CLI::Range(1, 1024));
  run->add_option("--threads", options.threads, "For each run; as many as there are CPUs for it unless said");
  bool in_virtual_time = false;  // not read: virtual time is the default
  CLI::Option* real = run->add_flag("--real", options.real,
                                    "Nothing happens sooner than the clock says; on the file's real ports");
  run->add_flag("--virtual", in_virtual_time, "In virtual time, as fast as it goes: what it does unless said")
      ->excludes(real);
  run->add_option("-o,--out", options.out, "The folder for results; lab-NAME unless said");
  run->add_flag("-q,--quiet", options.quiet, "No progress");
  CLI::App* explain =
      app.add_subcommand("explain", "Tells what a scenario file comes down to, and runs nothing");
  explain->add_option("file", options.file, "The scenario")->required();
  explain->add_option("--set", options.set, "Another value for a key of the file");
  explain->add_option("--only", options.only, "Of its variants and sweeps, these runs alone, by name");
  std::vector<std::string> folders = {"config/lab"};
  CLI::App* list = app.add_subcommand("list", "Lists the scenario files of folders");
  list->add_option("folder", folders, "config/lab unless said");
  roci::lab::CompareOptions comparison;
  CLI::App* compare =
      app.add_subcommand("compare", "Shows results beside each other, and writes a report of them");
  compare->add_option("folder", comparison.folders, "Of a run, or of several below it")->required();
  compare->add_option("-o,--out", comparison.out, "The report; compare.html unless said");
  CLI11_PARSE(app, argc, argv);
  if (compare->parsed()) return roci::lab::compare_command(comparison);
  if (explain->parsed()) return roci::lab::explain_command(options);
  if (list->parsed()) return roci::lab::list_command(folders);
  return roci::lab::run_command(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "roci-lab: %s\n", failure.what());
    return 1;
  }
}
