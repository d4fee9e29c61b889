#include "engine/worker/worker.hpp"

#include <algorithm>
#include <utility>

#include "base/os/guarded_access.hpp"

namespace roci {
namespace {

std::vector<ControlCore*> cores_of(const WorkerContext& context) {
  std::vector<ControlCore*> cores;
  for (const auto& core : context.control_cores) cores.push_back(core.get());
  return cores;
}

}  // namespace

Worker::Worker(std::string name, uint32_t index, const WorkerContext& context)
    : name_(std::move(name)),
      index_(index),
      port_(context.port),
      memory_(context.memory),
      events_(context.events),
      flow_control_(context.flow_control),
      pausable_(context.flow_control.enabled()),
      peer_presence_(context.peers()),
      placement_(context.placement()),
      all_flows_(context.flows),
      flows_(context.flows.of(index)),
      congestion_(context.congestion),
      congestion_flows_(context.congestion_flows),
      link_up_(context.port.link_up()),
      extensions_(name_, context.extensions, context.telemetry, context.port.capabilities().mtu),
      control_({context.control, context.arena, cores_of(context), congestion_flows_,
                context.port.capabilities().link_rate, name_, index, context.ids}),
      handoff_(context.hand_over, index, context.tx_pool->get(), counters_),
      stage_(context, index, handoff_, loopback_, counters_) {}

Result<std::unique_ptr<Worker>> Worker::create(std::string name, uint32_t index, const WorkerContext& context,
                                               NeighborConfig neighbors) {
  std::unique_ptr<Worker> worker(new Worker(std::move(name), index, context));
  const uint16_t vlan_id = neighbors.vlan_id;
  neighbors.answers = index == 0;
  auto made = Neighbors::create(std::move(neighbors), worker->stage_);
  if (!made) return fail(made.error().within("device " + worker->name_));
  worker->assemble(context, std::move(*made), vlan_id);
  return worker;
}

void Worker::assemble(const WorkerContext& context, std::unique_ptr<Neighbors> neighbors, uint16_t vlan_id) {
  neighbors_ = std::move(neighbors);
  if (index_ == 0)
    management_ = std::make_unique<Management>(port_.mac(), vlan_id, stage_, *neighbors_, counters_);
  const WorkerParts parts{index_,   vlan_id,           counters_, queue_pairs_, *neighbors_, extensions_,
                          control_, management_.get(), handoff_,  loopback_,    stage_};
  scheduler_.emplace(context, parts);
  pipeline_.emplace(context, parts, *scheduler_);
  if (index_ == 0)
    peers_ = std::make_unique<Peers>(extensions_.config(), kReorderWindow, extensions_.extra_bytes(),
                                     extensions_.int_hops(), context.ids, *management_, counters_);
}

bool Worker::poll(Nanos now) {
  TransportContext context = begin_round(now);
  bool worked = stage_.flush();  // frames that the port refused in the last round
  worked |= watch_link(context);
  worked |= scheduler_->take_doorbells();
  worked |= apply_decisions(now);
  worked |= pipeline_->receive(context);
  worked |= note_exits(context);
  worked |= run_timers(context);
  worked |= follow_pauses(now);
  if (control_.any()) control_.send_events(now, context.flows);
  worked |= pipeline_->receive_own_multicasts(context);
  worked |= serve_protocols(now);
  worked |= scheduler_->serve_ready(context);
  worked |= send_frames();
  end_round();
  return worked;
}

TransportContext Worker::begin_round(Nanos now) {
  now_ = now;
  stage_.begin_round(now);
  TransportContext context{now, stage_, memory_, counters_, events_, *scheduler_, &completions_};
  if (extensions_.enabled()) {
    flows_.advance(now);
    context.flows = all_flows_.sum();
    context.telemetry = pipeline_->hops();
  }
  context.peer_activity = &peer_activity_;
  context.peers = peer_presence_;
  context.placement = placement_;
  context.direct = stage_.sends_direct();
  return context;
}

// A change of the link state is an event (IBTA 11.6.3.3). Queue pairs only see packet loss.
bool Worker::watch_link(TransportContext& context) {
  if (index_ != 0 || context.now - link_watched_ < kLinkWatch) return false;
  link_watched_ = context.now;
  const bool up = port_.link_up();
  if (up == link_up_) return false;
  link_up_ = up;
  context.raise(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, {EventSource::kPort, 1, nullptr});
  return true;
}

// Applies what limits the senders: PFC pauses of the link partner, and decisions of congestion control.
bool Worker::apply_decisions(Nanos now) {
  scheduler_->end_pauses(now);
  return control_.any() && control_.poll(now, [this](AttachedQueuePair& qp) { make_ready(qp); });
}

// Queue pairs whose peer's process has exited do not wait for their time-outs.
bool Worker::note_exits(TransportContext& context) {
  if (peer_presence_ == nullptr) return false;
  bool any = false;
  while (const auto exited = peer_presence_->take_exit()) {
    any = true;
    const uint16_t successor = peer_presence_->process_of(*exited);
    for_each_queue_pair([&](AttachedQueuePair& qp) {
      if (!is_reliable(qp.core.config.type) || qp.core.attributes.path.destination_mac != *exited) return;
      if (successor != 0 && qp.peer_process == successor) return;
      qp.core.on_peer_exit(context);
      make_ready(qp);
    });
  }
  return any;
}

bool Worker::run_timers(TransportContext& context) {
  context.frames_wait = pipeline_->may_have_more();
  context.unsent = stage_.unsent(context.now);
  return scheduler_->run_timers(context);
}

// Obeys pauses that have arrived in this round, and sends one if this host is congested.
bool Worker::follow_pauses(Nanos now) {
  if (!pausable_) return false;
  scheduler_->follow_pauses(now);
  return index_ == 0 && pipeline_->send_pause(now);
}

// ARP, ND, and the users of queue pair 1.
bool Worker::serve_protocols(Nanos now) {
  bool worked = neighbors_->poll(now);
  if (management_ != nullptr) worked |= management_->poll(now);
  return scheduler_->wake_waiting() || worked;
}

bool Worker::send_frames() {
  handoff_.deliver();  // own multicasts
  const bool relayed = stage_.relay();
  const bool sent = stage_.flush();
  stage_.publish_wait();
  return sent || relayed;
}

// Completions become visible after the acknowledgments of this round have been sent: a program may exit as soon as it has
// its last message, and no other thread would send them then.
void Worker::end_round() {
  completions_.publish();
  if (memory_faults.uncounted != 0) [[unlikely]]
    counters_.add(Counter::kMemoryFaults, std::exchange(memory_faults.uncounted, 0));
}

Nanos Worker::next_deadline() const {
  if (scheduler_->has_work() || has_staged() || loopback_.has_frames() || loopback_.has_multicasts() ||
      handoff_.has_waiting()) {
    return Nanos{0};
  }
  Nanos next =
      std::min({scheduler_->next_deadline(), neighbors_->next_deadline(), pipeline_->next_arrival()});
  if (control_.any()) next = std::min(next, control_.next_deadline());
  if (management_ != nullptr) next = std::min(next, management_->next_deadline());
  if (pausable_ && index_ == 0) next = std::min(next, flow_control_.next_pause());
  if (!link_up_ && index_ == 0) next = std::min(next, link_watched_ + kLinkWatch);
  return next;
}

bool Worker::attach(AttachedQueuePair& qp) {
  qp.worker = this;
  return queue_pairs_.insert(qp.core.number().value(), &qp);
}

void Worker::detach(AttachedQueuePair& qp) {
  scheduler_->remove(qp);
  queue_pairs_.erase(qp.core.number().value());
  leave_congestion(qp);
  control_.detach(qp);
}

// The queue pair keeps its number while it sends to the same peer
// on the same path. READ responses are sent from state RTR on.
void Worker::enter_congestion(AttachedQueuePair& qp) {
  leave_congestion(qp);
  if (!congestion_flows_.enabled() || !QueuePairCore::receives(qp.core.state()) ||
      qp.core.config.type == IBV_QPT_RAW_PACKET)
    return;
  const bool datagrams = qp.core.config.type == IBV_QPT_UD;
  const RocePath path = qp.core.sent_path();
  const SentFlow sent{path.source_ip, path.destination_ip, qp.core.attributes.remote_qp,
                      path.udp_source_port};
  qp.congestion_flow = congestion_flows_.enter(qp.core.number(), datagrams ? nullptr : &sent);
  if (qp.congestion_flow == 0) return counters_.add(Counter::kCnFlowsFull);
  if (congestion_.tag && (datagrams || is_notified(congestion_, path))) qp.core.cn_flow = qp.congestion_flow;
}

void Worker::leave_congestion(AttachedQueuePair& qp) {
  if (qp.congestion_flow == 0) return;
  congestion_flows_.leave(std::exchange(qp.congestion_flow, uint16_t{0}));
  qp.core.cn_flow = 0;
}

}  // namespace roci
