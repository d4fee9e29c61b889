// Network of connection managers, in virtual time. Messages have a delay, and may be lost, duplicated or reordered.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "cm/agent.hpp"

namespace roci::test {

class CmNetwork {
 public:
  struct Faults {
    double lost = 0, doubled = 0;
    Nanos jitter{0};  // maximum random delay in addition to 10 us; causes reordering
  };
  struct Sent {
    Nanos at;
    cm::Route route;  // of the sender
    CmMad mad;
    bool lost = false;
  };

  // Treatment of a message.
  struct Fate {
    bool refused = false;  // the sender has no space for it now
    bool lost = false, doubled = false;
    Nanos late{0};                                       // in addition to the delay
    std::optional<std::pair<uint8_t, uint8_t>> altered;  // offset, bits to flip
  };

  explicit CmNetwork(uint64_t seed) : rng_(seed), ids_(seed) {}

  Faults faults;
  std::vector<Sent> sent;                            // all messages so far
  std::function<bool(const Sent&)> loses = nullptr;  // in addition to random faults
  std::function<Fate()> decides = nullptr;           // in addition to random faults
  // Called after each delivered message, and when nothing more is due at a time.
  std::function<void(bool heard)> looks = nullptr;
  Nanos now{1'000'000'000};

  // Without a GUID, the host has that of its address, also after a restart, as a Linux host does.
  cm::Agent& add(const IpAddress& address, const cm::Limits& limits = {}, uint64_t guid = 0) {
    Host& host = hosts_.try_emplace(address, *this, address).first->second;
    host.agent = std::make_unique<cm::Agent>(host, ids_, guid != 0 ? guid : guid_of(address), limits);
    return *host.agent;
  }
  static uint64_t guid_of(const IpAddress& address) {
    return std::bit_cast<std::array<uint64_t, 2>>(address.bytes)[1];
  }
  // The host disappears without crash notifications.
  void remove(const IpAddress& address) { hosts_.erase(address); }
  // The host is killed, and its crash notifications are sent.
  void kill(const IpAddress& address) {
    const auto crash_notices = std::move(hosts_.at(address).kept);
    remove(address);
    for (const auto& [number, one] : crash_notices) put(one.route, one.bytes, now);
  }
  [[nodiscard]] size_t crash_notices_of(const IpAddress& address) const {
    return hosts_.at(address).kept.size();
  }

  // Runs until `end`, or until no event is left.
  void run_until(Nanos end) {
    for (;;) {
      const Nanos next = next_event();
      if (next > end || next == kNever) break;
      now = std::max(now, next);
      step();
    }
    if (end != kNever) now = std::max(now, end);
  }
  void run_for(Nanos time) { run_until(now + time); }
  void run_to_the_end() { run_until(kNever); }

  [[nodiscard]] std::vector<std::string> said() const {
    std::vector<std::string> out;
    for (const Sent& one : sent) out.emplace_back(cm_message_name(one.mad.message));
    return out;
  }

  // Sends a message in the name of another host.
  void forge(const cm::Route& route, const CmMad& mad) { put(route, build_cm_mad(mad), now); }

 private:
  struct OnTheWay {
    cm::Route route;
    std::array<uint8_t, kMadBytes> bytes;
  };
  struct Host final : cm::Sender {
    Host(CmNetwork& n, const IpAddress& a) : network(n), address(a) {}
    bool send(const cm::Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos at) override {
      return network.say(route, mad, at);
    }
    [[nodiscard]] bool stores() const override { return true; }
    uint32_t store(uint32_t number, const cm::Route& route,
                   std::span<const uint8_t, kMadBytes> mad) override {
      if (number == kNotStored) number = next++;
      OnTheWay& one = kept[number];
      one.route = route;
      std::copy(mad.begin(), mad.end(), one.bytes.begin());
      return number;
    }
    void remove(uint32_t number) override {
      if (kept.erase(number) != 1) std::abort();
    }

    CmNetwork& network;
    IpAddress address;
    std::map<uint32_t, OnTheWay> kept;
    uint32_t next = 0;
    std::unique_ptr<cm::Agent> agent;
  };

  bool say(const cm::Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos at) {
    const Fate fate = decides ? decides() : Fate{};
    if (fate.refused) return false;
    const ParsedCm parsed = parse_cm_mad(mad);
    Sent one{at, route, parsed.mad};
    one.lost = (loses && loses(one)) || fate.lost || rng_.chance(faults.lost);
    sent.push_back(one);
    if (one.lost) return true;
    std::array<uint8_t, kMadBytes> bytes;
    std::copy(mad.begin(), mad.end(), bytes.begin());
    if (fate.altered) bytes[fate.altered->first] ^= fate.altered->second;
    put(route, bytes, at + fate.late);
    if (fate.doubled || rng_.chance(faults.doubled)) put(route, bytes, at);
    return true;
  }
  void put(const cm::Route& route, const std::array<uint8_t, kMadBytes>& bytes, Nanos at) {
    Nanos delay{10'000};
    if (faults.jitter.count() > 0)
      delay += Nanos{static_cast<int64_t>(rng_.below(static_cast<uint64_t>(faults.jitter.count())))};
    on_the_way_.emplace(at + delay, OnTheWay{route, bytes});
  }
  [[nodiscard]] Nanos next_event() const {
    Nanos next = on_the_way_.empty() ? kNever : on_the_way_.begin()->first;
    for (const auto& [address, host] : hosts_) next = std::min(next, host.agent->next_deadline());
    return next;
  }
  void step() {
    while (!on_the_way_.empty() && on_the_way_.begin()->first <= now) {
      const OnTheWay one = on_the_way_.begin()->second;
      on_the_way_.erase(on_the_way_.begin());
      const auto to = hosts_.find(one.route.remote);
      if (to == hosts_.end()) continue;
      cm::Route back = one.route;
      std::swap(back.local, back.remote);
      to->second.agent->on_mad(back, one.bytes, now);
      if (looks) looks(true);
    }
    for (auto& [address, host] : hosts_) host.agent->poll(now);
    if (looks) looks(false);
  }

  Rng rng_;
  IdSource ids_;
  std::map<IpAddress, Host> hosts_;
  std::multimap<Nanos, OnTheWay> on_the_way_;
};

}  // namespace roci::test
