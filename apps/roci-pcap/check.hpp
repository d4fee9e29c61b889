// roci-pcap check: verifies that every RoCEv2 packet of a capture decodes, has a correct ICRC, and encodes to the same
// bytes.
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
  uint64_t cut = 0;  // truncated by the capture; only counted, not checked
  std::vector<uint64_t> bad_icrc_packets;
  // "packet 2: data.icrc: …"; a difference, unless the index declares it.
  std::vector<std::string> bad_icrcs;
  std::vector<std::string> differences;  // "packet 7: bth.opcode: …"
};

Result<CheckReport> check_capture(const std::string& path);

struct CheckOptions {
  std::vector<std::string> files;
  std::string index;  // instead of INDEX.md in the folder of each file
  bool no_index = false;
  bool verbose = false;  // print the opcode counts of each file
};

// Prints the report. Returns the exit status: 0 if there is no difference, 1 for a difference, 2 for an unreadable
// file.
int run_check(const CheckOptions& options);

}  // namespace roci::pcap_tool
