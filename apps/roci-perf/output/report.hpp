// Output of results: tables in the format of perftest, or one JSON object.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roci-perf/measurement/bandwidth.hpp"
#include "roci-perf/measurement/latency.hpp"
#include "roci-perf/options/options.hpp"
#include "roci-perf/output/congestion_table.hpp"

namespace roci::perf {

// The values printed above the table.
struct Heading {
  Parameters test;
  std::string role;    // "client", "server", "both sides"
  std::string path;    // "loopback through a switch"
  std::string device;  // "roci0"
  uint32_t mtu = 0;    // path MTU in bytes
  int gid_index = 0;
  std::vector<QueuePairAddress> local, remote;
};

// The results of one message size, as shown by both sides.
struct Row {
  uint64_t size = 0;
  std::optional<BandwidthResult> bandwidth;
  std::optional<LatencySummary> latency;
};
Json to_json(const Row& row);
// Fails if the values of the mode are missing.
Result<Row> row_from_json(const Json& json, Mode mode);

// The CPUs that this process may use: "0-3,6".
std::string cpu_list();

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  void heading(const Heading& heading);
  void row(const Row& row);
  void samples(uint64_t size, const LatencySamples& samples);  // -H and -U
  void finish(const Verified& verified, const std::vector<std::pair<std::string, uint64_t>>& counters);
  // Adds a device whose congestion control is reported and traced if requested. The device must exist until
  // save_trace().
  void watch(Device& device) { watched_.push_back(&device); }
  // Records the congestion control state of the round's queue pairs; called before they are destroyed.
  void note_congestion();
  // Prints a line of text; on standard error with --json.
  void note(const std::string& text);
  // With --json, prints the object of a failed run.
  void failure(const Error& error);

  // The file of --cc-trace: creates it before the test, so that an unwritable path is an error of open_trace(), and
  // writes it after the test, also if the test has failed.
  Status open_trace();
  void save_trace();
  // Set by the capture of --capture, when the device is destroyed.
  Status& capture_saved() { return capture_saved_; }
  // Whether the requested files are complete.
  [[nodiscard]] Status written_files() const { return trace_saved_ ? capture_saved_ : trace_saved_; }

 private:
  void print_percentiles() const;
  [[nodiscard]] Json results_json() const;

  const Options& options_;
  std::vector<Device*> watched_;
  std::vector<DeviceFlows> flows_;  // of the last round
  std::optional<Heading> heading_;
  std::vector<Row> rows_;
  Json samples_ = Json::object();
  bool finished_ = false;
  std::ofstream trace_;
  Status trace_saved_, capture_saved_;
};

}  // namespace roci::perf
