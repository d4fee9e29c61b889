#include "roci-switch/reload.hpp"

#include <cerrno>

#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

// Records the first key, in order of look() calls, whose values differ between two configurations.
class FirstDifference {
 public:
  template <class T>
  void look(const std::string& key, const T& a, const T& b) {
    if (first_.empty() && !(a == b)) first_ = key;
  }
  [[nodiscard]] const std::string& key() const { return first_; }

 private:
  std::string first_;
};

void compare_eal(FirstDifference& d, const EalConfig& a, const EalConfig& b) {
  d.look("eal.hugepages", a.hugepages, b.hugepages);
  d.look("eal.pci", a.pci, b.pci);
  d.look("eal.memory", a.memory_mib, b.memory_mib);
  d.look("eal.share_buffers", a.share_buffers, b.share_buffers);
  d.look("eal.telemetry", a.telemetry, b.telemetry);
  d.look("eal.args", a.extra_args, b.extra_args);
}

void compare_switch(FirstDifference& d, const SwitchConfig& a, const SwitchConfig& b) {
  d.look("switch.name", a.name, b.name);
  d.look("switch.mac", a.mac, b.mac);
  d.look("switch.classify", a.classifier, b.classifier);
  d.look("switch.buffer", a.buffer, b.buffer);
  d.look("switch.telemetry", a.telemetry, b.telemetry);
  d.look("switch.cnm_port", a.notify.port, b.notify.port);
  d.look("switch.cnm_rate", a.notify.rate, b.notify.rate);
  d.look("switch.cnm_key", a.notify.key, b.notify.key);
  d.look("switch.cnm_tolerance", a.notify.tolerance, b.notify.tolerance);
  d.look("switch.tor", a.notify, b.notify);
  d.look("switch.cnp", a.cnp, b.cnp);
  d.look("switch.shapers", a.shapers, b.shapers);
  d.look("switch.senders", a.senders, b.senders);
  d.look("switch.seed", a.seed, b.seed);
  d.look("switch.ecmp_seed", a.ecmp_seed, b.ecmp_seed);
  d.look("switch.mac_table", std::pair{a.mac_table_size, a.mac_ageing},
         std::pair{b.mac_table_size, b.mac_ageing});
  d.look("switch.interfaces", a.interfaces, b.interfaces);
  d.look("switch.routes", a.routes, b.routes);
  d.look("switch.neighbors", a.neighbors, b.neighbors);
}

void compare_class(FirstDifference& d, const std::string& where, const ClassConfig& a, const ClassConfig& b) {
  d.look(where + "strict", a.strict, b.strict);
  d.look(where + "weight", a.weight, b.weight);
  d.look(where + "notify", a.notify, b.notify);
  d.look(where + "qcn", a.qcn, b.qcn);
  d.look(where + "cnp", a.cnp, b.cnp);
  d.look(where + "lossless", a.lossless, b.lossless);
}

void compare_port(FirstDifference& d, const std::string& where, const SwitchPortConfig& a,
                  const SwitchPortConfig& b) {
  d.look(where + "name", a.name, b.name);
  d.look(where + "rate", a.rate, b.rate);
  d.look(where + "queue", a.queue, b.queue);
  d.look(where + "queue_frames", a.queue_frames, b.queue_frames);
  d.look(where + "vlan", a.vlan, b.vlan);
  d.look(where + "tagged", std::pair{a.all_tagged, a.tagged}, std::pair{b.all_tagged, b.tagged});
  d.look(where + "telemetry", a.telemetry, b.telemetry);
  d.look(where + "cn_tag", a.keeps_cn_tags, b.keeps_cn_tags);
  d.look(where + "pause_watchdog", a.watchdog, b.watchdog);
  d.look(where + "worker", a.worker, b.worker);
  d.look(where + "macs", a.macs, b.macs);
  d.look(where + "addresses", a.addresses, b.addresses);
  for (size_t c = 0; c < kTrafficClasses; ++c)
    compare_class(d, where + "classes: class " + std::to_string(c) + ": ", a.classes[c], b.classes[c]);
}

void compare_device(FirstDifference& d, const std::string& where, const EthdevConfig& a,
                    const EthdevConfig& b) {
  d.look(where + "device", a.device, b.device);
  d.look(where + "mtu", a.mtu, b.mtu);
  d.look(where + "mac", a.mac, b.mac);
  d.look(where + "rx_descriptors", a.rx_descriptors, b.rx_descriptors);
  d.look(where + "tx_descriptors", a.tx_descriptors, b.tx_descriptors);
  d.look(where + "connect_timeout", a.connect_timeout, b.connect_timeout);
}

// `running` with all changeable values of `wanted`.
SwitchFile adjusted(SwitchFile running, const SwitchFile& wanted) {
  for (size_t i = 0; i < running.sw.ports.size(); ++i) {
    for (size_t c = 0; c < kTrafficClasses; ++c)
      running.sw.ports[i].classes[c].aqm = wanted.sw.ports[i].classes[c].aqm;
  }
  running.faults = wanted.faults;
  return running;
}

// The first difference that requires a restart; empty if there is none.
std::string first_fixed_difference(const SwitchFile& running, const SwitchFile& wanted) {
  FirstDifference d;
  compare_eal(d, running.eal, wanted.eal);
  compare_switch(d, running.sw, wanted.sw);
  d.look("switch.idle", running.idle, wanted.idle);
  d.look("switch.awake", running.awake, wanted.awake);
  d.look("switch.cores", running.cores, wanted.cores);
  d.look("switch.faults", running.injection, wanted.injection);
  d.look("switch.shared_memory", running.shared_memory, wanted.shared_memory);
  d.look("switch.crash_notices", running.crash_notices, wanted.crash_notices);
  d.look("the number of switch.ports", running.sw.ports.size(), wanted.sw.ports.size());
  if (!d.key().empty()) return d.key();
  for (size_t i = 0; i < running.sw.ports.size(); ++i) {
    const std::string where = "switch.ports[" + std::to_string(i) + "].";
    compare_port(d, where, running.sw.ports[i], wanted.sw.ports[i]);
    compare_device(d, where, running.devices[i], wanted.devices[i]);
  }
  // Detects differences in values without a comparison above, so that they are not ignored silently.
  d.look("another setting", adjusted(running, wanted), wanted);
  return d.key();
}

// "p1 class 3, p2 class 3 and 6 others".
class Enumeration {
 public:
  void add(const std::string& item) {
    if (++count_ > kMax) return;
    text_ += (text_.empty() ? "" : ", ") + item;
  }
  [[nodiscard]] std::string text() const {
    return count_ <= kMax ? text_ : text_ + " and " + std::to_string(count_ - kMax) + " others";
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  static constexpr size_t kMax = 8;
  std::string text_;
  size_t count_ = 0;
};

}  // namespace

Result<Reload> plan_reload(const SwitchFile& running, const SwitchFile& wanted) {
  if (const std::string key = first_fixed_difference(running, wanted); !key.empty()) {
    return fail(key +
                " cannot be changed by a reload; allowed are mark, drop, mark_at and average of classes, and "
                "the faults of ports where they are enabled");
  }
  Reload plan;
  Enumeration marking, faults;
  for (size_t i = 0; i < running.sw.ports.size(); ++i) {
    const std::string& name = running.sw.ports[i].name;
    const ClassConfigs& from = running.sw.ports[i].classes;
    const ClassConfigs& to = wanted.sw.ports[i].classes;
    for (size_t c = 0; c < kTrafficClasses; ++c) {
      if (!(from[c].aqm == to[c].aqm)) marking.add(name + " class " + std::to_string(c));
    }
    if (!(from == to)) plan.marking.emplace_back(i, to);
    if (running.faults[i] == wanted.faults[i]) continue;
    plan.faults.emplace_back(i, wanted.faults[i]);
    faults.add(name + ": " + describe(wanted.faults[i]));
  }
  if (!marking.empty()) plan.summary = "marking of " + marking.text();
  if (!faults.empty()) plan.summary += (plan.summary.empty() ? "" : "; ") + ("faults of " + faults.text());
  if (plan.summary.empty()) plan.summary = "no change";
  return plan;
}

Status apply_reload(const Reload& change, const ReloadTarget& target, SwitchFile& running, Nanos timeout) {
  Status outcome;
  Enumeration changed;
  for (size_t worker = 0; worker < target.workers.size(); ++worker) {
    std::vector<std::function<void()>> steps;
    for (const auto& one : change.marking) {
      if (target.worker_of(one.first) != worker) continue;
      steps.emplace_back([&target, &outcome, &one] {
        if (Status s = target.configure_marking(one.first, one.second); !s && outcome) outcome = std::move(s);
      });
    }
    for (const auto& one : change.faults) {
      if (target.worker_of(one.first) == worker)
        steps.emplace_back([&target, &one] { target.set_faults(one.first, one.second); });
    }
    if (steps.empty()) continue;
    size_t next = 0;
    const auto step = [&] {
      steps[next]();
      return ++next < steps.size();
    };
    const std::string name = "worker " + std::to_string(worker);
    if (!target.workers[worker]->deliver(step, timeout)) {
      return fail(name + " did not respond in time; " +
                      (changed.empty() ? "no port was changed"
                                       : "the changes were applied only to the ports of " + changed.text()),
                  EBUSY);
    }
    changed.add(name);
    for (const auto& [port, classes] : change.marking) {
      if (target.worker_of(port) == worker) running.sw.ports[port].classes = classes;
    }
    for (const auto& [port, faults] : change.faults) {
      if (target.worker_of(port) == worker) running.faults[port] = faults;
    }
  }
  return outcome;
}

}  // namespace roci
