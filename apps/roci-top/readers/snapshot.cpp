#include "roci-top/readers/snapshot.hpp"

#include <algorithm>

namespace roci::top {

Counted Counted::from(const nlohmann::json& answer, Nanos at) {
  Counted counted;
  counted.at = at;
  if (!answer.is_object()) return counted;
  for (const auto& [name, value] : answer.items()) {
    if (value.is_number_unsigned()) counted.numbers[name] = value.get<uint64_t>();
    if (value.is_string()) counted.texts[name] = value.get<std::string>();
  }
  return counted;
}

uint64_t Counted::number(const std::string& name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

std::string Counted::text(const std::string& name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

namespace {

template <class Thing>
const Thing* find_in(const Snapshot& snapshot, const ProcessSample& process,
                     std::vector<Thing> ProcessSample::*things, const std::string& name) {
  for (const ProcessSample& p : snapshot.processes) {
    if (p.prefix != process.prefix || p.pid != process.pid) continue;
    const auto found = std::ranges::find(p.*things, name, &Thing::name);
    if (found != (p.*things).end()) return &*found;
  }
  return nullptr;
}

}  // namespace

const SwitchSample* Snapshot::find(const ProcessSample& process, const SwitchSample& sw) const {
  return find_in(*this, process, &ProcessSample::switches, sw.name);
}

const HostSample* Snapshot::find(const ProcessSample& process, const HostSample& host) const {
  return find_in(*this, process, &ProcessSample::hosts, host.name);
}

const QueuePairSample* find_queue_pair(const HostSample* host, const QueuePairSample& qp) {
  if (host == nullptr) return nullptr;
  const auto key = [](const QueuePairSample& q) { return std::pair{q.number, q.responses}; };
  const auto found = std::ranges::lower_bound(host->queue_pairs, key(qp), {}, key);
  return found == host->queue_pairs.end() || key(*found) != key(qp) ? nullptr : &*found;
}

const PortSample* find_port(const SwitchSample* sw, const std::string& name, size_t likely) {
  if (sw == nullptr) return nullptr;
  if (likely < sw->ports.size() && sw->ports[likely].name == name) return &sw->ports[likely];
  const auto found = std::ranges::find(sw->ports, name, &PortSample::name);
  return found == sw->ports.end() ? nullptr : &*found;
}

double per_second(const Counted& now, const Counted* before, const std::string& name) {
  if (before == nullptr || now.at <= before->at) return 0;
  const uint64_t to = now.number(name), from = before->number(name);
  if (to < from) return 0;
  return static_cast<double>(to - from) * 1e9 / static_cast<double>((now.at - before->at).count());
}

double psns_per_second(const Counted& now, const Counted* before, const std::string& name) {
  if (before == nullptr || now.at <= before->at) return 0;
  const uint64_t grown = (now.number(name) - before->number(name)) & 0xffffff;
  return static_cast<double>(grown) * 1e9 / static_cast<double>((now.at - before->at).count());
}

}  // namespace roci::top
