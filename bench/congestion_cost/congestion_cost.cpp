// Cost of congestion control: throughput of 64 KiB WRITEs with an algorithm divided by that without one, both hosts on
// one core. Two loopbacks alternate in turns of about a millisecond; their order changes with every pair, so that other
// load affects both. The result is the median ratio of the pairs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "loopback/loopback.hpp"

namespace roci::bench {
namespace {

constexpr uint64_t kMessages = 256;  // per turn

LoopbackConfig large_write(const char* algorithm) {
  return {.opcode = IBV_WR_RDMA_WRITE,
          .bytes = 65536,
          .path_mtu = IBV_MTU_4096,
          .depth = 16,
          .extensions = {.mode = ExtensionMode::kAuto},
          .algorithm = algorithm};
}

double seconds_of_turn(Loopback& loopback) {
  const auto begin = std::chrono::steady_clock::now();
  loopback.move(kMessages);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double at_part(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

void compare(const char* algorithm, unsigned pairs) {
  Loopback with(large_write(algorithm)), without(large_write("none"));
  std::vector<double> ratios, rates;
  for (unsigned pair = 0; pair < pairs; ++pair) {
    double on = 0, off = 0;
    if (pair % 2 == 0) on = seconds_of_turn(with);
    off = seconds_of_turn(without);
    if (pair % 2 != 0) on = seconds_of_turn(with);
    ratios.push_back(off / on);
    rates.push_back(static_cast<double>(kMessages) * 65536 * 8 / off / 1e9);
  }
  std::ranges::sort(ratios);
  std::ranges::sort(rates);
  std::printf("%-14s %6.1f Gb/s  %6.3f  (%.3f to %.3f)\n", algorithm, at_part(rates, 0.5),
              at_part(ratios, 0.5), at_part(ratios, 0.25), at_part(ratios, 0.75));
}

int run(int argc, char** argv) {
  CLI::App app{"Ratio of throughput with and without congestion control, both hosts on one core"};
  unsigned pairs = 400;
  std::vector<std::string> algorithms{"none", "static_rate", "dcqcn", "dctcp", "ldcp"};
  app.add_option("--pairs", pairs, "Number of paired runs")
      ->capture_default_str()
      ->check(CLI::Range(2, 1'000'000));
  app.add_option("algorithms", algorithms,
                 "Algorithms that do not require telemetry; 'none' shows the resolution of the method")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf("%-14s %11s  %6s  (%s)\n", "algorithm", "without", "on/off",
              "interquartile range of the pairs");
  try {
    for (const std::string& algorithm : algorithms) compare(algorithm.c_str(), pairs);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "roci-congestion-cost: %s\n", failure.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci::bench

int main(int argc, char** argv) { return roci::bench::run(argc, argv); }
