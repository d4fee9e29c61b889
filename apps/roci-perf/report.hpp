// What the user sees: tables as perftest prints them, or one JSON object.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roci-perf/bandwidth.hpp"
#include "roci-perf/congestion_table.hpp"
#include "roci-perf/latency.hpp"
#include "roci-perf/options.hpp"

namespace roci::perf {

// The facts above the table.
struct Heading {
  Parameters test;
  std::string role;    // "client", "server", "both sides"
  std::string path;    // "loopback through a switch"
  std::string device;  // "roci0"
  uint32_t mtu = 0;    // path MTU, bytes
  int gid_index = 0;
  std::vector<QueuePairAddress> local, remote;
};

// The figures of one size, as both sides show them.
struct Row {
  uint64_t size = 0;
  std::optional<BandwidthResult> bandwidth;
  std::optional<LatencySummary> latency;
};
Json to_json(const Row& row);
Result<Row> row_from_json(const Json& json);

// "0-3,6": the CPUs this process may use.
std::string cpu_list();

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  void heading(const Heading& heading);
  void row(const Row& row);
  void samples(uint64_t size, const LatencySamples& samples);  // -H and -U
  void finish(const Verified& verified, const std::vector<std::pair<std::string, uint64_t>>& counters);
  // Devices whose congestion control is reported and traced, as the options ask; each must live until finish().
  void watch(Device& device) { watched_.push_back(&device); }
  // While the queue pairs of a round are there: what congestion control did with them.
  void note_congestion();
  // A line for people; not part of JSON.
  void note(const std::string& text);
  // With --json, the object that stands for a failed run.
  void failure(const Error& error);

 private:
  void print_percentiles() const;

  void save_trace() const;

  const Options& options_;
  std::vector<Device*> watched_;
  std::vector<DeviceFlows> flows_;  // of the last round
  std::optional<Heading> heading_;
  std::vector<Row> rows_;
  Json samples_ = Json::object();
};

}  // namespace roci::perf
