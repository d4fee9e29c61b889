// Incast of many senders to one receiver through a switch, with production code in virtual time. Prints one line of
// results for an algorithm. The same arguments give the same results on all machines.
//
//     roci-fan-in --algorithm ldcp --flows 64
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "congestion_control/fan_in.hpp"

namespace roci {
namespace {

using test::FanIn;
using test::FanInOptions;

struct Arguments {
  std::string algorithm = "ldcp";
  std::vector<std::string> values;
  size_t flows = 16;
  size_t senders = 0;
  std::string rate = "100Gbps";
  std::string mark = "13000,52000,1";
  double drop = 26000;
  double base_rtt_us = 4.5;
  double cnp_us = 4;
  double warm_ms = 2;
  double measure_ms = 5;
  uint32_t cores = 0;
  uint64_t seed = 1;
  bool telemetry = false;
  bool reads = false;
  bool standard = false;
  bool timestamps = false;
  bool flows_too = false;
};

// Parses "13000,52000,1": bytes, bytes and a probability.
std::optional<MarkingCurve> parse_curve(const std::string& text) {
  std::array<double, 3> numbers{};
  const char* at = text.c_str();
  for (size_t i = 0; i < numbers.size(); ++i) {
    char* end = nullptr;
    numbers[i] = std::strtod(at, &end);
    if (end == at || numbers[i] < 0 || *end != (i + 1 < numbers.size() ? ',' : 0)) return {};
    at = end + 1;
  }
  if (numbers[0] > numbers[1] || numbers[2] > 1) return {};
  return MarkingCurve{.kmin = Bytes{static_cast<uint64_t>(numbers[0])},
                      .kmax = Bytes{static_cast<uint64_t>(numbers[1])},
                      .pmax = numbers[2]};
}

double megabits(double rate) { return rate / 1e6; }

int run(const Arguments& arguments) {
  FanInOptions options;
  options.flows = arguments.flows;
  options.senders = arguments.senders != 0 ? arguments.senders : std::min<size_t>(arguments.flows, 64);
  auto rate = parse_rate(arguments.rate);
  if (!rate) {
    std::fprintf(stderr, "roci-fan-in: --rate: %s\n", rate.error().message.c_str());
    return 2;
  }
  options.rate = *rate;
  std::map<std::string, double> values;
  for (const std::string& value : arguments.values) {
    const auto equals = value.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "roci-fan-in: --set requires name=value, not '%s'\n", value.c_str());
      return 2;
    }
    values[value.substr(0, equals)] = std::stod(value.substr(equals + 1));
  }
  if (arguments.algorithm != "none") {
    options.control = test::with_profile(arguments.algorithm, values,
                                         Nanos{static_cast<int64_t>(arguments.base_rtt_us * 1000)});
  }
  options.control.cores = arguments.cores;
  options.control.notification_point.interval = Nanos{static_cast<int64_t>(arguments.cnp_us * 1000)};
  options.seed = arguments.seed;
  options.reads = arguments.reads;
  options.extensions.mode = arguments.standard ? ExtensionMode::kOff : ExtensionMode::kAuto;
  options.extensions.timestamps = arguments.timestamps;
  if (arguments.mark != "none") {
    const auto curve = parse_curve(arguments.mark);
    if (!curve) {
      std::fprintf(stderr, "roci-fan-in: --mark requires Kmin,Kmax,Pmax or none, not '%s'\n",
                   arguments.mark.c_str());
      return 2;
    }
    options.aqm.mark = *curve;
  }
  if (arguments.drop > 0)
    options.aqm.drop = {.kmin = Bytes{static_cast<uint64_t>(arguments.drop)},
                        .kmax = Bytes{static_cast<uint64_t>(arguments.drop)}};
  if (arguments.telemetry) {
    options.telemetry.udp_port = test::kTelemetryPort;
    options.telemetry.begin = TelemetryBegin::kAll;
  }
  if (arguments.algorithm == "qcn") options.qcn = true;
  FanIn net(options);
  net.take_queue();
  const auto span = [](double ms) { return Nanos{static_cast<int64_t>(ms * 1e6)}; };
  net.drive(span(arguments.warm_ms));
  const auto first = net.take_queue();
  const uint64_t first_drops = net.port_counters().dropped();
  const auto rates = net.measure(span(arguments.measure_ms));
  const auto queue = net.take_queue();
  std::printf(
      "%-14s %5zu flows  goodput %7.3f Gb/s (%5.1f %% of the maximum)  Jain %.4f  min %.1f max %.1f Mb/s\n",
      arguments.algorithm.c_str(), arguments.flows, rates.sum / 1e9, 100 * rates.sum / net.most_goodput(),
      rates.jain, megabits(rates.least), megabits(rates.most));
  std::printf("  queue, KB: initial peak %.1f; then p50 %.1f p95 %.1f p99 %.1f max %.1f\n",
              static_cast<double>(FanIn::percentile(first, 1)) / 1e3,
              static_cast<double>(FanIn::percentile(queue, .5)) / 1e3,
              static_cast<double>(FanIn::percentile(queue, .95)) / 1e3,
              static_cast<double>(FanIn::percentile(queue, .99)) / 1e3,
              static_cast<double>(FanIn::percentile(queue, 1)) / 1e3);
  std::printf("  dropped %lu initially, %lu then; retransmitted %lu; time-outs %lu; CNPs %lu; CNMs %lu\n",
              first_drops, net.port_counters().dropped() - first_drops, net.total("packets_retransmitted"),
              net.total("timeouts"), net.total("np_cnp_sent"), net.total("cnms_taken"));
  if (arguments.telemetry) {
    std::printf("  telemetry inserted in %lu packets, too long for %lu; %lu echoed, %lu of them old\n",
                net.total("int_inserted"), net.total("int_too_long"), net.total("int_echoes_received"),
                net.total("int_echoes_old"));
  }
  if (arguments.flows_too) {
    for (size_t i = 0; i < net.flow_count(); ++i) {
      const ControlFlow* flow = net.control(i, arguments.reads ? 1 : 0);
      if (flow == nullptr) continue;
      const roci_cc_decision d = flow->published.read();
      std::printf("  flow %zu: %.1f Mb/s, %lu events, %s, rate %.1f Mb/s, window %.1f KB, last %s\n", i,
                  megabits(rates.each[i]), flow->events.load(), flow->profile.plugin->states[d.state].name,
                  d.rate == ROCI_CC_NO_LIMIT ? 0 : static_cast<double>(d.rate) / 1e6,
                  d.window == ROCI_CC_NO_LIMIT ? 0 : static_cast<double>(d.window) / 1e3,
                  flow->profile.plugin->reasons[flow->last_reason].name);
    }
  }
  return 0;
}

}  // namespace
}  // namespace roci

int main(int argc, char** argv) {
  roci::Arguments arguments;
  CLI::App app{"Congestion control with many senders and one receiver, in virtual time.", "roci-fan-in"};
  app.add_option("--algorithm", arguments.algorithm, "a built-in algorithm, or none")->capture_default_str();
  app.add_option("--set", arguments.values, "parameter of the algorithm as name=value");
  app.add_option("--flows", arguments.flows, "number of flows")->capture_default_str();
  app.add_option("--senders", arguments.senders, "sending hosts (default: one per flow, at most 64)");
  app.add_option("--rate", arguments.rate, "rate of all links")->capture_default_str();
  app.add_option("--mark", arguments.mark, "ECN marking: Kmin,Kmax,Pmax (bytes, bytes, probability) or none")
      ->capture_default_str();
  app.add_option("--drop", arguments.drop,
                 "queue length in bytes from which other packets are dropped; 0: never")
      ->capture_default_str();
  app.add_option("--base-rtt", arguments.base_rtt_us, "base round-trip time in us")->capture_default_str();
  app.add_option("--cnp-interval", arguments.cnp_us, "us between CNPs to a sender")->capture_default_str();
  app.add_option("--warm", arguments.warm_ms, "ms before the measurement")->capture_default_str();
  app.add_option("--measure", arguments.measure_ms, "ms of the measurement")->capture_default_str();
  app.add_option("--cores", arguments.cores,
                 "dedicated cores per host for congestion control; 0: in the worker")
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "seed of all random numbers")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--int", arguments.telemetry, "switches insert in-band telemetry");
  app.add_flag("--timestamps", arguments.timestamps, "packets contain timestamps");
  app.add_flag("--reads", arguments.reads, "traffic consists of READ responses");
  app.add_flag("--standard", arguments.standard, "no extensions");
  app.add_flag("--each", arguments.flows_too, "print each flow");
  CLI11_PARSE(app, argc, argv);
  try {
    return roci::run(arguments);
  } catch (const std::exception& error) {  // failures of the tests' helper functions
    std::fprintf(stderr, "roci-fan-in: %s\n", error.what());
    return 1;
  }
}
