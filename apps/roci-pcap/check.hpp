// `roci-pcap check`: does every RoCEv2 packet of a capture decode, have a right ICRC, and encode back to its
// bytes?
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "roci-pcap/capture.hpp"
#include "roci-pcap/counts.hpp"

namespace roci::pcap_tool {

struct CheckReport {
  Counts counts;
  uint64_t frames = 0;
  uint64_t cut = 0;  // frames of which the capture did not keep all bytes, so that nothing could be checked
  std::vector<uint64_t> bad_icrc_packets;
  std::vector<std::string>
      bad_icrcs;  // "packet 2: data.icrc: …"; a difference unless the index declares them
  std::vector<std::string> differences;  // "packet 7: bth.opcode: …"
};

Result<CheckReport> check_capture(const std::string& path);

struct CheckOptions {
  std::vector<std::string> files;
  std::string index;  // instead of the INDEX.md beside each file
  bool no_index = false;
  bool verbose = false;  // opcode counts of each file
};

// Prints the report and returns the exit status: 0 all right, 1 a difference, 2 a file that cannot be read.
int run_check(const CheckOptions& options);

}  // namespace roci::pcap_tool
