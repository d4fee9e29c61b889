// Which congestion control the queue pairs of a device have, and where it runs (docs/congestion-control.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace roci {

// An algorithm with values for its parameters.
struct CongestionProfile {
  std::string algorithm;
  std::map<std::string, double> parameters;  // by name; those that are not here have their standard values
  std::chrono::nanoseconds base_rtt{0};      // of a full packet on idle links; 0: the device's
  // What a flow runs whose peer cannot give what the algorithm needs: another profile or algorithm, or "none". Empty: such a
  // queue pair is refused.
  std::string fallback;

  friend bool operator==(const CongestionProfile&, const CongestionProfile&) = default;
};

// The receiving end, for senders that the standard's notifications slow down (IBTA A17.9.3).
struct NotificationPointConfig {
  bool enabled = true;                       // CE is answered with CNPs
  std::chrono::nanoseconds interval{4'000};  // least between two to the same queue pair; up to 1 s
  friend bool operator==(const NotificationPointConfig&, const NotificationPointConfig&) = default;
};

struct CongestionControlConfig {
  std::vector<std::string> plugins;                   // shared objects with further algorithms
  std::map<std::string, CongestionProfile> profiles;  // by name
  // Of queue pairs for which no other is chosen: a profile, an algorithm, "window" or "none". The environment variable ROCI_CC
  // takes precedence. "window": where the peer does not repeat selectively (any standard peer), a requester has at most 128
  // packets in flight at first, fewer after loss and while queues delay the answers, more while packets are acknowledged.
  std::string profile = "window";
  std::chrono::nanoseconds base_rtt{0};  // for profiles that have none; 0: not known
  uint64_t line_rate =
      0;  // bit/s of the line, where flows start; 0: as the port says, or 100 Gb/s if it does not know
  // How early a packet may leave, so that one turn of a worker can send several: the rate is kept, in bursts of what the line
  // carries in that time. Up to 100 us. Left out: 1 us, and 0 under Progress::kExternal, where turns may come when they are due.
  std::optional<std::chrono::nanoseconds> burst;
  // 0: algorithms run in the worker after each batch of packets. Otherwise on so many cores of their own.
  uint32_t cores = 0;
  std::vector<int> cpus;        // to pin those to; empty leaves it to the system
  uint32_t trace = 0;           // events that are kept for each place where algorithms run; 0: none
  bool peers_send_cnps = true;  // what is assumed of peers, which do not say so
  NotificationPointConfig notification_point;
};

}  // namespace roci
