// Foresees for a switch of the lab where frames arrive next, from what cables announce.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "lab/node.hpp"
#include "port/port.hpp"
#include "switch/arrivals.hpp"

namespace roci::lab {

// Owned by whoever runs the node; senders announce from their threads.
class ArrivalCalendar final : public SwitchArrivals {
 public:
  // Tells `node` and this of what arrives at each port, in order.
  ArrivalCalendar(Node& node, const std::vector<Port*>& ports);

  // Nobody announces what arrives at this port: it is looked at whenever the switch is polled.
  void always(uint16_t port) { always_.push_back(port); }
  [[nodiscard]] ArrivalListener& listener(uint16_t port) { return *listeners_[port]; }

  [[nodiscard]] Nanos next() override;
  std::span<const uint16_t> due(Nanos now) override;

 private:
  class Listener final : public ArrivalListener {
   public:
    Listener(ArrivalCalendar& of, Node& node, uint16_t port) : of_(of), node_(node), port_(port) {}
    void arriving(Nanos when) override {
      of_.announced_[port_ / 64U].fetch_or(uint64_t{1} << (port_ % 64U), std::memory_order_release);
      of_.any_.store(true, std::memory_order_release);
      node_.arriving(when);
    }

   private:
    ArrivalCalendar& of_;
    Node& node_;
    uint16_t port_;
  };
  struct Entry {
    Nanos at;
    uint16_t port;
    bool operator>(const Entry& other) const { return at > other.at; }
  };

  void gather();
  [[nodiscard]] Nanos first();
  void enter(uint16_t port);

  std::vector<Port*> ports_;
  std::vector<uint16_t> always_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::atomic<bool> any_{false};
  std::array<std::atomic<uint64_t>, 16> announced_{};  // a bit for each port with something new
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::vector<Nanos> entered_;   // of each port, the first of its entries; the others of it are old
  std::vector<uint16_t> taken_;  // due ones, which are entered again once they have been looked at
};

}  // namespace roci::lab
