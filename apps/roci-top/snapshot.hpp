// What processes said at one time: numbers and texts by the names that the answers have.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace roci::top {

// One answer.
struct Counted {
  Nanos at{0};
  std::map<std::string, uint64_t> numbers;
  std::map<std::string, std::string> texts;

  static Counted from(const nlohmann::json& answer, Nanos at);

  // 0 and nothing when it was not said.
  [[nodiscard]] uint64_t number(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
};

struct PortSeen {
  std::string name;
  Counted counted;
  std::map<unsigned, Counted> classes;  // those that have done something
};

struct SwitchSeen {
  std::string name;
  Counted info;
  std::map<std::string, Counted> events;  // by the question's last word: cnm, cnp, responses, senders
  std::vector<PortSeen> ports;
};

// One direction of a queue pair: its requests, or the READ responses that it sends.
struct QueuePairSeen {
  uint32_t number = 0;
  bool responses = false;
  // Else it was only asked for to know the rates the next time: it has become busier than those that are shown.
  bool shown = true;
  Counted counted;
};

struct HostSeen {
  std::string name;
  Counted info;  // with "states/RTS" and so on, of the queue pairs that were looked at
  Counted counters;
  uint64_t looked_at = 0;                  // queue pairs; info.number("queue_pairs") are there
  uint64_t chosen = 0;                     // of them, asked for all that there is
  std::vector<QueuePairSeen> queue_pairs;  // by number, requests first
};

struct ProcessSeen {
  std::string prefix;  // DPDK's --file-prefix
  int pid = 0;
  std::string program;
  std::vector<SwitchSeen> switches;
  std::vector<HostSeen> hosts;
};

struct Snapshot {
  Nanos at{0};
  std::vector<ProcessSeen> processes;  // by prefix
  size_t silent = 0;                   // processes that do not answer

  // The same switch or host in another snapshot; null when it is not there.
  [[nodiscard]] const SwitchSeen* find(const ProcessSeen& process, const SwitchSeen& sw) const;
  [[nodiscard]] const HostSeen* find(const ProcessSeen& process, const HostSeen& host) const;
};
// The answer of that name or number; null when there is none.
template <class Key>
const Counted* find(const std::map<Key, Counted>& answers, const Key& key) {
  const auto found = answers.find(key);
  return found == answers.end() ? nullptr : &found->second;
}
const QueuePairSeen* find_queue_pair(const HostSeen* host, const QueuePairSeen& qp);
const PortSeen* find_port(const SwitchSeen* sw, const std::string& name, size_t likely);

// Increase of a counter a second between two answers; 0 without a first one, or when it went back.
double per_second(const Counted& now, const Counted* before, const std::string& name);
// The same of a PSN, which begins again behind 2^24.
double psns_per_second(const Counted& now, const Counted* before, const std::string& name);

}  // namespace roci::top
