#include "lab/network/network.hpp"

#include <algorithm>
#include <utility>

#include "device/api/create_device.hpp"
#include "device/host/host.hpp"
#include "port/dpdk/device_args.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/borrowed_port.hpp"

namespace roci::lab {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr uint32_t kMemoryMib = 8192;  // limit for packet buffers
// A switch paces its ports itself, so its link must never reject a frame.
constexpr Bytes kSwitchQueue = 1_GiB;
constexpr uint8_t kTimeout = 14;  // 67 ms

ibv_mtu mtu_of(uint32_t bytes) {
  ibv_mtu mtu = IBV_MTU_256;
  while ((128U << mtu) < bytes) mtu = static_cast<ibv_mtu>(mtu + 1);
  return mtu;
}

std::vector<std::string> devices_of(const Scenario& scenario) {
  std::vector<std::string> out;
  for (const RealCable& cable : scenario.ports)
    out.insert(out.end(), cable.devices.begin(), cable.devices.end());
  return out;
}

bool names_pci(const std::string& device) {
  const auto parsed = DeviceArgs::parse(device);
  return parsed && parsed->is_pci();
}

// MAC address of a port at the end of a simulated cable.
MacAddress mac_of_end(uint64_t cable, bool end_b) { return MacAddress::local(2 * cable + (end_b ? 2 : 1)); }

// Size of the largest message of a queue pair in the scenario.
uint64_t largest_message(const Scenario& scenario) {
  uint64_t most = 1;
  for (const TrafficSpec& spec : scenario.traffic) {
    const bool loop = spec.arrivals == TrafficSpec::Arrivals::kClosedLoop;
    most = std::max(most, loop ? spec.size.largest() : spec.message);
  }
  return most;
}

// Buffers for hosts and cables, and for the longest permitted queue of a port with full packets. A host without traffic
// holds the first ones that its worker has allocated ahead.
uint32_t buffers_for(const Scenario& scenario, uint64_t busy_hosts) {
  constexpr uint64_t kUnderWay = 65'536, kOfBusyHost = 256, kOfIdleHost = 8, kMax = 1U << 20;
  const uint64_t hosts = scenario.topology.hosts.size();
  const uint64_t busy = std::min(busy_hosts, hosts);
  uint64_t queue = 0;
  for (const SwitchConfig& one : scenario.switches)
    for (const SwitchPortConfig& port : one.ports) queue = std::max(queue, port.queue.value());
  const uint64_t all =
      kUnderWay + kOfBusyHost * busy + kOfIdleHost * (hosts - busy) + queue / scenario.path_mtu;
  return static_cast<uint32_t>(std::min(all, kMax));
}

}  // namespace

Result<std::unique_ptr<Network>> Network::create(const Scenario& scenario, const NetworkOptions& options) {
  EalConfig eal{.memory_mib = kMemoryMib};
  auto space = static_cast<uint16_t>(scenario.port_mtu + 64);
  if (options.real) {
    ROCI_TRY(check_real(scenario));
    for (const std::string& device : devices_of(scenario)) {
      eal.pci = eal.pci || names_pci(device);
      space = std::max(space, EthdevPort::data_room_for(device, scenario.port_mtu));
    }
  }
  ROCI_TRY(start_eal(eal));
  std::unique_ptr<Network> network(new Network(scenario, options.record_pauses));
  auto pool = MbufPool::create("lab", buffers_for(scenario, options.busy_hosts), space);
  if (!pool) return fail(pool.error());
  network->pool_ = std::move(*pool);
  if (options.real) ROCI_TRY(network->open_ports());
  network->make_links();
  ROCI_TRY(network->make_switches());
  ROCI_TRY(network->make_hosts());
  return network;
}

Network::~Network() = default;

Status Network::open_ports() {
  constexpr Nanos kLink = 5s;
  for (const RealCable& real : scenario_.ports) {
    const Cable& cable = scenario_.topology.cables[real.cable];
    for (const bool end_b : {false, true}) {
      const Cable::End& end = end_b ? cable.b : cable.a;
      EthdevConfig config;
      config.device = real.devices[end_b ? 1 : 0];
      config.mtu = scenario_.port_mtu;
      config.promiscuous = end.is_switch;
      config.pool = pool_;
      auto port = EthdevPort::open(config);
      if (!port) return fail(port.error().within(real.where));
      real_ports_.push_back(
          {real.cable, end_b, std::make_unique<RealPort>(std::move(*port), cable.spec.rate, !end.is_switch)});
    }
    for (const bool end_b : {false, true}) {
      if (Status up = real_port(real.cable, end_b)->wait_for_link(kLink); !up)
        return fail(up.error().within(real.where));
    }
  }
  return {};
}

RealPort* Network::real_port(uint32_t cable, bool end_b) const {
  const auto found = std::ranges::find_if(
      real_ports_, [&](const RealEnd& end) { return end.cable == cable && end.end_b == end_b; });
  return found == real_ports_.end() ? nullptr : found->port.get();
}

std::vector<RealPortCounts> Network::real_port_counts() const {
  const Topology& topology = scenario_.topology;
  std::vector<RealPortCounts> out;
  for (const RealEnd& end : real_ports_) {
    const Cable& cable = topology.cables[end.cable];
    out.push_back(end.port->counts());
    out.back().cable = topology.name_of(end.end_b ? cable.b : cable.a) + " to " +
                       topology.name_of(end.end_b ? cable.a : cable.b);
  }
  return out;
}

Port& Network::port_at(uint32_t cable, bool end_b, const PauseEvent& receiver) {
  Port& port = end_b ? links_[cable]->b() : links_[cable]->a();
  if (!record_pauses_) return port;
  return *recorders_.emplace_back(std::make_unique<PauseRecorder>(port, receiver));
}

std::vector<PauseEvent> Network::pause_events(Nanos origin) const {
  std::vector<PauseEvent> out;
  for (const auto& recorder : recorders_) {
    for (PauseEvent event : recorder->events()) {
      event.at -= origin;
      if (event.at >= Nanos{0}) out.push_back(event);
    }
  }
  std::ranges::stable_sort(out, {}, &PauseEvent::at);
  return out;
}

void Network::make_links() {
  Rng rng{scenario_.seed};
  for (const Cable& cable : scenario_.topology.cables) {
    SimLinkConfig config;
    config.name = "cable" + std::to_string(links_.size());
    config.seed = rng.next();
    if (real_port(static_cast<uint32_t>(links_.size()), false) != nullptr) {
      links_.push_back(nullptr);
      continue;
    }
    config.mtu = scenario_.port_mtu;
    config.a_to_b = {.rate = cable.spec.rate, .delay = cable.spec.delay, .queue = kSwitchQueue};
    config.b_to_a = config.a_to_b;
    // A host's link holds two frames: one on the line and one waiting. The host thus selects the next queue pair as
    // late as possible.
    const Bytes two_frames{2 * (uint64_t{scenario_.port_mtu} + sizeof(EthernetHeader))};
    if (!cable.a.is_switch) config.a_to_b.queue = two_frames;
    if (!cable.b.is_switch) config.b_to_a.queue = two_frames;
    const auto number = static_cast<uint64_t>(links_.size());
    config.macs = {mac_of_end(number, false), mac_of_end(number, true)};
    links_.push_back(std::make_unique<SimLink>(config, pool_));
  }
}

Status Network::make_switches() {
  const Topology& topology = scenario_.topology;
  for (uint32_t s = 0; s < topology.switches.size(); ++s) {
    const TopologySwitch& of = topology.switches[s];
    nodes_.push_back(std::make_unique<Node>(of.name));
    Node& node = *nodes_.back();
    std::vector<Port*> ports;
    for (uint32_t p = 0; p < of.cables.size(); ++p) {
      const bool is_b = topology.is_end_b(s, p);
      if (RealPort* const real = real_port(of.cables[p], is_b); real != nullptr) {
        ports.push_back(real);
      } else {
        ports.push_back(&port_at(of.cables[p], is_b, {.is_switch = true, .node = s, .port = p}));
      }
    }
    SwitchConfig config = scenario_.switches[s];
    config.neighbors = neighbors_of(s);
    config.route_tables = false;
    auto made = Switch::create(config, ports, pool_);
    if (!made) return fail(made.error());
    calendars_.push_back(std::make_unique<ArrivalCalendar>(node, ports));
    ArrivalCalendar& calendar = *calendars_.back();
    for (uint32_t p = 0; p < of.cables.size(); ++p) {
      const auto port = static_cast<uint16_t>(p);
      if (SimLink* const link = links_[of.cables[p]].get(); link != nullptr) {
        link->listen(topology.is_end_b(s, p) ? SimLink::kAToB : SimLink::kBToA, calendar.listener(port));
      } else {
        calendar.always(port);
        node.set_live();
      }
    }
    (*made)->report_arrivals_to(calendar);
    node.add(**made);
    switches_.push_back(std::move(*made));
  }
  return {};
}

// In a network of several switches, the first packet over a next hop would otherwise wait for its resolution (ARP).
std::vector<SwitchNeighborConfig> Network::neighbors_of(uint32_t switch_number) const {
  const Topology& topology = scenario_.topology;
  std::vector<SwitchNeighborConfig> neighbors;
  if (topology.switches.size() == 1) return neighbors;  // layer 2
  const std::vector<uint32_t>& cables = topology.switches[switch_number].cables;
  for (uint32_t port = 0; port < cables.size(); ++port) {
    const uint32_t cable = cables[port];
    if (links_[cable] == nullptr) continue;
    const bool far_is_b = !topology.is_end_b(switch_number, port);
    const Cable::End& far = topology.far_end(switch_number, port);
    neighbors.push_back(far.is_switch ? SwitchNeighborConfig{topology.cable_address(cable, far_is_b).address,
                                                             Switch::mac_of(scenario_.switches[far.node])}
                                      : SwitchNeighborConfig{topology.host_address(far.node).address,
                                                             mac_of_end(cable, far_is_b)});
  }
  return neighbors;
}

Status Network::make_hosts() {
  const Topology& topology = scenario_.topology;
  const uint64_t message = largest_message(scenario_);
  if (!scenario_.payload) nothing_.resize(message);
  for (uint32_t h = 0; h < topology.hosts.size(); ++h) {
    const TopologyHost& of = topology.hosts[h];
    nodes_.push_back(std::make_unique<Node>(of.name));
    Node& node = *nodes_.back();
    const bool is_a = !topology.cables[of.cable].a.is_switch;
    Port* port = nullptr;
    if (RealPort* const real = real_port(of.cable, !is_a); real != nullptr) {
      node.set_live();
      node.add(*real);
      port = real;
    } else {
      SimLink& link = *links_[of.cable];
      link.listen(is_a ? SimLink::kBToA : SimLink::kAToB, node);
      node.add(link.waker(is_a ? SimLink::kAToB : SimLink::kBToA));
      port = &port_at(of.cable, !is_a, {.is_switch = false, .node = h});
    }
    DeviceConfig config = scenario_.host;
    config.name = of.name;
    config.addresses = {topology.host_address(h).to_string()};
    if (topology.switches.size() > 1) config.gateways = {topology.gateway(of.at).address.to_string()};
    config.seed = scenario_.seed * kMaxHosts + h + 1;
    config.header_only = !scenario_.payload;
    HostParts& parts = hosts_.emplace_back();
    auto device = create_device(std::make_unique<BorrowedPort>(*port), config, pool_);
    if (!device) return fail(device.error());
    parts.device = std::move(*device);
    auto pd = parts.device->allocate_pd();
    if (!pd) return fail(pd.error());
    parts.pd = std::move(*pd);
    auto cq = parts.device->create_cq(HostProgram::kFirstCompletions);
    if (!cq) return fail(cq.error());
    parts.cq = std::move(*cq);
    if (scenario_.payload) parts.bytes.resize(message);
    std::vector<uint8_t>& bytes = scenario_.payload ? parts.bytes : nothing_;
    auto memory = parts.pd->register_memory(bytes.data(), bytes.size(), kAccess);
    if (!memory) return fail(memory.error());
    parts.memory = std::move(*memory);
    parts.program = std::make_unique<HostProgram>(*parts.device, *parts.cq, *parts.memory);
    node.add(parts.program->start_poller());
    for (uint32_t worker = 0; worker < config.workers; ++worker) node.add(parts.device->poller(worker));
    for (const auto& core : parts.device->host().control_cores()) node.add(*core);
    node.add(parts.program->completion_poller());
  }
  return {};
}

Result<Network::Connection> Network::connect(uint32_t requester, uint32_t peer, const TrafficSpec& spec) {
  Connection out;
  const std::array<uint32_t, 2> numbers{requester, peer};
  std::array<std::unique_ptr<QueuePair>, 2> ends;
  for (size_t i = 0; i < 2; ++i) {
    HostParts& host = hosts_[numbers[i]];
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = std::max<uint32_t>(4, spec.depth),
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    auto qp = host.pd->create_qp(&init, *host.cq, *host.cq);
    if (!qp) return fail(qp.error());
    ends[i] = std::move(*qp);
    ROCI_TRY(ends[i]->set_congestion_control(spec.congestion_control.empty()
                                                 ? scenario_.host.congestion_control.profile
                                                 : spec.congestion_control));
  }
  const std::array<uint32_t, 2> psns{next_psn_, next_psn_ + 0x10000};
  next_psn_ = (next_psn_ + 0x34567) & Psn::kMask;
  for (size_t i = 0; i < 2; ++i) {
    auto gid = hosts_[numbers[1 - i]].device->query_gid(1);
    if (!gid) return fail(gid.error());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAccess;
    ROCI_TRY(ends[i]->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_of(scenario_.path_mtu);
    attr.dest_qp_num = ends[1 - i]->qp_num();
    attr.rq_psn = psns[1 - i] & Psn::kMask;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = 1;
    attr.ah_attr.grh.traffic_class = spec.traffic_class;
    attr.ah_attr.grh.dgid = *gid;
    ROCI_TRY(ends[i]->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = kTimeout;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.sq_psn = psns[i] & Psn::kMask;
    attr.max_rd_atomic = 16;
    ROCI_TRY(ends[i]->modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
  }
  out.requester = std::move(ends[0]);
  out.peer = std::move(ends[1]);
  out.remote = reinterpret_cast<uint64_t>(hosts_[peer].memory->address());
  out.rkey = hosts_[peer].memory->rkey();
  return out;
}

uint64_t Network::counter(Counter counter) const {
  uint64_t sum = 0;
  for (const HostParts& host : hosts_) sum += host.device->host().counter(counter);
  return sum;
}

uint64_t Network::without_buffer() const {
  uint64_t sum = counter(Counter::kTxNoBuffer) + counter(Counter::kIntNoBuffer);
  for (const auto& one : switches_) {
    for (size_t port = 0; port < one->port_count(); ++port)
      sum += one->counters(port).dropped(DropReason::kNoBuffer);
  }
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    sum += link->stats(SimLink::kAToB).no_buffer + link->stats(SimLink::kBToA).no_buffer;
  }
  return sum;
}

}  // namespace roci::lab
