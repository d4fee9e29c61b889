// `roci-pcap show`: one line per packet, for people or as JSON.
#pragma once

#include <string>

namespace roci::pcap_tool {

struct ShowOptions {
  std::string file;
  bool json = false;
  bool payload = false;  // with JSON: the payload bytes too
};

// The exit status: 0, or 2 for a file that cannot be read.
int run_show(const ShowOptions& options);

}  // namespace roci::pcap_tool
