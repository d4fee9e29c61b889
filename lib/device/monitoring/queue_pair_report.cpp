#include "device/monitoring/queue_pair_report.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

namespace roci {
namespace {

// Work per acquisition of a worker's token: some ten microseconds each.
constexpr size_t kSlotsAtOnce = 16384;  // table slots of 16 bytes, contiguous
constexpr size_t kPeeksAtOnce = 128;    // one or two cache misses each
constexpr size_t kReportsAtOnce = 16;   // with allocations

// Sleeps between two acquisitions of a token, so that other threads can acquire it.
void yield_to_workers() { std::this_thread::sleep_for(std::chrono::microseconds{10}); }

// Calls visit(AttachedQueuePair&) with the worker's token held, for each existing number, `at_once` per acquisition.
template <class Visit>
void visit_each(Host& host, std::span<const uint32_t> numbers, size_t at_once, Visit&& visit) {
  std::unique_lock<WorkerToken> guard;
  const Worker* held = nullptr;
  size_t done = 0;
  for (const uint32_t number : numbers) {
    Worker& worker = host.worker_of(Qpn{number});
    if (&worker != held || ++done == at_once) {
      if (guard.owns_lock()) guard.unlock();
      if (&worker == held) yield_to_workers();
      guard = std::unique_lock<WorkerToken>(worker.token());
      held = &worker;
      done = 0;
    }
    if (AttachedQueuePair* qp = worker.find(Qpn{number}); qp != nullptr) visit(*qp);
  }
}

uint64_t nanos_or_nothing(Nanos span) { return span == kNever ? 0 : static_cast<uint64_t>(span.count()); }

// Adds a report of the transport's counts, for a direction without congestion control.
void add_uncontrolled(const QueuePairCore& core, Direction direction,
                      std::vector<CongestionFlowReport>& flows) {
  const SendFlow* sent = core.flow(direction);
  if (direction == Direction::kResponses && (sent == nullptr || sent->packets_sent == 0)) return;
  CongestionFlowReport& flow = flows.emplace_back();
  flow.qp_num = core.number().value();
  flow.responses = direction == Direction::kResponses;
  flow.profile = core.config.reactive_window ? Profiles::kWindow : Profiles::kNone;
  if (sent == nullptr) return;
  flow.sent_packets = sent->packets_sent;
  flow.acked_packets = sent->packets_acked;
  flow.marked_packets = sent->packets_marked;
  flow.rtt = nanos_or_nothing(sent->rtt);
  flow.least_rtt = nanos_or_nothing(sent->least_rtt);
}

void add_reports(AttachedQueuePair& qp, std::vector<QueuePairReport>& out) {
  const QueuePairCore& core = qp.core;
  std::vector<CongestionFlowReport> flows;
  CongestionControl::report(qp, flows);
  const auto reported = [&flows](bool responses) {
    return std::ranges::any_of(flows, [=](const auto& flow) { return flow.responses == responses; });
  };
  if (!reported(false)) add_uncontrolled(core, Direction::kRequests, flows);
  if (!reported(true)) add_uncontrolled(core, Direction::kResponses, flows);
  std::ranges::stable_sort(flows, {}, &CongestionFlowReport::responses);

  const ibv_qp_state state = core.state();
  const ibv_qp_type type = core.config.type;
  const bool has_peer = is_connected(type) && state != IBV_QPS_RESET && state != IBV_QPS_INIT;
  for (CongestionFlowReport& flow : flows) {
    QueuePairReport& report = out.emplace_back();
    report.type = type;
    report.state = state;
    if (has_peer) {
      report.peer = core.attributes.path.destination_ip.to_string();
      report.peer_qp_num = core.attributes.remote_qp.value();
    }
    report.send_psn = core.send_psn().value();
    if (const SendFlow* sent = core.flow(flow.responses ? Direction::kResponses : Direction::kRequests))
      report.acked_bytes = sent->acknowledged.value();
    // Reception comprises the peer's requests and the READ responses to this queue pair. Both are part of the row of
    // its requests.
    if (!flow.responses) {
      for (const ReceiveFlow* received : {core.received_requests(), core.received_responses()}) {
        if (received == nullptr) continue;
        report.received_bytes += received->received.value();
        report.received_packets += received->packets;
      }
    }
    report.flow = std::move(flow);
  }
}

}  // namespace

std::vector<uint32_t> queue_pair_numbers(Host& host, uint32_t from, size_t most) {
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < host.workers(); ++i) {
    Worker& worker = host.worker(i);
    Worker::QueuePairWalk walk;
    for (bool more = true; more;) {
      numbers.reserve(numbers.size() + kSlotsAtOnce);  // before the token is acquired
      if (walk.started()) yield_to_workers();
      const std::scoped_lock guard(worker.token());
      more = worker.walk_queue_pairs(walk, kSlotsAtOnce, [&](uint32_t number) {
        if (number >= from) numbers.push_back(number);
      });
    }
  }
  std::ranges::sort(numbers);
  // A walk that was restarted may have visited numbers twice.
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() > most) numbers.resize(most);
  return numbers;
}

std::vector<QueuePairActivity> queue_pair_activity(Host& host, std::span<const uint32_t> numbers) {
  std::vector<QueuePairActivity> out;
  out.reserve(numbers.size());
  visit_each(host, numbers, kPeeksAtOnce, [&out](AttachedQueuePair& qp) {
    const QueuePairCore& core = qp.core;
    const uint32_t psns = core.send_psn().value() + core.receive_psn().value();
    out.push_back({core.number().value(), core.config.type, core.state(), psns & Psn::kMask});
  });
  return out;
}

std::vector<QueuePairReport> report_queue_pairs(Host& host, std::span<const uint32_t> numbers) {
  std::vector<QueuePairReport> out;
  visit_each(host, numbers, kReportsAtOnce, [&out](AttachedQueuePair& qp) { add_reports(qp, out); });
  return out;
}

std::vector<std::pair<std::string, uint64_t>> numbers_of(const CongestionFlowReport& flow) {
  return {{"in_flight", flow.in_flight},
          {"rtt_ns", flow.rtt},
          {"least_rtt_ns", flow.least_rtt},
          {"sent_bytes", flow.sent_bytes},
          {"sent_packets", flow.sent_packets},
          {"acked_packets", flow.acked_packets},
          {"marked_packets", flow.marked_packets},
          {"rp_cnp_handled", flow.cnps},
          {"cnms", flow.cnms},
          {"telemetry", flow.telemetry},
          {"losses", flow.losses},
          {"timeouts", flow.timeouts},
          {"events", flow.events}};
}

std::vector<std::pair<uint32_t, uint32_t>> queue_pair_flows(Host& host, std::span<const uint32_t> numbers) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  out.reserve(numbers.size());
  visit_each(host, numbers, kPeeksAtOnce, [&out](AttachedQueuePair& qp) {
    if (const uint32_t there = CongestionControl::directions(qp.core); there != 0)
      out.emplace_back(qp.core.number().value(), there);
  });
  return out;
}

std::string qp_type_name(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    default:
      return "?";
  }
}

}  // namespace roci
