#include "port/port_config.hpp"

#include <gtest/gtest.h>

namespace roci {
namespace {

TEST(PortConfig, reads_eal_device_and_idle_settings) {
  EalConfig eal;
  EthdevConfig device;
  IdlePolicy idle = IdlePolicy::kSpin;
  const Status status = parse_config(
      "eal: {hugepages: require, pci: yes, memory: 1GiB, share_buffers: true, args: [--log-level, '8']}\n"
      "port: {device: 'net_null0,size=64', mtu: 4200, rx_descriptors: 256, mac: '02:00:00:00:00:07'}\n"
      "idle: sleep\n",
      "x.yaml", [&](ConfigNode& root) -> Status {
        Status s = read_eal(root, eal);
        if (s) s = read_idle(root, idle);
        if (!s) return s;
        return root.section("port", Need::kRequired,
                            [&](ConfigNode& node) { return read_device(node, device); });
      });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(eal, (EalConfig{.hugepages = Hugepages::kRequire,
                            .pci = true,
                            .memory_mib = 1024,
                            .share_buffers = true,
                            .extra_args = {"--log-level", "8"}}));
  EXPECT_EQ(device.device, "net_null0,size=64");
  EXPECT_EQ(device.mtu, 4200);
  EXPECT_EQ(device.rx_descriptors, 256);
  EXPECT_EQ(device.tx_descriptors, 1024);
  EXPECT_EQ(device.mac, *MacAddress::parse("02:00:00:00:00:07"));
  EXPECT_EQ(idle, IdlePolicy::kSleep);
}

TEST(PortConfig, errors_report_the_key_and_the_allowed_values) {
  const auto error_of = [](const std::string& text) {
    EalConfig eal;
    EthdevConfig device;
    const Status status = parse_config(text, "x.yaml", [&](ConfigNode& root) -> Status {
      if (Status s = read_eal(root, eal); !s) return s;
      return read_device(root, device);
    });
    return status ? "no error" : status.error().message;
  };
  EXPECT_EQ(error_of("mtu: 1500"), "x.yaml:1: the required key 'device' is missing");
  EXPECT_EQ(error_of("device: ''"),
            "x.yaml:1: device: '' is not a device; examples: net_af_packet0,iface=veth0 and 0000:01:00.0");
  EXPECT_EQ(error_of("device: x\nmtu: 100"), "x.yaml:2: mtu: '100' is not a whole number from 576 to 9600");
  EXPECT_EQ(error_of("device: x\neal: {memory: 100KB}"),
            "x.yaml:2: eal.memory: '100KB' is not a whole number of MiB from 1MiB to 1TiB");
  EXPECT_EQ(error_of("device: x\neal: {hugepage: on}"),
            "x.yaml:2: eal.hugepage is an unknown key, did you mean 'hugepages'? (allowed: hugepages, pci, "
            "memory, share_buffers, telemetry, args)");
  EXPECT_EQ(error_of("device: x\neal: {hugepages: true}"),
            "x.yaml:2: eal.hugepages: 'true' is not one of auto, off, require");
  EXPECT_EQ(error_of("device: x\nmac: 1:2").rfind("x.yaml:2: mac: ", 0), 0U);
}

PortFaults faults_of(const std::string& text) {
  PortFaults faults;
  const Status status =
      parse_config(text, "faults", [&](ConfigNode& node) { return read_faults(node, faults); });
  EXPECT_TRUE(status) << status.error().message;
  return faults;
}

std::string faults_error(const std::string& text) {
  PortFaults faults;
  const Status status =
      parse_config(text, "faults", [&](ConfigNode& node) { return read_faults(node, faults); });
  return status ? "" : status.error().message;
}

TEST(PortConfig, reads_faults_and_rejects_values_out_of_range) {
  EXPECT_EQ(faults_of("{}"), PortFaults{});
  EXPECT_EQ(faults_of("{loss: 0.01, corrupt: 1e-3, delay: 10us, down: true}"),
            (PortFaults{.loss = 0.01, .corruption = 0.001, .delay = 10us, .down = true}));
  EXPECT_EQ(faults_error("loss: 2"), "faults:1: loss: '2' is not a number from 0 to 1");
  EXPECT_EQ(faults_error("delay: 2s"), "faults:1: delay: '2s' exceeds the maximum delay of 1s");
  EXPECT_EQ(faults_error("delay: never"), "faults:1: delay: 'never' exceeds the maximum delay of 1s");
  EXPECT_NE(faults_error("lost: 0.1").find("did you mean 'loss'"), std::string::npos);
}

}  // namespace
}  // namespace roci
