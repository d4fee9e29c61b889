#include "switch/switch.hpp"

#include <algorithm>

namespace roci {
namespace {

std::vector<ClassConfigs> classes_of(const SwitchConfig& config) {
  std::vector<ClassConfigs> classes;
  for (const SwitchPortConfig& port : config.ports) classes.push_back(port.classes);
  return classes;
}

uint32_t workers_of(const SwitchConfig& config) {
  uint32_t most = 0;
  for (const SwitchPortConfig& port : config.ports) most = std::max(most, port.worker);
  return most + 1;
}

}  // namespace

MacAddress Switch::mac_of(const SwitchConfig& config) {
  if (!config.mac.is_zero()) return config.mac;
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same name gives the same MAC in each run
  for (const char c : config.name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return MacAddress::local(hash);
}

Result<std::unique_ptr<Switch>> Switch::create(const SwitchConfig& config, const std::vector<Port*>& ports,
                                               std::shared_ptr<MbufPool> pool) {
  ROCI_TRY(check(config));
  if (ports.size() != config.ports.size()) {
    return fail("switch '" + config.name + "' is configured with " + std::to_string(config.ports.size()) +
                " ports, and the number of opened ports is " + std::to_string(ports.size()));
  }
  std::unique_ptr<Switch> made{new Switch{config, std::move(pool)}};
  auto routes = Router::make_table(config);
  if (!routes) return fail(routes.error().within("switch '" + config.name + "'"));
  made->shared_.routes = std::move(*routes);
  for (const auto& worker : made->workers_) {
    if (Status opened = worker->open(ports); !opened)
      return fail(opened.error().within("switch '" + config.name + "'"));
  }
  return made;
}

Switch::Switch(const SwitchConfig& config, std::shared_ptr<MbufPool> pool)
    : shared_{config,
              mac_of(config),
              std::move(pool),
              SwitchBuffer(config.buffer, classes_of(config), workers_of(config)),
              SwitchRings(workers_of(config)),
              {},
              {},
              PortBindings(config)} {
  shared_.ports.resize(config.ports.size());
  for (uint32_t i = 0; i < workers_of(config); ++i)
    workers_.push_back(std::make_unique<SwitchWorker>(shared_, i));
}

Switch::~Switch() = default;

bool Switch::poll(Nanos now) {
  bool worked = false;
  for (const auto& worker : workers_) worked |= worker->poll(now);
  return worked;
}

Nanos Switch::next_deadline() const {
  Nanos next = kNever;
  for (const auto& worker : workers_) next = std::min(next, worker->next_deadline());
  return next;
}

uint64_t Switch::own_dropped() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->own_counters().dropped();
  return sum;
}

uint64_t Switch::mac_moves() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->mac_moves();
  return sum;
}

uint64_t Switch::mac_table_full() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->mac_table_full();
  return sum;
}

CnmCounts Switch::cnm_counts() const {
  CnmCounts sum;
  for (const auto& worker : workers_) worker->cnm_counters().add_to(sum);
  return sum;
}

CnpCounts Switch::cnp_counts() const {
  CnpCounts sum;
  for (const auto& worker : workers_) worker->cnp_counters().add_to(sum);
  return sum;
}

IntResponseCounts Switch::int_response_counts() const {
  IntResponseCounts sum;
  for (const auto& worker : workers_) worker->int_response_counters().add_to(sum);
  return sum;
}

SenderCounts Switch::sender_counts() const {
  SenderCounts sum;
  for (const auto& worker : workers_) {
    if (worker->sender_counters() != nullptr) worker->sender_counters()->add_to(sum);
  }
  return sum;
}

ShaperCounts Switch::shaper_counts(size_t shaper) const {
  ShaperCounts sum;
  for (const auto& worker : workers_) worker->shapers()->add_counts(shaper, sum);
  if (sum.limiting == 0) sum.rate = 0;
  return sum;
}

Status Switch::configure_marking(size_t port, const ClassConfigs& classes) {
  if (port >= shared_.ports.size())
    return fail("switch '" + shared_.config.name + "' has no port " + std::to_string(port));
  ClassConfigs changed = shared_.config.ports[port].classes;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) changed[c].aqm = classes[c].aqm;
  ROCI_TRY(check_classes(changed));
  shared_.config.ports[port].classes = changed;
  shared_.ports[port]->egress.configure(changed);
  return {};
}

}  // namespace roci
