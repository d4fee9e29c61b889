#include "verbs/process/process_device.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "cm/manager.hpp"
#include "device/api/create_device.hpp"
#include "device/config/device_config.hpp"
#include "device/config/start_device.hpp"
#include "device/host/host.hpp"
#include "device/monitoring/device_endpoints.hpp"
#include "net/net_slot.hpp"
#include "net/stats_file.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

// How long the exit of the process, or the destruction of a queue pair, may wait for a full port.
constexpr std::chrono::milliseconds kSendPendingTime{20};
// Time for which exit() waits until peers have confirmed disconnections: three DREQs.
constexpr std::chrono::milliseconds kDisconnectTime{500};
// Wait after the last frame was passed to the port: memif drops
// frames that the peer has not read when this process exits.
constexpr std::chrono::milliseconds kLinger{2};

// libmlx5 and libefa treat any ibv_device as their own struct and read a pointer after its end. Null means that the
// device belongs to another provider.
struct ListedDevice {
  ibv_device verbs{};
  std::byte behind[1024]{};
};

// Never destroyed: threads of programs may use it while static objects are destroyed.
struct ProcessDevice {
  std::mutex mutex;
  pid_t searched_by = 0;  // the process that has searched for a device
  std::unique_ptr<NetSlot> slot;
  EalConfig eal;
  DeviceFile file;
  DeviceIdentity identity;
  ListedDevice listed;
  std::unique_ptr<Device> device;  // the first user; contexts have users of their own
  std::unique_ptr<DeviceEndpoints> endpoints;
  std::unique_ptr<cm::Manager> manager;
};

ProcessDevice& process_device() {
  static auto* const kDevice = new ProcessDevice;
  return *kDevice;
}

std::string environment(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

// Verbs programs busy-poll on few cores, also on memory that their
// peer writes, so the helper thread must take over quickly.
void use_prompt_polling(DeviceConfig& device) {
  device.idle = IdlePolicy::kSleep;
  device.takeover = std::chrono::microseconds{20};
}

// Reads the device's configuration. ENODEV if neither ROCI_CONFIG nor ROCI_NET is set.
Status find_device(ProcessDevice& self) {
  auto identity = parse_identity(environment(kIdentityVariable));
  if (!identity) return fail(identity.error().within(kIdentityVariable));
  self.identity = *identity;
  if (const std::string file = environment("ROCI_CONFIG"); !file.empty()) {
    use_prompt_polling(self.file.device);
    return read_config(file, [&](ConfigNode& root) -> Status {
      ROCI_TRY(read_eal(root, self.eal));
      return read_device_section(root, self.file);
    });
  }
  const std::string folder = environment("ROCI_NET");
  if (folder.empty())
    return fail("no device: neither ROCI_CONFIG nor ROCI_NET is set; roci-run sets them", ENODEV);
  auto slot = NetSlot::take(folder);
  if (!slot) return fail(slot.error());
  self.slot = std::move(*slot);
  self.file = self.slot->device();
  use_prompt_polling(self.file.device);
  return {};
}

void describe(ProcessDevice& self) {
  ibv_device& device = self.listed.verbs;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  const std::string& name = self.file.device.name;
  std::snprintf(device.name, sizeof device.name, "%s", name.c_str());
  std::snprintf(device.dev_name, sizeof device.dev_name, "uverbs0");
  std::snprintf(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/uverbs0");
  std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/%s", name.c_str());
}

// Polls the device, which sends frames and answers peers meanwhile, until `done` or `limit`.
template <class Done>
void drive_until(Device& device, std::chrono::nanoseconds limit, Done done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done() && std::chrono::steady_clock::now() < end) {
    if (!device.progress()) std::this_thread::sleep_for(std::chrono::microseconds{1});
  }
}

// At exit(): disconnects, and sends acknowledgments for which peers wait.
void leave() {
  ProcessDevice& self = process_device();
  if (is_forked_child() || self.device == nullptr) return;
  if (self.manager != nullptr) {
    self.manager->leave();
    drive_until(*self.device, kDisconnectTime, [&] { return !self.manager->is_disconnecting(); });
  }
  send_pending(*self.device, nullptr);
  wait_until_received(*self.device);
  if (const std::string file = environment("ROCI_STATS"); !file.empty()) {
    if (Status written = write_stats(file, *self.device); !written) log().warn("{}", written.error().message);
  }
}

// Searches for the device once per process. A child of a process that
// has searched, but not opened the device, takes its own slot.
void look(ProcessDevice& self) {
  if (self.searched_by == getpid() || self.device != nullptr) return;
  self.searched_by = getpid();
  self.slot.reset();
  self.eal = {};
  self.file = {};
  if (Status found = find_device(self); found) {
    describe(self);
  } else if (found.error().code == ENODEV) {
    log().info("{}", found.error().message);
  } else {
    log().error("{}", found.error().message);
  }
}

Result<std::unique_ptr<Device>> start_in_network(const ProcessDevice& self) {
  auto port = self.slot->open_port(self.eal);
  if (!port) return fail(port.error());
  return create_device(std::move(*port), self.file.device);
}

Status start(ProcessDevice& self) {
  self.eal.telemetry = true;
  auto device = self.slot != nullptr ? start_in_network(self) : start_device(self.eal, self.file);
  if (!device) return fail(device.error());
  self.device = std::move(*device);
  if (auto endpoints = DeviceEndpoints::open({self.device.get()}); endpoints) {
    self.endpoints = std::move(*endpoints);
  } else {
    log().warn("{}; roci-top will not show this process", endpoints.error().message);
  }
  guard_forks();
  if (std::atexit(leave) != 0)
    log().warn("atexit() failed; frames pending at the exit of the process may be lost");
  return {};
}

}  // namespace

ibv_device* listed_device() {
  ProcessDevice& self = process_device();
  const std::scoped_lock guard(self.mutex);
  look(self);
  return self.listed.verbs.name[0] == 0 ? nullptr : &self.listed.verbs;
}

DeviceIdentity listed_identity() {
  ProcessDevice& self = process_device();
  const std::scoped_lock guard(self.mutex);
  return self.identity;
}

uint64_t listed_guid() {
  ProcessDevice& self = process_device();
  const std::scoped_lock guard(self.mutex);
  if (!self.file.port.mac && self.device == nullptr) return 0;
  const MacAddress mac = self.device != nullptr ? self.device->host().mac() : *self.file.port.mac;
  const Gid link_local = IpAddress::link_local(mac);
  uint64_t guid = 0;
  std::memcpy(&guid, link_local.bytes.data() + 8, sizeof guid);
  return guid;
}

Result<std::unique_ptr<Device>> open_listed_device() {
  ProcessDevice& self = process_device();
  const std::scoped_lock guard(self.mutex);
  look(self);
  if (self.device == nullptr) ROCI_TRY(start(self));
  return self.device->share();
}

cm::Service& connection_manager() {
  ProcessDevice& self = process_device();
  const std::scoped_lock guard(self.mutex);
  if (self.manager != nullptr) return *self.manager;
  self.manager = std::make_unique<cm::Manager>(self.device->host(), self.file.connection_manager);
  if (self.slot != nullptr) {
    if (auto notices = self.slot->open_crash_notices(); notices) {
      self.manager->store_crash_notices_in(std::move(*notices));
    } else {
      log().warn("{}; peers will not be notified if this process is killed", notices.error().message);
    }
  }
  return *self.manager;
}

void write_final_stats(Device& device, uint32_t qp_num) {
  const std::string file = environment("ROCI_STATS");
  if (file.empty()) return;
  if (Status written = write_stats(file, device, qp_num); !written) log().warn("{}", written.error().message);
}

void send_pending(Device& device, const QueuePair* queue_pair) {
  drive_until(device, kSendPendingTime, [&] {
    return queue_pair != nullptr ? queue_pair->settled() : !device.host().has_something_to_send();
  });
}

void wait_until_received(Device& device) {
  if (device.host().port().wakeup() != nullptr) return;  // frames in shared memory outlive this process
  drive_until(device, kLinger, [] { return false; });
}

}  // namespace roci::verbs
