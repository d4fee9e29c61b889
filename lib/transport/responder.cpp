#include "transport/responder.hpp"

#include <algorithm>

#include "transport/queue_pair_core.hpp"
#include "transport/receive_completion.hpp"
#include "transport/scatter.hpp"

namespace roci {
void Responder::reset(Psn expected, uint32_t reads) {
  expected_ = expected;
  msn_ = Msn{0};
  pending_ = Pending::kNone;
  executed_any_ = nak_sent_ = in_message_ = pending_ce_ = false;
  pending_packets_ = 0;
  flow_ = ReceiveFlow{};
  responses_ = SendFlow{};
  received_ = announced_ = 0;
  resources_.assign(reads, Resource{});
  next_resource_ = front_resource_ = active_answers_ = 0;
}

bool Responder::remember(uint32_t reads) {
  if (active_answers_ > 0) return false;
  const auto had = static_cast<uint32_t>(resources_.size());
  const uint32_t kept = std::min(had, reads);
  std::vector<Resource> resources(reads);
  // The oldest first; in front of them what was never used, which is older still.
  for (uint32_t i = 0; i < kept; ++i)
    resources[reads - kept + i] = resources_[(next_resource_ + had - kept + i) % had];
  resources_ = std::move(resources);
  next_resource_ = front_resource_ = 0;
  return true;
}

ExtensionSession* Responder::session() const { return qp_.session.get(); }

void Responder::on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                           const ExtensionView& block) {
  const ibv_qp_state state = qp_.state();
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  const bool ce = view.ecn() == Ecn::kCe;
  if (ce) context.counters.add(Counter::kRxCeMarked);
  flow_.count(ce);
  if (session() != nullptr) session()->note_data_block(block, Direction::kRequests, context.now);
  const int32_t ahead = view.psn() - expected_;
  if (ahead > 0) {
    context.counters.add(Counter::kRequestsOutOfOrder);
    pending_ce_ |= ce;
    on_gap(context, view, frame, ahead);
  } else if (ahead < 0) {
    pending_ce_ |= ce;
    on_duplicate(context, view);
  } else if (session() == nullptr || !session()->kept) {
    take(context, view, frame);
  } else {
    // It may have been kept when there was no receive request for it; then it comes a second time.
    if (rte_mbuf* const kept = session()->kept->take(expected_); kept != nullptr) rte_pktmbuf_free(kept);
    if (take(context, view, frame) == Verdict::kExecuted) take_kept(context);
  }
}

Responder::Verdict Responder::take(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  nak_sent_ = false;
  if (pending_ == Pending::kAck && must_cut(view)) send_acknowledgement_now(context);
  Verdict verdict = check_sequence(view);
  if (verdict == Verdict::kExecuted) verdict = check_length(view);
  if (verdict == Verdict::kExecuted) verdict = execute(context, view, frame);
  answer(context, view, verdict);
  return verdict;
}

// Whether the acknowledgement that is owed must go out before this packet is executed. Without counts, an
// acknowledgement says for all its packets alike whether they were marked (DCTCP, RFC 8257 §3.2).
bool Responder::must_cut(const FrameView& view) const {
  if (pending_packets_ >= qp_.config.packets_per_ack) return true;
  if (session() != nullptr &&
      (session()->feedback_types(Direction::kRequests, false) & bit_of(ExtensionType::kCeEcho)) != 0)
    return false;
  const bool answered_otherwise =
      view.opcode->operation != Operation::kSend && view.opcode->operation != Operation::kWrite;
  return pending_ce_ != (view.ecn() == Ecn::kCe) || (pending_ce_ && answered_otherwise);
}

// When there is no room, or READ data goes before it, it waits, and stands for more packets then: a mark among them
// stays with it.
void Responder::send_acknowledgement_now(TransportContext& context) {
  if (qp_.path_ready() && active_answers_ == 0) send_pending(context);
}

// Packets are missing. One NAK for the gap, or with selective repeat one for each batch that arrives behind it: they
// tell the sender what it need not send again.
void Responder::on_gap(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                       int32_t ahead) {
  ExtensionSession* extras = session();
  bool tell_again = false;
  if (extras != nullptr && extras->kept && static_cast<uint32_t>(ahead) < extras->kept->window() &&
      !extras->kept->has(view.psn())) {
    if (extras->kept->keep(view.psn(), const_cast<rte_mbuf*>(frame))) {
      context.counters.add(Counter::kPacketsKept);
      newest_kept_ = view.psn();
      tell_again = extras->terms.may_send;
    }
  }
  if (nak_sent_ && !tell_again) return;
  if (pending_ == Pending::kRetry && aeth_kind(pending_syndrome_) == AethKind::kRnrNak) return;
  nak_sent_ = true;
  pending_ = Pending::kRetry;
  pending_syndrome_ = nak_syndrome(NakCode::kPsnSequenceError);
  pending_psn_ = expected_;
}

// The gap is closed: what was kept behind it comes next, in order, as if it arrived now.
void Responder::take_kept(TransportContext& context) {
  ReorderBuffer& kept = *session()->kept;
  Verdict verdict = Verdict::kExecuted;
  while (verdict == Verdict::kExecuted && !kept.empty()) {
    const Psn psn = expected_;
    rte_mbuf* const frame = kept.take(psn);
    if (frame == nullptr) break;
    FrameView view;
    ExtensionView block;
    parse_frame(view, rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
                rte_pktmbuf_pkt_len(frame));
    session()->open_block(view, frame, block);
    verdict = take(context, view, frame);
    if (verdict == Verdict::kNotReady) kept.keep(psn, frame);
    rte_pktmbuf_free(frame);
  }
  if (!kept.empty() && verdict == Verdict::kExecuted && session()->terms.may_send) {  // there is another gap
    nak_sent_ = true;
    pending_ = Pending::kRetry;
    pending_syndrome_ = nak_syndrome(NakCode::kPsnSequenceError);
    pending_psn_ = expected_;
  }
  if (qp_.state() == IBV_QPS_ERR) kept.clear();
}

// IBTA 9.7.4.1.1, 9.7.4.1.2: the opcode must go on with the message under way, or start one when there is none.
Responder::Verdict Responder::check_sequence(const FrameView& view) const {
  if (!in_message_) return view.opcode->starts_message() ? Verdict::kExecuted : Verdict::kInvalidRequest;
  const bool goes_on = !view.opcode->starts_message() && view.opcode->operation == operation_;
  return goes_on ? Verdict::kExecuted : Verdict::kInvalidRequest;
}

// IBTA 9.7.4.1.6: payload and pad count against the opcode and the path MTU.
Responder::Verdict Responder::check_length(const FrameView& view) const {
  const PayloadCheck check =
      check_payload(*view.opcode, view.payload_length, view.pad, qp_.attributes.path_mtu);
  return check == PayloadCheck::kRight ? Verdict::kExecuted : Verdict::kInvalidRequest;
}

Responder::Verdict Responder::execute(TransportContext& context, const FrameView& view,
                                      const rte_mbuf* frame) {
  switch (view.opcode->operation) {
    case Operation::kSend:
      return execute_send(context, view, frame);
    case Operation::kWrite:
      return execute_write(context, view, frame);
    case Operation::kReadRequest:
      return execute_read(context, view);
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return execute_atomic(context, view);
    default:
      return Verdict::kInvalidRequest;  // not supported by this queue pair (IBTA 9.7.4.1.5)
  }
}

Responder::Verdict Responder::execute_send(TransportContext& context, const FrameView& view,
                                           const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    if (!qp_.take_receive(context)) return Verdict::kNotReady;
    received_ = 0;
  }
  const RecvWqe& wqe = qp_.recv_queue.at(qp_.recv_queue.head());
  ibv_wc wc{};
  if (view.payload_length > wqe.capacity - received_) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    qp_.complete_recv(context, wc, true);
    return Verdict::kTooLong;  // IBTA 9.9.3: length error
  }
  // The key must be of a window that is bound to this queue pair (IBTA 9.4.1.1.3, 10.6.7.2.6). The completion says
  // what the Linux stack says.
  if (info.has(Header::kIeth) &&
      !context.memory.invalidate(qp_.accessor(), MemoryKey{view.ieth().rkey.get()})) {
    wc.status = IBV_WC_REM_INV_REQ_ERR;
    qp_.complete_recv(context, wc, true);
    return Verdict::kNotInvalidated;
  }
  if (!scatter(context.memory, qp_.config.recv_pd(), wqe.pieces(), received_, frame, view.payload_offset,
               view.payload_length)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    qp_.complete_recv(context, wc, true);
    return Verdict::kOperationError;
  }
  received_ += view.payload_length;
  if (info.ends_message()) complete_message(context, view);
  return Verdict::kExecuted;
}

Responder::Verdict Responder::execute_write(TransportContext& context, const FrameView& view,
                                            const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    if ((qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) == 0) return Verdict::kInvalidRequest;
    if (view.reth().length.get() > kLongestMessage) return Verdict::kInvalidRequest;
    received_ = 0;
    announced_ = view.reth().length.get();
    va_ = view.reth().va.get();
    rkey_ = MemoryKey{view.reth().rkey.get()};
  }
  const uint32_t left = announced_ - received_;
  if (info.ends_message() ? view.payload_length != left : view.payload_length >= left)
    return Verdict::kInvalidRequest;
  // The whole range is checked before its first byte is written, then each packet again: the region may go away.
  uint8_t* where = nullptr;
  const uint32_t range = info.starts_message() ? announced_ : view.payload_length;
  if (context.memory.check_remote(rkey_, qp_.accessor(), va_, range, Access::kRemoteWrite, &where) !=
      AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  if (info.consumes_receive() && !qp_.take_receive(context)) return Verdict::kNotReady;
  if (view.payload_length > 0)
    write_payload(where, frame, view.payload_offset, view.payload_length, info.ends_message());
  va_ += view.payload_length;
  received_ += view.payload_length;
  if (info.ends_message() && info.consumes_receive()) complete_message(context, view);
  return Verdict::kExecuted;
}

// Whether another READ or atomic may be under way (IBTA 9.7.4.1.4). A replay in the way is none of them: the requester
// asked for it before a late response made it unnecessary, else it could not send a new request.
bool Responder::resource_free() const {
  return !resources_.empty() && (!resources_[next_resource_].active() || resources_[next_resource_].replay);
}

Responder::Resource& Responder::take_resource() {
  const auto count = static_cast<uint32_t>(resources_.size());
  Resource& resource = resources_[next_resource_];
  if (resource.active()) --active_answers_;
  // No requester has more requests open than are remembered: it has this one's answer.
  note_acknowledged(resource, resource.packets);
  if (front_resource_ == next_resource_) front_resource_ = (front_resource_ + 1) % count;
  next_resource_ = (next_resource_ + 1) % count;
  resource = Resource{};
  return resource;
}

Responder::Verdict Responder::execute_read(TransportContext& context, const FrameView& view) {
  if ((qp_.attributes.access & IBV_ACCESS_REMOTE_READ) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const Reth& reth = view.reth();
  const uint32_t length = reth.length.get();
  if (length > kLongestMessage) return Verdict::kInvalidRequest;
  uint8_t* where = nullptr;
  if (context.memory.check_remote(MemoryKey{reth.rkey.get()}, qp_.accessor(), reth.va.get(), length,
                                  Access::kRemoteRead, &where) != AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  const uint32_t mtu = qp_.attributes.path_mtu;
  Resource& read = take_resource();
  read.operation = Operation::kReadRequest;
  read.packets = std::max(1U, (length + mtu - 1) / mtu);
  read.va = reth.va.get();
  read.rkey = reth.rkey.get();
  read.length = length;
  start_answer(read);
  return Verdict::kExecuted;
}

// The operation is atomic to every other access to the 8 bytes that is atomic too, the local CPU's included.
Responder::Verdict Responder::execute_atomic(TransportContext& context, const FrameView& view) {
  if ((qp_.attributes.access & IBV_ACCESS_REMOTE_ATOMIC) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const AtomicEth& request = view.atomic_eth();
  const uint64_t va = request.va.get();
  if (va % sizeof(uint64_t) != 0) return Verdict::kInvalidRequest;
  uint8_t* where = nullptr;
  if (context.memory.check_remote(MemoryKey{request.rkey.get()}, qp_.accessor(), va, sizeof(uint64_t),
                                  Access::kRemoteAtomic, &where) != AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  // A region may map an aligned address to a place that is not.
  if (reinterpret_cast<uintptr_t>(where) % sizeof(uint64_t) != 0) return Verdict::kOperationError;
  const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(where));
  uint64_t original = request.compare.get();
  if (view.opcode->operation == Operation::kFetchAdd) {
    original = word.fetch_add(request.swap_or_add.get());
  } else {
    word.compare_exchange_strong(original, request.swap_or_add.get());  // leaves in `original` what was there
  }
  Resource& atomic = take_resource();
  atomic.operation = view.opcode->operation;
  atomic.packets = 1;
  atomic.original = original;
  start_answer(atomic);
  return Verdict::kExecuted;
}

// The answer takes the PSNs from the request's on. The message counts at once: its first response carries the new MSN.
void Responder::start_answer(Resource& resource) {
  ++msn_;
  resource.first = expected_;
  resource.msn = msn_;
  resource.lsn = responses_.next;
  responses_.next += resource.bytes();
  activate(resource, 0, resource.packets);
  expected_ += resource.packets;
}

// The receive completion of a SEND or of a WRITE with immediate.
void Responder::complete_message(TransportContext& context, const FrameView& view) {
  ibv_wc wc = receive_completion(view, received_);
  qp_.complete_recv(context, wc, view.bth().solicited());
}

void Responder::answer(TransportContext& context, const FrameView& view, Verdict verdict) {
  NakCode code = NakCode::kInvalidRequest;
  switch (verdict) {
    case Verdict::kExecuted: {
      const OpcodeInfo& info = *view.opcode;
      context.counters.add(Counter::kRequestsReceived);
      executed_any_ = true;
      if (info.operation != Operation::kSend && info.operation != Operation::kWrite) {
        pending_ = Pending::kNone;  // its own answer acknowledges everything before it
        flow_.received += info.operation == Operation::kReadRequest ? sizeof(Reth) : sizeof(AtomicEth);
        return;
      }
      ++expected_;
      in_message_ = !info.ends_message();
      operation_ = info.operation;
      if (info.ends_message()) ++msn_;
      flow_.received += view.payload_length;
      if (pending_ == Pending::kRetry) pending_ = Pending::kNone;  // the gap is closed
      ++pending_packets_;
      pending_ce_ |= view.ecn() == Ecn::kCe;
      if (view.bth().ack_requested()) pending_ = Pending::kAck;
      return;
    }
    case Verdict::kDropped:
      return;
    case Verdict::kNotReady:
      nak_sent_ = true;
      pending_ = Pending::kRetry;
      pending_syndrome_ = rnr_syndrome(qp_.attributes.min_rnr_timer);
      pending_psn_ = expected_;
      return;
    // What no receive completion tells is an event (IBTA 9.9.3.1, 11.6.3.2).
    case Verdict::kInvalidRequest:
      qp_.raise(context, IBV_EVENT_QP_REQ_ERR);
      code = NakCode::kInvalidRequest;
      break;
    case Verdict::kTooLong:
      code = NakCode::kInvalidRequest;
      break;
    case Verdict::kAccessError:
      qp_.raise(context, IBV_EVENT_QP_ACCESS_ERR);
      code = NakCode::kRemoteAccessError;
      break;
    case Verdict::kNotInvalidated:
      code = NakCode::kRemoteAccessError;
      break;
    case Verdict::kOperationError:
      if (view.opcode->operation != Operation::kSend) qp_.raise(context, IBV_EVENT_QP_FATAL);
      code = NakCode::kRemoteOperationalError;
      break;
  }
  pending_ = Pending::kFatal;
  pending_syndrome_ = nak_syndrome(code);
  pending_psn_ = expected_;
  qp_.to_error();
}

// IBTA 9.7.5.1.2, 9.7.5.1.3: a SEND or WRITE seen before is acknowledged again, a READ is executed again.
void Responder::on_duplicate(TransportContext& context, const FrameView& view) {
  if (!executed_any_) {  // a packet of an earlier life of this number: there is nothing to acknowledge
    context.counters.add(Counter::kRxBadState);
    return;
  }
  context.counters.add(Counter::kRequestsDuplicate);
  switch (view.opcode->operation) {
    case Operation::kSend:
    case Operation::kWrite:
      if (pending_ == Pending::kNone) pending_ = Pending::kAck;
      return;
    case Operation::kReadRequest:
      replay_read(context, view);
      return;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      replay_atomic(context, view);
      return;
    default:
      return;
  }
}

// The request may be for a part of the original one, as long as every response packet has the bytes and the PSN it had
// the first time (IBTA 9.7.5.1.3): it begins where a packet began and ends where one ended.
void Responder::replay_read(TransportContext& context, const FrameView& view) {
  const Reth& reth = view.reth();
  const uint32_t mtu = qp_.attributes.path_mtu;
  for (Resource& read : resources_) {
    if (read.operation != Operation::kReadRequest || read.packets == 0 ||
        !is_within(view.psn(), read.first, read.first + (read.packets - 1)))
      continue;
    const uint32_t skip = psns_between(read.first, view.psn());
    const uint64_t offset = static_cast<uint64_t>(skip) * mtu;
    const uint64_t length = reth.length.get();
    const uint64_t left = read.length - offset;
    const bool to_a_packets_end = length == left || (length < left && length > 0 && length % mtu == 0);
    if (reth.rkey.get() != read.rkey || reth.va.get() != read.va + offset || !to_a_packets_end) break;
    context.counters.add(Counter::kReadReplays);
    replay(read, skip, length == left ? read.packets : skip + static_cast<uint32_t>(length / mtu));
    return;
  }
  context.counters.add(Counter::kReplaysRefused);
}

// The stored result is sent again; the operation is not executed again (IBTA 9.7.5.1.3).
void Responder::replay_atomic(TransportContext& context, const FrameView& view) {
  for (Resource& atomic : resources_) {
    if (atomic.operation != view.opcode->operation || atomic.packets == 0 || !(atomic.first == view.psn()))
      continue;
    context.counters.add(Counter::kAtomicReplays);
    replay(atomic, 0, 1);
    return;
  }
  context.counters.add(Counter::kReplaysRefused);
}

// Makes an answer, from packet `from` up to `end`, due. Those to earlier requests go before it, in PSN order, even when
// they are asked for again later: the requester takes them in no other. One under way does not end earlier than it was
// going to.
void Responder::activate(Resource& resource, uint32_t from, uint32_t end) {
  const auto count = static_cast<uint32_t>(resources_.size());
  const auto slot = static_cast<uint32_t>(&resource - resources_.data());
  const auto age = [&](uint32_t s) { return (s + count - next_resource_) % count; };
  if (active_answers_ == 0 || age(slot) < age(front_resource_)) front_resource_ = slot;
  if (resource.active()) {
    resource.end = std::max(resource.end, end);
  } else {
    ++active_answers_;
    resource.end = end;
  }
  resource.begin = resource.next = from;
}

// Makes an answer due a second time. Who asks for one from a packet on has everything before it, unless that was asked for
// again too.
void Responder::replay(Resource& resource, uint32_t from, uint32_t end) {
  activate(resource, from, end);
  if (&front_resource() == &resource) note_acknowledged(resource, from);
}

// The requester has the first `packets` of an answer, and all answers before it.
void Responder::note_acknowledged(const Resource& resource, uint32_t packets) {
  const uint64_t bytes = packets == resource.packets ? resource.bytes() : offset_of(packets);
  responses_.acknowledged = std::max(responses_.acknowledged, resource.lsn + bytes);
}

uint64_t Responder::offset_of(uint32_t packet) const {
  return static_cast<uint64_t>(packet) * qp_.attributes.path_mtu;
}

// Bytes that a packet of the answer carries.
uint32_t Responder::packet_bytes(const Resource& resource, uint32_t packet) const {
  return static_cast<uint32_t>(
      std::min<uint64_t>(qp_.attributes.path_mtu, resource.bytes() - offset_of(packet)));
}

// A requester that acknowledges READ responses gets no more than a window of them at a time.
bool Responder::has_window_for(const Resource& resource) const {
  if (session() == nullptr || !session()->peer_acknowledges_reads) return true;
  const Lsn at = resource.lsn + offset_of(resource.next);
  if (at <= responses_.acknowledged) return true;
  return at - responses_.acknowledged + packet_bytes(resource, resource.next) <=
         std::min(qp_.config.window_bytes, responses_.receiver_window);
}

void Responder::on_read_acknowledge(TransportContext& context, const FrameView& view,
                                    const ExtensionView& block) {
  for (const Resource& resource : resources_) {
    if (resource.packets == 0 ||
        !is_within(view.psn(), resource.first, resource.first + (resource.packets - 1)))
      continue;
    const uint32_t packet = psns_between(resource.first, view.psn());
    if (packet >= resource.end) break;  // not sent yet
    session()->peer_acknowledges_reads = true;
    note_acknowledged(resource, packet + 1);
    const uint32_t impossible =
        take_feedback(block, context.now, session()->terms.peer_time_unit, responses_);
    context.counters.add(Counter::kFeedbackImpossible, impossible);
    context.counters.add(Counter::kReadAcksReceived);
    return;
  }
  context.counters.add(Counter::kResponsesGhost);
}

// One at a time: a new probe takes the place of one that is not answered yet.
void Responder::on_probe(TransportContext& context, const FrameView& view) {
  const Probe& probe = view.probe();
  session()->probe_to_answer = ExtensionSession::ProbeToAnswer{probe.id.get(), probe.flags.get(),
                                                               probe.sent.get(), view.psn(), context.now};
}

// When nothing is acknowledged at the moment.
bool Responder::send_window_message(TransportContext& context) {
  constexpr uint16_t kTypes = bit_of(ExtensionType::kRxWindow) | bit_of(ExtensionType::kAuth);
  const auto types = static_cast<uint16_t>(session()->feedback_types(Direction::kRequests, false) & kTypes);
  const BthFields bth{.opcode = Opcode::kCcRxWindow,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = expected_ - 1,
                      .pkey = qp_.attributes.pkey};
  flow_.next_psn = expected_;
  return send_packet(context, qp_, bth, 0, types, [&](const RoceWriter::Open&, const ExtensionView& block) {
           session()->write_feedback(block, Direction::kRequests, flow_, context.flows, context.now);
           return true;
         }) == SendOutcome::kSent;
}

bool Responder::send_probe_response(TransportContext& context) {
  const ExtensionSession::ProbeToAnswer asked = *session()->probe_to_answer;
  const BthFields bth{.opcode = Opcode::kCcProbeResponse,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = asked.psn,
                      .pkey = qp_.attributes.pkey};
  const auto types = static_cast<uint16_t>(session()->feedback_types(Direction::kRequests, false) &
                                           bit_of(ExtensionType::kAuth));
  const auto outcome =
      send_packet(context, qp_, bth, 0, types, [&](const RoceWriter::Open& open, const ExtensionView&) {
        auto& probe = open.header<Probe>(Header::kProbe);
        probe = Probe{};
        probe.id.set(asked.id);
        probe.flags.set(asked.flags);
        probe.sent.set(asked.sent);
        probe.lsn.set(flow_.received.value());
        auto& times = open.header<ProbeTimes>(Header::kProbeTimes);
        times = ProbeTimes{};
        times.received.set(static_cast<uint64_t>(asked.arrived.count()));
        times.answered.set(static_cast<uint64_t>(context.now.count()));
        return true;
      });
  if (outcome != SendOutcome::kSent) return false;
  session()->probe_to_answer.reset();
  context.counters.add(Counter::kProbesAnswered);
  return true;
}

Responder::Resource& Responder::front_resource() {
  while (!resources_[front_resource_].active()) {
    front_resource_ = (front_resource_ + 1) % static_cast<uint32_t>(resources_.size());
  }
  return resources_[front_resource_];
}

void Responder::drop_answers() {
  for (Resource& resource : resources_) resource.next = resource.end;
  active_answers_ = 0;
}

bool Responder::transmit(TransportContext& context, uint32_t& budget) {
  if (session() != nullptr && session()->probe_to_answer && !send_probe_response(context)) return true;
  while (active_answers_ > 0) {
    if (budget == 0) return true;
    Resource& resource = front_resource();
    if (!has_window_for(resource)) return false;
    if (!send_answer(context, resource)) return true;
    --budget;
    if (active_answers_ > 0 && !resource.active()) {
      resource.replay = true;
      --active_answers_;
    }
  }
  if (pending_ != Pending::kNone) {
    if (budget == 0 || !send_pending(context)) return true;
    --budget;
  }
  return session() != nullptr && session()->window_message_due() && !send_window_message(context);
}

// The next packet of an answer. False when there was no buffer.
bool Responder::send_answer(TransportContext& context, Resource& resource) {
  const SendOutcome outcome = resource.operation == Operation::kReadRequest
                                  ? send_read_response(context, resource)
                                  : send_atomic_response(context, resource);
  switch (outcome) {
    case SendOutcome::kNoRoom:
      return false;
    case SendOutcome::kSent:
      ++resource.next;
      return true;
    case SendOutcome::kGivenUp:  // the memory went away
      if (resource.replay) {
        // Who has the answer already may have invalidated its key or asked its owner to, and the network may deliver a
        // request again at any time after that.
        context.counters.add(Counter::kReplaysRefused);
        resource.next = resource.end;
        return true;
      }
      qp_.raise(context, IBV_EVENT_QP_ACCESS_ERR);
      pending_ = Pending::kFatal;
      pending_syndrome_ = nak_syndrome(NakCode::kRemoteAccessError);
      pending_psn_ = resource.first + resource.next;
      drop_answers();  // nothing behind it is answered
      qp_.to_error();
      return true;
  }
  return true;
}

SendOutcome Responder::send_read_response(TransportContext& context, const Resource& read) {
  const uint64_t offset = offset_of(read.next);
  const uint32_t length = packet_bytes(read, read.next);
  const bool first = read.next == read.begin;
  const bool last = read.next + 1 == read.end;
  const BthFields bth{.opcode = first ? (last ? Opcode::kRcReadResponseOnly : Opcode::kRcReadResponseFirst)
                                      : (last ? Opcode::kRcReadResponseLast : Opcode::kRcReadResponseMiddle),
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = read.first + read.next,
                      .pkey = qp_.attributes.pkey,
                      .ect = read.replay};
  ++responses_.packets_sent;
  const uint16_t types = session() == nullptr ? uint16_t{0} : session()->data_types();
  return send_packet(
      context, qp_, bth, length, types, [&](const RoceWriter::Open& open, const ExtensionView& block) {
        if (types != 0)
          ExtensionSession::write_data_block(block, qp_.number(), read.lsn + offset, context.now);
        if (open.view.opcode->has(Header::kAeth)) {
          auto& aeth = open.header<Aeth>(Header::kAeth);
          aeth.syndrome = kSyndromeAck;
          aeth.msn.set(read.msn.value());
        }
        uint8_t* where = nullptr;
        if (context.memory.check_remote(MemoryKey{read.rkey}, qp_.accessor(), read.va + offset, length,
                                        Access::kRemoteRead, &where) != AccessOutcome::kAllowed) {
          return false;
        }
        if (length > 0) std::memcpy(open.payload, where, length);
        return true;
      });
}

SendOutcome Responder::send_atomic_response(TransportContext& context, const Resource& atomic) {
  const BthFields bth{.opcode = Opcode::kRcAtomicAcknowledge,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = atomic.first,
                      .pkey = qp_.attributes.pkey,
                      .ect = atomic.replay};
  return send_packet(context, qp_, bth, 0, 0, [&](const RoceWriter::Open& open, const ExtensionView&) {
    auto& aeth = open.header<Aeth>(Header::kAeth);
    aeth.syndrome = kSyndromeAck;
    aeth.msn.set(atomic.msn.value());
    open.header<AtomicAckEth>(Header::kAtomicAckEth).original.set(atomic.original);
    return true;
  });
}

bool Responder::send_pending(TransportContext& context) {
  const bool ack = pending_ == Pending::kAck;
  const uint8_t syndrome = ack ? kSyndromeAck : pending_syndrome_;
  const BthFields bth{.opcode = Opcode::kRcAcknowledge,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = ack ? expected_ - 1 : pending_psn_,
                      .pkey = qp_.attributes.pkey,
                      .becn = pending_ce_};
  ExtensionSession* extras = session();
  const bool kept_some = extras != nullptr && extras->kept && !extras->kept->empty();
  const uint16_t types =
      extras == nullptr ? uint16_t{0} : extras->feedback_types(Direction::kRequests, kept_some);
  const auto outcome =
      send_packet(context, qp_, bth, 0, types, [&](const RoceWriter::Open& open, const ExtensionView& block) {
        auto& aeth = open.header<Aeth>(Header::kAeth);
        aeth.syndrome = syndrome;
        aeth.msn.set(msn_.value());
        if (types == 0) return true;
        flow_.next_psn = expected_;
        extras->write_feedback(block, Direction::kRequests, flow_, context.flows, context.now);
        if (block.has(ExtensionType::kSack)) {
          // The newest packet is among the 64 that fit.
          const int32_t reach = newest_kept_ - expected_;
          const Psn from =
              reach < static_cast<int32_t>(Sack::kBits) ? expected_ : newest_kept_ - (Sack::kBits - 1);
          auto& sack = value_to_write<Sack>(block, ExtensionType::kSack);
          sack.psn.set(from.value());
          sack.kept.set(extras->kept->bitmap(from));
        }
        return true;
      });
  if (outcome != SendOutcome::kSent) return false;
  pending_ = Pending::kNone;
  pending_ce_ = false;
  pending_packets_ = 0;
  if (ack) {
    context.counters.add(Counter::kAcksSent);
  } else if (aeth_kind(syndrome) == AethKind::kRnrNak) {
    context.counters.add(Counter::kRnrNaksSent);
  } else {
    constexpr Counter kByCode[] = {Counter::kNaksSequenceSent, Counter::kNaksInvalidSent,
                                   Counter::kNaksAccessSent, Counter::kNaksOperationalSent};
    context.counters.add(kByCode[aeth_value(syndrome)]);
  }
  return true;
}

void Responder::flush(TransportContext& context) {
  in_message_ = false;
  if (session() != nullptr && session()->kept) session()->kept->clear();
  qp_.flush_receives(context);
}

}  // namespace roci
