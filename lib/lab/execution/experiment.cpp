#include "lab/execution/experiment.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "device/host/host.hpp"
#include "engine/congestion/congestion_control.hpp"
#include "lab/execution/timetable.hpp"
#include "lab/execution/window_runner.hpp"
#include "lab/network/network.hpp"
#include "lab/results/ideal_time.hpp"
#include "lab/results/meter.hpp"
#include "lab/results/summary.hpp"
#include "lab/traffic/warm_up.hpp"
#include "transport/rc/reliable_queue_pair.hpp"

namespace roci::lab {
namespace {

constexpr size_t kBins = 1000;
constexpr size_t kFlowsShown = 32;
constexpr Nanos kOpenAhead = 20us;

// Progress of a flow.
struct FlowProgress {
  uint64_t arrived = 0;  // bytes of payload
  Nanos rtt = kNever;    // the latest sample
  uint32_t rtt_samples = 0;
};
FlowProgress progress_of(Network& network, uint32_t host, const Stream& stream) {
  Host& of = network.device(host).host();
  const Qpn number{stream.qp->qp_num()};
  AttachedQueuePair* const found = of.worker_of(number).find(number);
  if (found == nullptr) return {};
  auto& requester = static_cast<ReliableQueuePair&>(found->core).requester;
  const auto& flow = requester.flow();
  return {stream.opcode == IBV_WR_RDMA_READ ? requester.response_flow().received.value()
                                            : flow.acknowledged.value(),
          flow.rtt, flow.rtt_samples};
}

ibv_wr_opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return IBV_WR_RDMA_READ;
    case Operation::kSend:
      return IBV_WR_SEND;
    case Operation::kWrite:
      break;
  }
  return IBV_WR_RDMA_WRITE;
}

class Experiment {
 public:
  Experiment(const Scenario& scenario, const ExperimentOptions& options)
      : scenario_(scenario), options_(options), runner_(scenario.topology.least_delay(), options.threads) {
    runner_.stop_when(options.stops);
  }

  Result<Measurements> run();

 private:
  // Requester of a flow's operations, and its peer.
  struct Roles {
    uint32_t requester, peer;
  };
  static Roles roles_of(Operation operation, uint32_t from, uint32_t to) {
    return operation == Operation::kRead ? Roles{to, from} : Roles{from, to};
  }

  // Creates queue pairs shortly before their flows start.
  class Opener final : public TimedTask {
   public:
    explicit Opener(Experiment& of) : of_(of) {}
    [[nodiscard]] Nanos next() const override { return of_.next_opening(); }
    Status run(Nanos now) override { return of_.open_until(now + kOpenAhead); }

   private:
    Experiment& of_;
  };
  // Samples the queues, and completes a bin after samples_a_bin_ samples.
  class Sampler final : public TimedTask {
   public:
    explicit Sampler(Experiment& of) : of_(of) {}
    [[nodiscard]] Nanos next() const override { return of_.next_sample_; }
    Status run(Nanos now) override {
      of_.sample(now);
      return {};
    }

   private:
    Experiment& of_;
  };
  Status warm_up();
  Status open(size_t flow, Network::Connection connection);
  Status open_loops();
  Status open_until(Nanos until);
  [[nodiscard]] Nanos next_opening() const {
    return next_flow_ < plan_.flows.size() ? origin_ + plan_.flows[next_flow_].start : kNever;
  }
  void sample(Nanos now);
  void end_bin();
  [[nodiscard]] const Stream& stream_of(size_t flow) {
    return network_->program(places_[flow].host).stream(places_[flow].stream);
  }
  [[nodiscard]] FlowProgress progress_of(size_t flow) {
    return lab::progress_of(*network_, places_[flow].host, stream_of(flow));
  }
  [[nodiscard]] std::vector<uint64_t> arrived();
  void begin(Meter& meter) { meter.begin(count(*network_), arrived()); }
  void end(Meter& meter) { meter.end(count(*network_), arrived()); }
  void set_fault(size_t number, bool on);
  // Ties virtual time to the clock from now on.
  void set_up_throttle() {
    throttle_.start(runner_.now());
    runner_.set_throttle(throttle_);
  }
  void make_meters();
  void make_timetable();
  void name_series();
  [[nodiscard]] uint64_t packet_hops() const;
  Status drain();

  const Scenario& scenario_;
  const ExperimentOptions& options_;
  std::unique_ptr<Network> network_;
  RealtimeThrottle throttle_;
  WindowRunner runner_;
  Opener opener_{*this};
  Sampler sampler_{*this};
  Timetable timetable_;
  TrafficPlan plan_;
  std::vector<FlowResult> results_;
  struct Place {
    uint32_t host = 0, stream = 0;
  };
  std::vector<Place> places_;                    // by flow, as far as they were opened
  std::vector<FlowProgress> seen_;               // by flow, at the end of the last bin
  std::vector<size_t> open_;                     // open flows that have not ended
  std::map<size_t, Network::Connection> ready_;  // made during the warm-up, by flow
  // Other connections of the warm-up; the last ones are those of the loops.
  std::vector<Network::Connection> first_;
  size_t next_flow_ = 0;
  std::vector<bool> active_faults_;  // by fault
  Nanos origin_ = kNever;
  Nanos next_sample_ = kNever;

  struct WatchedPort {
    const SwitchPortCounters* counters = nullptr;
    uint64_t most_in_bin = 0, sum_in_bin = 0;
  };
  std::vector<WatchedPort> ports_;
  uint64_t samples_in_bin_ = 0;
  uint64_t samples_a_bin_ = 1;
  std::vector<Meter> meters_;  // whole run, then the scenario's windows
  Measurements out_;
};

Status Experiment::warm_up() {
  ROCI_TRY(warm_up_addresses(*network_, runner_, plan_));
  // Each pair of hosts with traffic resolves addresses and exchanges capabilities.
  std::set<std::pair<uint32_t, uint32_t>> met;
  TrafficSpec plain;
  plain.congestion_control = "none";
  for (size_t i = 0; i < plan_.flows.size(); ++i) {
    const FlowPlan& flow = plan_.flows[i];
    const TrafficSpec& spec = scenario_.traffic[flow.traffic];
    const Roles roles = roles_of(flow.operation, flow.from, flow.to);
    const bool at_once = spec.arrivals == TrafficSpec::Arrivals::kAtOnce;
    if (!at_once && !met.emplace(std::min(flow.from, flow.to), std::max(flow.from, flow.to)).second) continue;
    auto made = network_->connect(roles.requester, roles.peer, at_once ? spec : plain);
    if (!made) return fail(made.error());
    if (at_once) {
      ready_.emplace(i, std::move(*made));
    } else {
      first_.push_back(std::move(*made));
    }
  }
  for (const LoopPlan& loop : plan_.loops) {
    const Roles roles = roles_of(scenario_.traffic[loop.traffic].operation, loop.from, loop.to);
    auto made = network_->connect(roles.requester, roles.peer, scenario_.traffic[loop.traffic]);
    if (!made) return fail(made.error());
    first_.push_back(std::move(*made));
  }
  for (auto& node : network_->nodes()) node->touch(runner_.now());
  ROCI_TRY(wait_until_known(*network_, runner_));
  if (plan_.loops.empty()) first_.clear();
  return {};
}

Status Experiment::open(size_t number, Network::Connection connection) {
  const FlowPlan& flow = plan_.flows[number];
  const TrafficSpec& spec = scenario_.traffic[flow.traffic];
  const Roles roles = roles_of(flow.operation, flow.from, flow.to);
  Stream stream;
  stream.remote = connection.remote;
  stream.rkey = connection.rkey;
  stream.opcode = opcode_of(flow.operation);
  stream.message = spec.message;
  stream.start = origin_ + flow.start;
  stream.stop = spec.stop == kNever ? kNever : origin_ + spec.stop;
  stream.unlimited = flow.bytes == FlowPlan::kUnlimited;
  stream.left = flow.bytes;
  stream.result = &results_[number];
  if (flow.operation == Operation::kSend)
    network_->program(roles.peer).receive(*connection.peer, static_cast<uint32_t>(spec.message));
  stream.qp = std::move(connection.requester);
  stream.peer = std::move(connection.peer);
  places_[number] = {roles.requester, network_->program(roles.requester).add(std::move(stream))};
  open_.push_back(number);
  network_->node_of_host(roles.requester).touch(runner_.now());
  network_->node_of_host(roles.peer).touch(runner_.now());
  return {};
}

Status Experiment::open_loops() {
  for (size_t i = 0; i < plan_.loops.size(); ++i) {
    const LoopPlan& loop = plan_.loops[i];
    const TrafficSpec& spec = scenario_.traffic[loop.traffic];
    const Roles roles = roles_of(spec.operation, loop.from, loop.to);
    // The connections of loops are the last ones in first_.
    Network::Connection& connection = first_[first_.size() - plan_.loops.size() + i];
    Stream stream;
    stream.remote = connection.remote;
    stream.rkey = connection.rkey;
    stream.opcode = opcode_of(spec.operation);
    stream.message = spec.size.largest();
    stream.start = origin_ + spec.start;
    stream.stop = spec.stop == kNever ? kNever : origin_ + spec.stop;
    stream.depth = spec.depth;
    stream.loop = static_cast<uint32_t>(i);
    stream.spec = &spec;
    stream.rng = std::make_unique<Rng>(loop.seed);
    if (spec.operation == Operation::kSend)
      network_->program(roles.peer).receive(*connection.peer, static_cast<uint32_t>(spec.size.largest()));
    stream.qp = std::move(connection.requester);
    stream.peer = std::move(connection.peer);
    network_->program(roles.requester).add(std::move(stream));
    network_->node_of_host(roles.requester).touch(runner_.now());
    network_->node_of_host(roles.peer).touch(runner_.now());
  }
  first_.clear();
  return {};
}

Status Experiment::open_until(Nanos until) {
  for (; next_flow_ < plan_.flows.size() && origin_ + plan_.flows[next_flow_].start < until; ++next_flow_) {
    const FlowPlan& flow = plan_.flows[next_flow_];
    if (auto ready = ready_.find(next_flow_); ready != ready_.end()) {
      ROCI_TRY(open(next_flow_, std::move(ready->second)));
      ready_.erase(ready);
      continue;
    }
    const Roles roles = roles_of(flow.operation, flow.from, flow.to);
    auto made = network_->connect(roles.requester, roles.peer, scenario_.traffic[flow.traffic]);
    if (!made) return fail(made.error());
    ROCI_TRY(open(next_flow_, std::move(*made)));
  }
  return {};
}

// Faults of a link may overlap if they have different effects; at most one of the active ones affects a direction.
void Experiment::set_fault(size_t number, bool on) {
  active_faults_[number] = on;
  const FaultSpec& fault = scenario_.faults[number];
  SimLink& link = network_->link(fault.cable);
  bool down = false;
  std::array<SimFaults, 2> of;  // by direction
  for (size_t i = 0; i < scenario_.faults.size(); ++i) {
    const FaultSpec& other = scenario_.faults[i];
    if (!active_faults_[i] || other.cable != fault.cable) continue;
    down = down || other.down;
    for (const auto direction : {SimLink::kAToB, SimLink::kBToA})
      if (other.affects(direction)) of[direction] = other.faults;
  }
  if (fault.down) link.set_up(!down);
  for (const auto direction : {SimLink::kAToB, SimLink::kBToA})
    if (fault.affects(direction)) link.set_faults(direction, of[direction]);
  for (auto& node : network_->nodes()) node->touch(runner_.now());
}

void Experiment::sample(Nanos now) {
  next_sample_ = now - origin_ < scenario_.duration ? now + scenario_.sample : kNever;
  for (size_t i = 0; i < ports_.size(); ++i) {
    WatchedPort& port = ports_[i];
    const uint64_t bytes = port.counters->queue_bytes.load(std::memory_order_relaxed);
    for (Meter& meter : meters_)
      if (meter.running) meter.queues[i].add(bytes);
    port.most_in_bin = std::max(port.most_in_bin, bytes);
    port.sum_in_bin += bytes;
  }
  if (++samples_in_bin_ == samples_a_bin_) end_bin();
}

std::vector<uint64_t> Experiment::arrived() {
  std::vector<uint64_t> bytes(plan_.flows.size(), 0);
  for (size_t flow = 0; flow < next_flow_; ++flow) bytes[flow] = progress_of(flow).arrived;
  return bytes;
}

void Experiment::end_bin() {
  for (size_t i = 0; i < ports_.size(); ++i) {
    WatchedPort& port = ports_[i];
    out_.queue_most.values[i].push_back(static_cast<double>(port.most_in_bin));
    out_.queue_mean.values[i].push_back(static_cast<double>(port.sum_in_bin) /
                                        static_cast<double>(samples_in_bin_));
    port.most_in_bin = port.sum_in_bin = 0;
  }
  samples_in_bin_ = 0;
  const bool by_flow = plan_.flows.size() <= kFlowsShown;
  for (auto& column : out_.goodput.values) column.push_back(0);
  const double per_second = 8e9 / static_cast<double>(out_.bin.count());
  std::erase_if(open_, [&](size_t flow) {
    const FlowProgress progress = progress_of(flow);
    FlowProgress& seen = seen_[flow];
    const uint32_t traffic = plan_.flows[flow].traffic;
    out_.goodput.values[by_flow ? flow : traffic].back() +=
        static_cast<double>(progress.arrived - seen.arrived) * per_second;
    if (progress.rtt_samples != seen.rtt_samples) {
      for (Meter& meter : meters_)
        if (meter.running) meter.round_trips[traffic].add(static_cast<uint64_t>(progress.rtt.count()));
    }
    seen = progress;
    return stream_of(flow).over;
  });
  if (options_.progress != nullptr && out_.queue_most.values.front().size() % 10 == 0)
    options_.progress({runner_.now() - origin_, packet_hops()});
}

uint64_t Experiment::packet_hops() const {
  uint64_t sum = network_->counter(Counter::kRxFrames);
  for (uint32_t s = 0; s < scenario_.topology.switches.size(); ++s) {
    for (size_t port = 0; port < network_->at(s).port_count(); ++port)
      sum += network_->at(s).counters(port).rx_packets;
  }
  return sum;
}

Status Experiment::drain() {
  const uint32_t hosts = static_cast<uint32_t>(scenario_.topology.hosts.size());
  const Nanos end = runner_.now() + scenario_.drain;
  const auto busy = [&] {
    for (uint32_t h = 0; h < hosts; ++h)
      if (network_->program(h).busy() > 0) return true;
    return false;
  };
  while (runner_.now() < end && busy()) ROCI_TRY(runner_.run_until(std::min(end, runner_.now() + 100us)));
  return {};
}

void Experiment::name_series() {
  samples_a_bin_ = std::max<uint64_t>(
      1, (static_cast<uint64_t>(scenario_.duration / scenario_.sample) + kBins - 1) / kBins);
  out_.bin = static_cast<int64_t>(samples_a_bin_) * scenario_.sample;
  out_.queue_most.unit = out_.queue_mean.unit = "bytes";
  for (uint32_t s = 0; s < scenario_.topology.switches.size(); ++s) {
    for (size_t port = 0; port < network_->at(s).port_count(); ++port) {
      ports_.emplace_back().counters = &network_->at(s).counters(port);
      const std::string name =
          scenario_.topology.switches[s].name + "/" + network_->at(s).port_config(port).name;
      out_.queue_most.names.push_back(name);
      out_.queue_mean.names.push_back(name);
    }
  }
  out_.queue_most.values.resize(ports_.size());
  out_.queue_mean.values.resize(ports_.size());
  out_.goodput.unit = "bit/s";
  if (plan_.flows.size() <= kFlowsShown) {
    for (const FlowPlan& flow : plan_.flows) {
      out_.goodput.names.push_back(scenario_.traffic[flow.traffic].name + ": " +
                                   scenario_.topology.hosts[flow.from].name + " to " +
                                   scenario_.topology.hosts[flow.to].name);
    }
  } else {
    for (const TrafficSpec& spec : scenario_.traffic) out_.goodput.names.push_back(spec.name);
  }
  out_.goodput.values.resize(out_.goodput.names.size());
}

void Experiment::make_meters() {
  const auto add = [&](const TimeWindow& window) {
    meters_.emplace_back(window, ports_.size(), scenario_.traffic.size());
  };
  add({"", scenario_.settle, scenario_.duration});
  for (const TimeWindow& window : scenario_.windows) add(window);
}

void Experiment::make_timetable() {
  for (Meter& meter : meters_) {
    timetable_.at(origin_ + meter.window.from, [this, &meter] { begin(meter); });
    if (meter.window.until < scenario_.duration)
      timetable_.at(origin_ + meter.window.until, [this, &meter] { end(meter); });
  }
  active_faults_.resize(scenario_.faults.size());
  for (size_t i = 0; i < scenario_.faults.size(); ++i) {
    const FaultSpec& fault = scenario_.faults[i];
    timetable_.at(origin_ + fault.from, [this, i] { set_fault(i, true); });
    if (fault.until != kNever) timetable_.at(origin_ + fault.until, [this, i] { set_fault(i, false); });
  }
}

Result<Measurements> Experiment::run() {
  const auto start_time = std::chrono::steady_clock::now();
  auto plan = plan_traffic(scenario_);
  if (!plan) return fail(plan.error());
  plan_ = std::move(*plan);
  results_.resize(plan_.flows.size());
  places_.resize(plan_.flows.size());
  seen_.resize(plan_.flows.size());
  auto network = Network::create(
      scenario_,
      {.real = options_.real, .busy_hosts = plan_.busy_hosts(), .record_pauses = options_.record_pauses});
  if (!network) return fail(network.error());
  network_ = std::move(*network);
  for (auto& node : network_->nodes()) runner_.add(*node);
  if (network_->has_real_ports()) set_up_throttle();
  ROCI_TRY(warm_up());

  const uint32_t hosts = static_cast<uint32_t>(scenario_.topology.hosts.size());
  origin_ = runner_.now();
  for (uint32_t h = 0; h < hosts; ++h) network_->program(h).set_origin(origin_);
  name_series();
  make_meters();
  make_timetable();
  runner_.add(timetable_);
  runner_.add(opener_);
  runner_.add(sampler_);
  ROCI_TRY(open_loops());
  next_sample_ = origin_ + scenario_.sample;
  if (options_.real) set_up_throttle();

  const Nanos end = origin_ + scenario_.duration;
  ROCI_TRY(runner_.run_until(end));
  if (options_.real) out_.real = RealRun{.late = throttle_.lateness(end), .ports = {}};
  for (Meter& meter : meters_)
    if (meter.running) this->end(meter);
  if (next_sample_ == end) sample(end);  // last sample of the last bin
  for (uint32_t h = 0; h < hosts; ++h) network_->program(h).stop(end);
  ROCI_TRY(drain());
  if (const uint64_t missing = network_->without_buffer(); missing > 0)
    return fail(
        std::to_string(missing) + " frames were lost for lack of packet buffers; the results are invalid",
        ENOMEM);

  if (out_.real) out_.real->ports = network_->real_port_counts();
  out_.packet_hops = packet_hops();
  for (uint32_t h = 0; h < hosts; ++h) {
    const auto& loops = network_->program(h).loop_results();
    out_.loops.insert(out_.loops.end(), loops.begin(), loops.end());
  }
  out_.queues = meters_.front().queues;
  if (options_.record_pauses) out_.pauses = network_->pause_events(origin_);
  out_.plan = std::move(plan_);
  out_.flows = std::move(results_);
  for (const FlowPlan& flow : out_.plan.flows) out_.ideal.push_back(ideal_time(scenario_, flow));
  out_.summary = summarize(scenario_, out_, meters_.front(), {meters_.begin() + 1, meters_.end()});
  for (uint32_t h = 0; h < hosts; ++h) {
    const std::string& error = network_->program(h).error();
    if (error.empty()) continue;
    out_.summary["first_error"] = error;
    break;
  }
  out_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_time).count();
  return std::move(out_);
}

}  // namespace

Result<Measurements> run_experiment(const Scenario& scenario, const ExperimentOptions& options) {
  return Experiment(scenario, options).run();
}

}  // namespace roci::lab
