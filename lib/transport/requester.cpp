#include "transport/requester.hpp"

#include <algorithm>
#include <cstring>

#include "transport/queue_pair_core.hpp"
#include "transport/scatter.hpp"
#include "wire/aeth.hpp"

namespace roci {
namespace {

// LSN that a request without payload counts for: its extended header (draft-dai… §3.1 lets READ requests share the
// space of SENDs and WRITEs and leaves their size open). The data comes in the other direction.
uint64_t lsn_bytes(const SendWqe& wqe) {
  return wqe.is_read() ? sizeof(Reth) : wqe.is_atomic() ? sizeof(AtomicEth) : wqe.length;
}

// From one PSN forward to another; counts up to 2^24 - 1, where a signed distance would end at 2^23.
uint32_t psns_between(Psn from, Psn to) { return (to.value() - from.value()) & Psn::kMask; }

Opcode message_opcode(const SendWqe& wqe, bool first, bool last) {
  const bool imm = wqe.opcode == IBV_WR_SEND_WITH_IMM || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool write = wqe.opcode == IBV_WR_RDMA_WRITE || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (write) {
    if (first) return !last ? Opcode::kRcWriteFirst : imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
    return !last ? Opcode::kRcWriteMiddle : imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
  }
  if (first) return !last ? Opcode::kRcSendFirst : imm ? Opcode::kRcSendOnlyImm : Opcode::kRcSendOnly;
  return !last ? Opcode::kRcSendMiddle : imm ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
}

}  // namespace

void Requester::reset(Psn first) {
  cursor_index_ = qp_.send_queue.head();
  cursor_packet_ = 0;
  next_psn_ = una_ = sent_end_ = first;
  reads_outstanding_ = 0;
  read_bytes_outstanding_ = 0;
  retries_left_ = qp_.attributes.retry_count;
  rnr_retries_left_ = qp_.attributes.rnr_retry;
  waits_for_rnr_ = gap_retried_ = false;
  deadline_ = kNever;
}

bool Requester::transmit(TransportContext& context, uint32_t& budget) {
  if (waits_for_rnr_) return false;
  while (budget > 0) {
    switch (send_one(context)) {
      case Step::kSent:
        --budget;
        break;
      case Step::kWait:
        return false;
      case Step::kNoRoom:
        return true;
      case Step::kFailed:
        // Requests before it end first, in order; then its own error does.
        if (cursor_index_ == qp_.send_queue.head()) {
          fail_oldest(context, qp_.send_queue.at(cursor_index_).local_error);
          return true;  // to flush the rest
        }
        return false;
    }
  }
  return true;
}

Requester::Step Requester::send_one(TransportContext& context) {
  if (cursor_index_ == qp_.send_queue.posted()) return Step::kWait;
  SendWqe& wqe = qp_.send_queue.at(cursor_index_);
  if (wqe.local_error != IBV_WC_SUCCESS) return Step::kFailed;
  if (!wqe.started) {
    const Step step = start(context, wqe);
    if (step != Step::kSent) return step;
  }
  if (wqe.is_read()) return send_read_request(context, wqe);
  if (wqe.is_atomic()) return send_atomic_request(context, wqe);
  return send_message_packet(context, wqe);
}

// Gives a request its PSNs, or says what it waits for.
Requester::Step Requester::start(TransportContext& context, SendWqe& wqe) {
  if ((wqe.send_flags & IBV_SEND_FENCE) != 0 && reads_outstanding_ > 0) return Step::kWait;
  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint32_t packets =
      std::max(1U, static_cast<uint32_t>((static_cast<uint64_t>(wqe.length) + mtu - 1) / mtu));
  if (wqe.needs_response()) {
    if (qp_.attributes.max_rd_atomic == 0) {
      wqe.local_error = IBV_WC_LOC_QP_OP_ERR;
      return Step::kFailed;
    }
    if (reads_outstanding_ >= qp_.attributes.max_rd_atomic) return Step::kWait;
    // Nothing else holds back the responder of a standard READ: what is asked for at a time is the window.
    if (reads_outstanding_ > 0 && read_bytes_outstanding_ + wqe.length > qp_.config.window_bytes)
      return Step::kWait;
  }
  if (psns_between(una_, next_psn_) + packets > kMaxOpenPsns) return Step::kWait;
  if (!wqe.is_inline() &&
      !for_each_sge(context.memory, qp_.config.pd, {wqe.sges(), wqe.sge_count}, 0, wqe.length,
                    wqe.needs_response() ? Access::kLocalWrite : Access::kLocalRead,
                    [](uint8_t*, uint32_t, uint32_t) {})) {
    wqe.local_error = IBV_WC_LOC_PROT_ERR;
    return Step::kFailed;
  }
  wqe.started = true;
  wqe.first_psn = next_psn_;
  wqe.packets = packets;
  wqe.responses = 0;
  wqe.first_lsn = next_lsn_;
  next_psn_ += packets;
  next_lsn_ += lsn_bytes(wqe);
  if (wqe.needs_response()) {
    ++reads_outstanding_;
    read_bytes_outstanding_ += wqe.length;
  }
  return Step::kSent;
}

Requester::Step Requester::send_message_packet(TransportContext& context, SendWqe& wqe) {
  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint64_t offset = static_cast<uint64_t>(cursor_packet_) * mtu;
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(mtu, wqe.length - offset));
  const uint64_t in_flight = in_flight_bytes();
  if (in_flight > 0 && in_flight + length > qp_.config.window_bytes) return Step::kWait;

  const bool first = cursor_packet_ == 0;
  const bool last = cursor_packet_ + 1 == wqe.packets;
  const BthFields bth{
      .opcode = message_opcode(wqe, first, last),
      .destination_qp = qp_.attributes.remote_qp,
      .psn = wqe.first_psn + cursor_packet_,
      .pkey = qp_.attributes.pkey,
      // Only where the peer's receive queue gets a completion (IBTA 9.2.3).
      .solicited = last && (wqe.send_flags & IBV_SEND_SOLICITED) != 0 && wqe.opcode != IBV_WR_RDMA_WRITE,
      // Every packet asks, so that the peer's acknowledgements clock this sender; ours answers once
      // per batch.
      .ack_request = true};
  const auto outcome = send_packet(context, qp_, bth, length, [&](const RoceWriter::Open& open) {
    const OpcodeInfo& info = *open.view.opcode;
    if (info.has(Header::kReth)) {
      auto& reth = open.header<Reth>(Header::kReth);
      reth.va.set(wqe.remote_address);
      reth.rkey.set(wqe.rkey);
      reth.length.set(wqe.length);
    }
    if (info.has(Header::kImmDt))
      open.header<ImmDt>(Header::kImmDt).data.set(__builtin_bswap32(wqe.immediate));
    if (wqe.is_inline()) {
      std::memcpy(open.payload, wqe.inline_data() + offset, length);
      return true;
    }
    return gather(context.memory, qp_.config.pd, {wqe.sges(), wqe.sge_count}, offset, length, open.payload);
  });
  if (outcome == SendOutcome::kNoRoom) return Step::kNoRoom;
  if (outcome == SendOutcome::kGivenUp) {  // the region went away under the request
    wqe.local_error = IBV_WC_LOC_PROT_ERR;
    return Step::kFailed;
  }
  note_sent(context, bth.psn, 1);
  if (last) {
    ++cursor_index_;
    cursor_packet_ = 0;
  } else {
    ++cursor_packet_;
  }
  return Step::kSent;
}

// Asks for the whole message, or after a loss for what has not arrived of it.
Requester::Step Requester::send_read_request(TransportContext& context, SendWqe& wqe) {
  const uint64_t offset = static_cast<uint64_t>(cursor_packet_) * qp_.attributes.path_mtu;
  const BthFields bth{.opcode = Opcode::kRcReadRequest,
                      .destination_qp = qp_.attributes.remote_qp,
                      .psn = wqe.first_psn + cursor_packet_,
                      .pkey = qp_.attributes.pkey,
                      .ack_request = true};
  const auto outcome = send_packet(context, qp_, bth, 0, [&](const RoceWriter::Open& open) {
    auto& reth = open.header<Reth>(Header::kReth);
    reth.va.set(wqe.remote_address + offset);
    reth.rkey.set(wqe.rkey);
    reth.length.set(static_cast<uint32_t>(wqe.length - offset));
    return true;
  });
  if (outcome != SendOutcome::kSent) return Step::kNoRoom;
  if (is_before(bth.psn, sent_end_)) context.counters.add(Counter::kReadsReissued);
  note_sent(context, bth.psn, wqe.packets - cursor_packet_);
  ++cursor_index_;
  cursor_packet_ = 0;
  return Step::kSent;
}

Requester::Step Requester::send_atomic_request(TransportContext& context, SendWqe& wqe) {
  const BthFields bth{
      .opcode = wqe.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? Opcode::kRcFetchAdd : Opcode::kRcCompareSwap,
      .destination_qp = qp_.attributes.remote_qp,
      .psn = wqe.first_psn,
      .pkey = qp_.attributes.pkey,
      .ack_request = true};
  const auto outcome = send_packet(context, qp_, bth, 0, [&](const RoceWriter::Open& open) {
    const bool add = wqe.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    auto& atomic = open.header<AtomicEth>(Header::kAtomicEth);
    atomic.va.set(wqe.remote_address);
    atomic.rkey.set(wqe.rkey);
    atomic.swap_or_add.set(add ? wqe.compare_add : wqe.swap);
    atomic.compare.set(add ? 0 : wqe.compare_add);
    return true;
  });
  if (outcome != SendOutcome::kSent) return Step::kNoRoom;
  note_sent(context, bth.psn, 1);
  ++cursor_index_;
  cursor_packet_ = 0;
  return Step::kSent;
}

void Requester::note_sent(TransportContext& context, Psn psn, uint32_t count) {
  if (is_before(psn, sent_end_)) context.counters.add(Counter::kPacketsRetransmitted);
  const Psn end = psn + count;
  if (psns_between(una_, end) > psns_between(una_, sent_end_)) sent_end_ = end;
  if (deadline_ == kNever && timeout() != kNever) deadline_ = context.now + timeout();
}

void Requester::rewind() {
  cursor_index_ = qp_.send_queue.head();
  const SendWqe& wqe = qp_.send_queue.at(cursor_index_);
  cursor_packet_ = cursor_index_ != qp_.send_queue.posted() && wqe.started
                       ? static_cast<uint32_t>(una_ - wqe.first_psn)
                       : 0;
}

Psn Requester::cursor_psn() {
  if (cursor_index_ == qp_.send_queue.posted()) return next_psn_;
  const SendWqe& wqe = qp_.send_queue.at(cursor_index_);
  return wqe.started ? wqe.first_psn + cursor_packet_ : next_psn_;
}

// LSN of the cursor less LSN of the oldest unacknowledged byte.
uint64_t Requester::in_flight_bytes() {
  const uint32_t mtu = qp_.attributes.path_mtu;
  const auto lsn_at = [&](const SendWqe& wqe, uint32_t packet) {
    return wqe.needs_response() ? wqe.first_lsn + (packet == 0 ? 0 : lsn_bytes(wqe))
                                : wqe.first_lsn + static_cast<uint64_t>(packet) * mtu;
  };
  const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
  if (!oldest.started) return 0;
  const Lsn una = lsn_at(oldest, static_cast<uint32_t>(una_ - oldest.first_psn));
  const SendWqe& current = qp_.send_queue.at(cursor_index_);
  const bool at_started = cursor_index_ != qp_.send_queue.posted() && current.started;
  const Lsn cursor = at_started ? lsn_at(current, cursor_packet_) : next_lsn_;
  return cursor - una;
}

Nanos Requester::timeout() const { return ack_timeout(qp_.attributes.timeout); }

void Requester::on_deadline(TransportContext& context) {
  if (context.now < deadline_ || qp_.state() != IBV_QPS_RTS) return;
  if (waits_for_rnr_) {
    waits_for_rnr_ = false;
    deadline_ = kNever;  // armed again when the packet goes out
    return;
  }
  context.counters.add(Counter::kTimeouts);
  retry(context);
}

void Requester::fail_oldest(TransportContext& context, ibv_wc_status status) {
  if (!qp_.send_queue.empty()) {
    qp_.complete_send(context, qp_.send_queue.at(qp_.send_queue.head()), status);
    qp_.send_queue.pop();
  }
  qp_.to_error();
}

void Requester::flush(TransportContext& context) {
  while (!qp_.send_queue.empty()) {
    qp_.complete_send(context, qp_.send_queue.at(qp_.send_queue.head()), IBV_WC_WR_FLUSH_ERR);
    qp_.send_queue.pop();
  }
  cursor_index_ = qp_.send_queue.head();
  cursor_packet_ = 0;
  deadline_ = kNever;
  waits_for_rnr_ = false;
}

}  // namespace roci
