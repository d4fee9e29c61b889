// Path of a congestion notification, as decoded by tshark on every link: host, ToR, congestion point, ToR, host.
// Every byte of every frame is in a field that is compared with the expected value. The project's decoder is not
// used.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "port/capture/pcapng.hpp"
#include "switch/qcn/l3_cnm_bench.hpp"
#include "wireshark/tshark.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kPayload = 1244;
constexpr uint16_t kFlow = 0x1234;
constexpr uint16_t kSourcePort = 49152;

// Frames of all links in one file with an interface per link.
class LinkCapture {
 public:
  explicit LinkCapture(const std::vector<std::string>& links) : buffer_(1 << 20) {
    for (const std::string& link : links) buffer_.add_interface(link);
  }
  ~LinkCapture() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  LinkCapture(const LinkCapture&) = delete;
  LinkCapture& operator=(const LinkCapture&) = delete;

  void add(size_t link, bool right, const rte_mbuf& frame, Nanos now) {
    const auto direction = right ? PcapngBuffer::Direction::kOutbound : PcapngBuffer::Direction::kInbound;
    EXPECT_TRUE(buffer_.add_packet(static_cast<uint32_t>(link), frame, direction, now, 65535));
  }
  // Fields as decoded by tshark, in order.
  [[nodiscard]] std::vector<Reading> read(std::vector<std::string> fields) const {
    const int file = open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    EXPECT_TRUE(buffer_.write_to(file));
    close(file);
    for (const std::string& own : Tshark::own_fields()) fields.push_back(own);
    return Tshark("-o ip.check_checksum:TRUE -o udp.check_checksum:TRUE").read(path_, fields);
  }

 private:
  std::string path_ = testing::TempDir() + "roci-path-" + std::to_string(getpid()) + ".pcapng";
  PcapngBuffer buffer_;
};

// Expected fields of a frame. Standard fields that are not listed are not compared; roci fields that are not listed
// must be absent.
class Expected {
 public:
  Expected& is(const std::string& field, const std::string& value) {
    fields_[field] = value;
    return *this;
  }
  Expected& is(const std::string& field, int64_t value) { return is(field, std::to_string(value)); }

  Expected& on_link(size_t link, bool right) {
    return is("frame.interface_id", static_cast<int64_t>(link))
        .is("frame.packet_flags_direction", right ? 2 : 1);
  }
  Expected& ethernet(const MacAddress& to, const MacAddress& from, uint16_t type) {
    return is("eth.dst", to.to_string()).is("eth.src", from.to_string()).is("eth.type", type);
  }
  Expected& vlan(uint8_t priority, uint16_t id, uint16_t type) {
    return is("vlan.priority", priority).is("vlan.dei", 0).is("vlan.id", id).is("vlan.etype", type);
  }
  Expected& cn_tag(uint16_t flow, uint16_t type) {
    return is("roci.cn_tag.flow", flow).is("roci.cn_tag.ethertype", type);
  }
  Expected& ip(const char* from, const char* to, uint8_t tos, uint8_t ttl, uint32_t udp_length) {
    is("ip.version", 4)
        .is("ip.hdr_len", 20)
        .is("ip.dsfield", tos)
        .is("ip.len", 20 + udp_length)
        .is("ip.id", 0);
    is("ip.flags", 2)
        .is("ip.frag_offset", 0)
        .is("ip.ttl", ttl)
        .is("ip.proto", 17)
        .is("ip.checksum.status", 1);
    return is("ip.src", from).is("ip.dst", to).is("udp.length", udp_length);
  }
  // A SEND of the flow's sender.
  Expected& send(uint32_t psn, const std::vector<uint8_t>& bytes) {
    is("udp.srcport", kSourcePort).is("udp.dstport", kRoceUdpPort).is("udp.checksum", 0);
    is("infiniband.bth.opcode", 4).is("infiniband.bth.se", 0).is("infiniband.bth.m", 0);
    is("infiniband.bth.padcnt", 0).is("infiniband.bth.tver", 0).is("infiniband.bth.p_key", 0xffff);
    is("infiniband.bth.destqp", 0x11).is("infiniband.bth.a", 0).is("infiniband.bth.reserved7", 0);
    const auto end = bytes.end() - 4;
    is("infiniband.bth.psn", psn).is("data.data", hex({end - kPayload, end}));
    uint32_t icrc = 0;
    for (auto at = end; at != bytes.end(); ++at) icrc = icrc << 8 | *at;
    return is("infiniband.invariant.crc", icrc);
  }
  // The CNM for the n-th queued frame. Its MSDU starts at offset `at` of `sampled`.
  Expected& cnm(uint32_t n, const MacAddress& bridge, const MacAddress& destination,
                const std::vector<uint8_t>& sampled, size_t at) {
    const Said said{n, sampled.size()};
    is("roci.cnm.version", 0).is("roci.cnm.reserved", 0).is("roci.cnm.feedback", said.feedback);
    is("roci.cnm.bridge", bridge.to_string()).is("roci.cnm.queue", 1 * 8 + kClass);
    const auto bytes = [](uint32_t units) { return static_cast<int16_t>(units) * 64; };
    is("roci.cnm.queue_offset", bytes(said.offset)).is("roci.cnm.queue_delta", bytes(said.delta));
    is("roci.cnm.priority", kClass).is("roci.cnm.destination", destination.to_string());
    return is("roci.cnm.msdu_length", 64).is("roci.cnm.msdu", hex(msdu_of(sampled, at)));
  }
  // The sampled frame is a SEND of the flow.
  Expected& sample(const char* from, const char* to, uint32_t psn) {
    is("roci.cnm.sample.ethertype", 0x0800).is("roci.cnm.sample.protocol", 17);
    is("roci.cnm.sample.src", from).is("roci.cnm.sample.dst", to);
    is("roci.cnm.sample.src_port", kSourcePort).is("roci.cnm.sample.dst_port", kRoceUdpPort);
    return is("roci.cnm.sample.opcode", 4)
        .is("roci.cnm.sample.destination_qp", 0x11)
        .is("roci.cnm.sample.psn", psn);
  }

  void expect_in(const Reading& reading, const std::string& what) const {
    for (const auto& [name, value] : fields_) {
      const auto found = reading.find(name);
      ASSERT_NE(found, reading.end()) << what << " has no " << name;
      EXPECT_EQ(found->second, std::vector<std::string>{value}) << what << ": " << name;
    }
    for (const auto& [name, values] : reading) {
      EXPECT_TRUE(!name.starts_with("roci.") || fields_.contains(name)) << what << " has " << name;
    }
  }
  // All standard fields that the expectations name.
  static void collect(const std::vector<Expected>& all, std::vector<std::string>& names) {
    for (const Expected& e : all) {
      for (const auto& [name, value] : e.fields_) {
        if (!name.starts_with("roci.") && std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
      }
    }
  }

 private:
  static std::string hex(const std::vector<uint8_t>& bytes) {
    std::string out;
    for (const uint8_t byte : bytes) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 0xf];
    }
    return out;
  }
  std::map<std::string, std::string> fields_;
};

void expect_all(const LinkCapture& capture, const std::vector<Expected>& expected) {
  std::vector<std::string> names;
  Expected::collect(expected, names);
  const auto readings = capture.read(names);
  ASSERT_EQ(readings.size(), expected.size());
  for (size_t i = 0; i < readings.size(); ++i)
    expected[i].expect_in(readings[i], "frame " + std::to_string(i + 1));
}

using WiresharkCnmPath = L3QcnTest;

TEST_F(WiresharkCnmPath, dissects_frames_of_a_flow_and_its_cnm_on_every_link) {
  ASSERT_TRUE(Tshark::is_usable());
  LinkCapture capture({"host A - ToR A", "ToR A - spine", "spine - ToR B", "ToR B - host B"});
  std::vector<std::pair<size_t, bool>> passed;
  tap_ = [&](size_t link, bool right, const rte_mbuf& frame) {
    capture.add(link, right, frame, runner_.now());
    passed.emplace_back(link, right);
  };
  build(tor_a(), spine(), tor_b());
  constexpr uint32_t kFrames = 3;
  for (uint32_t i = 0; i < kFrames; ++i) send(0, frame(0, i));
  wait(1ms);
  (void)at_host_b();
  (void)heard(0);

  const MacAddress macs[5] = {mac_of(kHostA), mac_of(kTorA), mac_of(kSpine), mac_of(kTorB), mac_of(kHostB)};
  constexpr const char* kA = "10.0.1.2";
  constexpr const char* kB = "10.0.2.2";
  std::array<std::array<uint32_t, 2>, 4> seen{};
  std::vector<Expected> expected;
  for (const auto& [link, right] : passed) {
    const uint32_t i = seen[link][right ? 1 : 0]++;
    Expected& e = expected.emplace_back().on_link(link, right);
    if (right) {  // the flow; the first router removes the CN-TAG
      e.ethernet(macs[link + 1], macs[link], 0x8100).vlan(5, 0, link == 0 ? 0x22e9 : 0x0800);
      if (link == 0) e.cn_tag(kFlow, 0x0800);
      e.ip(kA, kB, kTos, static_cast<uint8_t>(64 - link), 8 + 12 + kPayload + 4)
          .send(i, frame(static_cast<unsigned>(link), i));
      continue;
    }
    const auto sampled = frame(2, i + 1);  // the first frame is no congestion
    if (link == 1) {                       // from the congestion point to ToR A
      e.ethernet(macs[1], macs[2], 0x0800).ip(kB, kA, 48 << 2 | 2, 64, 8 + 16 + 24 + 64);
      e.is("udp.dstport", kCnmPort).is("udp.checksum.status", 1);
      e.is("roci.l3cnm.version", 1)
          .is("roci.l3cnm.type", 1)
          .is("roci.l3cnm.flags", 0)
          .is("roci.l3cnm.ipv6", 0);
      e.is("roci.l3cnm.tlvs", 0).is("roci.l3cnm.protocol", 17).is("roci.l3cnm.reserved", 0);
      e.is("roci.l3cnm.src", kA).is("roci.l3cnm.dst", kB);
      e.is("roci.l3cnm.src_port", kSourcePort).is("roci.l3cnm.dst_port", kRoceUdpPort);
      e.cnm(i + 1, macs[2], macs[3], sampled, 16).sample(kA, kB, i + 1);
    } else {  // to host A, with its tags and for the destination MAC that it used
      ASSERT_EQ(link, 0U);
      e.ethernet(macs[0], macs[1], 0x8100).vlan(6, 0, 0x22e9).cn_tag(kFlow, 0x22e7);
      e.cnm(i + 1, macs[2], macs[1], sampled, 16).sample(kA, kB, i + 1);
    }
  }
  const std::array<std::array<uint32_t, 2>, 4> all{// To the left, to the right.
                                                   {{2, 3}, {2, 3}, {0, 3}, {0, 3}}};
  EXPECT_EQ(seen, all);
  expect_all(capture, expected);
}

using WiresharkCnm = SwitchTest;

TEST_F(WiresharkCnm, dissects_cnm_in_one_layer_2_network) {
  ASSERT_TRUE(Tshark::is_usable());
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].classes[kClass] = qcn_class();
  make(config);
  introduce({0, 1});
  LinkCapture capture({"host 0 - switch", "host 1 - switch"});
  std::vector<std::pair<size_t, bool>> passed;
  for (size_t link = 0; link < 2; ++link) {
    for (const bool right : {true, false}) {  // `right`: to the switch
      const auto direction = right ? SimLink::Direction::kAToB : SimLink::Direction::kBToA;
      links_[link]->set_script(direction,
                               [&capture, &passed, this, link, right](const rte_mbuf& frame, uint64_t) {
                                 capture.add(link, right, frame, runner_.now());
                                 passed.emplace_back(link, right);
                                 return SimVerdict{};
                               });
    }
  }
  FrameSpec spec{
      .destination = host_mac(1), .source = host_mac(0), .vlan = 0xa000 | 1, .traffic_class = kTos};
  spec.payload = kPayload;
  const auto tagged_frame = [&](uint32_t number, bool vlan) {
    spec.number = number;
    spec.vlan = vlan ? std::optional<uint16_t>{0xa000 | 1} : std::nullopt;
    return with_cn_tag(roce_bytes(spec), kFlow);
  };
  constexpr uint32_t kFrames = 3;
  for (uint32_t i = 0; i < kFrames; ++i) send(0, tagged_frame(i, true));
  wait(1ms);
  (void)counts();

  std::array<std::array<uint32_t, 2>, 2> seen{};
  std::vector<Expected> expected;
  for (const auto& [link, right] : passed) {
    const uint32_t i = seen[link][right ? 1 : 0]++;
    Expected& e = expected.emplace_back().on_link(link, right);
    if (link == 0 && !right) {
      e.ethernet(host_mac(0), switch_->mac(), 0x22e9).cn_tag(kFlow, 0x22e7);
      e.cnm(i + 1, switch_->mac(), host_mac(1), tagged_frame(i + 1, false), 16);
      e.sample("10.0.0.1", "10.0.0.2", i + 1);
      continue;
    }
    e.ethernet(host_mac(1), host_mac(0), right ? 0x8100 : 0x22e9);
    if (right) e.vlan(5, 1, 0x22e9);
    e.cn_tag(kFlow, 0x0800).ip("10.0.0.1", "10.0.0.2", kTos, 64, 8 + 12 + kPayload + 4);
    e.send(i, tagged_frame(i, right));
  }
  const std::array<std::array<uint32_t, 2>, 2> all{{{2, 3}, {3, 0}}};
  EXPECT_EQ(seen, all);
  expect_all(capture, expected);
}

}  // namespace
}  // namespace roci::test
