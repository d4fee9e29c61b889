// The connection manager of a device, as programs reach it: an Agent on queue pair 1 of the host, and who is where.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "cm/agent.hpp"
#include "cm/service.hpp"
#include "device/device_config.hpp"
#include "device/host.hpp"
#include "engine/management.hpp"
#include "port/last_words.hpp"

namespace roci::cm {

// Handlers are called by whoever drives the host or is in with(), with the first worker's token in hand: they must neither block nor
// call the device.
class Manager final : public Service, private ManagementClass, private Sender {
 public:
  // At most one for a host, which outlives it.
  Manager(Host& host, uint64_t ca_guid, const ConnectionManagerConfig& config = {},
          const Limits& limits = {});
  ~Manager() override;

  // Calls use(agent, now) in between two rounds of the first worker. Any thread that holds no worker's token.
  template <class Use>
  decltype(auto) with(Use&& use) {
    Worker& first = host_.worker(0);
    const std::scoped_lock guard(first.token());
    first.management().wake();
    return std::forward<Use>(use)(agent_, host_.time_of_call());
  }

  // Peers hear of the end of this process too when it is killed: words for them are kept there. Null: not any more.
  void leave_words_in(std::unique_ptr<LastWords> file);

  // The process ends: says so to whoever is connected, or about to be. Who hears nothing finds out by himself.
  void leave();

  [[nodiscard]] Patience patience() const override { return patience_; }
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
  Status answer_disconnect(Connection& connection, const CmDisconnected& message) override;
  Status ask(const Route& route, const CmServiceRequest& request, EventHandler& handler,
             Connection*& made) override;
  Status answer(Connection& connection, const CmServiceReply& reply, uint32_t options) override;
  void destroy(Connection& connection) override;
  void resolve(AddressQuery& query, const IpAddress& address, Nanos timeout) override;
  void give_up(AddressQuery& query) override;

 private:
  void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) override {
    agent_.on_mad(back, mad, now);
  }
  [[nodiscard]] bool is_from_stranger(const MadHeader& mad) const override {
    const uint16_t attribute = mad.attribute.get();
    return attribute == CmRequest::kAttribute || attribute == CmServiceRequest::kAttribute;
  }
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) override;
  [[nodiscard]] bool keeps() const override { return last_words_ != nullptr; }
  uint32_t keep(uint32_t kept, const Route& route, std::span<const uint8_t, kMadBytes> mad) override;
  void forget(uint32_t kept) override;
  void look_for(AddressQuery& query, Nanos now);

  Host& host_;
  const Patience patience_;
  std::unique_ptr<LastWords> last_words_;  // null: who is killed says nothing
  Agent agent_;
  TimingWheel looks_;  // of queries
};

}  // namespace roci::cm
