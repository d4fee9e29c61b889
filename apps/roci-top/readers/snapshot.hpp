// A sample of all processes: numbers and texts by their names in the replies.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace roci::top {

// The values of one reply.
struct Counted {
  Nanos at{0};
  std::map<std::string, uint64_t> numbers;
  std::map<std::string, std::string> texts;

  static Counted from(const nlohmann::json& answer, Nanos at);

  // 0 or an empty text for a value that is not in the reply.
  [[nodiscard]] uint64_t number(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
};

struct PortSample {
  std::string name;
  Counted counted;
  std::map<unsigned, Counted> classes;  // classes with activity
};

struct SwitchSample {
  std::string name;
  Counted info;
  std::map<std::string, Counted> events;  // by last word of the request: cnm, cnp, responses, senders
  std::vector<PortSample> ports;
};

// One direction of a queue pair: its requests, or the READ responses that it sends.
struct QueuePairSample {
  uint32_t number = 0;
  bool responses = false;
  // False: queried only to have a sample for the next snapshot, as it has become busier than those shown.
  bool shown = true;
  Counted counted;
};

struct HostSample {
  std::string name;
  Counted info;  // includes "states/RTS" etc.: counts of the sampled queue pairs by state
  Counted counters;
  uint64_t looked_at = 0;  // number of sampled queue pairs; the total is info.number("queue_pairs")
  uint64_t chosen = 0;     // number of those that were queried in full
  std::vector<QueuePairSample> queue_pairs;  // by number, requests first
};

struct ProcessSample {
  std::string prefix;  // DPDK's --file-prefix
  int pid = 0;
  std::string program;
  std::vector<SwitchSample> switches;
  std::vector<HostSample> hosts;
};

struct Snapshot {
  Nanos at{0};
  std::vector<ProcessSample> processes;  // by prefix
  size_t silent = 0;                     // processes that do not reply

  // The same switch or host in another snapshot; null if it is not there.
  [[nodiscard]] const SwitchSample* find(const ProcessSample& process, const SwitchSample& sw) const;
  [[nodiscard]] const HostSample* find(const ProcessSample& process, const HostSample& host) const;
};
// The reply with this name or number; null if there is none.
template <class Key>
const Counted* find(const std::map<Key, Counted>& answers, const Key& key) {
  const auto found = answers.find(key);
  return found == answers.end() ? nullptr : &found->second;
}
const QueuePairSample* find_queue_pair(const HostSample* host, const QueuePairSample& qp);
const PortSample* find_port(const SwitchSample* sw, const std::string& name, size_t likely);

// Increase of a counter per second between two samples; 0 without an earlier sample, or if the counter decreased.
double per_second(const Counted& now, const Counted* before, const std::string& name);
// The same for a PSN, which is modulo 2^24.
double psns_per_second(const Counted& now, const Counted* before, const std::string& name);

}  // namespace roci::top
