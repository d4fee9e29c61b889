// Ports that a program implements (roci/port.hpp), used as a program does: devices in real time, with helper threads.
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/waiting.hpp"
#include "port/dpdk/eal.hpp"
#include "roci/open.hpp"
#include "threads/real_hosts.hpp"

namespace roci::test {
namespace {

// One direction of a cable.
class Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    for (rte_mbuf* frame : frames_) rte_pktmbuf_free(frame);
  }
  uint16_t put(rte_mbuf** frames, uint16_t count) {
    const std::lock_guard lock(mutex_);
    const auto fits = static_cast<uint16_t>(std::min<size_t>(count, kCapacity - frames_.size()));
    frames_.insert(frames_.end(), frames, frames + fits);
    return fits;
  }
  uint16_t take(rte_mbuf** frames, uint16_t count) {
    const std::lock_guard lock(mutex_);
    const auto there = static_cast<uint16_t>(std::min<size_t>(count, frames_.size()));
    std::copy_n(frames_.begin(), there, frames);
    frames_.erase(frames_.begin(), frames_.begin() + there);
    return there;
  }

 private:
  static constexpr size_t kCapacity = 64;
  std::mutex mutex_;
  std::deque<rte_mbuf*> frames_;
};

// One end of a cable. Copies the frames, because the buffers of a device must not outlive it.
class CablePort final : public ExternalPort {
 public:
  CablePort(std::shared_ptr<Wire> in, std::shared_ptr<Wire> out, std::shared_ptr<MbufPool> buffers,
            uint16_t mtu, uint8_t number)
      : in_(std::move(in)), out_(std::move(out)), buffers_(std::move(buffers)), mtu_(mtu), number_(number) {}

  uint16_t receive(rte_mbuf** frames, uint16_t count) override { return in_->take(frames, count); }
  uint16_t transmit(rte_mbuf** frames, uint16_t count) override {
    for (uint16_t i = 0; i < count; ++i) {
      rte_mbuf* copy = rte_pktmbuf_alloc(buffers_->get());
      if (copy == nullptr) return i;
      char* to = rte_pktmbuf_append(copy, static_cast<uint16_t>(frames[i]->pkt_len));
      for (const rte_mbuf* segment = frames[i]; segment != nullptr; segment = segment->next) {
        to = std::copy_n(rte_pktmbuf_mtod(segment, const char*), segment->data_len, to);
      }
      if (out_->put(&copy, 1) == 0) {
        rte_pktmbuf_free(copy);
        return i;
      }
      rte_pktmbuf_free(frames[i]);
    }
    return count;
  }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.mtu = mtu_, .link_rate = 10'000'000'000};
  }
  [[nodiscard]] std::array<uint8_t, 6> mac() const override { return {2, 0, 0, 0, 0, number_}; }

 private:
  std::shared_ptr<Wire> in_, out_;
  std::shared_ptr<MbufPool> buffers_;
  uint16_t mtu_;
  uint8_t number_;
};

class ExternalPorts : public testing::Test, protected RealHosts {
 protected:
  static constexpr uint16_t kMtu = 4200;

  void SetUp() override {
    start();
    buffers_ = must(MbufPool::create("cable", 1024, kMtu + 22));
  }
  // The end of the cable with this number, 1 or 2.
  std::unique_ptr<ExternalPort> end(uint8_t number, uint16_t mtu = kMtu) {
    const auto& [in, out] = number == 1 ? std::pair(there_, back_) : std::pair(back_, there_);
    return std::make_unique<CablePort>(in, out, buffers_, mtu, number);
  }
  void prepare(Node& node, std::unique_ptr<Device> device) {
    node.device = std::move(device);
    node.channel = must(node.device->create_channel());
    node.pd = must(node.device->allocate_pd());
  }
  void expect_write_and_read_complete() {
    constexpr uint32_t kLength = 200'000;
    auto [one, other] = make_connection(2 * kLength);
    std::fill_n(one.memory.begin(), kLength, uint8_t{0x5a});
    ASSERT_EQ(post(one, IBV_WR_RDMA_WRITE, 1, 0, kLength, other), 0);
    EXPECT_EQ(await(*one.cq).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(std::all_of(other.memory.begin(), other.memory.begin() + kLength,
                            [](uint8_t b) { return b == 0x5a; }));
    std::fill_n(one.memory.begin() + kLength, kLength, uint8_t{0x3c});
    ASSERT_EQ(post(other, IBV_WR_RDMA_READ, 2, kLength, kLength, one), 0);
    EXPECT_EQ(await(*other.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(other.memory.back(), 0x3c);
  }

  std::shared_ptr<MbufPool> buffers_;
  std::shared_ptr<Wire> there_ = std::make_shared<Wire>(), back_ = std::make_shared<Wire>();
};

TEST_F(ExternalPorts, devices_on_ports_of_the_program_complete_requests) {
  const auto config = [](const char* address) {
    DeviceConfig device;
    device.addresses = {address};
    device.tx_buffers = 512;
    return device;
  };
  prepare(a_, must(Device::create(end(1), config("10.0.0.1/24"))));
  prepare(b_, must(Device::create(end(2), config("10.0.0.2/24"))));
  EXPECT_EQ(a_.device->query_port().active_mtu, IBV_MTU_4096);
  expect_write_and_read_complete();
  const auto counters = a_.device->counters();
  const auto frames = std::ranges::find(counters, "tx_frames", &std::pair<std::string, uint64_t>::first);
  ASSERT_NE(frames, counters.end());
  EXPECT_GT(frames->second, 50U);
}

TEST_F(ExternalPorts, registered_factory_creates_the_ports_of_configuration_files) {
  std::string requested;
  must(register_port("cable", [&](const PortRequest& request) -> Result<std::unique_ptr<ExternalPort>> {
    requested = request.device;
    if (request.device == "cable9") return fail("there is no end 9", ENODEV);
    return end(request.device == "cable1" ? 1 : 2);
  }));
  const auto open = [](const std::string& port, const std::string& address, const std::string& mtu) {
    return open_device_from_text("device: {port: {device: '" + port + "', mtu: " + mtu + "}, addresses: [" +
                                 address + "]}");
  };
  prepare(a_, must(open("cable1", "10.0.0.1/24", "4200")));
  prepare(b_, must(open("cable2,fast=yes", "10.0.0.2/24", "4200")));
  EXPECT_EQ(requested, "cable2,fast=yes");
  expect_write_and_read_complete();

  const auto missing = open("cable9", "10.0.0.3/24", "4200");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "port cable9: there is no end 9");
  EXPECT_EQ(missing.error().code, ENODEV);
  const auto other_mtu = open("cable1", "10.0.0.3/24", "1500");
  ASSERT_FALSE(other_mtu);
  EXPECT_EQ(other_mtu.error().message, "port cable1: MTU 4200 is not the configured 1500");
}

TEST_F(ExternalPorts, prefix_that_is_taken_or_invalid_is_rejected) {
  const PortFactory factory = [](const PortRequest&) -> Result<std::unique_ptr<ExternalPort>> {
    return nullptr;
  };
  must(register_port("taken", factory));
  for (const char* prefix : {"taken", "take", "taken2"}) {
    const Status status = register_port(prefix, factory);
    ASSERT_FALSE(status) << prefix;
    EXPECT_EQ(status.error().code, EEXIST);
    EXPECT_EQ(status.error().message,
              "port names with '" + std::string(prefix) + "' already belong to the factory of 'taken'");
  }
  for (const char* prefix : {"", "net_own", "a,b", "0000:"}) {
    const Status status = register_port(prefix, factory);
    ASSERT_FALSE(status) << prefix;
    EXPECT_EQ(status.error().code, EINVAL);
  }
  EXPECT_FALSE(register_port("empty", nullptr));
  const auto none = open_device_from_text("device: {port: {device: taken0}, addresses: [10.0.0.1/24]}");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "port taken0: its factory has returned no port");
}

TEST_F(ExternalPorts, unsupported_mtu_or_missing_port_is_rejected) {
  EXPECT_EQ(Device::create(end(1, 500), {}).error().message,
            "port roci0: MTU 500 is too small; at least 576 bytes");
  for (const uint16_t mtu : {uint16_t{65386}, uint16_t{65514}, uint16_t{65535}}) {
    const auto device = Device::create(end(1, mtu), {});
    ASSERT_FALSE(device) << mtu;
    EXPECT_EQ(device.error().message,
              "port roci0: MTU " + std::to_string(mtu) + " is too large; at most 65385 bytes");
  }
  DeviceConfig config;
  config.tx_buffers = 128;
  EXPECT_TRUE(Device::create(end(1, 65385), config));
  EXPECT_EQ(Device::create(nullptr, {}).error().message, "device roci0: a port is required");
}

TEST_F(ExternalPorts, control_cores_are_rejected_if_the_program_polls) {
  DeviceConfig config;
  config.progress = Progress::kExternal;
  config.congestion_control.cores = 1;
  const auto device = Device::create(end(1), config);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message,
            "device roci0: congestion control: 1 cores are not possible with Progress::kExternal; only 0 is "
            "allowed");
  EXPECT_EQ(device.error().code, EOPNOTSUPP);
}

TEST_F(ExternalPorts, values_that_configuration_files_reject_are_rejected) {
  const auto expect = [&](const std::string& message, const auto& change) {
    DeviceConfig config;
    change(config);
    const auto device = Device::create(end(1), config);
    ASSERT_FALSE(device) << message;
    EXPECT_EQ(device.error().message, "device roci0: " + message);
  };
  for (const uint32_t packets : {0U, 1025U}) {
    expect(std::to_string(packets) + " packets per acknowledgment; 1 to 1024 are allowed",
           [&](DeviceConfig& config) { config.packets_per_ack = packets; });
  }
  const std::string unpinned = "cpu and cpus require Progress::kDedicated; other threads are not pinned";
  expect(unpinned, [](DeviceConfig& config) { config.cpu = 0; });
  expect(unpinned, [](DeviceConfig& config) { config.cpus = {0}; });
  expect("cpu and cpus cannot be combined", [](DeviceConfig& config) {
    config.progress = Progress::kDedicated;
    config.cpu = 0;
    config.cpus = {0};
  });
  expect("congestion notification: a key of CNMs (cnm_key) requires their UDP port (cnm_port)",
         [](DeviceConfig& config) { config.congestion.cnm_key.emplace(); });
  expect("a takeover of -1 ns is negative; 0 and more is allowed",
         [](DeviceConfig& config) { config.takeover = std::chrono::nanoseconds{-1}; });
}

// A port that keeps the transmitted frames until its destructor.
class KeepingPort final : public ExternalPort {
 public:
  explicit KeepingPort(std::string& pool) : pool_(pool) {}
  ~KeepingPort() override {
    for (rte_mbuf* frame : kept_) rte_pktmbuf_free(frame);
  }
  uint16_t receive(rte_mbuf** /*frames*/, uint16_t /*count*/) override { return 0; }
  uint16_t transmit(rte_mbuf** frames, uint16_t count) override {
    if (count > 0) pool_ = frames[0]->pool->name;
    kept_.insert(kept_.end(), frames, frames + count);
    return count;
  }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }
  [[nodiscard]] std::array<uint8_t, 6> mac() const override { return {2, 0, 0, 0, 0, 1}; }

 private:
  std::string& pool_;
  std::vector<rte_mbuf*> kept_;
};

TEST_F(ExternalPorts, frames_that_a_port_keeps_until_its_destructor_do_not_leak_the_pool) {
  std::string pool;
  DeviceConfig config;
  config.addresses = {"10.0.0.1/24"};
  config.progress = Progress::kExternal;
  auto device = must(Device::create(std::make_unique<KeepingPort>(pool), config));
  ibv_gid peer = must(device->query_gid(1));
  peer.raw[15] = 2;
  EXPECT_EQ(device->resolve(peer, 0s).error().code, EAGAIN);
  for (Nanos now{0}; now < 1ms; now += 100us) device->poller().poll(now);
  ASSERT_NE(pool, "");  // an ARP request
  EXPECT_NE(rte_mempool_lookup(pool.c_str()), nullptr);
  device.reset();
  EXPECT_EQ(rte_mempool_lookup(pool.c_str()), nullptr);
}

TEST_F(ExternalPorts, helper_thread_sleeps_if_it_never_takes_over) {
  for (const IdlePolicy idle : {IdlePolicy::kYield, IdlePolicy::kSleep}) {
    DeviceConfig config;
    config.takeover = std::chrono::nanoseconds::max();
    config.idle = idle;
    const auto device = must(Device::create(end(1), config));
    const auto processor_time = [] {
      timespec time{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return std::chrono::seconds{time.tv_sec} + Nanos{time.tv_nsec};
    };
    const auto before = processor_time();
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(processor_time() - before, 20ms);
  }
}

// In a new process, because DPDK starts only once.
TEST(ExternalPortsWithoutDpdk, device_uses_dpdk_that_was_started_with_other_settings) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes the program again
  EXPECT_EXIT(
      {
        std::string pool;
        if (!start_eal({.memory_mib = 256})) std::exit(1);
        std::exit(Device::create(std::make_unique<KeepingPort>(pool), {}) ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ExternalPorts, unreachable_peer_is_reported_when_the_time_is_over) {
  DeviceConfig config;
  config.addresses = {"10.0.0.1/24", "fd00::1/64"};
  const auto device = must(Device::create(end(1), config));
  const auto resolve = [&](const char* address, Nanos timeout) {
    ibv_gid gid{};
    const IpAddress ip = must(IpAddress::parse(address));
    std::copy(ip.bytes.begin(), ip.bytes.end(), gid.raw);
    const Status status = device->resolve(gid, timeout);
    return status ? Error{"", 0} : status.error();
  };
  const Error no_route = resolve("10.1.0.2", 10s);
  EXPECT_EQ(no_route.code, ENETUNREACH);
  EXPECT_EQ(no_route.message,
            "device roci0: no route to 10.1.0.2; its addresses are 10.0.0.1/24, fd00::1/64, and no gateway "
            "leads to 10.1.0.2");
  EXPECT_EQ(resolve("10.0.0.2", 10ms).code, ETIMEDOUT);
  const Nanos begin = monotonic_now();
  const Error failed = resolve("10.0.0.2", 4s);
  EXPECT_EQ(failed.code, EHOSTUNREACH);
  EXPECT_EQ(failed.message, "device roci0: 10.0.0.2 does not answer (no ARP or ND reply)");
  EXPECT_GE(monotonic_now() - begin, 4s);
}

}  // namespace
}  // namespace roci::test
