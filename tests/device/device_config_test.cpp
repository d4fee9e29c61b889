// Section `device` of a configuration file: workers and their cores.
#include "device/config/device_config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <utility>

#include "device/config/network_key.hpp"

namespace roci {
namespace {

Result<DeviceFile> read(const std::string& keys) {
  DeviceFile file;
  const Status status =
      parse_config("device:\n  port: {device: net_null0}\n  addresses: [10.0.0.1/24]\n" + keys, "x.yaml",
                   [&](ConfigNode& root) { return read_device_section(root, file); });
  if (!status) return fail(status.error());
  return file;
}

TEST(DeviceConfigFile, one_worker_is_the_default) {
  const auto file = read("");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->device.workers, 1U);
  EXPECT_EQ(file->port.queues, 1);
}

TEST(DeviceConfigFile, port_has_one_queue_per_worker) {
  const auto file = read("  workers: 3\n  progress: dedicated\n  cpus: [0, 2, 5]\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->device.workers, 3U);
  EXPECT_EQ(file->port.queues, 3);
  EXPECT_EQ(file->device.cpus, (std::vector<int>{0, 2, 5}));
}

TEST(DeviceConfigFile, old_name_of_neighbors_is_read) {
  const auto file = read("  neighbours: [{address: 10.0.0.2, mac: '02:00:00:00:00:02'}]\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->device.neighbors.size(), 1U);
}

TEST(DeviceConfigFile, address_has_one_neighbor_entry) {
  const auto file = read(
      "  neighbors: [{address: 10.0.0.2, mac: '02:00:00:00:00:02'}, {address: 10.0.0.2, mac: "
      "'02:00:00:00:00:03'}]\n");
  ASSERT_FALSE(file);
  EXPECT_EQ(
      file.error().message,
      "x.yaml:4: device.neighbors[1].address: another entry has the same address; an address may have one "
      "entry");
}

TEST(DeviceConfigFile, default_mac_is_derived_from_the_first_address) {
  const auto mac_of = [](const std::string& addresses) {
    DeviceFile file;
    const Status status =
        parse_config("device:\n  port: {device: net_null0}\n  addresses: [" + addresses + "]\n", "x.yaml",
                     [&](ConfigNode& root) { return read_device_section(root, file); });
    EXPECT_TRUE(status) << status.error().message;
    return file.port.default_mac;
  };
  EXPECT_EQ(mac_of("10.0.0.1/24"), *MacAddress::parse("02:52:0a:00:00:01"));
  EXPECT_EQ(mac_of("10.0.0.1/24, 10.0.0.2/24"), mac_of("10.0.0.1/24"));
  EXPECT_EQ(mac_of("'fd00::1/64'"), mac_of("'fd00::1/64'"));
  EXPECT_NE(mac_of("'fd00::1/64'"), mac_of("'fd00::2/64'"));
  EXPECT_EQ(mac_of(""), std::nullopt);
}

TEST(DeviceConfigFile, relative_plugin_is_in_the_folder_of_the_file) {
  const auto error_of = [](const std::string& name, const std::string& plugin) {
    DeviceFile file;
    const Status status = parse_config(
        "device:\n  port: {device: net_null0}\n  congestion_control: {plugins: [" + plugin + "]}\n", name,
        [&](ConfigNode& root) { return read_device_section(root, file); });
    return status ? "" : status.error().message;
  };
  EXPECT_NE(
      error_of("/nonexistent/x.yaml", "half.so").find("congestion control plugin /nonexistent/half.so:"),
      std::string::npos);
  EXPECT_NE(error_of("/nonexistent/x.yaml", "a/half.so").find("plugin /nonexistent/a/half.so:"),
            std::string::npos);
  EXPECT_NE(error_of("/nonexistent/x.yaml", "/other/half.so").find("plugin /other/half.so:"),
            std::string::npos);
  EXPECT_NE(error_of("the configuration", "half.so").find("plugin half.so:"), std::string::npos);
}

// The example contains them as comments. Of the keys before `window` some exclude each other.
TEST(DeviceConfigFile, keys_in_the_comments_of_the_example_are_valid) {
  std::ifstream file(ROCI_SOURCE_DIR "/config/perf-client.yaml");
  std::string keys, line;
  bool begun = false;
  while (std::getline(file, line)) {
    begun = begun || line.starts_with("  # window:");
    if (begun) keys += (line.starts_with("  # ") ? "  " + line.substr(4) : line) + "\n";
  }
  ASSERT_TRUE(begun);
  const auto read_keys = read(keys);
  ASSERT_TRUE(read_keys) << read_keys.error().message;
  EXPECT_EQ(read_keys->device.congestion.cnm_port, 4999);
  EXPECT_EQ(read_keys->device.telemetry.udp_port, 5201);
}

// A file in the test's folder, removed at the end.
class KeyFile {
 public:
  explicit KeyFile(const std::string& text, mode_t mode = 0600)
      : path(testing::TempDir() + "network_key_" + std::to_string(getpid())) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  ~KeyFile() { unlink(path.c_str()); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  const std::string path;
};
constexpr const char* kDigits = "000102030405060708090a0b0c0D0E0F";
std::string extensions(const std::string& keys) { return "  extensions: {" + keys + "}\n"; }

TEST(DeviceConfigFile, authentication_is_off_preferred_or_required) {
  EXPECT_FALSE(read("")->device.extensions.authenticate);
  for (const char* value : {"off", "false", "no"})
    EXPECT_FALSE(read(extensions(std::string("authenticate: ") + value))->device.extensions.authenticate);
  for (const char* value : {"prefer", "true", "on"}) {
    const auto file = read(extensions(std::string("authenticate: ") + value));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->device.extensions.authenticate) << value;
    EXPECT_FALSE(file->device.extensions.require_authentication) << value;
    EXPECT_FALSE(file->device.extensions.network_key);
  }
  const KeyFile key(std::string(kDigits) + "\n");
  const auto file = read(extensions("authenticate: require, network_key: " + key.path));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->device.extensions.authenticate);
  EXPECT_TRUE(file->device.extensions.require_authentication);
  EXPECT_EQ(file->device.extensions.network_key,
            (std::array<uint8_t, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_TRUE(read(extensions("authenticate: prefer, ignore_cnps: true"))->device.extensions.ignore_cnps);
  const auto error_of = [](const std::string& keys) {
    const auto wrong = read(extensions(keys));
    return wrong ? "accepted" : wrong.error().message;
  };
  EXPECT_NE(error_of("authenticate: sometimes").find("is not one of off, prefer, require"),
            std::string::npos);
  EXPECT_NE(error_of("ignore_cnps: true").find("requires authenticate"), std::string::npos);
  EXPECT_NE(error_of("authenticate: require").find("require needs network_key"), std::string::npos);
  EXPECT_NE(error_of("network_key: " + key.path).find("requires authenticate"), std::string::npos);
  EXPECT_NE(error_of("mode: off, authenticate: require, network_key: " + key.path).find("mode: off"),
            std::string::npos);
}

TEST(NetworkKey, file_must_be_private_and_hold_a_key) {
  const auto error_of = [](const std::string& file) {
    const auto key = read_network_key(file);
    return key ? "accepted" : key.error().message;
  };
  {
    const KeyFile right(kDigits);
    EXPECT_TRUE(read_network_key(right.path));
    const KeyFile read_only(kDigits, 0400);
    EXPECT_TRUE(read_network_key(read_only.path));
  }
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666}) {
    const KeyFile open_to_others(kDigits, mode);
    EXPECT_NE(error_of(open_to_others.path).find("chmod 600"), std::string::npos) << std::oct << mode;
  }
  for (const char* text : {"", "00", "000102030405060708090a0b0c0d0e0x",
                           "000102030405060708090a0b0c0d0e0f\n\n", "00000000000000000000000000000000"}) {
    const KeyFile wrong(text);
    EXPECT_NE(error_of(wrong.path).find("is invalid: "), std::string::npos) << text;
  }
  EXPECT_NE(error_of("network.key").find("is not an absolute path"), std::string::npos);
  EXPECT_NE(error_of("/nonexistent/key").find("cannot be opened: No such file"), std::string::npos);
  EXPECT_NE(error_of("/tmp").find("is not a regular file"), std::string::npos);
  EXPECT_NE(error_of("/dev/null").find("is not a regular file"), std::string::npos);
  const KeyFile target(kDigits);
  const std::string link = target.path + ".link";
  ASSERT_EQ(symlink(target.path.c_str(), link.c_str()), 0);
  EXPECT_NE(error_of(link).find("is a symbolic link"), std::string::npos);
  unlink(link.c_str());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(target.path.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_NE(error_of(target.path).find("belongs to another user"), std::string::npos);
}

TEST(DeviceConfigFile, telemetry_is_disabled_by_default_and_requires_a_udp_port) {
  EXPECT_FALSE(read("")->device.telemetry.enabled());
  const auto file =
      read("  telemetry: {udp_port: 5201, domain: 7, begin: probe, hops: 3, wants_response: true}\n");
  ASSERT_TRUE(file) << file.error().message;
  const HostTelemetryConfig& telemetry = file->device.telemetry;
  EXPECT_TRUE(telemetry.enabled());
  EXPECT_EQ(telemetry.udp_port, 5201);
  EXPECT_EQ(telemetry.domain, 7);
  EXPECT_EQ(telemetry.begin, TelemetryBegin::kProbe);
  EXPECT_EQ(telemetry.hops, 3);
  EXPECT_TRUE(telemetry.wants_response);
  for (const char* wrong :
       {"{domain: 7}", "{udp_port: 4791}", "{udp_port: 5201, hops: 17}", "{udp_port: 5201, begin: always}"}) {
    EXPECT_FALSE(read(std::string("  telemetry: ") + wrong + "\n")) << wrong;
  }
}

TEST(DeviceConfigFile, flow_control_is_disabled_by_default_and_requires_priorities) {
  EXPECT_FALSE(read("")->device.flow_control.enabled());
  const auto file = read(
      "  flow_control: {pfc: [3, 5], trust: pcp, rate: 25Gbps, pause_watchdog: {detect: 5ms, restore: 7ms}, "
      "xoff: 512, xon: 128}\n");
  ASSERT_TRUE(file) << file.error().message;
  const FlowControlConfig& flow = file->device.flow_control;
  EXPECT_EQ(flow.priorities, 1U << 3 | 1U << 5);
  EXPECT_TRUE(flow.trust_pcp);
  EXPECT_EQ(flow.rate, 25'000'000'000U);
  EXPECT_EQ(flow.watchdog_detect, 5ms);
  EXPECT_EQ(flow.watchdog_restore, 7ms);
  EXPECT_EQ(read("  flow_control: {pfc: [3]}\n")->device.flow_control.watchdog_detect, 200ms);
  EXPECT_EQ(read("  flow_control: {pfc: [3], pause_watchdog: {detect: never}}\n")
                ->device.flow_control.watchdog_detect,
            kNever);
  EXPECT_EQ(flow.xoff, 512U);
  EXPECT_EQ(flow.xon, 128U);
  for (const char* wrong :
       {"{rate: 10Gbps}", "{pfc: [8]}", "{pfc: [3], trust: tag}", "{pfc: [3], xoff: 100, xon: 100}"}) {
    EXPECT_FALSE(read(std::string("  flow_control: ") + wrong + "\n")) << wrong;
  }
}

TEST(DeviceConfigFile, congestion_notification_is_disabled_without_its_section) {
  EXPECT_FALSE(read("")->device.congestion.listens());
  const auto least = read("  congestion_notification: {}\n");
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_TRUE(least->device.congestion.tag);
  EXPECT_EQ(least->device.congestion.priorities, 0xff);
  EXPECT_EQ(least->device.congestion.receive_point.qeq, 0U);
  const auto file = read(
      "  congestion_notification:\n    tag: false\n    priorities: [3, 5]\n    trust: pcp\n    cnm_port: "
      "4999\n"
      "    cnm_key: 000102030405060708090a0b0c0D0E0F\n    cnm_tolerance: 2s\n    cnm_rate: 50\n    "
      "short_samples: true\n"
      "    congestion_point: {qeq: 256, weight: 0.5, sample: 300KB}\n");
  ASSERT_TRUE(file) << file.error().message;
  const CongestionConfig& congestion = file->device.congestion;
  EXPECT_FALSE(congestion.tag);
  EXPECT_EQ(congestion.priorities, 1U << 3 | 1U << 5);
  EXPECT_TRUE(congestion.trust_pcp);
  EXPECT_EQ(congestion.cnm_port, 4999);
  EXPECT_EQ(congestion.cnm_key,
            (std::array<uint8_t, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(congestion.cnm_tolerance, 2s);
  EXPECT_EQ(congestion.cnm_rate, 50U);
  EXPECT_TRUE(congestion.short_samples);
  EXPECT_EQ(congestion.receive_point.qeq, 256U);
  EXPECT_EQ(congestion.receive_point.weight, 0.5);
  EXPECT_EQ(congestion.receive_point.sample, 300'000U);
  for (const char* wrong :
       {"{priorities: [8]}", "{trust: tag}", "{cnm_port: 4791}", "{cnm_port: 0}",
        "{cnm_key: 000102030405060708090a0b0c0d0e0f}", "{cnm_port: 4999, cnm_key: 0001}",
        "{cnm_port: 4999, cnm_key: 000102030405060708090a0b0c0d0e0x}", "{cnm_rate: 0}", "{cnm_tolerance: 2h}",
        "{congestion_point: {}}", "{congestion_point: {qeq: 0}}", "{congestion_point: {qeq: 5, weight: 3}}",
        "{congestion_point: {qeq: 5, sample: 10}}", "{tags: true}"}) {
    EXPECT_FALSE(read(std::string("  congestion_notification: ") + wrong + "\n")) << wrong;
  }
  EXPECT_FALSE(read("  telemetry: {udp_port: 4999}\n  congestion_notification: {cnm_port: 4999}\n"));
}

TEST(DeviceConfigFile, cnp_limit_and_profile_dscp) {
  const auto absent = read("  congestion_control: {profiles: [{name: p, algorithm: dcqcn}]}\n");
  ASSERT_TRUE(absent) << absent.error().message;
  EXPECT_EQ(absent->device.congestion_control.notification_point.limit, CnpLimit::kQueuePair);
  EXPECT_EQ(absent->device.congestion_control.profiles.at("p").dscp, -1);
  for (const auto& [name, limit] :
       {std::pair{"queue-pair", CnpLimit::kQueuePair}, std::pair{"address", CnpLimit::kAddress},
        std::pair{"port", CnpLimit::kPort}}) {
    const auto file =
        read(std::string("  congestion_control: {notification_point: {limit: ") + name + "}}\n");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->device.congestion_control.notification_point.limit, limit);
  }
  const auto marked = read("  congestion_control: {profiles: [{name: p, algorithm: ldcp, dscp: 26}]}\n");
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_EQ(marked->device.congestion_control.profiles.at("p").dscp, 26);
  for (const char* wrong :
       {"{notification_point: {limit: host}}", "{profiles: [{name: p, algorithm: dcqcn, dscp: 64}]}",
        "{profiles: [{name: p, algorithm: dcqcn, dscp: -1}]}"}) {
    EXPECT_FALSE(read(std::string("  congestion_control: ") + wrong + "\n")) << wrong;
  }
}

TEST(DeviceConfigFile, errors_state_the_allowed_values) {
  const auto error_of = [](const std::string& keys) {
    const auto file = read(keys);
    return file ? std::string("it was read") : file.error().message;
  };
  EXPECT_NE(error_of("  workers: 0\n").find("1 to 16"), std::string::npos) << error_of("  workers: 0\n");
  EXPECT_NE(error_of("  workers: 17\n").find("1 to 16"), std::string::npos);
  EXPECT_NE(error_of("  cpus: [1]\n").find("progress: dedicated"), std::string::npos);
  EXPECT_NE(error_of("  workers: 2\n  progress: dedicated\n  cpus: [1]\n").find("1 CPUs for 2 workers"),
            std::string::npos);
  EXPECT_NE(error_of("  progress: dedicated\n  cpu: 1\n  cpus: [1]\n").find("cannot be combined with cpu"),
            std::string::npos);
}

}  // namespace
}  // namespace roci
