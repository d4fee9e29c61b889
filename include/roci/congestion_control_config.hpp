// Configuration of congestion control: algorithms of the device's queue pairs, and where they run
// (docs/congestion-control.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace roci {

// Algorithm with values of its parameters.
struct CongestionProfile {
  std::string algorithm;
  std::map<std::string, double> parameters;  // by name; others have their default values
  std::chrono::nanoseconds base_rtt{0};      // of a full packet on idle links; 0: the device's value
  // Profile, algorithm or "none" that a flow runs if its peer does not meet the algorithm's requirements. Empty: such a
  // queue pair is refused.
  std::string fallback;
  // DSCP of all packets, except CNPs, of queue pairs that run this profile, 0 to 63; -1: that of their path. It
  // selects the queue in the switches; LDCP requires a queue of its own (draft-dai-tsvwg-pfc-free-congestion-control
  // 2.3).
  int dscp = -1;

  friend bool operator==(const CongestionProfile&, const CongestionProfile&) = default;
};

// What the interval between two CNPs applies to. The CNP always goes to the sender of the marked packet, so that with
// kAddress and kPort other senders' marks within the interval are not reported.
enum class CnpLimit : uint8_t {
  kQueuePair,  // each queue pair of the sender
  kAddress,    // each source address
  kPort,       // all CNPs of the port, for each worker
};

// Notification point: sends CNPs to the senders of packets with CE (IBTA A17.9.3).
struct NotificationPointConfig {
  bool enabled = true;                       // send CNPs for CE marks
  std::chrono::nanoseconds interval{4'000};  // minimum time between two CNPs; up to 1 s
  CnpLimit limit = CnpLimit::kQueuePair;
  friend bool operator==(const NotificationPointConfig&, const NotificationPointConfig&) = default;
};

struct CongestionControlConfig {
  std::vector<std::string> plugins;                   // shared objects with further algorithms
  std::map<std::string, CongestionProfile> profiles;  // by name
  // Default of queue pairs: a profile, an algorithm, "window" or "none". The environment variable ROCI_CC takes
  // precedence. "window" applies if selective repeat was not negotiated, as with all standard peers. The requester
  // then has at most 128 packets in flight at first; loss and queueing delay reduce the limit, acknowledged packets
  // raise it.
  std::string profile = "window";
  std::chrono::nanoseconds base_rtt{0};  // for profiles without a value; 0: unknown
  // Line rate in bit/s, the initial rate of flows; 0: as reported by the port, or 100 Gb/s if unknown.
  uint64_t line_rate = 0;
  // Time by which a packet may be sent early, so that one turn of a worker can send several packets. The average rate
  // is kept; a burst is what the line carries in that time. Up to 100 us. Default: 1 us; 0 under Progress::kExternal,
  // whose runner may poll at each departure time.
  std::optional<std::chrono::nanoseconds> burst;
  // Number of dedicated threads that run algorithms. 0: algorithms run in the worker, after each batch of packets. Only
  // 0 is allowed under Progress::kExternal.
  uint32_t cores = 0;
  std::vector<int> cpus;        // cores of these threads; empty: chosen by the system
  uint32_t trace = 0;           // events that are recorded for each thread that runs algorithms; 0: none
  bool peers_send_cnps = true;  // assumption about peers, since peers do not report it
  NotificationPointConfig notification_point;
};

}  // namespace roci
