// Usage of the script: preferences, names of values, lines of the packet list.
#include <gtest/gtest.h>

#include <fstream>

#include "wire/net/udp_location.hpp"
#include "wire/wire_test_support.hpp"
#include "wireshark/random_frames.hpp"

namespace roci::test {
namespace {

class WiresharkUsage : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Tshark::is_usable()); }
  // The first value of a field in each frame; "" if missing.
  static std::vector<std::string> read(const std::vector<Bytes>& frames, const std::string& field,
                                       const std::string& options = "") {
    CaptureFile file("usage");
    for (const Bytes& frame : frames) file.add(frame);
    file.save();
    std::vector<std::string> out;
    for (Reading& reading : Tshark(options).read(file.path(), {"frame.number", field}))
      out.push_back(reading[field].empty() ? "" : reading[field][0]);
    return out;
  }
  static void replace_port(Bytes& frame, uint16_t port) {
    const auto where = find_udp(frame, static_cast<uint32_t>(frame.size()));
    frame[where.l4_offset + 2U] = static_cast<uint8_t>(port >> 8);
    frame[where.l4_offset + 3U] = static_cast<uint8_t>(port);
  }

  Rng rng_{1};
};

using Texts = std::vector<std::string>;

TEST_F(WiresharkUsage, unassigned_ports_are_preferences) {
  const Bytes telemetry = random_int(rng_).bytes, notification = random_l3_cnm(rng_).bytes;
  Bytes moved_telemetry = telemetry, moved_notification = notification;
  replace_port(moved_telemetry, 6000);
  replace_port(moved_notification, 6001);
  const std::vector<Bytes> frames{telemetry, moved_telemetry, notification, moved_notification};
  constexpr const char* kProtocol = "_ws.col.Protocol";
  EXPECT_EQ(read(frames, "roci.int.type"), (Texts{"1", "", "", ""}));
  const std::string moved = "-o roci.int_port:6000 -o roci.cnm_port:6001";
  EXPECT_EQ(read(frames, "roci.int.type", moved), (Texts{"", "1", "", ""}));
  EXPECT_EQ(read(frames, kProtocol, moved), (Texts{"UDP", "RRoCE", "UDP", "CNM"}));
  EXPECT_EQ(read(frames, kProtocol, "-o roci.int_port:0 -o roci.cnm_port:0"),
            (Texts{"UDP", "UDP", "UDP", "UDP"}));
}

TEST_F(WiresharkUsage, other_protocols_on_the_same_ports_are_not_dissected) {
  RandomFrame telemetry = random_int(rng_), notification = random_l3_cnm(rng_);
  telemetry.bytes[telemetry.begin] = 0x60;        // such as the time of iperf3
  notification.bytes[notification.begin] = 0x21;  // a future version
  const std::vector<Bytes> frames{telemetry.bytes, notification.bytes};
  EXPECT_EQ(read(frames, "_ws.col.Protocol"), (Texts{"UDP", "UDP"}));
  for (const std::string& length : read(frames, "data.len")) EXPECT_NE(length, "");
}

TEST_F(WiresharkUsage, hops_of_another_domain_are_shown_as_bytes) {
  RandomFrame telemetry;
  do {
    telemetry = random_int(rng_);
  } while (!our_reading(telemetry.bytes).fields.contains("roci.int.hop.tx_bytes"));
  const std::string domain = our_reading(telemetry.bytes).fields["roci.int.domain"][0];
  const std::string other = domain == "7" ? "8" : "7";
  EXPECT_NE(read({telemetry.bytes}, "roci.int.hop.tx_bytes", "-o roci.int_domain:" + domain), Texts{""});
  EXPECT_NE(read({telemetry.bytes}, "roci.int.hop.data", "-o roci.int_domain:" + other), Texts{""});
}

TEST_F(WiresharkUsage, extensions_preference_disables_dissection) {
  const std::vector<Bytes> frames{random_block(rng_, Opcode::kRcAcknowledge).bytes,
                                  random_roce(rng_, Opcode::kCcProbe).bytes};
  EXPECT_EQ(read(frames, "roci"), (Texts{"Rocinante", "Rocinante CC_PROBE"}));
  EXPECT_EQ(read(frames, "roci", "-o roci.extensions:FALSE"), (Texts{"", ""}));
}

TEST_F(WiresharkUsage, installed_script_may_also_be_given_on_command_line) {
  const InstalledScript installed;
  EXPECT_EQ(read({random_cnm(rng_).bytes}, "roci.cnm.version"), Texts{"0"});
}

TEST_F(WiresharkUsage, opcode_names_match_opcode_table) {
  const auto names = Tshark::value_names("roci.int_report.sampled.opcode");
  EXPECT_EQ(names.size(), opcode_table().size());
  for (const OpcodeInfo& info : opcode_table()) {
    const auto found = names.find(static_cast<uint8_t>(info.opcode));
    ASSERT_NE(found, names.end()) << info.name;
    EXPECT_EQ(found->second, info.name);
  }
}

TEST_F(WiresharkUsage, info_column_describes_the_packet) {
  Packet ack = make_packet(Opcode::kRcAcknowledge);
  ExtensionBlock block;
  block.ce_echo = CeEchoValues{100, 3};
  block.lsn = Lsn{5};
  const Bytes with_block = encode_packet(ack.with_extensions(block).finish());
  const Bytes window = encode_packet(make_packet(Opcode::kCcRxWindow).finish());
  const auto info = read({random_cnm(rng_).bytes, random_l3_cnm(rng_).bytes, random_int(rng_).bytes,
                          random_capabilities(rng_).bytes, with_block, window},
                         "_ws.col.Info");
  const char* said[] = {"Congestion notification: feedback ",
                        "Self-defined congestion notification for ",
                        " [INT: ",
                        " capabilities: re",
                        "RC Acknowledge QP=0x000000  [CE-ECHO, LSN]",
                        "CC_RXW QP=0x000000"};
  ASSERT_EQ(info.size(), std::size(said));
  for (size_t i = 0; i < info.size(); ++i) EXPECT_NE(info[i].find(said[i]), std::string::npos) << info[i];
}

TEST_F(WiresharkUsage, documented_filters_and_preferences_exist) {
  std::ifstream page(std::string(ROCI_SOURCE_DIR) + "/docs/wireshark.md");
  std::string section, options, filters;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const std::string code = line.substr(3, line.find('`', 3) - 3);
    if (section == "Filters") filters += (filters.empty() ? "(" : " || (") + code + ")";
    if (section == "Preferences") {
      const size_t begin = line.find("| ", 3) + 2;
      options += " -o " + code + ":" + line.substr(begin, line.find(' ', begin) - begin);
    }
  }
  EXPECT_NE(filters.find("roci.int.hop.queue > "), std::string::npos);
  EXPECT_NE(options.find("-o roci.int_port:5201"), std::string::npos);
  // tshark fails if it does not know one of them.
  const Bytes probe = encode_packet(make_packet(Opcode::kCcProbe).finish());
  EXPECT_EQ(read({probe}, "roci.opcode", "-Y '" + filters + "'" + options), Texts{"224"});
}

}  // namespace
}  // namespace roci::test
