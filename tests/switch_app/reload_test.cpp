#include "roci-switch/reload.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "port/sim/faulty_port.hpp"
#include "switch/forwarding/router.hpp"

namespace roci {
namespace {

constexpr const char* kFile = R"(
eal: {memory: 128MiB, hugepages: off}
switch:
  name: s1
  idle: sleep
  cores: [1]
  faults: {enabled: true, seed: 4}
  classify: {trust: dscp, untagged: 1}
  buffer: {size: 16MiB, alpha: 1}
  cnm_port: 4999
  cnm_rate: 1000
  tor: {size: 64}
  cnm_key: 000102030405060708090a0b0c0d0e0f
  shapers: [{prefix: 10.2.0.0/16, class: 5, rate: 7Gbps}]
  cnp: {spacing: 60us}
  senders: {flows: 100}
  telemetry: {udp_port: 5201, switch_id: 7, respond: {to: sender, above: 50KiB}}
  seed: 9
  mac_table: {size: 100, ageing: 10s}
  classes:
    - {class: 3, mark: {kmin: 100KiB, kmax: 400KiB, pmax: 0.2}, drop: {kmin: 150KiB}, average: 0.5, weight: 4}
    - {class: 5, strict: true}
    - {class: 6, notify: cnp, cnp: {threshold: 90KB}}
  interfaces: [{name: left, vlan: 10, addresses: [10.0.1.1/24]}]
  routes: [{prefix: 10.9.0.0/16, via: 10.0.1.9}]
  neighbors: [{address: 10.0.1.9, mac: "02:00:00:00:00:09"}]
  ports:
    - name: p1
      device: net_null0
      mtu: 4200
      rate: 10Gbps
      queue: 2MiB
      queue_frames: 100
      vlan: 10
      tagged: [20, 30]
      telemetry: edge
      cn_tag: keep
      pause_watchdog: {detect: 50ms}
      macs: ["02:00:00:00:00:05"]
      addresses: [10.0.1.5]
      rx_descriptors: 512
      tx_descriptors: 256
      connect_timeout: 3s
      faults: {loss: 0.01}
      classes:
        - {class: 4, lossless: {xoff: 256KiB, xon: 192KiB, headroom: 64KiB}, notify: qcn, qcn: {qeq: 30us}}
    - {name: p2, device: net_null1}
)";

class ReloadTest : public testing::Test {
 protected:
  static SwitchFile read(const std::string& text) {
    const std::string path = testing::TempDir() + "roci-reload-" + std::to_string(getpid()) + ".yaml";
    std::ofstream{path} << text;
    auto file = read_switch_file(path);
    unlink(path.c_str());
    EXPECT_TRUE(file) << file.error().message;
    return file ? *file : SwitchFile{};
  }
  static std::string with(const std::string& from, const std::string& to) {
    std::string text = kFile;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  // Returns the report on a reload of the file with one change, or "no: " and the error.
  static std::string said_to(const std::string& from, const std::string& to) {
    const auto plan = plan_reload(read(kFile), read(with(from, to)));
    return plan ? plan->summary : "no: " + plan.error().message;
  }
};

TEST_F(ReloadTest, same_file_changes_nothing) {
  const auto plan = plan_reload(read(kFile), read(kFile));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->summary, "no change");
  EXPECT_TRUE(plan->marking.empty());
  EXPECT_TRUE(plan->faults.empty());
}

TEST_F(ReloadTest, equivalent_values_are_no_change) {
  EXPECT_EQ(said_to("rate: 10Gbps", "rate: 10000 Mbps"), "no change");
  EXPECT_EQ(said_to("      cn_tag: keep\n", ""), "no change") << "the default";
  EXPECT_EQ(said_to("qcn: {qeq: 30us}", "qcn: {qeq: 37500B}"), "no change");
}

TEST_F(ReloadTest, all_marking_settings_can_be_changed) {
  const std::string both = "marking of p1 class 3, p2 class 3";
  EXPECT_EQ(said_to("kmin: 100KiB", "kmin: 50KiB"), both);
  EXPECT_EQ(said_to("kmax: 400KiB", "kmax: 300KiB"), both);
  EXPECT_EQ(said_to("pmax: 0.2", "pmax: 0.3"), both);
  EXPECT_EQ(said_to("drop: {kmin: 150KiB}, ", ""), both);
  EXPECT_EQ(said_to("average: 0.5", "average: 0.25"), both);
  EXPECT_EQ(said_to("average: 0.5", "average: 0.5, mark_at: dequeue"), both);
  EXPECT_EQ(said_to("- {class: 4, ", "- {class: 4, mark: {kmin: 20us}, "), "marking of p1 class 4");
  EXPECT_EQ(said_to("- {class: 5, strict: true}",
                    "- {class: 5, strict: true, mark: {kmin: 1KiB}}\n"
                    "    - {class: 0, drop: {kmin: 1KiB}}"),
            "marking of p1 class 0, p1 class 5, p2 class 0, p2 class 5");
}

TEST_F(ReloadTest, plan_contains_the_new_curves_of_changed_ports) {
  const auto plan =
      plan_reload(read(kFile), read(with("- {class: 4, ", "- {class: 4, mark: {kmin: 20us}, ")));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->marking.size(), 1U);
  EXPECT_EQ(plan->marking[0].first, 0U);
  EXPECT_EQ(plan->marking[0].second[4].aqm.mark.kmin, Bytes{25'000}) << "20 us at 10 Gb/s";
}

TEST_F(ReloadTest, faults_can_be_changed_where_they_are_enabled) {
  EXPECT_EQ(said_to("faults: {loss: 0.01}", "faults: {loss: 0.02, delay: 15us}"),
            "faults of p1: loss 0.02, delay 15us");
  EXPECT_EQ(said_to("      faults: {loss: 0.01}\n", ""), "faults of p1: none");
  EXPECT_EQ(said_to("device: net_null1", "device: net_null1, faults: {down: true, corrupt: 0.5}"),
            "faults of p2: corrupt 0.5, down");
}

TEST_F(ReloadTest, other_changes_are_rejected_with_their_key) {
  struct Change {
    const char *from, *to, *key;
  };
  const Change changes[] = {
      {"memory: 128MiB", "memory: 129MiB", "eal.memory"},
      {"hugepages: off", "hugepages: auto", "eal.hugepages"},
      {"hugepages: off", "hugepages: off, pci: true", "eal.pci"},
      {"hugepages: off", "hugepages: off, share_buffers: true", "eal.share_buffers"},
      {"hugepages: off", "hugepages: off, telemetry: false", "eal.telemetry"},
      {"hugepages: off", "hugepages: off, args: [-v]", "eal.args"},
      {"name: s1", "name: s2", "switch.name"},
      {"name: s1", "name: s1\n  mac: 02:00:00:00:00:77", "switch.mac"},
      {"idle: sleep", "idle: spin", "switch.idle"},
      {"cores: [1]", "cores: [0]", "switch.cores"},
      {"  cores: [1]\n", "", "switch.cores"},
      {"  cores: [1]\n", "  cores: [1]\n  crash_notices: here\n", "switch.crash_notices"},
      {"enabled: true, seed: 4", "enabled: true, seed: 5", "switch.faults"},
      {"trust: dscp", "trust: pcp", "switch.classify"},
      {"alpha: 1", "alpha: 2", "switch.buffer"},
      {"cnm_port: 4999", "cnm_port: 4998", "switch.cnm_port"},
      {"cnm_rate: 1000", "cnm_rate: 2000", "switch.cnm_rate"},
      {"tor: {size: 64}", "tor: {size: 65}", "switch.tor"},
      {"size: 64", "size: 64, unknown: deliver", "switch.tor"},
      {"0d0e0f", "0d0e00", "switch.cnm_key"},
      {"0d0e0f", "0d0e0f\n  cnm_tolerance: 4s", "switch.cnm_tolerance"},
      {"10.2.0.0/16, class: 5", "10.2.0.0/16, class: 4", "switch.shapers"},
      {"spacing: 60us", "spacing: 61us", "switch.cnp"},
      {"flows: 100", "flows: 101", "switch.senders"},
      {"switch_id: 7", "switch_id: 8", "switch.telemetry"},
      {"above: 50KiB", "above: 51KiB", "switch.telemetry"},
      {"threshold: 90KB", "threshold: 91KB", "switch.ports[0].classes: class 6: cnp"},
      {"seed: 9", "seed: 10", "switch.seed"},
      {"ageing: 10s", "ageing: 11s", "switch.mac_table"},
      {"10.0.1.1/24", "10.0.1.2/24", "switch.interfaces"},
      {"10.9.0.0/16", "10.8.0.0/16", "switch.routes"},
      {"02:00:00:00:00:09", "02:00:00:00:00:19", "switch.neighbors"},
      {"    - {name: p2, device: net_null1}\n", "", "the number of switch.ports"},
      {"name: p2", "name: p3", "switch.ports[1].name"},
      {"device: net_null1", "device: net_null2", "switch.ports[1].device"},
      {"mtu: 4200", "mtu: 4100", "switch.ports[0].mtu"},
      {"rate: 10Gbps", "rate: 11Gbps", "switch.ports[0].rate"},
      {"queue: 2MiB", "queue: 3MiB", "switch.ports[0].queue"},
      {"queue_frames: 100", "queue_frames: 101", "switch.ports[0].queue_frames"},
      {"      vlan: 10", "      vlan: 11", "switch.ports[0].vlan"},
      {"tagged: [20, 30]", "tagged: [20]", "switch.ports[0].tagged"},
      {"      tagged: [20, 30]\n", "", "switch.ports[0].tagged"},
      {"telemetry: edge", "telemetry: sink", "switch.ports[0].telemetry"},
      {"cn_tag: keep", "cn_tag: remove", "switch.ports[0].cn_tag"},
      {"detect: 50ms", "detect: 60ms", "switch.ports[0].pause_watchdog"},
      {"00:00:05\"]", "00:00:06\"]", "switch.ports[0].macs"},
      {"10.0.1.5]", "10.0.1.6]", "switch.ports[0].addresses"},
      {"rx_descriptors: 512", "rx_descriptors: 513", "switch.ports[0].rx_descriptors"},
      {"tx_descriptors: 256", "tx_descriptors: 257", "switch.ports[0].tx_descriptors"},
      {"connect_timeout: 3s", "connect_timeout: 4s", "switch.ports[0].connect_timeout"},
      {"mtu: 4200", "mtu: 4200\n      mac: 02:00:00:00:00:01", "switch.ports[0].mac"},
      {"average: 0.5, weight: 4", "average: 0.5, weight: 5", "switch.ports[0].classes: class 3: weight"},
      {"- {class: 5, strict: true}", "- {class: 5}", "switch.ports[0].classes: class 5: strict"},
      {"notify: qcn, ", "", "switch.ports[0].classes: class 4: notify"},
      {"qeq: 30us", "qeq: 31us", "switch.ports[0].classes: class 4: qcn"},
      {"xon: 192KiB", "xon: 128KiB", "switch.ports[0].classes: class 4: lossless"},
      {"lossless: {xoff: 256KiB, xon: 192KiB, headroom: 64KiB}, ", "",
       "switch.ports[0].classes: class 4: lossless"},
  };
  for (const Change& change : changes) {
    EXPECT_EQ(said_to(change.from, change.to),
              "no: " + std::string{change.key} +
                  " cannot be changed by a reload; allowed are mark, drop, mark_at and average of classes, "
                  "and the faults of ports where they are enabled");
  }
}

TEST_F(ReloadTest, change_without_a_compared_key_is_rejected) {
  SwitchFile wanted = read(kFile);
  wanted.devices[1].promiscuous = false;
  const auto plan = plan_reload(read(kFile), wanted);
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().message.starts_with("another setting cannot be changed by a reload"));
}

// Worker 0 polls its commands; worker 1 does not.
TEST_F(ReloadTest, blocked_worker_leaves_its_ports_unchanged_and_the_error_names_the_changed_workers) {
  SwitchFile running = read(kFile);
  SwitchFile wanted = running;
  for (size_t i = 0; i < 2; ++i) {
    wanted.sw.ports[i].classes[3].aqm.weight = 0.25;
    wanted.faults[i].loss = 0.5;
  }
  const auto plan = plan_reload(running, wanted);
  ASSERT_TRUE(plan);
  std::vector<std::unique_ptr<CommandSlot>> slots;
  for (int i = 0; i < 2; ++i) slots.push_back(std::make_unique<CommandSlot>());
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load()) {
      slots[0]->poll(0ns);
      std::this_thread::yield();
    }
  });
  std::vector<size_t> configured, faulty;
  const ReloadTarget target{.workers = slots,
                            .worker_of = [](size_t port) { return port; },
                            .configure_marking = [&](size_t port, const ClassConfigs&) -> Status {
                              configured.push_back(port);
                              return {};
                            },
                            .set_faults = [&](size_t port, const PortFaults&) { faulty.push_back(port); }};
  const Status partly = apply_reload(*plan, target, running, 1s);
  ASSERT_FALSE(partly);
  EXPECT_EQ(partly.error().message,
            "worker 1 did not respond in time; the changes were applied only to the ports of worker 0");
  EXPECT_EQ(configured, std::vector<size_t>{0});
  EXPECT_EQ(faulty, std::vector<size_t>{0});
  // The next reload of the same file has the changes of worker 1 only.
  const auto rest = plan_reload(running, wanted);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->summary, "marking of p2 class 3; faults of p2: loss 0.5");
  stop = true;
  worker.join();
  const Status none = apply_reload(*rest, target, running, 1ms);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "worker 1 did not respond in time; no port was changed");
}

TEST_F(ReloadTest, buffer_pool_covers_the_rings_shapers_and_routers_of_all_workers) {
  SwitchFile file = read(kFile);
  // p1: queue and descriptors; p2: the defaults. Both: frames that faults delay. Shaper of 4096 frames; router.
  const EthdevConfig defaults;
  const uint64_t ports =
      100 + 512 + 256 + 4096 + defaults.rx_descriptors + defaults.tx_descriptors + 2 * FaultyPort::kMaxHeld;
  constexpr uint64_t kReserve = 2048;
  EXPECT_EQ(required_buffers(file), kReserve + ports + 4096 + Router::kMaxWaiting);
  file.sw.ports[1].worker = 1;
  EXPECT_EQ(required_buffers(file), kReserve + ports + 2 * (4096 + Router::kMaxWaiting) + 2 * 1024);
  file.sw.ports[1].worker = 2;
  EXPECT_EQ(required_buffers(file), kReserve + ports + 3 * (4096 + Router::kMaxWaiting) + 6 * 1024);
}

// A common mistake: one edit contains a permitted and a forbidden change.
TEST_F(ReloadTest, forbidden_change_rejects_the_whole_reload) {
  EXPECT_TRUE(said_to("weight: 4}", "weight: 5, mark_at: dequeue}").starts_with("no: "));
}

}  // namespace
}  // namespace roci
