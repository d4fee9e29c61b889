#include "transport/rc/requester.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/trace_points.hpp"
#include "transport/messages/local_operations.hpp"
#include "transport/messages/message_packet.hpp"
#include "transport/messages/scatter.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"
#include "wire/headers/aeth.hpp"

namespace roci {
namespace {

constexpr size_t kMaxPieces = 32;  // elements of a request's scatter list

}  // namespace

// A request without payload counts with its extended header: draft-dai… §3.1 lets READ requests share the LSN space of
// SENDs and WRITEs and does not specify their size. The data has LSNs in the other direction.
uint64_t Requester::lsn_bytes(const SendWqe& wqe) {
  return wqe.is_read() ? sizeof(Reth) : wqe.is_atomic() ? sizeof(AtomicEth) : wqe.length;
}

SendGate* Requester::gate() const { return qp_.gates == nullptr ? nullptr : &qp_.gates->requests; }

bool Requester::waits_to_send() const {
  return phase_ == Phase::kRepair || cursor_.index != qp_.send_queue.posted();
}

void Requester::reset(Psn first) {
  cursor_ = {qp_.send_queue.head(), 0};
  next_psn_ = una_ = sent_end_ = acknowledged_end_ = first;
  flow_ = SendFlow{};
  responses_ = ReceiveFlow{};
  reads_outstanding_ = 0;
  read_bytes_outstanding_ = 0;
  locals_done_ = 0;
  retries_left_ = qp_.attributes.retry_count;
  rnr_retries_left_ = qp_.attributes.rnr_retry;
  phase_ = Phase::kNew;
  rtt_sample_ = RttSample::kNone;
  gap_retried_ = 0;
  begin_silence();
  deadline_ = tail_probe_at_ = kNever;
  recovery_ = LossRecovery{};
}

ExtensionSession* Requester::session() const { return qp_.session.get(); }

SackBoard* Requester::sack_board() const {
  return session() != nullptr && session()->terms.may_send && session()->sacked_packets
             ? &*session()->sacked_packets
             : nullptr;
}

bool Requester::transmit(TransportContext& context, uint32_t& budget) {
  if (session() != nullptr && !send_extras(context)) return true;
  if (phase_ == Phase::kRnrWait) {
    if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
      here->pause();
    return false;
  }
  while (budget > 0) {
    const Step step = phase_ == Phase::kRepair ? send_repair(context) : send_next(context);
    switch (step) {
      case Step::kSent:
        --budget;
        break;
      case Step::kWait:
        if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
          here->pause();
        return false;
      case Step::kHeld:
        return false;
      case Step::kBackpressure:
      case Step::kYield:
        return true;
      case Step::kFailed:
        // Requests before it complete first, in order. Then it fails.
        if (const SendWqe& wqe = qp_.send_queue.at(qp_.send_queue.head());
            wqe.local_error != IBV_WC_SUCCESS) {
          fail_oldest(context, wqe.local_error);
          return true;  // the next call flushes the queue
        }
        return false;
    }
  }
  return true;
}

Requester::Step Requester::send_next(TransportContext& context) {
  if (cursor_.index == qp_.send_queue.posted()) return Step::kWait;
  SendWqe& wqe = qp_.send_queue.at(cursor_.index);
  if (!wqe.started && qp_.state() == IBV_QPS_SQD) return Step::kWait;
  if (wqe.local_error != IBV_WC_SUCCESS) return Step::kFailed;
  if (wqe.is_local()) return execute_locally(context, wqe);
  if (!wqe.started) {
    // A quantum would otherwise permit many long copies. The turn ends by its bytes.
    if (const uint32_t length = wqe.length; context.placement != nullptr && place(context, wqe))
      return after_completion(length > qp_.attributes.path_mtu ? Step::kYield : Step::kSent);
    const Step step = start(context, wqe);
    if (step != Step::kSent) return step;
  }
  return send_at(context, cursor_);
}

// Sends the next packet that may be missing before the cursor; after the last one, a new packet.
Requester::Step Requester::send_repair(TransportContext& context) {
  const SackBoard* board = sack_board();
  if (session() == nullptr || !session()->repair.started) {  // the repair was started in an earlier session
    rewind();
    return send_next(context);
  }
  ExtensionSession::Repair& repair = session()->repair;
  while (true) {
    if (static_cast<int32_t>(repair.next.index - qp_.send_queue.head()) < 0) repair.next = oldest();
    const Psn psn = psn_at(repair.next);
    const bool at_started =
        repair.next.index != qp_.send_queue.posted() && qp_.send_queue.at(repair.next.index).started;
    if (!at_started || !is_before(psn, repair.end)) {
      phase_ = Phase::kNew;
      return send_next(context);
    }
    SendWqe& wqe = qp_.send_queue.at(repair.next.index);
    if (wqe.is_local()) {
      repair.next = {repair.next.index + 1, 0};
      continue;
    }
    // The oldest packet may have been executed, and its response lost.
    const bool arrived =
        is_before(psn, una_) || is_before(psn, repair.from) ||
        (!(psn == una_) && board != nullptr && psns_between(una_, psn) < board->window() && board->has(psn));
    if (!arrived) {
      if (wqe.local_error != IBV_WC_SUCCESS) return Step::kFailed;
      repair.sent_at = context.now;
      return send_at(context, repair.next);
    }
    if (wqe.needs_response() || repair.next.packet + 1 == wqe.packets) {
      repair.next = {repair.next.index + 1, 0};
    } else {
      ++repair.next.packet;
    }
  }
}

Requester::Step Requester::send_at(TransportContext& context, Cursor& cursor) {
  SendWqe& wqe = qp_.send_queue.at(cursor.index);
  if (psns_between(una_, wqe.first_psn + cursor.packet) >= recovery_.window() && is_limited())
    return Step::kWait;
  Step step = Step::kSent;
  bool last = true;
  const bool has_payload = !wqe.is_read() && !wqe.is_atomic();
  if (!has_payload && held(context.now, {wqe.first_lsn, static_cast<uint32_t>(lsn_bytes(wqe))},
                           wqe.first_psn + cursor.packet)) {
    return Step::kHeld;
  }
  if (wqe.is_read()) {
    step = send_read_request(context, wqe, cursor.packet);
  } else if (wqe.is_atomic()) {
    step = send_atomic_request(context, wqe);
  } else {
    const MessagePacket cut = cut_message(wqe, qp_.service, cursor.packet, qp_.attributes.path_mtu);
    const Psn psn = wqe.first_psn + cursor.packet;
    const bool again = sent_before(psn);
    if (!again && !fits_window(wqe, cut, psn)) return Step::kWait;
    if (held(context.now, {wqe.first_lsn + cut.offset, cut.length}, psn)) return Step::kHeld;
    step = send_message_packet(context, wqe, cut, psn, again);
    last = cut.last;
  }
  if (step != Step::kSent) return step;
  if (last) {
    trace::request_sent(qp_.number().value(), wqe.wr_id, cursor.packet);
    cursor = {cursor.index + 1, 0};
  } else {
    ++cursor.packet;
  }
  return Step::kSent;
}

// A local operation is executed when the cursor reaches it for the first time. After a rewind, the cursor only passes
// over it. It uses as much of the budget as a packet.
Requester::Step Requester::execute_locally(TransportContext& context, SendWqe& wqe) {
  if (!wqe.started) {
    if ((wqe.send_flags & IBV_SEND_FENCE) != 0 && reads_outstanding_ > 0) return Step::kWait;
    wqe.local_error = execute_local_operation(context, qp_.accessor(), wqe);
    if (wqe.local_error != IBV_WC_SUCCESS) return Step::kFailed;
    wqe.started = true;
    wqe.first_psn = next_psn_;
    wqe.first_lsn = flow_.next;
    ++locals_done_;
  }
  cursor_ = {cursor_.index + 1, 0};
  retire_local(context);
  return after_completion(Step::kSent);
}

// A completion that overflows its queue ends the transmission: the next call flushes the queue.
Requester::Step Requester::after_completion(Step step) const {
  return qp_.state() == IBV_QPS_ERR ? Step::kYield : step;
}

// Copies a WRITE with a grant of the peer, and no outstanding request before it, into the peer's memory and completes
// it. The WRITE has no PSN. If it is not permitted or fails, the WRITE is sent in packets, which detects the cause.
bool Requester::place(TransportContext& context, SendWqe& wqe) {
  if (wqe.opcode != IBV_WR_RDMA_WRITE || qp_.service != TransportClass::kRc || !idle() || locals_done_ > 0 ||
      wqe.length == 0 || qp_.gates != nullptr)
    return false;
  std::array<iovec, kMaxPieces> pieces;
  size_t count = 0;
  if (wqe.is_inline()) {
    pieces[count++] = {const_cast<uint8_t*>(wqe.inline_data()), wqe.length};
  } else if (!for_each_sge(context.memory, qp_.config.pd, wqe.pieces(), 0, wqe.length, Access::kLocalRead,
                           [&](uint8_t* host, uint32_t, uint32_t bytes) {
                             if (count < kMaxPieces) pieces[count] = {host, bytes};
                             ++count;
                           })) {
    return false;
  }
  if (count > kMaxPieces) return false;  // a null region has more pieces than the list has elements
  if (!context.placement->place(qp_.attributes.path.destination_mac,
                                {qp_.attributes.remote_qp, MemoryKey{wqe.rkey}}, wqe.remote_address,
                                {pieces.data(), count}, wqe.length))
    return false;
  context.counters.add(Counter::kWritesPlaced);
  context.sink.count_bytes(wqe.length);
  trace::request_placed(qp_.number().value(), wqe.wr_id, wqe.length);
  qp_.complete_send(context, wqe, IBV_WC_SUCCESS);
  cursor_ = {cursor_.index + 1, 0};
  return true;
}

void Requester::retire_local(TransportContext& context) {
  while (locals_done_ > 0) {
    const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
    if (!oldest.is_local()) return;
    qp_.complete_send(context, oldest, IBV_WC_SUCCESS);
    --locals_done_;
  }
}

// Assigns the PSNs of a request, or returns why it must wait.
Requester::Step Requester::start(TransportContext& context, SendWqe& wqe) {
  if ((wqe.send_flags & IBV_SEND_FENCE) != 0 && reads_outstanding_ > 0) return Step::kWait;
  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint32_t packets = wqe.length <= mtu ? 1 : 1 + (wqe.length - 1) / mtu;
  if (wqe.needs_response()) {
    if (qp_.attributes.max_rd_atomic == 0) {
      wqe.local_error = IBV_WC_LOC_QP_OP_ERR;
      return Step::kFailed;
    }
    if (reads_outstanding_ >= qp_.attributes.max_rd_atomic) return Step::kWait;
    // Nothing else limits a standard responder to READs: the outstanding READ bytes are the window.
    const uint64_t window = is_reactive() && sack_board() == nullptr
                                ? std::min<uint64_t>(qp_.config.window_bytes, recovery_.read_window(mtu))
                                : qp_.config.window_bytes;
    if (reads_outstanding_ > 0 && read_bytes_outstanding_ + wqe.length > window) return Step::kWait;
  }
  if (psns_between(una_, next_psn_) + packets > kMaxOpenPsns) return Step::kWait;
  // The memory of a single packet is checked when the packet is sent, so no check is needed before. That of a READ or an
  // atomic operation is checked when the response arrives; an error of the responder precedes it then, as with NICs.
  if (packets > 1 && !wqe.needs_response() && !has_memory(context.memory, qp_.config.pd, wqe)) {
    wqe.local_error = IBV_WC_LOC_PROT_ERR;
    return Step::kFailed;
  }
  if (idle()) {  // the attributes may have changed in SQD
    retries_left_ = qp_.attributes.retry_count;
    rnr_retries_left_ = qp_.attributes.rnr_retry;
  }
  trace::request_started(qp_.number().value(), wqe.wr_id, next_psn_.value(), packets);
  wqe.started = true;
  wqe.first_psn = next_psn_;
  wqe.packets = packets;
  wqe.responses = 0;
  wqe.first_lsn = flow_.next;
  next_psn_ += packets;
  flow_.next += lsn_bytes(wqe);
  if (wqe.needs_response()) {
    ++reads_outstanding_;
    read_bytes_outstanding_ += wqe.length;
  }
  return Step::kSent;
}

// Whether a new packet may be sent now. With nothing in flight, it always may.
bool Requester::fits_window(const SendWqe& wqe, const MessagePacket& packet, Psn psn) {
  const uint64_t in_flight = wqe.first_lsn + packet.offset - flow_.acknowledged;
  if (in_flight == 0) return true;
  if (in_flight + packet.length > std::min(qp_.config.window_bytes, flow_.receiver_window)) return false;
  // Packets that the receiver cannot buffer after a gap would be dropped. Responses to a READ have PSNs, but need no
  // buffer.
  const SackBoard* board = sack_board();
  return board == nullptr || qp_.send_queue.at(qp_.send_queue.head()).needs_response() ||
         psns_between(una_, psn) < board->window();
}

Requester::Step Requester::send_message_packet(TransportContext& context, SendWqe& wqe,
                                               const MessagePacket& packet, Psn psn, bool again) {
  const BthFields bth{
      .opcode = packet.opcode,
      .destination_qp = qp_.attributes.remote_qp,
      .psn = psn,
      .pkey = qp_.attributes.pkey,
      .solicited = packet.solicited,
      // Every packet requests an acknowledgment, and the acknowledgments clock this sender. Rocinante's responder sends
      // one per batch.
      .ack_request = true,
      .ect = again};
  PacketExtras extras = data_extras();
  extras.not_ect = !again && qp_.gates != nullptr && sends_as_not_ect(wqe, packet, psn);
  const auto outcome = send_packet(
      context, qp_, bth, packet.length, extras, [&](RoceWriter::Open& open, const ExtensionView& block) {
        session_block(block, wqe.first_lsn + packet.offset, context.now);
        return fill_message_packet(context.memory, qp_.config.pd, wqe, packet, open);
      });
  if (outcome == SendOutcome::kBackpressure) return Step::kBackpressure;
  if (outcome == SendOutcome::kAborted) {  // the memory was deregistered or unmapped after the post
    wqe.local_error = IBV_WC_LOC_PROT_ERR;
    return Step::kFailed;
  }
  record_sent(context, psn, 1, {wqe.first_lsn + packet.offset, packet.length}, again);
  return Step::kSent;
}

// Requests the whole message, or after a loss the part of it that has not arrived.
Requester::Step Requester::send_read_request(TransportContext& context, SendWqe& wqe, uint32_t packet) {
  const uint64_t offset = static_cast<uint64_t>(packet) * qp_.attributes.path_mtu;
  const Psn psn = wqe.first_psn + packet;
  const BthFields bth{.opcode = opcode_of(qp_.service, Opcode::kRcReadRequest),
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = psn,
                      .pkey = qp_.attributes.pkey,
                      .ack_request = true,
                      .ect = sent_before(psn)};
  const auto outcome = send_packet(
      context, qp_, bth, 0, data_extras(), [&](RoceWriter::Open& open, const ExtensionView& block) {
        if (qp_.service == TransportClass::kXrc) [[unlikely]]
          put_xrc_eth(wqe, open);
        RoceWriter::put_reth(open, wqe.remote_address + offset, MemoryKey{wqe.rkey},
                             static_cast<uint32_t>(wqe.length - offset));
        session_block(block, wqe.first_lsn, context.now);
        return true;
      });
  if (outcome != SendOutcome::kSent) return Step::kBackpressure;
  const bool again = sent_before(psn);
  if (again) context.counters.add(Counter::kReadsReissued);
  record_sent(context, psn, wqe.packets - packet, {wqe.first_lsn, sizeof(Reth)}, again);
  return Step::kSent;
}

Requester::Step Requester::send_atomic_request(TransportContext& context, SendWqe& wqe) {
  const BthFields bth{
      .opcode = opcode_of(qp_.service, wqe.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? Opcode::kRcFetchAdd
                                                                                 : Opcode::kRcCompareSwap),
      .destination_qp = qp_.attributes.remote_qp,
      .psn = wqe.first_psn,
      .pkey = qp_.attributes.pkey,
      .ack_request = true,
      .ect = sent_before(wqe.first_psn)};
  const auto outcome = send_packet(context, qp_, bth, 0, data_extras(),
                                   [&](RoceWriter::Open& open, const ExtensionView& block) {
                                     const bool add = wqe.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
                                     if (qp_.service == TransportClass::kXrc) [[unlikely]]
                                       put_xrc_eth(wqe, open);
                                     auto& atomic = open.header<AtomicEth>(Header::kAtomicEth);
                                     atomic.va.set(wqe.remote_address);
                                     atomic.rkey.set(wqe.rkey);
                                     atomic.swap_or_add.set(add ? wqe.compare_add : wqe.swap);
                                     atomic.compare.set(add ? 0 : wqe.compare_add);
                                     session_block(block, wqe.first_lsn, context.now);
                                     return true;
                                   });
  if (outcome != SendOutcome::kSent) return Step::kBackpressure;
  record_sent(context, wqe.first_psn, 1, {wqe.first_lsn, sizeof(AtomicEth)}, sent_before(wqe.first_psn));
  return Step::kSent;
}

PacketExtras Requester::data_extras() const {
  if (session() == nullptr) return {};
  PacketExtras extras = session()->data_extras();
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    session()->apply_telemetry_request(*here, extras);
  return extras;
}

void Requester::session_block(const ExtensionView& block, Lsn lsn, Nanos now) const {
  if (block.types != 0) ExtensionSession::write_data_block(block, qp_.number(), lsn, now);
}

// Sends packets of the wire extensions that are due. False when the port is full.
bool Requester::send_extras(TransportContext& context) {
  ExtensionSession& extras = *session();
  if (extras.read_acks.due && !send_read_acknowledge(context)) return false;
  return !extras.probes.due || send_probe(context);
}

bool Requester::send_read_acknowledge(TransportContext& context) {
  ExtensionSession::ReadAcknowledgments& acks = session()->read_acks;
  const BthFields bth{.opcode = Opcode::kCcReadAcknowledge,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = acks.last,
                      .pkey = qp_.attributes.pkey};
  const auto outcome =
      send_packet(context, qp_, bth, 0, session()->feedback(Direction::kResponses, false),
                  [&](RoceWriter::Open& open, const ExtensionView& block) {
                    RoceWriter::put_aeth(open, kSyndromeAck, Msn{acks.completed});
                    session()->write_feedback(context, block, Direction::kResponses, responses_);
                    return true;
                  });
  if (outcome != SendOutcome::kSent) return false;
  acks.due = false;
  context.counters.add(Counter::kReadAcksSent);
  return true;
}

bool Requester::request_probe(Nanos now, Probe how) {
  if (session() == nullptr || !session()->terms.may_send || !session()->terms.has(Capability::kProbes))
    return false;
  ExtensionSession::Probes& probes = session()->probes;
  const bool waits = probes.sent != kNever && now - probes.sent < kProbeTimeout;
  if (probes.due || (waits && how == Probe::kWhenAnswered)) return probes.due && how == Probe::kAtOnce;
  probes.due = true;
  ++probes.id;
  return true;
}

bool Requester::send_probe(TransportContext& context) {
  ExtensionSession::Probes& probes = session()->probes;
  const BthFields bth{.opcode = Opcode::kCcProbe,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = sent_end_ - 1,
                      .pkey = qp_.attributes.pkey};
  const TelemetrySession* telemetry = session()->telemetry.get();
  const PacketExtras with{0, 0, telemetry != nullptr && telemetry->inserts_header(HopsOf::kProbe)};
  const auto outcome =
      send_packet(context, qp_, bth, 0, with, [&](RoceWriter::Open& open, const ExtensionView&) {
        auto& probe = open.header<roci::Probe>(Header::kProbe);
        probe = roci::Probe{};
        probe.id.set(probes.id);
        probe.flags.set(telemetry != nullptr ? roci::Probe::kRtt | roci::Probe::kInt : roci::Probe::kRtt);
        probe.sent.set(static_cast<uint64_t>(context.now.count()));
        probe.lsn.set(flow_.next.value());
        return true;
      });
  if (outcome != SendOutcome::kSent) return false;
  probes.due = false;
  probes.sent = context.now;
  context.counters.add(Counter::kProbesSent);
  return true;
}

bool Requester::sent_before(Psn psn) const { return psns_between(una_, psn) < psns_between(una_, sent_end_); }

// Unacknowledged bytes on the line of the packets before this one. Responses to READs have PSNs, but are not sent by
// this host.
uint64_t Requester::in_flight_before(const SendGate& gate, Lsn lsn, Psn psn) const {
  const uint64_t packets = std::min<uint64_t>(psns_between(una_, psn), gate.new_packets - gate.acked_packets);
  const uint64_t bytes = lsn > flow_.acknowledged ? lsn - flow_.acknowledged : 0;
  return bytes + packets * gate.overhead;
}

// Not inlined, so that queue pairs without congestion control have a short path.
[[gnu::noinline, gnu::cold]] bool Requester::held_back(Nanos now, Span span, Psn psn) const {
  SendGate& here = qp_.gates->requests;
  return !here.admits(now, in_flight_before(here, span.at, psn), span.bytes);
}

bool Requester::held(Nanos now, Span span, Psn psn) const {
  return qp_.gates != nullptr && held_back(now, span, psn);
}

// The receiver detects the loss of Not-ECT packets by the packet that is last before the window or the queue is
// exhausted, so that packet is ECN-capable (draft-dai-tsvwg-pfc-free-congestion-control 3.1).
[[gnu::noinline, gnu::cold]] bool Requester::sends_as_not_ect(const SendWqe& wqe, const MessagePacket& packet,
                                                              Psn psn) const {
  const SendGate& here = *gate();
  const Lsn lsn = wqe.first_lsn + packet.offset;
  if (lsn >= here.not_ect_below) return false;
  if (packet.last && cursor_.index + 1 == qp_.send_queue.posted()) return false;
  const uint64_t whole = uint64_t{qp_.attributes.path_mtu} + here.overhead;
  return in_flight_before(here, lsn, psn) + packet.length + here.overhead + whole <= here.window;
}

void Requester::note_loss() {
  recovery_.note_loss();
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    ++here->losses;
}

// Whether no congestion control algorithm limits this queue pair.
bool Requester::is_reactive() const {
  return qp_.config.reactive_window && (qp_.gates == nullptr || qp_.gates->requests.is_unlimited());
}

// READs have PSNs for their responses, which this window does not limit. With congestion control, its window applies
// instead.
[[gnu::noinline, gnu::cold]] bool Requester::is_limited() const {
  if (sack_board() != nullptr) return false;
  if (recovery_.probing() != LossRecovery::Probing::kNone) return true;
  return is_reactive() && reads_outstanding_ == 0;
}

[[gnu::noinline, gnu::cold]] void Requester::note_departure(Nanos now, Span span, bool again) {
  SendGate& here = qp_.gates->requests;
  if (here.owes_repair && deadline_ != kNever && timeout() != kNever) deadline_ = now + timeout();
  here.departed(now, span.bytes, !again);
  here.sent_end = std::max(here.sent_end, span.at + span.bytes);
}

void Requester::record_sent(TransportContext& context, Psn psn, uint32_t count, Span span, bool again) {
  ++flow_.packets_sent;
  if (qp_.gates != nullptr) [[unlikely]]
    note_departure(context.now, span, again);
  if (again) {
    context.counters.add(Counter::kPacketsRetransmitted);
    // Ambiguous: its acknowledgment may be for either copy (Karn).
    if (rtt_sample_ != RttSample::kSilence) rtt_sample_ = RttSample::kNone;
  } else if (rtt_sample_ == RttSample::kNone) {
    rtt_sample_ = RttSample::kRunning;
    timed_psn_ = psn;
    timed_at_ = context.now;
  }
  const Psn end = psn + count;
  if (!again || psns_between(una_, end) > psns_between(una_, sent_end_)) sent_end_ = end;
  if (deadline_ != kNever) return;
  if (const Nanos whole = timeout(); whole != kNever) {
    deadline_ = context.now + whole;
    schedule_tail_probe(context.now);
  }
}

// Position of the oldest unacknowledged packet; when all are acknowledged, of the next request.
Requester::Cursor Requester::oldest() {
  const uint32_t index = qp_.send_queue.head();
  const SendWqe& wqe = qp_.send_queue.at(index);
  const bool started = index != qp_.send_queue.posted() && wqe.started;
  return {index, started ? static_cast<uint32_t>(una_ - wqe.first_psn) : 0};
}

Requester::Cursor Requester::end_of_sent() {
  Cursor at{qp_.send_queue.head(), 0};
  for (; at.index != qp_.send_queue.posted(); ++at.index) {
    const SendWqe& wqe = qp_.send_queue.at(at.index);
    if (!wqe.started) break;
    if (!wqe.is_local() && is_before(sent_end_, wqe.first_psn + wqe.packets)) {
      at.packet = static_cast<uint32_t>(sent_end_ - wqe.first_psn);
      break;
    }
  }
  return at;
}

void Requester::rewind() {
  cursor_ = oldest();
  phase_ = Phase::kNew;
}

void Requester::start_repair(Psn from, Psn end, trace::Reason reason) {
  trace::retransmission_started(qp_.number().value(), from.value(), reason);
  session()->repair = {.started = true,
                       .next = oldest(),
                       .from = from,
                       .end = end,
                       .sent_at = session()->repair.sent_at,
                       .covered = session()->repair.covered};
  phase_ = Phase::kRepair;
}

Psn Requester::psn_at(Cursor cursor) {
  if (cursor.index == qp_.send_queue.posted()) return next_psn_;
  const SendWqe& wqe = qp_.send_queue.at(cursor.index);
  return wqe.started ? wqe.first_psn + cursor.packet : next_psn_;
}

void Requester::fail_oldest(TransportContext& context, ibv_wc_status status) {
  qp_.to_error();  // before the completion is visible
  if (!qp_.send_queue.empty()) qp_.complete_send(context, qp_.send_queue.at(qp_.send_queue.head()), status);
}

void Requester::flush(TransportContext& context) {
  while (!qp_.send_queue.empty())
    qp_.complete_send(context, qp_.send_queue.at(qp_.send_queue.head()), IBV_WC_WR_FLUSH_ERR);
  cursor_ = {qp_.send_queue.head(), 0};
  phase_ = Phase::kNew;
  deadline_ = tail_probe_at_ = kNever;
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    here->pause();
  locals_done_ = 0;
}

}  // namespace roci
