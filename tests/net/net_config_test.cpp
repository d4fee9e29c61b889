#include "net/net_config.hpp"

#include "net/net_switch.hpp"
#include "net_fixture.hpp"

namespace roci {
namespace {

class NetFile : public test::NetTest {
 protected:
  std::string write(const std::string& text) {
    const std::string path = (root_ / "mine.yaml").string();
    std::ofstream{path} << text;
    return path;
  }
  void expect_error(const std::string& text, const std::string& message) {
    const auto net = read_net_file(write(text));
    ASSERT_FALSE(net) << text;
    EXPECT_NE(net.error().message.find(message), std::string::npos) << net.error().message;
  }
};

TEST_F(NetFile, empty_file_gives_defaults_and_the_file_name) {
  const auto net = read_net_file(write("net: {}\n"));
  ASSERT_TRUE(net) << net.error().message;
  NetConfig expected;
  expected.name = "mine";
  EXPECT_EQ(*net, expected);
  EXPECT_EQ(net->slots, 32U);
}

TEST_F(NetFile, written_file_is_read_back_equal) {
  NetConfig net;
  net.name = "other";
  net.networks = {*IpNetwork::parse("192.168.4.0/24")};
  net.first = 7;
  net.slots = 5;
  net.mtu = 1500;
  net.linger = kNever;
  net.always_icrc = true;
  net.idle = IdlePolicy::kSpin;
  net.memory_mib = 128;
  net.rate = BitsPerSec{2'500'000'000};
  net.queue = 1_MiB;
  net.queue_frames = 99;
  net.marking = {false, 10_KiB, 20_KiB, 0.1};
  net.telemetry = {false, 6000, 4};
  net.congestion_control = {"dcqcn", 7us, BitsPerSec{1'000'000'000}};
  net.pci = true;
  net.uplink.emplace();
  net.uplink->device = "net_af_packet0,iface=veth0";
  net.uplink->mtu = 1400;
  net.uplink->mac = MacAddress::local(3);
  net.faults =
      PortFaults{.loss = 0.01, .corruption = 0.1, .duplication = 1e-3, .reordering = 0.5, .delay = 3us};
  net.fault_seed = 9;
  const auto again = read_net_file(write(net_text(net)));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, net);
  EXPECT_EQ(*read_net_file(write(net_text(NetConfig{}))), NetConfig{});
  NetConfig placing;
  placing.sender_placement = true;
  EXPECT_EQ(*read_net_file(write(net_text(placing))), placing);
  EXPECT_NE(description_id(placing), description_id(NetConfig{}));
  EXPECT_EQ(description_id(*read_net_file(write(net_text(net)))), description_id(net));
}

TEST_F(NetFile, old_name_of_slots_is_read) {
  const auto net = read_net_file(write("net: {places: 5}"));
  ASSERT_TRUE(net) << net.error().message;
  EXPECT_EQ(net->slots, 5U);
}

TEST_F(NetFile, icrc_is_required_with_a_switch_or_when_configured) {
  NetConfig net;
  EXPECT_FALSE(net.needs_icrc());
  net.always_icrc = true;
  EXPECT_TRUE(net.needs_icrc());
  net.always_icrc = false;
  net.always_switch = true;
  EXPECT_TRUE(net.needs_icrc());
}

TEST_F(NetFile, placement_by_the_sender_excludes_a_switch) {
  const auto net = read_net_file(write("net: {placement: sender, switch: always}"));
  ASSERT_FALSE(net);
  EXPECT_NE(net.error().message.find("placement"), std::string::npos) << net.error().message;
}

TEST_F(NetFile, invalid_settings_are_reported_with_file_and_line) {
  expect_error("net:\n  slosts: 3\n", "mine.yaml:2: net.slosts is an unknown key, did you mean 'slots'?");
  expect_error("net:\n  slots: 33\n", "mine.yaml:2: net.slots: '33'");
  expect_error("net:\n  addresses: [10.0.0.0/30]\n", "10.0.0.0/30 is too small for 32 slots");
  expect_error("net:\n  addresses: [10.0.0.0/24, 10.1.0.0/24]\n", "two networks of the same IP version");
  expect_error("net:\n  addresses: []\n", "must name a network");
  expect_error("net:\n  name: a/b\n", "is not a valid network name");
  expect_error("net:\n  marking: {kmin: 2MiB}\n", "must not be above kmax");
  expect_error("net:\n  telemetry: {udp_port: 4791}\n", "is the UDP port of RoCEv2");
  expect_error("net: {}\ndevice: {port: {device: net_null0}}\n", "only one is allowed");
  expect_error("device: {port: {device: net_null0}}\n", "describes a device, not a network");
  expect_error("net:\n  slots: 32\n  uplink: {device: net_null0}\n", "must be at most 31 with an uplink");
  expect_error("net:\n  uplink: {mtu: 1500}\n", "the required key 'device' is missing");
  expect_error("net:\n  linger: 0\n", "net.linger: must be never, or above 0 and at most 876000h");
  expect_error("net:\n  linger: 900000h\n", "net.linger: must be never");
  for (const char* queue : {"0", "1KiB", "1517B"})
    expect_error("net:\n  mtu: 1500\n  queue: " + std::string{queue} + "\n",
                 "net.queue: must hold a frame, that is, be at least 1518B with an mtu of 1500");
  expect_error("net:\n  queue: 5000B\n  uplink: {device: net_null0, mtu: 9000}\n", "at least 9018B");
  EXPECT_TRUE(read_net_file(write("net: {mtu: 1500, queue: 1518B, linger: never}")));
}

TEST_F(NetFile, file_with_a_device_describes_an_exclusive_device) {
  const auto file = read_run_file(write("device: {port: {device: net_null0}, addresses: [10.0.0.1/24]}\n"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->net);
  ASSERT_TRUE(file->device);
  EXPECT_EQ(file->device->port.device, "net_null0");
}

TEST_F(NetFile, device_file_may_contain_eal_section) {
  const auto file =
      read_run_file(write("eal: {memory: 256MiB, pci: true}\ndevice: {port: {device: \"0000:3b:00.0\"}, "
                          "addresses: [10.0.0.1/24]}\n"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->device);
  EXPECT_EQ(file->device->port.device, "0000:3b:00.0");
  expect_error("eal: {memroy: 1GiB}\ndevice: {port: {device: net_null0}}\n", "did you mean 'memory'?");
  expect_error("eal: {pci: true}\nnet: {}\n", "eal is an unknown key");
}

TEST_F(NetFile, example_files_are_valid) {
  const std::filesystem::path config = std::filesystem::path{ROCI_SOURCE_DIR} / "config";
  const auto standard = read_net_file((config / "net-default.yaml").string());
  ASSERT_TRUE(standard) << standard.error().message;
  EXPECT_EQ(*standard, NetConfig{}) << "it shows the defaults";
  const auto lossy = read_net_file((config / "net-lossy.yaml").string());
  ASSERT_TRUE(lossy) << lossy.error().message;
  ASSERT_TRUE(lossy->faults);
  EXPECT_GT(lossy->faults->loss, 0);
  const auto device = read_run_file((config / "run-af-xdp.yaml").string());
  ASSERT_TRUE(device) << device.error().message;
  ASSERT_TRUE(device->device);
  EXPECT_TRUE(device->device->port.device.starts_with("net_af_xdp"));
}

TEST(NetConfig, switch_ports_of_slots_are_bound_to_their_addresses) {
  NetConfig net;
  net.slots = 2;
  net.uplink.emplace();
  const std::string text = net_switch_text(net, "/tmp/n");
  const auto port = [&](const std::string& name, const std::string& next) {
    const size_t from = text.find("name: " + name);
    return text.substr(from, text.find("name: " + next, from) - from);
  };
  for (const auto& [name, next, mac, addresses] :
       {std::array{"slot0", "slot1", "02:77:0a:4d:00:01", "\"10.77.0.1\", \"fd77::1\""},
        std::array{"slot1", "uplink", "02:77:0a:4d:00:02", "\"10.77.0.2\", \"fd77::2\""}}) {
    EXPECT_NE(port(name, next).find("macs: [\"" + std::string(mac) + "\"]\n"), std::string::npos) << text;
    EXPECT_NE(port(name, next).find("addresses: [" + std::string(addresses) + "]\n"), std::string::npos)
        << text;
  }
  EXPECT_EQ(text.substr(text.find("name: uplink")).find("addresses:"), std::string::npos);
}

TEST(NetConfig, switch_file_contains_all_keys_of_the_uplink) {
  NetConfig net;
  net.uplink.emplace();
  net.uplink->device = R"(net_af_packet0,iface=a"b\c)";
  net.uplink->connect_timeout = 7ms;
  const std::string text = net_switch_text(net, "/tmp/n");
  EXPECT_NE(text.find(R"(device: "net_af_packet0,iface=a\"b\\c")"), std::string::npos) << text;
  EXPECT_NE(text.find("connect_timeout: 7000000ns\n"), std::string::npos) << text;
  EXPECT_NE(net_text(net).find(R"(device: "net_af_packet0,iface=a\"b\\c")"), std::string::npos);
}

TEST(NetConfig, slot_addresses_start_at_the_first_host_number) {
  NetConfig net;
  EXPECT_EQ(net.address(net.networks[0], 0).to_string(), "10.77.0.1/16");
  EXPECT_EQ(net.address(net.networks[0], 255).to_string(), "10.77.1.0/16");
  EXPECT_EQ(net.address(net.networks[1], 31).to_string(), "fd77::20/64");
  net.first = 100;
  EXPECT_EQ(net.address(net.networks[0], 1).to_string(), "10.77.0.101/16");
  EXPECT_EQ(net.mac(1).to_string(), "02:77:0a:4d:00:65");
}

}  // namespace
}  // namespace roci
