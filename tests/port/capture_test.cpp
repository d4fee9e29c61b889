#include "port/capture/capture.hpp"

#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>

#include "port/dpdk/ethdev_port.hpp"
#include "port/packets.hpp"
#include "port/sim/borrowed_port.hpp"
#include "support/must.hpp"
#include "support/ports/frames.hpp"

namespace roci {
namespace {

using test::must;

struct Captured {
  std::vector<uint8_t> bytes;
  uint32_t length;
  Nanos time;
};

// Reads a capture with libpcap, independently of this project's writer.
std::vector<Captured> read_capture(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE];
  std::vector<Captured> packets;
  pcap_t* file = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (file == nullptr) {
    ADD_FAILURE() << error;
    return packets;
  }
  EXPECT_EQ(pcap_datalink(file), DLT_EN10MB);
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int result = 0;
  while ((result = pcap_next_ex(file, &header, &data)) == 1) {
    packets.push_back({{data, data + header->caplen},
                       header->len,
                       std::chrono::seconds(header->ts.tv_sec) + Nanos(header->ts.tv_usec)});
  }
  EXPECT_EQ(result, PCAP_ERROR_BREAK) << pcap_geterr(file);
  pcap_close(file);
  return packets;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) text += line;
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

class Capture : public ::testing::Test {
 protected:
  void SetUp() override {
    pool_ = make_pool(400);
    std::tie(tapped_, peer_) = must_pair(1);
    config_.path = "/tmp/roci-capture-" + std::to_string(getpid()) + ".pcapng";
    config_.max_bytes = 1 << 20;
  }
  void TearDown() override { std::filesystem::remove(config_.path); }
  EthdevPortPair must_pair(uint16_t queues) {
    auto pair = make_ring_pair("wire", pool_, 1500, 32, queues);
    EXPECT_TRUE(pair) << pair.error().message;
    return pair ? std::move(*pair) : EthdevPortPair();
  }

  std::unique_ptr<CapturePort> open() {
    auto capture = CapturePort::open(std::move(tapped_), config_);
    EXPECT_TRUE(capture) << capture.error().message;
    return capture ? std::move(*capture) : nullptr;
  }
  // Sends one frame and frees it at the receiver.
  std::vector<uint8_t> pass(Port& from, Port& to, uint32_t length, uint32_t tag, Nanos now) {
    rte_mbuf* frame = make_frame(*pool_, length, tag, 500);
    auto bytes = bytes_of(frame);
    EXPECT_EQ(from.tx_burst({&frame, 1}, now), 1);
    EXPECT_EQ(to.rx_burst({&frame, 1}, now), 1);
    rte_pktmbuf_free(frame);
    return bytes;
  }

  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<EthdevPort> tapped_, peer_;
  CaptureConfig config_;
};

TEST_F(Capture, merges_all_receive_queues_into_one) {
  auto pair = must_pair(3);
  peer_ = std::move(pair.first);
  tapped_ = std::move(pair.second);
  auto port = open();
  EXPECT_EQ(port->queues(), 1);
  for (uint16_t queue = 0; queue < 3; ++queue) {
    rte_mbuf* frame = make_frame(*pool_, 100, queue, 500);
    ASSERT_EQ(peer_->queue(queue).tx_burst({&frame, 1}, 0ns), 1);
  }
  std::array<rte_mbuf*, 8> burst{};
  ASSERT_EQ(port->rx_burst(burst, 0ns), 3);
  rte_pktmbuf_free_bulk(burst.data(), 3);
  EXPECT_EQ(port->captured(), 3U);
}

// A port whose packets have no ICRC.
class WithoutIcrc final : public BorrowedPort {
 public:
  explicit WithoutIcrc(Port& port) : BorrowedPort(port) {
    capabilities_.mtu = port.capabilities().mtu;
    capabilities_.needs_icrc = false;
  }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }

 private:
  PortCapabilities capabilities_;
};

TEST_F(Capture, writes_correct_icrc_for_packets_of_a_port_without_icrc) {
  auto capture = must(CapturePort::open(std::make_unique<WithoutIcrc>(*tapped_), config_));
  const std::vector<uint8_t> right = test::roce_bytes({.payload = 1000, .number = 7});
  std::vector<uint8_t> sent = right;
  std::fill(sent.end() - kIcrcBytes, sent.end(), uint8_t{0});
  rte_mbuf* frame = test::to_mbuf(*pool_, sent);
  ASSERT_EQ(capture->tx_burst({&frame, 1}, 1us), 1);
  ASSERT_EQ(peer_->rx_burst({&frame, 1}, 1us), 1);
  EXPECT_EQ(bytes_of(frame), sent) << "the frame itself stays as it is";
  ASSERT_EQ(peer_->tx_burst({&frame, 1}, 2us), 1);
  ASSERT_EQ(capture->rx_burst({&frame, 1}, 2us), 1);
  rte_pktmbuf_free(frame);
  ASSERT_TRUE(capture->save());
  const auto packets = read_capture(config_.path);
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[0].bytes, right);
  EXPECT_EQ(packets[1].bytes, right);
}

TEST_F(Capture, records_frames_of_both_directions_with_time_and_direction) {
  config_.epoch = 1'700'000'000s;
  auto port = open();
  std::vector<std::vector<uint8_t>> sent;
  for (uint32_t i = 0; i < 20; ++i) {
    const Nanos now = 1ms * i + 7ns;
    sent.push_back(i % 2 == 0 ? pass(*port, *peer_, 61 + 70 * i, i, now)
                              : pass(*peer_, *port, 60 + i, i, now));
  }
  EXPECT_EQ(port->captured(), 20U);
  port.reset();
  const auto packets = read_capture(config_.path);
  ASSERT_EQ(packets.size(), 20U);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(packets[i].bytes, sent[i]);
    EXPECT_EQ(packets[i].time, config_.epoch + 1ms * i + 7ns);
  }
  // tshark must show the direction and the interface.
  const std::string fields =
      output_of("tshark -r " + config_.path +
                " -T fields -e frame.packet_flags_direction -e frame.interface_name 2>&1");
  EXPECT_NE(fields.find("wire.a"), std::string::npos) << fields;
  std::string directions;
  for (size_t at = fields.find("0x"); at != std::string::npos; at = fields.find("0x", at + 1)) {
    directions += fields[fields.find_first_of("\t\n", at) - 1];
  }
  EXPECT_EQ(directions, "21212121212121212121") << fields;
}

TEST_F(Capture, stops_at_the_packet_limit_and_counts_the_rest) {
  config_.max_packets = 5;
  auto port = open();
  for (uint32_t i = 0; i < 12; ++i) pass(*port, *peer_, 100, i, Nanos{0});
  EXPECT_EQ(port->captured(), 5U);
  EXPECT_EQ(port->not_captured(), 7U);
  port.reset();
  EXPECT_EQ(read_capture(config_.path).size(), 5U);
}

TEST_F(Capture, respects_byte_limit_and_truncates_frames_to_snap_length) {
  config_.max_bytes = 4000;
  config_.snap_length = 64;
  auto port = open();
  for (uint32_t i = 0; i < 100; ++i) pass(*port, *peer_, 1400, i, Nanos{0});
  EXPECT_EQ(port->captured() + port->not_captured(), 100U);
  EXPECT_GT(port->not_captured(), 0U);
  port.reset();
  EXPECT_LT(std::filesystem::file_size(config_.path), 4000U + 100);
  const auto packets = read_capture(config_.path);
  ASSERT_GT(packets.size(), 20U);
  EXPECT_EQ(packets[0].bytes.size(), 64U);
  EXPECT_EQ(packets[0].length, 1400U);
}

TEST_F(Capture, omits_rejected_and_oversized_frames) {
  auto port = open();
  std::vector<rte_mbuf*> frames;
  frames.push_back(make_frame(*pool_, 1600, 0));
  for (uint32_t i = 0; i < 99; ++i) frames.push_back(make_frame(*pool_, 100 + i, i));
  const uint16_t accepted = port->tx_burst(frames, Nanos{0});
  EXPECT_EQ(accepted, 33);  // the ring's 32 and the dropped one
  EXPECT_EQ(port->captured(), 32U);
  free_all(std::span(frames).subspan(accepted));
  ASSERT_TRUE(port->save());
  const auto packets = read_capture(config_.path);
  ASSERT_EQ(packets.size(), 32U);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(packets[i].length, 100 + i);
}

TEST_F(Capture, saves_the_file_repeatedly) {
  auto port = open();
  EXPECT_TRUE(read_capture(config_.path).empty());
  for (uint32_t i = 1; i <= 3; ++i) {
    pass(*port, *peer_, 100, i, Nanos{i});
    ASSERT_TRUE(port->save());
    EXPECT_EQ(read_capture(config_.path).size(), i);
  }
}

TEST_F(Capture, new_file_is_readable_by_its_owner_only) {
  const mode_t before = umask(0);
  const auto port = open();
  umask(before);
  struct stat found {};
  ASSERT_EQ(stat(config_.path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
}

TEST_F(Capture, reports_path_that_cannot_be_written) {
  config_.path = "/nonexistent/x.pcapng";
  const auto capture = CapturePort::open(std::move(tapped_), config_);
  ASSERT_FALSE(capture);
  EXPECT_NE(capture.error().message.find("\"/nonexistent/x.pcapng\" cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace roci
