#include "simulation/scenario/network.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <stdexcept>

#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/borrowed_port.hpp"
#include "simulation/scenario/timed_faults.hpp"
#include "support/must.hpp"
#include "wire/roce/frame.hpp"

namespace roci::test {
namespace {

MacAddress host_mac(size_t host) { return MacAddress::local(0x100 + host); }

constexpr const char* kCaptureVariable = "ROCI_CAPTURE";  // names the file; for runs of one seed
constexpr size_t kLargestCapture = size_t{1} << 28;
constexpr uint32_t kCapturedBytes = 128;  // per frame

// Returns a pool of `count` packet buffers that no network of this thread uses. Creating a pool takes longer than
// most simulations, so pools whose network has ended and returned every buffer are reused.
std::shared_ptr<MbufPool> unused_pool(uint32_t count) {
  constexpr uint32_t kFrameBytes = 4400;
  thread_local std::multimap<uint32_t, std::shared_ptr<MbufPool>> pools;
  const auto [begin, end] = pools.equal_range(count);
  for (auto it = begin; it != end; ++it) {
    if (it->second.use_count() == 1 && it->second->in_use() == 0) return it->second;
  }
  return pools.emplace(count, must(MbufPool::create("simulation", count, kFrameBytes)))->second;
}

}  // namespace

// Suspends a poller during its stalls, and for `interval` after each poll.
class Network::Gate final : public Poller {
 public:
  Gate(Poller& poller, std::vector<Stall> stalls, Nanos interval)
      : poller_(poller), stalls_(std::move(stalls)), interval_(interval) {}
  bool poll(Nanos now) override {
    if (now < rests_until_) return false;
    while (next_ < stalls_.size() && stalls_[next_].end <= now) ++next_;
    blocked_ = next_ < stalls_.size() && stalls_[next_].begin <= now;
    if (blocked_) return false;
    rests_until_ = now + interval_;
    return poller_.poll(now);
  }
  [[nodiscard]] Nanos next_deadline() const override {
    const Nanos theirs = std::max(poller_.next_deadline(), rests_until_);
    if (next_ == stalls_.size()) return theirs;
    const Stall& stall = stalls_[next_];
    if (blocked_) return stall.end;
    return theirs < stall.begin || theirs >= stall.end ? theirs : stall.end;
  }
  [[nodiscard]] std::string_view name() const override { return poller_.name(); }

 private:
  Poller& poller_;
  std::vector<Stall> stalls_;  // sorted, without overlaps
  Nanos interval_;
  Nanos rests_until_{0};
  size_t next_ = 0;
  bool blocked_ = false;
};

// Port with a small receive ring: frames that arrive while it is full are dropped.
class Network::SmallPort final : public BorrowedPort {
 public:
  SmallPort(Port& port, uint32_t frames) : BorrowedPort(port) {
    for (uint16_t i = 0; i < port.queues(); ++i)
      rings_.push_back(std::make_unique<Ring>(port.queue(i), frames));
  }
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return rings_[0]->rx_burst(out, now); }
  [[nodiscard]] Nanos next_arrival() const override { return rings_[0]->next_arrival(); }
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return rings_[0]->waiting(); }
  [[nodiscard]] PortQueue& queue(uint16_t index) override { return *rings_[index]; }

 private:
  class Ring final : public PortQueue {
   public:
    Ring(PortQueue& queue, uint32_t frames) : queue_(queue), frames_(frames) {}
    ~Ring() override {
      for (rte_mbuf* frame : held_) rte_pktmbuf_free(frame);
    }
    uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override {
      rte_mbuf* arrived[32];
      while (const uint16_t count = queue_.rx_burst(arrived, now)) {
        for (uint16_t i = 0; i < count; ++i) {
          if (held_.size() < frames_) {
            held_.push_back(arrived[i]);
          } else {
            rte_pktmbuf_free(arrived[i]);
          }
        }
      }
      uint16_t taken = 0;
      for (; taken < out.size() && !held_.empty(); held_.pop_front()) out[taken++] = held_.front();
      return taken;
    }
    uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
      return queue_.tx_burst(frames, now);
    }
    [[nodiscard]] Nanos next_arrival() const override {
      return held_.empty() ? queue_.next_arrival() : Nanos{0};
    }
    [[nodiscard]] std::optional<uint32_t> waiting() const override { return std::nullopt; }

   private:
    PortQueue& queue_;
    uint32_t frames_;
    std::deque<rte_mbuf*> held_;
  };
  std::vector<std::unique_ptr<Ring>> rings_;
};

class Network::LinkOutages final : public Poller {
 public:
  LinkOutages(std::vector<Outage> outages, const std::vector<std::unique_ptr<SimLink>>& links,
              const SimFaults& usual)
      : links_(links), usual_(usual) {
    for (const Outage& outage : outages) {
      changes_.push_back({outage.begin, outage.link, true});
      changes_.push_back({outage.end, outage.link, false});
    }
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    dead_.resize(links.size());
  }
  bool poll(Nanos now) override {
    bool worked = false;
    for (; next_ < changes_.size() && changes_[next_].at <= now; ++next_, worked = true) {
      const Change& change = changes_[next_];
      dead_[change.link] += change.dead ? 1 : -1;
      SimFaults faults = usual_;
      if (dead_[change.link] > 0) faults.loss = 1;
      for (const auto direction : {SimLink::kAToB, SimLink::kBToA})
        links_[change.link]->set_faults(direction, faults);
    }
    return worked;
  }
  [[nodiscard]] Nanos next_deadline() const override {
    return next_ < changes_.size() ? changes_[next_].at : kNever;
  }
  [[nodiscard]] std::string_view name() const override { return "outages"; }

 private:
  struct Change {
    Nanos at;
    size_t link;
    bool dead;
  };
  const std::vector<std::unique_ptr<SimLink>>& links_;
  SimFaults usual_;
  std::vector<Change> changes_;
  std::vector<int> dead_;
  size_t next_ = 0;
};

Network::Network(const Scenario& scenario, Rng rng, VirtualRunner& runner, Verifier& verifier)
    : scenario_(scenario), runner_(runner), verifier_(verifier) {
  must(start_eal());
  if (std::getenv(kCaptureVariable) != nullptr) capture_ = std::make_unique<PcapngBuffer>(kLargestCapture);
  pool_ = unused_pool(16384);
  std::vector<Port*> switch_ports;
  SwitchConfig config;
  for (size_t i = 0; i < scenario.hosts.size(); ++i) {
    make_host(i, rng);
    SwitchPortConfig port;
    port.name = "p" + std::to_string(i);
    port.rate = scenario.rate;
    if (scenario.slow_receiver && i == scenario.slow_host)
      port.rate = BitsPerSec{scenario.rate.value() / scenario.slow_part};
    port.queue = scenario.switch_queue;
    config.ports.push_back(port);
    switch_ports.push_back(&links_.back()->b());
  }
  switch_ = must(Switch::create(config, switch_ports, pool_));
  outages_ = std::make_unique<LinkOutages>(draw_outages(scenario, rng), links_, scenario.faults);
  runner.add(*outages_);
  for (auto& gate : gates_) runner.add(*gate);
  for (auto& device : devices_) {
    if (device == nullptr) continue;
    for (const auto& core : device->host().control_cores()) runner.add(*core);
  }
  runner.add(*switch_);
  for (auto& link : links_) runner.add(*link);
}

Network::~Network() = default;

std::string Network::address(size_t host) const {
  return (scenario_.ipv6 ? "fd00::" : "10.0.0.") + std::to_string(host + 1);
}

ibv_gid Network::gid(size_t host) const {
  if (devices_[host] != nullptr) return must(devices_[host]->query_gid(1));
  ibv_gid gid{};
  std::memcpy(gid.raw, linux_hosts_[host]->address().bytes.data(), sizeof gid.raw);
  return gid;
}

void Network::make_host(size_t host, Rng& rng) {
  const HostTraits& traits = scenario_.hosts[host];
  SimLinkConfig link;
  link.name = "link" + std::to_string(host);
  link.seed = rng.next();
  // Bytes of a request besides its payload for this IP version: BTH, AtomicETH, ImmDt, ICRC etc., as the device
  // computes it.
  const uint32_t smallest = scenario_.path_mtu() + (scenario_.ipv6 ? 40 : 20) + 8 + 12 + 16 + 4 + 4;
  link.mtu = 4250;
  link.queues[0] = traits.queues;
  link.macs = {host_mac(host), MacAddress::local(0x200 + host)};
  for (SimDirectionConfig* way : {&link.a_to_b, &link.b_to_a}) {
    way->rate = scenario_.rate;
    way->delay = scenario_.delay;
    way->faults = scenario_.faults;
  }
  if (traits.send_queue > Bytes{0}) link.a_to_b.queue = traits.send_queue;
  if (scenario_.exact_mtu) link.mtu = static_cast<uint16_t>(smallest);
  links_.push_back(std::make_unique<SimLink>(link, pool_));
  if (capture_ != nullptr) capture_->add_interface("h" + std::to_string(host));
  for (const auto direction : {SimLink::kAToB, SimLink::kBToA}) {
    links_.back()->set_script(direction, [this, host, direction](const rte_mbuf& frame, uint64_t) {
      digest_frame(host * 2 + direction, frame);
      if (capture_ != nullptr) capture_frame(host, direction, frame);
      return SimVerdict{};
    });
  }
  if (traits.is_linux) {
    make_linux_host(host, rng);
  } else {
    make_device(host, rng);
  }
}

void Network::make_linux_host(size_t host, Rng& rng) {
  const HostTraits& traits = scenario_.hosts[host];
  const LinuxHostConfig config{.address = must(IpAddress::parse(address(host))),
                               .vlan = scenario_.vlan,
                               .seed = rng.next(),
                               .packet_time = traits.packet_time,
                               .in_order = scenario_.keeps_order(),
                               .backlog = traits.receive_frames};
  auto linux_host = std::make_unique<LinuxHost>(links_.back()->a(), pool_, config,
                                                [this](const std::string& what) { verifier_.fail(what); });
  for (size_t k = 0; k < scenario_.hosts.size(); ++k)
    linux_host->add_neighbor(must(IpAddress::parse(address(k))), host_mac(k));
  gates_.push_back(std::make_unique<Gate>(*linux_host, draw_stalls(scenario_, rng), Nanos{0}));
  devices_.push_back(nullptr);
  linux_hosts_.push_back(std::move(linux_host));
}

void Network::make_device(size_t host, Rng& rng) {
  const HostTraits& traits = scenario_.hosts[host];
  DeviceConfig device;
  device.name = "h" + std::to_string(host);
  device.addresses = {address(host) + (scenario_.ipv6 ? "/64" : "/24")};
  device.progress = Progress::kExternal;
  device.seed = rng.next() | 1;
  device.vlan = scenario_.vlan;
  device.workers = traits.workers;
  device.window_bytes = traits.window_bytes;
  device.packets_per_ack = traits.packets_per_ack;
  device.check_before_placing = traits.check_before_placing;
  device.extensions = traits.extensions;
  device.congestion_control = traits.control;
  // ARP has no checksum, so a host accepts a reply with a flipped bit. Networks with corruption use static neighbors.
  if (scenario_.faults.corruption > 0) {
    for (size_t k = 0; k < scenario_.hosts.size(); ++k) {
      if (k != host) device.neighbors[address(k)] = host_mac(k).to_string();
    }
  }
  std::unique_ptr<Port> port = std::make_unique<BorrowedPort>(links_.back()->a());
  if (traits.receive_frames > 0)
    port = std::make_unique<SmallPort>(links_.back()->a(), traits.receive_frames);
  linux_hosts_.push_back(nullptr);
  devices_.push_back(must(create_device(std::move(port), device, unused_pool(traits.workers * 1024 + 1024))));
  if (traits.workers_apart) {
    for (uint32_t i = 0; i < traits.workers; ++i)
      gates_.push_back(std::make_unique<Gate>(devices_.back()->poller(i), draw_stalls(scenario_, rng),
                                              traits.poll_interval));
  } else {
    gates_.push_back(
        std::make_unique<Gate>(devices_.back()->poller(), draw_stalls(scenario_, rng), traits.poll_interval));
  }
}

// Frames are captured when they are sent, before the link applies faults.
void Network::capture_frame(size_t host, SimLink::Direction direction, const rte_mbuf& frame) {
  capture_->add_packet(
      static_cast<uint32_t>(host), frame,
      direction == SimLink::kAToB ? PcapngBuffer::Direction::kOutbound : PcapngBuffer::Direction::kInbound,
      runner_.now(), kCapturedBytes);
}

void Network::write_capture() const {
  const char* const path = std::getenv(kCaptureVariable);
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error(std::string(path) + ": cannot be written");
  must(capture_->write_to(file));
  ::close(file);
}

// Covers everything up to the BTH. Later fields contain addresses of this process, which differ between runs. A frame
// with flipped bits has no reliable position of the BTH.
void Network::digest_frame(uint64_t where, const rte_mbuf& frame) {
  constexpr uint32_t kBeforeBth = 42;  // Ethernet, IPv4, UDP
  const auto* bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const uint32_t length = rte_pktmbuf_data_len(&frame);
  uint64_t h = digest_ ^ where ^ (static_cast<uint64_t>(length) << 32);
  const FrameView view = parse_frame(bytes, length, rte_pktmbuf_pkt_len(&frame));
  const uint32_t end = view.kind == FrameKind::kRoce ? view.bth_offset + static_cast<uint32_t>(sizeof(Bth))
                                                     : std::min(length, kBeforeBth);
  for (uint32_t i = 0; i < end; ++i) h = (h ^ bytes[i]) * 1099511628211ULL;
  digest_ = h;
}

void Network::collect_events() {
  for (size_t host = 0; host < devices_.size(); ++host) {
    if (devices_[host] == nullptr) continue;
    while (const auto event = devices_[host]->get_async_event()) {
      switch (event->type) {
        case IBV_EVENT_COMM_EST:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_SQ_DRAINED:
        case IBV_EVENT_SRQ_LIMIT_REACHED:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
          ++events_[{host, event->type, event->object.number}];
          break;
        default:
          verifier_.fail("host " + std::to_string(host) + " raised the event " + std::to_string(event->type));
      }
    }
  }
}

uint32_t Network::take_events(size_t host, ibv_event_type type, uint32_t number) {
  collect_events();
  const auto found = events_.find({host, type, number});
  if (found == events_.end()) return 0;
  const uint32_t count = found->second;
  events_.erase(found);
  return count;
}

uint64_t Network::losses() const {
  uint64_t count = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    for (const auto direction : {SimLink::kAToB, SimLink::kBToA}) {
      const SimDirectionStats& stats = links_[i]->stats(direction);
      count += stats.lost + stats.corrupted + stats.no_buffer;
    }
    count += switch_->counters(i).dropped();
  }
  return count;
}

void Network::add_up() {
  Tally& tally = verifier_.tally;
  const std::pair<std::string_view, uint64_t Tally::*> sums[] = {
      {"packets_retransmitted", &Tally::retransmitted},
      {"rx_handed_over", &Tally::handed_over},
      {"rx_hand_over_full", &Tally::hand_over_full},
      {"ooo_buffered", &Tally::frames_kept}};
  for (const auto& device : devices_) {
    if (device == nullptr) continue;
    for (const auto& [counter, value] : device->counters()) {
      for (const auto& [name, sum] : sums) {
        if (counter == name) tally.*sum += value;
      }
    }
  }
  for (const auto& link : links_)
    tally.frames_lost += link->stats(SimLink::kAToB).lost + link->stats(SimLink::kBToA).lost;
}

std::string Network::counters() const {
  std::string text;
  for (size_t host = 0; host < devices_.size(); ++host) {
    text += devices_[host] != nullptr ? devices_[host]->name() + ":" : "Linux:";
    if (devices_[host] == nullptr) {
      for (const auto& [counter, value] : linux_hosts_[host]->counters())
        text += " " + counter + " " + std::to_string(value);
    } else {
      for (const auto& [counter, value] : devices_[host]->counters()) {
        if (value != 0) text += " " + counter + " " + std::to_string(value);
      }
    }
    text += "\n";
  }
  return text;
}

void Network::check_counters() {
  // A delayed packet may be older than later feedback, or belong to an earlier connection.
  const SimFaults& faults = scenario_.faults;
  const bool old_feedback = faults.duplication > 0 || faults.reordering > 0 || scenario_.kill ||
                            scenario_.restart || scenario_.stale_keys ||
                            verifier_.tally.gave_up + verifier_.tally.gave_up_with_cause > 0;
  for (size_t host = 0; host < devices_.size(); ++host) {
    if (devices_[host] == nullptr) continue;
    const auto never = [&](std::string_view name) {
      for (const auto& [counter, value] : devices_[host]->counters()) {
        if (counter != name || value == 0) continue;
        verifier_.fail("counter " + counter + " of host " + std::to_string(host) + " is " +
                       std::to_string(value));
      }
    };
    never("feedback_impossible");
    never("events_lost");
    never("cq_overflows");
    never("rx_wrong_source");
    never("rx_wrong_pkey");
    if (!old_feedback) never("feedback_unsigned");
  }
}

void Network::take_down() {
  if (capture_ != nullptr) write_capture();
  switch_.reset();
  linux_hosts_.clear();
  links_.clear();
  uint32_t in_use = pool_->in_use();
  for (const auto& device : devices_) {
    if (device != nullptr) in_use += device->host().tx_buffers_in_use();
  }
  if (in_use != 0) verifier_.fail(std::to_string(in_use) + " packet buffers were not given back");
}

}  // namespace roci::test
