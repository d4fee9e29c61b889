// A user of a connection manager that does what the fuzzer's bytes say, or what a program would, and knows what it may be told: which
// events fit the state of a connection, which calls succeed, and how many connections there are.
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
    cm::Listener* asked = nullptr;  // as long as it counts for it
  };
  static constexpr uint64_t kServices[] = {0x0106'1234, 0x0106'1235};

  CmUser(CmNetwork& network, const IpAddress& address, const cm::Limits& limits, Input& input,
         uint32_t first_qpn);

  bool on_event(cm::Connection& connection, const cm::Event& event) override;

  // One of all calls, with one of the connections. Also from within events.
  void call();
  void connect(const IpAddress& to, uint64_t service);
  void leave();
  void listen_to_all();  // of the first service, and to nothing else

  // What a program would do with what it has: accepts, answers, is ready, and keeps nothing that has ended.
  void settle();
  void disconnect_all();

  // Sees what nobody tells it.
  void notice();
  // The counts are what they must be, and every state what was told.
  void check();

  [[nodiscard]] const std::vector<Held>& held() const { return held_; }
  [[nodiscard]] cm::Agent& agent() const { return agent_; }
  [[nodiscard]] const IpAddress& address() const { return address_; }
  [[nodiscard]] bool is_calling() const { return calling_ > 0; }

  unsigned odd_events = 0;  // in which it does as the bytes say
  unsigned told = 0;        // events, since somebody asked

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
  std::vector<const cm::Connection*> busy_;  // whose events are being told, and so may not be destroyed
  size_t orphans_ = 0;                       // at most
  unsigned calling_ = 0;
  std::array<cm::Listener, 3> listeners_;
  std::array<bool, 3> listening_{};
};

}  // namespace roci::test
