// Transmit half of the responder (IBTA 9.7.5): READ responses and atomic results, first and repeated; acknowledgments,
// NAKs, and the packets of the wire extensions.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "base/os/guarded_access.hpp"
#include "base/trace_points.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/responder.hpp"

namespace roci {

Responder::~Responder() {
  if (response_state_ != nullptr)
    SparseArena::give_back(response_state_, response_state_bytes(resource_count_));
}

const SendFlow& Responder::response_flow() const {
  static constexpr SendFlow kNothingSent;
  return responses_allocated_ ? response_state_->flow : kNothingSent;
}

int Responder::remember(uint32_t reads) {
  if (active_responses_ > 0) return EBUSY;
  if (reads == resource_count_) return 0;
  ResponseState* answers = nullptr;
  if (reads > 0) {
    answers = static_cast<ResponseState*>(qp_.arena().take(response_state_bytes(reads)));
    if (answers == nullptr) return ENOMEM;
  }
  const std::span<Resource> had = resources();
  ResponseState* const old = std::exchange(response_state_, answers);
  const uint8_t old_count = std::exchange(resource_count_, static_cast<uint8_t>(reads));
  if (std::exchange(responses_allocated_, false) && reads > 0) {
    allocate_responses();
    response_state_->flow = old->flow;
    // Oldest first, after the entries that were never used.
    const auto kept = static_cast<uint32_t>(std::min<size_t>(had.size(), reads));
    for (uint32_t i = 0; i < kept; ++i)
      response_state_->resources()[reads - kept + i] =
          had[(next_resource_ + had.size() - kept + i) % had.size()];
  }
  if (old != nullptr) SparseArena::give_back(old, response_state_bytes(old_count));
  next_resource_ = front_resource_ = 0;
  return 0;
}

void Responder::allocate_responses() {
  new (response_state_) ResponseState;
  std::uninitialized_default_construct_n(response_state_->resources(), resource_count_);
  responses_allocated_ = true;
}

// Whether another READ or atomic may be accepted (IBTA 9.7.4.1.4). A repeated response does not occupy its entry. The
// requester requested it before a late response made it unnecessary; otherwise it could not have sent a new request.
bool Responder::resource_free() const {
  if (!responses_allocated_) return resource_count_ > 0;
  const Resource& next = response_state_->resources()[next_resource_];
  return !next.active() || next.replay;
}

Responder::Resource& Responder::take_resource() {
  if (!responses_allocated_) allocate_responses();
  Resource& resource = response_state_->resources()[next_resource_];
  if (resource.active()) --active_responses_;
  // No requester has more outstanding requests than there are entries, so it has received this entry's response.
  note_acknowledged(resource, resource.packets);
  const uint8_t behind = next_resource(next_resource_);
  if (front_resource_ == next_resource_) front_resource_ = behind;
  next_resource_ = behind;
  resource = Resource{};
  return resource;
}

// The response has the PSNs from the request's PSN on. The MSN counts the message at once, since its first response
// contains it.
void Responder::start_response(Resource& resource) {
  ++msn_;
  resource.first = expected_;
  resource.msn = msn_;
  resource.lsn = response_state_->flow.next;
  response_state_->flow.next += resource.bytes();
  activate(resource, 0, resource.packets);
  expected_ += resource.packets;
  discard_old_requests();
}

// A duplicate is at most half of the PSN space before the expected PSN (IBTA 9.7.1). An older entry could be mistaken for
// a later request with the same PSN. Called at least once in kDiscardEvery PSNs and around longer steps, so that the
// distance from an entry is always less than the PSN space.
void Responder::discard_old_requests() {
  for (uint32_t i = 0; i < resource_count_; ++i) {
    Resource& oldest = response_state_->resources()[(next_resource_ + i) % resource_count_];
    if (oldest.packets == 0) continue;
    if (oldest.active() || psns_between(oldest.first + oldest.packets, expected_) < Psn::kHalf) return;
    oldest.packets = 0;
  }
}

// IBTA 9.7.5.1.2, 9.7.5.1.3: a duplicate SEND or WRITE is acknowledged again, a duplicate READ is executed again.
void Responder::on_duplicate(TransportContext& context, const FrameView& view) {
  if (!executed_any_) {  // a packet for an earlier connection with this number: nothing to acknowledge
    context.counters.add(Counter::kRxBadState);
    return;
  }
  context.counters.add(Counter::kRequestsDuplicate);
  switch (view.opcode->operation) {
    case Operation::kSend:
    case Operation::kWrite:
      if (pending_ == Pending::kNone) pending_ = Pending::kAck;
      if (active_responses_ > 0 && is_before(view.psn(), front_resource().first))
        duplicate_before_responses_ = true;
      return;
    case Operation::kReadRequest:
      replay_read(context, view);
      return;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
    case Operation::kFlush:
    case Operation::kAtomicWrite:
      replay_result(context, view);
      return;
    default:
      return;
  }
}

// The request may be for a part of the original one, if each response packet has the same bytes and PSN as before (IBTA
// 9.7.5.1.3): it starts at the start of a packet and ends at the end of one.
void Responder::replay_read(TransportContext& context, const FrameView& view) {
  const Reth& reth = view.reth();
  const uint32_t mtu = qp_.attributes.path_mtu;
  for (Resource& read : resources()) {
    if (read.operation != Operation::kReadRequest || read.packets == 0 ||
        !contains(read, psns_between(view.psn(), expected_)))
      continue;
    const uint32_t skip = psns_between(read.first, view.psn());
    if (skip > read.sent) break;  // responses before it were never sent, so it is no repeated request
    const uint64_t offset = static_cast<uint64_t>(skip) * mtu;
    const uint64_t length = reth.length.get();
    const uint64_t left = read.length - offset;
    const bool to_a_packets_end = length == left || (length < left && length > 0 && length % mtu == 0);
    if (reth.rkey.get() != read.rkey || reth.va.get() != read.va + offset || !to_a_packets_end) break;
    context.counters.add(Counter::kReadReplays);
    if (qp_.gates != nullptr && read.next > skip) ++qp_.gates->responses.losses;
    replay(read, skip, length == left ? read.packets : skip + static_cast<uint32_t>(length / mtu));
    return;
  }
  context.counters.add(Counter::kReplaysRefused);
}

// Sends the stored result again. The operation is not executed again (IBTA 9.7.5.1.3).
void Responder::replay_result(TransportContext& context, const FrameView& view) {
  for (Resource& request : resources()) {
    if (request.operation != view.opcode->operation || request.packets == 0 || !(request.first == view.psn()))
      continue;
    context.counters.add(Counter::kAtomicReplays);
    replay(request, 0, 1);
    return;
  }
  context.counters.add(Counter::kReplaysRefused);
}

// Schedules the response packets from `from` up to `end`. Responses to earlier requests are sent before it in PSN
// order, even if they are requested again later, since the requester accepts no other order. A response in progress
// does not end earlier than before.
void Responder::activate(Resource& resource, uint32_t from, uint32_t end) {
  const uint32_t count = resource_count_;
  const auto slot = static_cast<uint8_t>(&resource - response_state_->resources());
  const auto age = [&](uint32_t s) { return (s + count - next_resource_) % count; };
  if (active_responses_ == 0 || age(slot) < age(front_resource_)) front_resource_ = slot;
  if (resource.active()) {
    resource.end = std::max(resource.end, end);
  } else {
    ++active_responses_;
    resource.end = end;
  }
  resource.begin = resource.next = from;
}

// Schedules a repeated response. A requester that requests packets from `from` on has everything before, unless an
// earlier response is being repeated too.
void Responder::replay(Resource& resource, uint32_t from, uint32_t end) {
  activate(resource, from, end);
  if (&front_resource() == &resource) note_acknowledged(resource, from);
}

// The requester has received the first `packets` of a response, and all responses before it.
void Responder::note_acknowledged(const Resource& resource, uint32_t packets) {
  const uint64_t bytes = packets == resource.packets ? resource.bytes() : offset_of(packets);
  Lsn& acknowledged = response_state_->flow.acknowledged;
  acknowledged = std::max(acknowledged, resource.lsn + bytes);
}

uint64_t Responder::offset_of(uint32_t packet) const {
  return static_cast<uint64_t>(packet) * qp_.attributes.path_mtu;
}

// Payload bytes of a packet of the response.
uint32_t Responder::packet_bytes(const Resource& resource, uint32_t packet) const {
  return static_cast<uint32_t>(
      std::min<uint64_t>(qp_.attributes.path_mtu, resource.bytes() - offset_of(packet)));
}

// A requester that acknowledges READ responses gets at most a window of them at a time.
bool Responder::has_window_for(const Resource& resource) const {
  if (session() == nullptr || !session()->peer_acknowledges_reads) return true;
  const Lsn at = resource.lsn + offset_of(resource.next);
  const SendFlow& flow = response_state_->flow;
  if (at <= flow.acknowledged) return true;
  return at - flow.acknowledged + packet_bytes(resource, resource.next) <=
         std::min(qp_.config.window_bytes, flow.receiver_window);
}

// Unacknowledged bytes on the line of the responses before this one. Without acknowledgments of READ responses the
// number is not known, and 0 is returned. With that capability negotiated, the requester acknowledges from the first
// response on.
uint64_t Responder::in_flight_before(const SendGate& gate, Lsn at) const {
  const bool known =
      session() != nullptr && (session()->peer_acknowledges_reads || session()->takes(Capability::kReadAcks));
  if (!known || at <= response_state_->flow.acknowledged) return 0;
  const uint64_t bytes = at - response_state_->flow.acknowledged;
  return bytes + (bytes + qp_.attributes.path_mtu - 1) / qp_.attributes.path_mtu * gate.overhead;
}

bool Responder::held(Nanos now, const Resource& resource) const {
  SendGate& gate = qp_.gates->responses;
  const Lsn at = resource.lsn + offset_of(resource.next);
  return !gate.admits(now, in_flight_before(gate, at), packet_bytes(resource, resource.next));
}

// As for requests: the last packet before the window or the work is exhausted stays ECN-capable, so that it reveals
// losses.
bool Responder::sends_as_not_ect(const Resource& read, Lsn at, uint32_t length) const {
  const SendGate& gate = qp_.gates->responses;
  if (read.replay || at < gate.sent_end || at >= gate.not_ect_below) return false;
  if (read.next + 1 == read.end && active_responses_ == 1) return false;
  const uint64_t whole = uint64_t{qp_.attributes.path_mtu} + gate.overhead;
  return in_flight_before(gate, at) + length + gate.overhead + whole <= gate.window;
}

void Responder::on_read_acknowledge(TransportContext& context, const FrameView& view,
                                    const ExtensionView& block) {
  for (const Resource& resource : resources()) {
    if (resource.packets == 0 ||
        !is_within(view.psn(), resource.first, resource.first + (resource.packets - 1)))
      continue;
    const uint32_t packet = psns_between(resource.first, view.psn());
    if (packet >= resource.sent) break;  // not sent yet
    session()->peer_acknowledges_reads = true;
    note_acknowledged(resource, packet + 1);
    session()->take_feedback(context, block, Direction::kResponses, response_state_->flow);
    context.counters.add(Counter::kReadAcksReceived);
    return;
  }
  context.counters.add(Counter::kResponsesGhost);
}

// Only one probe is stored: a new one replaces an unanswered one.
void Responder::on_probe(TransportContext& context, const FrameView& view) {
  const Probe& probe = view.probe();
  session()->probe_to_answer = ExtensionSession::ProbeToAnswer{probe.id.get(), probe.flags.get(),
                                                               probe.sent.get(), view.psn(), context.now};
  TelemetrySession* telemetry = session()->telemetry.get();
  if (telemetry == nullptr) return;
  telemetry->clear(HopsOf::kProbe);  // hops of an earlier probe
  if (view.telemetry != 0 && (probe.flags.get() & Probe::kInt) != 0)
    telemetry->note(HopsOf::kProbe, context.telemetry[view.telemetry - 1], context.now);
}

bool Responder::has_in_flight(const OpcodeInfo& sampled, Psn psn) const {
  if (sampled.operation != Operation::kReadResponse) return false;
  const auto resources = this->resources();
  return std::ranges::any_of(resources, [psn](const Resource& resource) {
    return resource.next > 0 && is_within(psn, resource.first, resource.first + (resource.next - 1));
  });
}

// Sends the receiver window when no acknowledgment is due.
bool Responder::send_window_message(TransportContext& context) {
  constexpr uint16_t kTypes = bit_of(ExtensionType::kRxWindow) | bit_of(ExtensionType::kAuth);
  const auto types = static_cast<uint16_t>(session()->feedback_types(Direction::kRequests, false) & kTypes);
  const BthFields bth{.opcode = Opcode::kCcRxWindow,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = expected_ - 1,
                      .pkey = qp_.attributes.pkey};
  flow_.next_psn = expected_;
  return send_packet(context, qp_, bth, 0, {.types = types},
                     [&](RoceWriter::Open&, const ExtensionView& block) {
                       session()->write_feedback(context, block, Direction::kRequests, flow_);
                       return true;
                     }) == SendOutcome::kSent;
}

bool Responder::send_probe_response(TransportContext& context) {
  const ExtensionSession::ProbeToAnswer asked = *session()->probe_to_answer;
  const BthFields bth{.opcode = Opcode::kCcProbeResponse,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = asked.psn,
                      .pkey = qp_.attributes.pkey};
  PacketExtras with;
  with.types = session()->feedback_types(Direction::kRequests, false) & bit_of(ExtensionType::kAuth);
  const bool with_hops = session()->telemetry != nullptr && session()->telemetry->is_due(HopsOf::kProbe);
  if (with_hops) {
    with.types |= bit_of(ExtensionType::kIntEcho);
    with.hops = session()->telemetry->due_hops(HopsOf::kProbe);
  }
  const auto outcome =
      send_packet(context, qp_, bth, 0, with, [&](RoceWriter::Open& open, const ExtensionView& block) {
        if (with_hops) session()->write_hops(context, block, HopsOf::kProbe);
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
  while (!response_state_->resources()[front_resource_].active())
    front_resource_ = next_resource(front_resource_);
  return response_state_->resources()[front_resource_];
}

void Responder::discard_responses() {
  for (Resource& resource : resources()) resource.next = resource.end;
  active_responses_ = 0;
}

bool Responder::transmit(TransportContext& context, uint32_t& budget) {
  if (session() != nullptr && session()->probe_to_answer && !send_probe_response(context)) return true;
  while (active_responses_ > 0) {
    if (budget == 0) return true;
    Resource& resource = front_resource();
    const bool has_window = has_window_for(resource);
    if (!has_window && qp_.gates != nullptr) qp_.gates->responses.pause();
    if (!has_window || (qp_.gates != nullptr && held(context.now, resource))) {
      // The response may wait for the requester, and the requester for the acknowledgment of an earlier packet. With a
      // pace alone it does not wait: Linux fails a connection if an ACK arrives within the response to a READ.
      return !has_window && duplicate_before_responses_ && !acknowledge_before(context, resource);
    }
    if (!send_response(context, resource)) return true;
    --budget;
    if (active_responses_ > 0 && !resource.active()) {
      resource.replay = true;
      --active_responses_;
    }
  }
  if (qp_.gates != nullptr) qp_.gates->responses.pause();
  if (pending_ != Pending::kNone) {
    if (budget == 0 || !send_pending(context)) return true;
    --budget;
  }
  return session() != nullptr && session()->window_message_due() && !send_window_message(context);
}

bool Responder::owes_acknowledgment() const {
  return (active_responses_ == 0 && pending_ != Pending::kNone) ||
         (session() != nullptr && session()->probe_to_answer);
}

void Responder::acknowledge(TransportContext& context) {
  if (session() != nullptr && session()->probe_to_answer && !send_probe_response(context)) return;
  if (active_responses_ == 0 && pending_ != Pending::kNone) (void)send_pending(context);
}

// Sends the next packet of a response. False when there was no buffer.
bool Responder::send_response(TransportContext& context, Resource& resource) {
  const SendOutcome outcome =
      resource.is_atomic() ? send_atomic_response(context, resource) : send_read_response(context, resource);
  switch (outcome) {
    case SendOutcome::kBackpressure:
      return false;
    case SendOutcome::kSent:
      if (qp_.gates != nullptr) {
        SendGate& gate = qp_.gates->responses;
        const Lsn at = resource.lsn + offset_of(resource.next);
        const uint32_t bytes = packet_bytes(resource, resource.next);
        gate.departed(context.now, bytes, at >= gate.sent_end);
        gate.sent_end = std::max(gate.sent_end, at + bytes);
      }
      resource.sent = std::max(resource.sent, ++resource.next);
      return true;
    case SendOutcome::kAborted:  // the memory is not accessible any more
      if (resource.replay) {
        // A requester that has the response may have invalidated the key or requested its deregistration, and the
        // network may deliver a duplicate request at any time after that.
        context.counters.add(Counter::kReplaysRefused);
        resource.next = resource.end;
        return true;
      }
      qp_.raise(context, IBV_EVENT_QP_ACCESS_ERR);
      end_with(NakCode::kRemoteAccessError, resource.first + resource.next);
      discard_responses();  // later requests get no response
      return true;
  }
  return true;
}

SendOutcome Responder::send_read_response(TransportContext& context, const Resource& read) {
  const uint64_t offset = offset_of(read.next);
  const uint32_t length = packet_bytes(read, read.next);
  const bool first = read.next == read.begin;
  const bool last = read.next + 1 == read.end;
  const Opcode opcode = first ? (last ? Opcode::kRcReadResponseOnly : Opcode::kRcReadResponseFirst)
                              : (last ? Opcode::kRcReadResponseLast : Opcode::kRcReadResponseMiddle);
  const BthFields bth{.opcode = opcode_of(qp_.service, opcode),
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = read.first + read.next,
                      .pkey = qp_.attributes.pkey,
                      .ect = read.replay};
  ++response_state_->flow.packets_sent;
  PacketExtras with = session() == nullptr ? PacketExtras{} : session()->data_extras();
  if (session() != nullptr && qp_.gates != nullptr)
    session()->apply_telemetry_request(qp_.gates->responses, with);
  with.not_ect = qp_.gates != nullptr && sends_as_not_ect(read, read.lsn + offset, length);
  return send_packet(
      context, qp_, bth, length, with, [&](RoceWriter::Open& open, const ExtensionView& block) {
        if (with.types != 0)
          ExtensionSession::write_data_block(block, qp_.number(), read.lsn + offset, context.now);
        if (open.view.opcode->has(Header::kAeth)) RoceWriter::put_aeth(open, kSyndromeAck, read.msn);
        uint8_t* where = nullptr;
        if (context.memory.check_remote(MemoryKey{read.rkey}, {read.pd, qp_.number()}, read.va + offset,
                                        length, Access::kRemoteRead, &where) != AccessOutcome::kAllowed) {
          return false;
        }
        if (length > 0) RoceWriter::copy_payload(open, open.payload, where, length);
        return !take_memory_fault();
      });
}

SendOutcome Responder::send_atomic_response(TransportContext& context, const Resource& atomic) {
  const BthFields bth{.opcode = opcode_of(qp_.service, Opcode::kRcAtomicAcknowledge),
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = atomic.first,
                      .pkey = qp_.attributes.pkey,
                      .ect = atomic.replay};
  return send_packet(context, qp_, bth, 0, {}, [&](RoceWriter::Open& open, const ExtensionView&) {
    RoceWriter::put_aeth(open, kSyndromeAck, atomic.msn);
    open.header<AtomicAckEth>(Header::kAtomicAckEth).original.set(atomic.original);
    return true;
  });
}

// Whether the PSN that is `behind` PSNs before expected_ belongs to the request of an entry. Not compared as PSNs: an entry
// has up to 2^23 of them and is kept for more than 2^23 others, so that a later packet may have the PSN of its first one.
bool Responder::contains(const Resource& resource, uint32_t behind) const {
  const uint32_t end = psns_between(resource.first + resource.packets, expected_);
  return behind > end && behind - end <= resource.packets;
}

// A requester of Linux takes an ACK with the PSN of a READ or an atomic for its response, and completes the request
// without data (docs/interop.md). Such an ACK can only be that of a duplicate, so for a standard peer it has the PSN of the
// last SEND or WRITE. Extended peers request the lost response.
Psn Responder::psn_before_responses() const {
  if (session() != nullptr) return expected_ - 1;
  uint32_t behind = 1;
  const Resource* const ring = response_state_->resources();
  for (uint32_t i = 0; i < resource_count_; ++i) {  // the newest first
    const Resource& resource = ring[(next_resource_ + resource_count_ - 1 - i) % resource_count_];
    if (resource.packets == 0) break;
    if (!contains(resource, behind)) break;
    behind = psns_between(resource.first + resource.packets, expected_) + resource.packets + 1;
  }
  return expected_ - behind;
}

bool Responder::acknowledge_before(TransportContext& context, const Resource& resource) {
  const Acknowledgment before{.syndrome = kSyndromeAck,
                              .psn = resource.first - 1,
                              .msn = Msn{resource.msn.value() - 1},
                              .expected = resource.first};
  if (!send_acknowledgment(context, before, false)) return false;
  duplicate_before_responses_ = false;
  context.counters.add(Counter::kAcksSent);
  return true;
}

bool Responder::send_acknowledgment(TransportContext& context, const Acknowledgment& what, bool with_sack) {
  const BthFields bth{.opcode = opcode_of(qp_.service, Opcode::kRcAcknowledge),
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = what.psn,
                      .pkey = qp_.attributes.pkey,
                      .becn = what.becn};
  ExtensionSession* const extras = session();
  const PacketExtras with =
      extras == nullptr ? PacketExtras{} : extras->feedback(Direction::kRequests, with_sack);
  const SendOutcome outcome =
      send_packet(context, qp_, bth, 0, with, [&](RoceWriter::Open& open, const ExtensionView& block) {
        RoceWriter::put_aeth(open, what.syndrome, what.msn);
        if (with.types == 0) return true;
        flow_.next_psn = what.expected;
        extras->write_feedback(context, block, Direction::kRequests, flow_);
        if (block.has(ExtensionType::kSack)) {
          // The newest packet is one of the 64 in the bitmap.
          const int32_t reach = extras->newest_buffered - expected_;
          const Psn from = reach < static_cast<int32_t>(Sack::kBits)
                               ? expected_
                               : extras->newest_buffered - (Sack::kBits - 1);
          auto& sack = value_to_write<Sack>(block, ExtensionType::kSack);
          sack.psn.set(from.value());
          sack.kept.set(extras->reorder_buffer->bitmap(from));
        }
        return true;
      });
  if (outcome != SendOutcome::kSent) return false;
  trace::ack_sent(qp_.number().value(), what.psn.value(), what.syndrome);
  return true;
}

bool Responder::send_pending(TransportContext& context) {
  const bool ack = pending_ == Pending::kAck;
  const uint8_t syndrome = ack ? kSyndromeAck : pending_syndrome_;
  const bool with_sack =
      session() != nullptr && session()->reorder_buffer && !session()->reorder_buffer->empty();
  const Acknowledgment what{.syndrome = syndrome,
                            .psn = ack ? acknowledged_psn() : pending_psn_,
                            .msn = msn_,
                            .expected = expected_,
                            .becn = pending_ce_};
  if (!send_acknowledgment(context, what, with_sack)) return false;
  pending_ = Pending::kNone;
  pending_ce_ = duplicate_before_responses_ = false;
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

}  // namespace roci
