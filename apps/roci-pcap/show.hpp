// roci-pcap show: one line per packet, as text or as JSON.
#pragma once

#include <string>

namespace roci::pcap_tool {

struct ShowOptions {
  std::string file;
  bool json = false;
  bool payload = false;  // include payload bytes; JSON only
};

// Returns the exit status: 0, or 2 for an unreadable file.
int run_show(const ShowOptions& options);

}  // namespace roci::pcap_tool
