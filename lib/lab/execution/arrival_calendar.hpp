// Arrival calendar: forecast of the frames that arrive at a switch of the lab, from the announcements of its links.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "lab/network/node.hpp"
#include "port/port.hpp"
#include "switch/pipeline/arrivals.hpp"

namespace roci::lab {

// Owned by the thread that runs the node. Senders call the listeners from their threads.
class ArrivalCalendar final : public SwitchArrivals {
 public:
  // Announcements for `ports`, in order, are passed to `node` and to the calendar.
  ArrivalCalendar(Node& node, const std::vector<Port*>& ports);

  // For a port without announcements: it is polled whenever the switch is.
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
      // An exchange, not a store: a store would overwrite that of another sender, whose bit gather() would then not
      // acquire.
      of_.any_.exchange(true, std::memory_order_release);
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
  std::array<std::atomic<uint64_t>, 16> announced_{};  // bitmap of ports with announcements
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::vector<Nanos> entered_;   // by port: time of its valid entry; its other entries are stale
  std::vector<uint16_t> taken_;  // due ports, to be entered again after they were polled
};

}  // namespace roci::lab
