// A host: a port with its addresses, memory table and worker, and whoever drives the worker. The insides of
// roci::Device; the lab and the tests make hosts on simulated ports.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/id_source.hpp"
#include "base/poller.hpp"
#include "engine/worker.hpp"
#include "memory/memory_table.hpp"
#include "port/port.hpp"
#include "port/realtime_runner.hpp"
#include "roci/device.hpp"

namespace roci {

class Host final : public Poller {
 public:
  static Result<std::shared_ptr<Host>> create(std::unique_ptr<Port> port, const DeviceConfig& config);
  ~Host() override;

  // One round, unless somebody else is in one or the control path waits. Safe from any thread.
  bool poll(Nanos now) override;
  // Safe from any thread: says "now" while somebody else holds the worker.
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return config_.name; }
  // The same with the clock read here; for applications that make their own progress.
  bool drive();

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  [[nodiscard]] Port& port() { return *port_; }
  [[nodiscard]] uint16_t port_mtu() const { return port_->capabilities().mtu; }
  // Owned by the holder of the worker's token, as are the tables below.
  [[nodiscard]] Worker& worker() { return *worker_; }
  [[nodiscard]] MemoryTable& memory() { return memory_; }
  [[nodiscard]] IdSource& ids() { return ids_; }

  [[nodiscard]] const std::vector<Gid>& gids() const { return gids_; }
  // The largest path MTU, in bytes, whose packets fit the port's MTU over this IP version.
  [[nodiscard]] uint32_t largest_path_mtu(bool ipv6) const;
  [[nodiscard]] bool application_drives() const { return config_.progress == Progress::kApplication; }
  // The time of the last round.
  [[nodiscard]] Nanos last_poll() const { return Nanos{last_poll_.load(std::memory_order_relaxed)}; }

  Status resolve(const Gid& peer, Nanos timeout);

  std::atomic<uint32_t> next_pd{1};

 private:
  Host(std::unique_ptr<Port> port, DeviceConfig config, std::vector<Gid> gids);
  Status start_progress();
  bool drive_as_helper();
  [[nodiscard]] Nanos last_application_poll() const {
    return Nanos{application_poll_.load(std::memory_order_relaxed)};
  }

  DeviceConfig config_;
  std::unique_ptr<Port> port_;
  std::vector<Gid> gids_;
  IdSource ids_;
  MemoryTable memory_;
  std::unique_ptr<Worker> worker_;
  std::atomic<int64_t> last_poll_{0};
  std::atomic<int64_t> application_poll_{0};

  // Drives the worker when the application has not for a while.
  class Helper;
  std::unique_ptr<Helper> helper_;
  std::unique_ptr<RealtimeRunner> runner_;  // kDedicated
};

}  // namespace roci
