// The command line of roci-perf.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "roci-perf/congestion_options.hpp"
#include "roci-perf/parameters.hpp"
#include "roci-perf/peer.hpp"
#include "roci/extension_config.hpp"

namespace roci::perf {

struct Options {
  Parameters test;
  std::set<std::string> given;  // long names of the options on the command line, without dashes

  // Where the packets go
  std::string host;  // empty: we are the server
  std::string config_file;
  std::string net_folder;  // ROCI_NET, as roci-run sets it: instead of a configuration file
  std::string stats_file;  // ROCI_STATS, as `roci-run --stats` sets it; empty in a loopback
  bool loopback = false;
  bool direct = false;                  // with loopback: no switch between the hosts
  std::vector<QueuePairAddress> peers;  // set up by hand, one for each queue pair
  bool passive = false;                 // with peers: they do the work
  std::string wait_file;
  uint16_t tcp_port = 18515;
  std::string bind = "127.0.0.1";
  double loss = 0;  // with loopback: of the frames in each direction, 0 to 1
  std::vector<int>
      cores;  // empty: wherever the system puts us; else our CPU and, in a loopback, the server's
  double host_timeout = 10;  // seconds

  // How a queue pair is set up and used
  int gid_index = -1;        // -1: the first configured address
  uint32_t inline_size = 0;  // messages up to this size are copied at posting
  uint8_t qp_timeout = 14;   // 4.096 us x 2^n
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  uint8_t traffic_class = 0;
  uint32_t outstanding_reads = 0;  // 0: what the device can
  uint32_t post_list = 1;
  // Beyond the standard; without it off in a loopback, and as the configuration file says between processes.
  std::optional<ExtensionMode> extensions;
  // What else replaces the configuration file's word.
  std::optional<bool> selective_repeat;
  std::optional<uint32_t> packets_per_ack;
  CongestionOptions congestion;
  uint32_t cq_mod = 0;  // one completion per so many messages; 0: a quarter of tx_depth
  double margin = -1;   // seconds at both ends of a timed run that are not measured; -1: a tenth, at most 2

  // What is shown
  bool report_gbits = false;
  bool report_unsorted = false;
  bool report_histogram = false;
  bool json = false;
  std::string capture_file;
  uint64_t capture_packets = 1000;

  [[nodiscard]] bool is_server() const { return host.empty() && !loopback && peers.empty(); }
};

// What came of a command line.
struct ParsedOptions {
  Options options;
  std::string text;  // help or version for standard output; then there is nothing else to do
};
// Fails with one sentence for everything that cannot be meant.
Result<ParsedOptions> parse_options(int argc, const char* const* argv);

}  // namespace roci::perf
