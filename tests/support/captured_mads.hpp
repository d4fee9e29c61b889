// Connection management messages from captures. For tests that link libpcap and define ROCI_SOURCE_DIR.
#pragma once

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <array>
#include <string>
#include <vector>

#include "wire/mad/cm_messages.hpp"
#include "wire/roce/packet.hpp"
#include "wire/roce/roce_peek.hpp"

namespace roci::test {

struct HeardMad {
  ByteVector bytes;
  ByteVector frame;  // complete frame
  CmMad mad;
  RoceFlow flow;
};

// Returns the connection management messages of two Linux hosts (tests/pcaps), and in `flows` the other RoCE flows.
inline std::vector<HeardMad> heard_in(const std::string& name, std::vector<RoceFlow>* flows = nullptr) {
  std::vector<HeardMad> out;
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* file = pcap_open_offline((ROCI_SOURCE_DIR "/tests/pcaps/" + name).c_str(), error.data());
  if (file == nullptr) {
    ADD_FAILURE() << error.data();
    return out;
  }
  pcap_pkthdr* header = nullptr;
  const uint8_t* bytes = nullptr;
  while (pcap_next_ex(file, &header, &bytes) == 1) {
    const auto seen = peek_roce({bytes, header->caplen}, header->len);
    if (!seen) continue;
    if (seen->flow.queue_pair != kManagementQp) {
      if (flows != nullptr) flows->push_back(seen->flow);
      continue;
    }
    const ByteVector mad(seen->rest.begin(), seen->rest.begin() + kMadBytes);
    const ParsedCm parsed = parse_cm_mad(mad);
    EXPECT_EQ(cm_outcome_name(parsed.outcome), "accepted");
    out.push_back({mad, {bytes, bytes + header->caplen}, parsed.mad, seen->flow});
  }
  pcap_close(file);
  return out;
}

}  // namespace roci::test
