// Connection manager of a device: an Agent on queue pair 1 of the host, and address resolution for programs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "cm/agent.hpp"
#include "cm/service.hpp"
#include "device/config/device_config.hpp"
#include "device/host/host.hpp"
#include "engine/management/management.hpp"
#include "port/crash_notice.hpp"

namespace roci::cm {

// Handlers are called by the thread that drives the host or is in with(), which holds the token of the first worker.
// They must neither block nor call the device.
class Manager final : public Service, private ManagementClass, private Sender {
 public:
  // At most one per host. The host must outlive it. The CA GUID is random, since a peer that receives a REQ with a known
  // GUID and queue pair number ends the connection that has them.
  explicit Manager(Host& host, const ConnectionManagerConfig& config = {}, const Limits& limits = {});
  ~Manager() override;

  // Calls use(agent, now) between two poll iterations of the first worker. Any thread that does not hold a worker
  // token.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const Host::ControlCall call(host_);
    Worker& first = host_.worker(0);
    const std::scoped_lock guard(first.token());
    first.management().wake();
    return std::forward<Use>(use)(agent_, host_.time_of_call());
  }

  // Stores crash notifications for peers in `file`, for the case that this process is killed. Null: stops storing them.
  void store_crash_notices_in(std::unique_ptr<CrashNoticeFile> file);

  // Process exit: notifies connected and connecting peers. If the message is lost, the peer gets the crash notification.
  // Without a file of crash notifications, the message is repeated while the device is driven.
  void leave();
  // Whether a peer has not yet confirmed a disconnection and may not get a crash notification.
  [[nodiscard]] bool is_disconnecting();

  [[nodiscard]] TimeoutSettings timeouts() const override { return timeouts_; }
  void expect_block() override { host_.expect_block(); }
  Status listen(Listener& listener) override;
  void ignore(Listener& listener) override;
  Status connect(const Route& route, const CmRequest& request, uint32_t options, EventHandler& handler,
                 Connection*& made) override;
  Status accept(Connection& connection, const CmReply& reply, uint32_t options) override;
  Status ready(Connection& connection, const CmReady& message) override;
  Status reject(Connection& connection, const CmRejected& message) override;
  Status established(Connection& connection) override;
  Status disconnect(Connection& connection, const CmDisconnect& message) override;
  Status reply_disconnect(Connection& connection, const CmDisconnected& message) override;
  Status request_service(const Route& route, const CmServiceRequest& request, EventHandler& handler,
                         Connection*& made) override;
  Status reply_service(Connection& connection, const CmServiceReply& reply, uint32_t options) override;
  void destroy(Connection& connection) override;
  void resolve(AddressQuery& query, const IpAddress& address, Nanos timeout) override;
  void give_up(AddressQuery& query) override;

 private:
  void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) override {
    agent_.on_mad(back, mad, now);
  }
  [[nodiscard]] bool is_from_unknown_peer(const MadHeader& mad) const override {
    const uint16_t attribute = mad.attribute.get();
    return attribute == CmRequest::kAttribute || attribute == CmServiceRequest::kAttribute;
  }
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) override;
  [[nodiscard]] bool stores() const override { return crash_notice_ != nullptr; }
  uint32_t store(uint32_t kept, const Route& route, std::span<const uint8_t, kMadBytes> mad) override;
  void remove(uint32_t kept) override;
  void check_resolution(AddressQuery& query, Nanos now);

  Host& host_;
  const TimeoutSettings timeouts_;
  std::unique_ptr<CrashNoticeFile> crash_notice_;  // null: no crash notification if the process is killed
  Agent agent_;
  TimingWheel query_timers_;  // timers of address queries
};

}  // namespace roci::cm
