#include "replay/requester_scenario.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace roci::test {
namespace {

ibv_wr_opcode verb_of(const OpcodeInfo& first, const Packet& last) {
  switch (first.operation) {
    case Operation::kSend:
      return last.imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    case Operation::kWrite:
      return last.imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case Operation::kReadRequest:
      return IBV_WR_RDMA_READ;
    case Operation::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Operation::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    default:
      throw std::runtime_error("a request that no verb makes");
  }
}

// Packets of one kind by distance from the first PSN of the exchange: an intact copy of each, and the time of the
// first copy.
struct Seen {
  const RecordedFrame* frame;
  Nanos at;
};
std::map<uint32_t, Seen> packets_by_place(const Exchange& exchange, bool requests) {
  const Psn start = exchange.first_request().bth.psn;
  std::map<uint32_t, Seen> seen;
  for (const RecordedFrame& frame : exchange.frames) {
    const bool whole = icrc_is_right(frame.packet);
    const bool acknowledges = frame.info().operation == Operation::kAcknowledge;
    if (frame.is_request() != requests || acknowledges) continue;
    const uint32_t place = (frame.packet.bth.psn.value() - start.value()) & Psn::kMask;
    const auto [known, is_new] = seen.try_emplace(place, Seen{&frame, frame.at});
    if (!is_new && whole && !icrc_is_right(known->second.frame->packet)) known->second.frame = &frame;
  }
  return seen;
}

// Data in the responses to the request at `place`: READ data, or the original word of an atomic in memory byte order.
ByteVector answer_of(const std::map<uint32_t, Seen>& responses, uint32_t place, uint32_t psns) {
  ByteVector all;
  for (auto next = responses.lower_bound(place); next != responses.end() && next->first < place + psns;
       ++next) {
    const Packet& p = next->second.frame->packet;
    if (p.atomic_ack) {
      all.resize(sizeof *p.atomic_ack);
      std::memcpy(all.data(), &*p.atomic_ack, all.size());
    }
    all.insert(all.end(), p.payload.begin(), p.payload.end());
  }
  return all;
}

ReplayHost::Config describe_requester(const Exchange& exchange) {
  const Packet& request = exchange.first_request();
  const RecordedProgram program = recorded_program(exchange.capture);
  ReplayHost::Config host = ReplayHost::Config::sender_of(request);
  host.qpn = exchange.requester;
  host.peer_qpn = exchange.responder;
  host.first_own_psn = request.bth.psn;
  host.path_mtu = exchange.path_mtu(kUsualMtu);
  host.traffic_class = request.traffic_class();
  // Hosts do not send CE: before marking the ECN field was ECT(0), which Linux takes from the traffic class.
  if (request.ecn() == Ecn::kCe) host.traffic_class = static_cast<uint8_t>((host.traffic_class & 0xfc) | 2);
  if (exchange.managed) host.udp_source_port = request.udp_source_port;
  host.timeout = program.timeout;
  host.retry_count = program.retry_count;
  host.rnr_retry = program.rnr_retry;
  return host;
}

}  // namespace

RecordedProgram recorded_program(std::string_view capture) {
  if (capture == "retry_exceeded") return {.retry_count = 3, .end = IBV_WC_RETRY_EXC_ERR};
  if (capture == "rnr_exceeded") return {.rnr_retry = 2, .end = IBV_WC_RNR_RETRY_EXC_ERR};
  return {};
}

uint32_t psns_of(const Packet& request, uint32_t path_mtu) {
  if (request.bth.opcode != Opcode::kRcReadRequest) return 1;
  return std::max(1U, (request.reth->length + path_mtu - 1) / path_mtu);
}

RequesterScenario make_requester_scenario(const Exchange& exchange) {
  RequesterScenario scenario;
  scenario.host = describe_requester(exchange);
  const auto requests = packets_by_place(exchange, true);
  const auto responses = packets_by_place(exchange, false);
  uint32_t place = 0;
  for (auto next = requests.begin(); next != requests.end();) {
    if (next->first < place) {  // a READ that was repeated from its middle
      ++next;
      continue;
    }
    const Packet& first = next->second.frame->packet;
    const OpcodeInfo& info = next->second.frame->info();
    if (!info.starts_message())
      throw std::runtime_error(exchange.capture + ": a message without a beginning");
    RequesterScenario::Posted posted{next->second.at, {}, {}};
    const Packet* last = &first;
    for (bool ended = false; !ended; ++next) {
      if (next == requests.end() || next->first != place)
        throw std::runtime_error(exchange.capture + ": a packet was never recorded");
      last = &next->second.frame->packet;
      ended = next->second.frame->info().ends_message();
      posted.message.bytes.insert(posted.message.bytes.end(), last->payload.begin(), last->payload.end());
      place += psns_of(*last, scenario.host.path_mtu);
    }
    ReplayHost::Message& message = posted.message;
    message.opcode = verb_of(info, *last);
    message.immediate = last->imm.value_or(0);
    message.solicited = last->bth.solicited;
    if (first.reth) {
      message.remote = first.reth->va;
      message.rkey = first.reth->rkey.value();
      if (message.opcode == IBV_WR_RDMA_READ)
        message.bytes.assign(first.reth->length, ReplayHost::kUntouched);
    }
    if (first.atomic_eth) {
      const bool add = message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
      message.remote = first.atomic_eth->va;
      message.rkey = first.atomic_eth->rkey.value();
      message.compare_add = add ? first.atomic_eth->swap_or_add : first.atomic_eth->compare;
      message.swap = add ? 0 : first.atomic_eth->swap_or_add;
      message.bytes.assign(sizeof(uint64_t), ReplayHost::kUntouched);
    }
    if (message.opcode == IBV_WR_RDMA_READ || first.atomic_eth) {
      const uint32_t psns = psns_of(first, scenario.host.path_mtu);
      posted.answer = answer_of(responses, place - psns, psns);
    }
    scenario.posted.push_back(std::move(posted));
  }
  return scenario;
}

}  // namespace roci::test
