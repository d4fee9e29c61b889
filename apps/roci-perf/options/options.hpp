// The command line of roci-perf.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "roci-perf/connection/peer.hpp"
#include "roci-perf/options/congestion_options.hpp"
#include "roci-perf/options/parameters.hpp"
#include "roci/extension_config.hpp"

namespace roci::perf {

struct Options {
  Parameters test;
  std::set<std::string> given;  // long names of the options on the command line, without dashes

  // Path of the packets
  std::string host;  // server to connect to; empty: this process is the server
  std::string config_file;
  std::string net_folder;  // ROCI_NET, as set by roci-run: replaces a configuration file
  std::string stats_file;  // ROCI_STATS, as set by `roci-run --stats`; empty in a loopback
  bool loopback = false;
  bool direct = false;                  // loopback without a switch between the hosts
  std::vector<QueuePairAddress> peers;  // given by --peer, one per queue pair
  bool passive = false;                 // with peers: the peers send the requests
  std::string wait_file;
  uint16_t tcp_port = 18515;
  std::string bind = "127.0.0.1";
  double loss = 0;           // loopback: loss probability of frames in each direction, 0 to 1
  std::vector<int> cores;    // empty: not bound; else this process's CPU, and in a loopback the server's
  double host_timeout = 10;  // seconds

  // Attributes and use of queue pairs
  int gid_index = -1;        // -1: the first configured address
  uint32_t inline_size = 0;  // messages up to this size in bytes are copied when posted
  uint8_t qp_timeout = 14;   // 4.096 us x 2^n
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  uint8_t traffic_class = 0;
  uint32_t outstanding_reads = 0;  // 0: the device's maximum
  uint32_t post_list = 1;
  // Use of wire extensions. Default: off in a loopback, else as in the configuration file.
  std::optional<ExtensionMode> extensions;
  // Further values that override the configuration file.
  std::optional<bool> selective_repeat;
  std::optional<uint32_t> packets_per_ack;
  CongestionOptions congestion;
  uint32_t cq_mod = 0;  // messages per signaled completion; 0: a quarter of tx_depth
  double margin = -1;   // seconds not measured at each end of a timed run; -1: a tenth, at most 2

  // Output
  bool report_gbits = false;
  bool report_unsorted = false;
  bool report_histogram = false;
  bool json = false;
  std::string capture_file;
  uint64_t capture_packets = 1000;

  [[nodiscard]] bool is_server() const { return host.empty() && !loopback && peers.empty(); }
};

// The result of parsing a command line.
struct ParsedOptions {
  Options options;
  std::string text;  // help or version for standard output; if not empty, no test is run
};
// Fails with an error message for invalid options or combinations.
Result<ParsedOptions> parse_options(int argc, const char* const* argv);

}  // namespace roci::perf
