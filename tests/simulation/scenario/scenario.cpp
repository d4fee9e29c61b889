#include "simulation/scenario/scenario.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "base/rng.hpp"
#include "simulation/scenario/named_seeds.hpp"
#include "wire/headers/aeth.hpp"

namespace roci::test {
namespace {

ExtensionConfig draw_extensions(Rng& rng, bool on) {
  ExtensionConfig config;
  config.mode = on ? ExtensionMode::kOn : rng.chance(0.5) ? ExtensionMode::kAuto : ExtensionMode::kOff;
  config.selective_repeat = rng.chance(0.7);
  config.authenticate = rng.chance(0.3);
  config.timestamps = rng.chance(0.5);
  config.source_qpn = rng.chance(0.3);
  config.data_lsn = rng.chance(0.3);
  return config;
}

// Each packet crosses two links: up to 10 % of each fault in total.
SimFaults draw_faults(Rng& rng) {
  SimFaults faults;
  if (!rng.chance(0.9)) return faults;
  faults.loss = rng.chance(0.7) ? rng.unit() * 0.05 : 0;
  faults.duplication = rng.chance(0.5) ? rng.unit() * 0.05 : 0;
  faults.reordering = rng.chance(0.5) ? rng.unit() * 0.05 : 0;
  faults.corruption = rng.chance(0.5) ? rng.unit() * 0.05 : 0;
  faults.marking = rng.chance(0.3) ? 0.1 : 0;
  return faults;
}

void draw_features(Rng& rng, Scenario& s) {
  s.ipv6 = rng.chance(0.3);
  s.exact_mtu = rng.chance(0.2);
  s.extensions_on = rng.chance(0.1);
  s.late_receives = rng.chance(0.5);
  s.shared_receives = rng.chance(0.3);
  s.channels = rng.chance(0.3);
  s.resize = rng.chance(0.3);
  s.drain = rng.chance(0.3);
  s.windows = rng.chance(0.4);
  s.stale_keys = rng.chance(0.5) && s.windows;
  s.kill = rng.chance(0.2);
  s.restart = rng.chance(0.2);
  s.datagrams = rng.chance(0.3);
  s.multicast = rng.chance(0.5) && s.datagrams;
  s.bursts = rng.chance(0.3);
  s.outages = rng.chance(0.2);
  s.long_outages = rng.chance(0.05);
  s.stalls = rng.chance(0.2);
  s.tiny_queues = rng.chance(0.1);
}

// Independent of the peer's capabilities: an algorithm without a signal that it requires is inactive, without a
// replacement.
CongestionControlConfig draw_control(Rng& rng, bool for_named_seed) {
  constexpr std::array kFirst{"dcqcn",    "dctcp", "hpcc",        "hpcc_receiver", "hpcc_sampled", "ldcp",
                              "ldcp_pcc", "qcn",   "static_rate", "static_window", "swift",        "timely"};
  // Added later, without a draw of their own: the scenarios of named seeds are those that found the defects.
  constexpr std::array kLater{"powertcp", "theta_powertcp"};
  std::string name = kFirst[rng.below(kFirst.size())];
  const Nanos base_rtt{static_cast<int64_t>(rng.between(2'000, 50'000))};
  const auto part = static_cast<size_t>(base_rtt.count()) % (kFirst.size() + kLater.size());
  if (!for_named_seed && part < kLater.size()) name = kLater[part];
  CongestionControlConfig control;
  control.profiles["drawn"] = {name, {}, base_rtt, "none"};
  control.profile = "drawn";
  control.cores = rng.chance(0.3) ? static_cast<uint32_t>(rng.between(1, 2)) : 0;
  control.notification_point.enabled = rng.chance(0.8);
  control.notification_point.interval = Nanos{static_cast<int64_t>(rng.below(50'000))};
  return control;
}

void take_away(Scenario& s, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    bool known = false;
    for (const Feature& feature : kFeatures) {
      if (feature.name != name) continue;
      s.*feature.flag = false;
      known = true;
    }
    if (!known) throw std::invalid_argument("no feature of the simulation is called " + std::string(name));
  }
}

}  // namespace

const std::vector<Feature> kFeatures = {{"ipv6", &Scenario::ipv6},
                                        {"exact_mtu", &Scenario::exact_mtu},
                                        {"extensions_on", &Scenario::extensions_on},
                                        {"late_receives", &Scenario::late_receives},
                                        {"shared_receives", &Scenario::shared_receives},
                                        {"channels", &Scenario::channels},
                                        {"resize", &Scenario::resize},
                                        {"drain", &Scenario::drain},
                                        {"windows", &Scenario::windows},
                                        {"stale_keys", &Scenario::stale_keys},
                                        {"kill", &Scenario::kill},
                                        {"restart", &Scenario::restart},
                                        {"datagrams", &Scenario::datagrams},
                                        {"multicast", &Scenario::multicast},
                                        {"bursts", &Scenario::bursts},
                                        {"outages", &Scenario::outages},
                                        {"long_outages", &Scenario::long_outages},
                                        {"stalls", &Scenario::stalls},
                                        {"tiny_queues", &Scenario::tiny_queues},
                                        {"slow_receiver", &Scenario::slow_receiver},
                                        {"controlled", &Scenario::controlled},
                                        {"slow_hosts", &Scenario::slow_hosts},
                                        {"small_ports", &Scenario::small_ports}};

Scenario draw_scenario(uint64_t seed, std::string_view without) {
  Rng rng(seed);
  Rng features = rng.fork();  // a removed feature does not change other draws
  Scenario s;
  s.seed = seed;
  draw_features(features, s);
  take_away(s, without);
  s.mtu = static_cast<ibv_mtu>(rng.between(IBV_MTU_256, IBV_MTU_4096));
  s.faults = draw_faults(rng);
  s.rate = BitsPerSec{rng.between(1, 100) * 1'000'000'000};
  s.delay = Nanos{static_cast<int64_t>(rng.between(100, 20'000))};
  s.switch_queue = Bytes{rng.between(32, 1024) * 1024};
  const uint64_t frames = rng.between(3, 6);
  if (s.tiny_queues) s.switch_queue = Bytes{frames * (s.path_mtu() + 150)};
  s.vlan = rng.chance(0.2) ? static_cast<uint16_t>(rng.between(2, 4094)) : uint16_t{0};
  s.reliable = static_cast<uint32_t>(rng.between(1, 4));
  s.unreliable = rng.chance(0.3) ? static_cast<uint32_t>(rng.between(1, 2)) : 0;
  for (uint64_t hosts = rng.between(2, 4); hosts > 0; --hosts) {
    HostTraits host;
    host.workers = static_cast<uint32_t>(rng.between(1, 3));
    host.queues = static_cast<uint16_t>(rng.between(1, 3));
    host.workers_apart = rng.chance(0.3);
    host.window_bytes = static_cast<uint32_t>(rng.between(1, 64) * 8192);
    host.packets_per_ack = rng.chance(0.5) ? 64 : static_cast<uint32_t>(rng.between(1, 16));
    host.extensions = draw_extensions(rng, s.extensions_on);
    host.check_before_placing = (s.seed >> s.hosts.size() & 1) != 0;
    s.hosts.push_back(host);
  }
  // A separate generator, so that existing seeds keep their scenario.
  Rng controls(seed ^ 0x636f6e67657374ULL);
  s.controlled = controls.chance(0.4);
  Rng receivers(seed ^ 0x736c6f776c79ULL);
  s.slow_receiver = receivers.chance(0.2);
  s.slow_host = receivers.below(s.hosts.size());
  s.slow_part = receivers.between(10, 200);
  take_away(s, without);
  if (s.controlled) {
    const bool named = std::ranges::find(kNamedSeeds, seed, &NamedSeed::seed) != std::end(kNamedSeeds);
    for (HostTraits& host : s.hosts) host.control = draw_control(controls, named);
  }
  // Hosts that require extensions must offer the same set.
  if (s.extensions_on) {
    for (HostTraits& host : s.hosts) {
      host.extensions.selective_repeat = s.hosts[0].extensions.selective_repeat;
      host.extensions.authenticate = s.hosts[0].extensions.authenticate;
    }
  }
  return s;
}

Scenario draw_linux_scenario(uint64_t seed, std::string_view without) {
  Scenario s = draw_scenario(seed, without);
  Rng rng(seed ^ 0x6c696e75782121ULL);
  Rng features = rng.fork();
  s.slow_hosts = features.chance(0.3);
  s.small_ports = features.chance(0.3);
  take_away(s, without);
  // Datagrams and UC are not part of the model, and Linux has no extensions.
  s.extensions_on = s.datagrams = s.multicast = false;
  s.unreliable = 0;
  const size_t linux = rng.between(1, s.hosts.size() - 1);
  for (size_t i = 0; i < s.hosts.size(); ++i) {
    HostTraits& host = s.hosts[i];
    host.is_linux = i >= 1 && i <= linux;
    if (host.extensions.mode == ExtensionMode::kOn) host.extensions.mode = ExtensionMode::kAuto;
    host.receive_frames = host.is_linux ? 1000 : 0;
    const bool slow = rng.chance(0.5);
    const Nanos packet_time{static_cast<int64_t>(rng.between(200, 20'000))};
    const bool small = rng.chance(0.7);
    const auto frames = static_cast<uint32_t>(rng.between(4, 64));
    const uint64_t sent = rng.between(1, 8);
    if (s.slow_hosts && slow) {
      (host.is_linux ? host.packet_time : host.poll_interval) = host.is_linux ? packet_time : 8 * packet_time;
      if (host.receive_frames == 0) host.receive_frames = 1024;
    }
    if (s.small_ports && small) {
      host.receive_frames = frames;
      host.send_queue = Bytes{sent * (s.path_mtu() + 150)};
    }
    if (!host.is_linux) continue;
    host.workers = host.queues = 1;
    host.workers_apart = false;
    host.check_before_placing = true;  // Linux checks the ICRC first
    host.control = {};
  }
  s.reliable = std::max(s.reliable, 2U);
  return s;
}

uint8_t Scenario::least_timeout() const {
  constexpr int kTimeOuts = 8;  // retry count 7
  if (!slow_receiver && !slow_hosts) return 0;
  Nanos delay_of_queue = slowest_host();
  if (slow_receiver) {
    const double seconds = 8.0 * static_cast<double>(switch_queue.value()) * static_cast<double>(slow_part) /
                           static_cast<double>(rate.value());
    delay_of_queue += Nanos{static_cast<int64_t>(1e9 * seconds)};
  }
  uint8_t code = 1;
  while (kTimeOuts * ack_timeout(code) < 2 * delay_of_queue) ++code;
  return code;
}

Nanos Scenario::slowest_host() const {
  constexpr uint32_t kFramesPerPoll = 16;  // at least
  Nanos slowest{0};
  for (const HostTraits& host : hosts) {
    const Nanos linux = host.receive_frames * host.packet_time;
    slowest = std::max({slowest, linux, (1 + host.receive_frames / kFramesPerPoll) * host.poll_interval});
  }
  return slowest;
}

std::string Scenario::describe() const {
  std::ostringstream text;
  text << "seed " << seed << ": MTU " << path_mtu() << ", " << rate.value() / 1'000'000'000 << " Gb/s, "
       << delay.count() << " ns, queue " << switch_queue.value() << ", VLAN " << vlan << ", loss "
       << faults.loss << ", duplication " << faults.duplication << ", reordering " << faults.reordering
       << ", corruption " << faults.corruption << ", marking " << faults.marking << ", RC " << reliable
       << ", UC " << unreliable;
  for (const HostTraits& host : hosts) {
    const ExtensionConfig& e = host.extensions;
    if (host.is_linux) text << "; Linux host: " << host.packet_time.count() << " ns per packet";
    if (host.poll_interval > Nanos{0}) text << "; polled every " << host.poll_interval.count() << " ns";
    if (host.receive_frames > 0) text << "; receives " << host.receive_frames << " frames";
    if (host.send_queue > Bytes{0}) text << ", sends " << host.send_queue.value() << " bytes";
    if (host.is_linux) continue;
    text << "; host: workers " << host.workers << (host.workers_apart ? " apart" : "") << ", queues "
         << host.queues << (host.check_before_placing ? " strict" : "") << ", window " << host.window_bytes
         << ", m " << host.packets_per_ack;
    if (controlled) {
      text << ", " << host.control.profiles.at("drawn").algorithm << " on " << host.control.cores
           << " cores, " << host.control.profiles.at("drawn").base_rtt.count() << " ns";
    }
    text << (e.mode == ExtensionMode::kOff ? ", standard" : ", extended");
    if (e.mode == ExtensionMode::kOff) continue;
    text << (e.selective_repeat ? " selective" : "") << (e.authenticate ? " signed" : "")
         << (e.timestamps ? " timed" : "") << (e.source_qpn ? " source_qpn" : "")
         << (e.data_lsn ? " data_lsn" : "");
  }
  if (slow_receiver) text << "; host " << slow_host << " receives 1/" << slow_part << " of the rate";
  text << "; features:";
  for (const Feature& feature : kFeatures) {
    if (this->*feature.flag) text << ' ' << feature.name;
  }
  return text.str();
}

}  // namespace roci::test
