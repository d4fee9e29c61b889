#include "wire/cm_connect.hpp"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <string>

#include "wire/roce_glance.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

struct Heard {
  CmConnect message;
  IpAddress from;
};

// What two Linux hosts said (tests/pcaps).
std::vector<Heard> heard_in(const std::string& name, std::vector<RoceFlow>& flows) {
  std::vector<Heard> out;
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* file = pcap_open_offline((ROCI_SOURCE_DIR "/tests/pcaps/" + name).c_str(), error.data());
  if (file == nullptr) {
    ADD_FAILURE() << error.data();
    return out;
  }
  pcap_pkthdr* header = nullptr;
  const uint8_t* bytes = nullptr;
  while (pcap_next_ex(file, &header, &bytes) == 1) {
    const auto seen = glance_roce({bytes, header->caplen}, header->len);
    if (!seen) continue;
    if (seen->flow.queue_pair != Qpn{1}) {
      flows.push_back(seen->flow);
      continue;
    }
    if (const auto message = read_cm_connect(seen->rest)) out.push_back({*message, seen->flow.source});
  }
  pcap_close(file);
  return out;
}

TEST(CmConnect, is_read_as_two_linux_hosts_wrote_it) {
  for (const auto& [name, connections] : {std::pair{"rping.pcap", 1U}, std::pair{"ucmatose.pcap", 2U}}) {
    std::vector<RoceFlow> flows;
    const auto heard = heard_in(name, flows);
    ASSERT_EQ(heard.size(), 2 * connections) << name;
    unsigned replies = 0;
    for (const Heard& reply : heard) {
      if (reply.message.message != CmConnect::Message::kReply) continue;
      ++replies;
      const auto request = std::find_if(heard.begin(), heard.end(), [&](const Heard& h) {
        return h.message.message == CmConnect::Message::kRequest &&
               h.message.local_id == reply.message.remote_id;
      });
      ASSERT_NE(request, heard.end()) << name;
      // The queue pairs they named are the ones that packets went to afterwards.
      const RoceFlow there{request->from, reply.from, reply.message.queue_pair};
      const RoceFlow back{reply.from, request->from, request->message.queue_pair};
      EXPECT_NE(std::find(flows.begin(), flows.end(), there), flows.end()) << name;
      EXPECT_NE(std::find(flows.begin(), flows.end(), back), flows.end()) << name;
    }
    EXPECT_EQ(replies, connections);
  }
}

TEST(CmConnect, other_datagrams_say_nothing) {
  ByteVector mad(256);
  mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[17] = 0x10;
  EXPECT_TRUE(read_cm_connect(mad));
  EXPECT_FALSE(read_cm_connect(std::span(mad).first(255)));
  for (const size_t at : {0U, 1U, 2U, 3U, 16U, 17U}) {
    ByteVector other = mad;
    other[at] ^= 0x20;
    EXPECT_FALSE(read_cm_connect(other)) << at;
  }
}

}  // namespace
}  // namespace roci
