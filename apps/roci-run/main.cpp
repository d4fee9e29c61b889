// roci-run: runs a program with Rocinante devices, in a network of this machine or on a device of its own.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/os/private_folder.hpp"
#include "base/os/standard_output.hpp"
#include "base/units.hpp"
#include "common/command_line.hpp"
#include "congestion/profile.hpp"
#include "net/device_identity.hpp"
#include "net/net_control.hpp"
#include "net/runtime_folder.hpp"
#include "net/stats_file.hpp"
#include "port/port_config.hpp"
#include "roci-run/doctor.hpp"
#include "roci-run/environment.hpp"
#include "roci-run/networks.hpp"
#include "roci-run/program.hpp"
#include "roci-run/stats_tables.hpp"
#include "roci-run/supported.hpp"
#include "roci/version.h"

namespace roci::run {
namespace {

struct Options {
  std::string net, config, cc, identity, stop;
  bool list = false, stats = false, doctor = false, supported = false, json = false;
  std::optional<double> loss, corrupt, duplicate, reorder;
  std::string delay;
  std::vector<std::string> command;
  bool separated = false;  // "--" precedes the program

  [[nodiscard]] bool has_faults() const { return loss || corrupt || duplicate || reorder || !delay.empty(); }
};

int complain(const Error& error) {
  std::fprintf(stderr, "roci-run: %s\n", error.message.c_str());
  return kFailed;
}

Status add_faults(const Options& options, NetConfig& net) {
  if (!options.has_faults()) return {};
  PortFaults faults = net.faults.value_or(PortFaults{});
  faults.loss = options.loss.value_or(faults.loss);
  faults.corruption = options.corrupt.value_or(faults.corruption);
  faults.duplication = options.duplicate.value_or(faults.duplication);
  faults.reordering = options.reorder.value_or(faults.reordering);
  if (!options.delay.empty()) {
    const auto delay = parse_duration(options.delay);
    if (!delay) return fail(delay.error().within("--delay"));
    if (*delay > kMaxFaultDelay) return fail("--delay: '" + options.delay + "' exceeds the maximum of 1s");
    faults.delay = *delay;
  }
  net.faults = faults;
  return {};
}

// Validates the congestion control profile before the program starts: --cc or ROCI_CC, otherwise that of the file.
Status check_congestion_control(const Options& options, CongestionControlConfig control) {
  const char* source = options.cc.empty() ? "congestion control" : "--cc";
  if (const char* chosen = secure_getenv("ROCI_CC"); chosen != nullptr && *chosen != '\0') {
    control.profile = chosen;
    if (options.cc.empty()) source = "ROCI_CC";
  }
  if (const auto profiles = Profiles::create(control); !profiles)
    return fail(profiles.error().within(source));
  return {};
}

// A network that is joined by its name may inject faults that other command lines requested.
void note_faults(const std::filesystem::path& path, const std::string& name) {
  const auto folder = PrivateFolder::open(path);
  if (!folder) return;
  const auto net = read_net(*folder);
  if (net && net->faults)
    std::fprintf(stderr, "roci-run: note: the network '%s' injects faults: %s\n", name.c_str(),
                 faults_text(*net->faults).c_str());
}

Status join_net(const Options& options, NetConfig net, bool exactly, const std::filesystem::path& programs) {
  ROCI_TRY(add_faults(options, net));
  CongestionControlConfig control;
  control.profile = net.congestion_control.profile;
  control.base_rtt = net.congestion_control.base_rtt;
  ROCI_TRY(check_congestion_control(options, control));
  if (net.sender_placement && net.needs_switch())
    return fail(
        "placement: sender requires a network without a switch, and fault injection requires a switch");
  const bool described = exactly || options.has_faults();
  const std::string description = description_id(net), name = net.name;
  const auto folder =
      ensure_net({.net = std::move(net), .exactly = described, .program = programs / "roci-switch"});
  if (!folder) return fail(folder.error());
  setenv("ROCI_NET", folder->c_str(), 1);
  if (described) {
    setenv(kNetDescriptionVariable, description.c_str(), 1);
  } else {
    unsetenv(kNetDescriptionVariable);
    note_faults(*folder, name);
  }
  unsetenv("ROCI_CONFIG");
  return {};
}

Status use_device(const Options& options, const DeviceFile& device) {
  if (options.has_faults())
    return fail("fault injection requires a network with a switch; '" + options.config +
                "' describes a device");
  if (std::error_code ignored; !std::filesystem::is_regular_file(options.config, ignored))
    return fail("'" + options.config +
                "' is not a regular file; the program reads the description of a device again");
  ROCI_TRY(check_congestion_control(options, device.device.congestion_control));
  const std::filesystem::path file = std::filesystem::absolute(options.config);
  setenv("ROCI_CONFIG", file.c_str(), 1);
  unsetenv("ROCI_NET");
  return {};
}

Status set_up(const Options& options) {
  if (!options.cc.empty()) setenv("ROCI_CC", options.cc.c_str(), 1);
  if (!options.identity.empty()) {
    if (const auto identity = parse_identity(options.identity); !identity)
      return fail(identity.error().within("--identity"));
    setenv(kIdentityVariable, options.identity.c_str(), 1);
  }
  const auto programs = program_folder();
  if (!programs) return fail(programs.error());
  std::string device_name = "roci0";
  std::vector<std::string> addresses;
  if (options.config.empty()) {
    NetConfig net;
    net.name = options.net.empty() ? "default" : options.net;
    ROCI_TRY(join_net(options, std::move(net), false, *programs));
  } else {
    auto file = read_run_file(options.config);
    if (!file) return fail(file.error());
    if (file->net) {
      ROCI_TRY(join_net(options, std::move(*file->net), true, *programs));
    } else {
      device_name = file->device->device.name;
      addresses = file->device->device.addresses;
      ROCI_TRY(use_device(options, *file->device));
    }
  }
  return set_environment(*programs, device_name, addresses);
}

int run_with_stats(const std::vector<std::string>& command) {
  const auto folder = runtime_folder();
  if (!folder) return complain(folder.error());
  const std::filesystem::path file = *folder / (".stats-" + std::to_string(getpid()));
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  setenv("ROCI_STATS", file.c_str(), 1);
  const Ending ending = run_and_wait(command);
  std::vector<DeviceStats> all;
  if (std::filesystem::exists(file, ignored)) {
    auto read = read_stats(file.string());
    if (!read) {
      complain(read.error());
    } else {
      all = std::move(*read);
    }
    std::filesystem::remove(file, ignored);
  }
  if (all.empty() && ending.signal != 0) {
    std::fprintf(
        stderr,
        "roci-run: no counters: signal %d (%s) ended the program, and processes write their counters "
        "at exit\n",
        ending.signal, strsignal(ending.signal));
  } else {
    std::fputs(stats_tables(all).c_str(), stderr);
  }
  return ending.exit_code;
}

int print_result(const Result<std::string>& text) {
  if (!text) return complain(text.error());
  std::fputs(text->c_str(), stdout);
  return checked_exit_status("roci-run", 0, kFailed);
}

int check_machine() {
  const auto programs = program_folder();
  if (!programs) return complain(programs.error());
  Options options;
  options.net = "doctor-" + std::to_string(getpid());
  const int status = doctor(*programs, options.net, [&] { return set_up(options); });
  return checked_exit_status("roci-run", status, kFailed);
}

// Modes that replace the execution of a program.
Status check_modes(const Options& options) {
  const char* chosen = nullptr;
  for (const auto& [name, given] :
       std::array<std::pair<const char*, bool>, 4>{{{"--list", options.list},
                                                    {"--stop", !options.stop.empty()},
                                                    {"--doctor", options.doctor},
                                                    {"--supported", options.supported}}}) {
    if (!given) continue;
    if (chosen != nullptr) return fail(std::string(chosen) + " excludes " + name);
    chosen = name;
  }
  if (chosen != nullptr && !options.command.empty())
    return fail(std::string(chosen) + " excludes PROGRAM ('" + options.command.front() + "')");
  if (chosen == nullptr && options.has_faults() && options.net.empty() && options.config.empty())
    return fail(
        "fault injection requires --net NAME or --config FILE, since other programs share the network "
        "'default'");
  return {};
}

int run(const Options& options) {
  if (const Status good = check_modes(options); !good) return complain(good.error());
  if (options.doctor) return check_machine();
  if (options.supported) return print_result(options.json ? supported_json() : supported_table());
  if (options.list) return print_result(networks_table());
  if (!options.stop.empty()) return print_result(stop_network(options.stop));
  if (options.command.empty()) return complain({"PROGRAM is missing; see 'roci-run --help'"});
  if (options.command.front().starts_with('-') && !options.separated)
    return complain(
        {"unknown option '" + options.command.front() + "'; options of the program follow its name"});
  if (const Status ready = set_up(options); !ready) return complain(ready.error());
  return options.stats ? run_with_stats(options.command) : become(options.command);
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: roci-run [OPTIONS] PROGRAM [ARGUMENTS...]\n";
  }
  // Prints only the type of an option's value.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.empty() ? "" : " " + type;
  }
};

// CLI11 expects an error text, or an empty string.
CLI::Validator is_not_empty() {
  return CLI::Validator{
      [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); }, ""};
}

void add_options(CLI::App& app, Options& options) {
  const char* where = "Network";
  auto* net = app.add_option("--net", options.net,
                             "network of this machine to join; created if it does not exist [default]")
                  ->type_name("NAME")
                  ->check(is_not_empty())
                  ->group(where);
  app.add_option(
         "--config", options.config,
         "file that describes a network or a device (config/net-default.yaml, config/run-af-xdp.yaml)")
      ->type_name("FILE")
      ->check(is_not_empty())
      ->excludes(net)
      ->group(where);
  const char* how = "Device";
  app.add_option(
         "--cc", options.cc,
         "congestion control profile: a name that 'roci-cc list' prints or that FILE defines, window or none")
      ->type_name("NAME")
      ->check(is_not_empty())
      ->group(how);
  app.add_option(
         "--identity", options.identity,
         "vendor and part number that the device reports; perftest detects 0x2c9:4119 as a ConnectX-5")
      ->type_name("VENDOR:PART")
      ->group(how);
  app.add_flag("--stats", options.stats, "print counters and queue pairs when the program has exited")
      ->group(how);
  const char* faults = "Fault injection (requires --net or --config)";
  const auto probability = [&](const char* name, std::optional<double>& value, const char* help) {
    app.add_option_function<std::string>(
           name,
           [name, &value](const std::string& text) {
             const auto part = parse_probability(text);
             if (!part) throw CLI::ValidationError(name, part.error().message);
             value = *part;
           },
           help)
        ->type_name("P")
        ->group(faults);
  };
  probability("--loss", options.loss, "probability that a frame is lost, such as 0.01 or 1%");
  probability("--corrupt", options.corrupt, "probability that bits of a frame are inverted");
  probability("--duplicate", options.duplicate, "probability that a frame is duplicated");
  probability("--reorder", options.reorder, "probability that a frame is reordered");
  app.add_option("--delay", options.delay, "delay of every frame, such as 20us")
      ->type_name("TIME")
      ->check(is_not_empty())
      ->group(faults);
  const char* instead = "Network management";
  app.add_flag("--list", options.list, "list the networks of this machine and their processes")
      ->group(instead);
  app.add_option("--stop", options.stop,
                 "stop the switch of a network; a network without a switch ends with its last process")
      ->type_name("NAME")
      ->check(is_not_empty())
      ->group(instead);
  app.add_flag("--doctor", options.doctor,
               "check whether this machine can run programs, and print what to change")
      ->group("Machine");
  const char* programs = "Programs";
  auto* supported =
      app.add_flag("--supported", options.supported,
                   "list programs that were run, with version and test, and programs that do not run")
          ->group(programs);
  app.add_flag("--json", options.json, "with --supported: print a JSON array")
      ->needs(supported)
      ->group(programs);
}

int main_(int argc, char** argv) {
  CLI::App app{
      "Runs a program with software RDMA devices. Programs on one machine share a network; they exchange\n"
      "frames through shared memory, or through a switch process if the network requires one."};
  Options options;
  app.prefix_command();
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(20);
  app.formatter(formatter);
  add_options(app, options);
  app.set_version_flag("--version", "roci-run " ROCI_VERSION, "print the version and exit");
  app.footer(
      "Examples:\n"
      "  roci-run ib_write_bw                          server, device address 10.77.0.1\n"
      "  roci-run --cc dcqcn ib_write_bw 127.0.0.1     client, in another terminal; perftest exchanges its\n"
      "                                                parameters by kernel TCP\n"
      "  roci-run rping -s -a 10.77.0.1 -C 10 -v       librdmacm uses the address of the device\n"
      "  roci-run --net lab mpirun -n 4 program\n"
      "  roci-run --net lossy --loss 0.01 --stats program\n\n"
      "Exit status: that of the program, or 128 plus the number of the signal that ended it; 125 if roci-run "
      "fails,\n"
      "126 or 127 if the program cannot be run or does not exist.");
  if (const auto done = parse_command_line(app, "roci-run", argc, argv, kFailed)) return *done;
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--") {
    options.separated = true;
    options.command.erase(options.command.begin());
  }
  return run(options);
}

}  // namespace
}  // namespace roci::run

int main(int argc, char** argv) { return roci::run::main_(argc, argv); }
