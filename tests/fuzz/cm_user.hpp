// User of a connection manager for fuzzing. It acts as the input specifies or as a correct program, and verifies that
// events fit the state of the connection, that exactly the permitted calls succeed, and the number of connections.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <vector>

#include "cm/cm_network.hpp"
#include "fuzz/fuzz_target.hpp"

namespace roci::test {

class CmUser final : public cm::EventHandler {
 public:
  struct Held {
    cm::Connection* connection = nullptr;
    cm::State state = cm::State::kIdle;
    cm::Listener* asked = nullptr;  // while the connection counts for its backlog
  };
  static constexpr uint64_t kServices[] = {0x0106'1234, 0x0106'1235};

  CmUser(CmNetwork& network, const IpAddress& address, const cm::Limits& limits, Input& input,
         uint32_t first_qpn);

  bool on_event(cm::Connection& connection, const cm::Event& event) override;

  // Makes one call that the input selects, with one of the connections. Also called within events.
  void call();
  void connect(const IpAddress& to, uint64_t service);
  void leave();
  void listen_to_all();  // to the first service only

  // Reacts as a correct program: accepts, answers, sends RTU, and destroys all connections that have ended.
  void settle();
  void disconnect_all();

  // Adopts state changes without an event.
  void notice();
  // Verifies counts, limits and states.
  void check();

  [[nodiscard]] const std::vector<Held>& held() const { return held_; }
  [[nodiscard]] cm::Agent& agent() const { return agent_; }
  [[nodiscard]] const IpAddress& address() const { return address_; }
  [[nodiscard]] bool is_calling() const { return calling_ > 0; }

  unsigned odd_events = 0;  // number of events to which it reacts as the input specifies
  unsigned told = 0;        // events since the last check

 private:
  struct InCall;

  Held* find(const cm::Connection& connection);
  void hold(cm::Connection& connection, cm::State state, cm::Listener* asked);
  void forget(const cm::Connection& connection);
  bool react(cm::Connection& connection);
  bool behave(cm::Connection& connection);
  void do_something_with(Held held, uint8_t what);
  void answer(cm::Connection& connection);
  void establish(cm::Connection& connection);
  void destroy(cm::Connection& connection);
  void moves(cm::Connection& connection, const Status& did, std::initializer_list<cm::State> from,
             cm::State to);
  void listen(cm::Listener& listener);
  void ignore(cm::Listener& listener);
  void ask();
  [[nodiscard]] bool is_busy(const cm::Connection& connection) const;
  [[nodiscard]] bool is_busy_further_out(const cm::Connection& connection) const;
  IpAddress somebody();

  CmNetwork& network_;
  const IpAddress address_;
  const cm::Limits limits_;
  Input& input_;
  cm::Agent& agent_;
  uint32_t next_qpn_;
  std::vector<Held> held_;
  // Events of these are being reported, so they must not be destroyed.
  std::vector<const cm::Connection*> busy_;
  size_t orphans_ = 0;  // upper bound of destroyed connections that the agent still keeps
  unsigned calling_ = 0;
  std::array<cm::Listener, 3> listeners_;
  std::array<bool, 3> listening_{};
};

}  // namespace roci::test
