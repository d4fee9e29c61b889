// Requester and completer of the Linux model.
#include <arpa/inet.h>

#include <algorithm>

#include "simulation/linux/linux_queue_pair.hpp"
#include "wire/headers/aeth.hpp"

namespace roci::test {

void LinuxQueuePair::request_packets() {
  while (state_ == IBV_QPS_RTS) {
    if (need_retry_ && !rnr_wait_) {
      need_retry_ = false;
      go_back();
    }
    if (rnr_wait_ || next_ == requests_.size()) return;
    waits_for_queue_ = frames_queued_ > kQueuedFrames || host_.transmit_queue_full();
    if (is_fenced() || waits_for_queue_ || next_psn_ - acked_ > kUnackedPsns || !send_request_packet())
      return;
  }
}

bool LinuxQueuePair::is_fenced() const {
  if ((requests_[next_].wr.send_flags & IBV_SEND_FENCE) == 0) return false;
  const auto end = requests_.begin() + static_cast<std::ptrdiff_t>(next_);
  return std::any_of(requests_.begin(), end, [](const Request& earlier) { return earlier.has_read_slot; });
}

// Returns false if the request waits for an earlier READ or atomic.
bool LinuxQueuePair::send_request_packet() {
  Request& request = requests_[next_];
  if (request.has_answer() && !request.has_read_slot) {
    if (read_slots_ == 0) return false;
    --read_slots_;
    request.has_read_slot = true;
  }
  const uint32_t offset = request.length - request.left;
  const uint32_t payload = request.has_answer() ? 0 : std::min(request.left, mtu_);
  const bool first = request.has_answer() || offset == 0;
  const bool last = request.has_answer() || request.left <= mtu_;
  if (first) {
    const uint32_t packets = request.is_atomic() ? 1 : std::max(1U, (request.left + mtu_ - 1) / mtu_);
    request.first = next_psn_;
    request.last = next_psn_ + (packets - 1);
  }
  Packet packet = make_packet(opcode_for(request, first, last), !peer_.is_v4());
  packet.to(peer_number_, next_psn_);
  const ibv_send_wr& wr = request.wr;
  if (packet.reth) {
    packet.reth->va = wr.wr.rdma.remote_addr + (request.is_read() ? offset : 0);
    packet.reth->rkey = MemoryKey{wr.wr.rdma.rkey};
    packet.reth->length = request.left;
  }
  if (packet.atomic_eth) {
    const bool add = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    packet.atomic_eth->va = wr.wr.atomic.remote_addr;
    packet.atomic_eth->rkey = MemoryKey{wr.wr.atomic.rkey};
    packet.atomic_eth->swap_or_add = add ? wr.wr.atomic.compare_add : wr.wr.atomic.swap;
    packet.atomic_eth->compare = add ? 0 : wr.wr.atomic.compare_add;
  }
  if (packet.imm) packet.imm = ntohl(wr.imm_data);
  if (packet.ieth) packet.ieth = MemoryKey{wr.invalidate_rkey};
  if (payload > 0) {
    ByteVector bytes;
    gather(request, offset, payload, bytes);
    packet.with_payload(bytes);
  }
  const bool message = !request.has_answer() && wr.opcode != IBV_WR_RDMA_WRITE;
  packet.bth.solicited = last && message && (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  packet.bth.ack_request = last || packets_since_ack_request_++ > kPacketsPerAckReq;
  if (packet.bth.ack_request) packets_since_ack_request_ = 0;
  next_psn_ = request.is_read() ? request.last + 1 : next_psn_ + 1;
  if (!request.has_answer()) request.left -= payload;
  request.state = last ? Request::State::kSent : Request::State::kSending;
  if (last) ++next_;
  send(std::move(packet));
  if (timeout_ticks_ != 0 && retransmit_at_ == kNever) retransmit_at_ = host_.after_ticks(timeout_ticks_);
  return true;
}

Opcode LinuxQueuePair::opcode_for(const Request& request, bool first, bool last) const {
  const auto pick = [&](Opcode of_first, Opcode middle, Opcode of_last, Opcode only) {
    if (first) return last ? only : of_first;
    return last ? of_last : middle;
  };
  using enum Opcode;
  switch (request.wr.opcode) {
    case IBV_WR_SEND:
      return pick(kRcSendFirst, kRcSendMiddle, kRcSendLast, kRcSendOnly);
    case IBV_WR_SEND_WITH_IMM:
      return pick(kRcSendFirst, kRcSendMiddle, kRcSendLastImm, kRcSendOnlyImm);
    case IBV_WR_SEND_WITH_INV:
      return pick(kRcSendFirst, kRcSendMiddle, kRcSendLastInv, kRcSendOnlyInv);
    case IBV_WR_RDMA_WRITE:
      return pick(kRcWriteFirst, kRcWriteMiddle, kRcWriteLast, kRcWriteOnly);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return pick(kRcWriteFirst, kRcWriteMiddle, kRcWriteLastImm, kRcWriteOnlyImm);
    case IBV_WR_RDMA_READ:
      return kRcReadRequest;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return kRcCompareSwap;
    default:
      return kRcFetchAdd;
  }
}

// Sends everything again from the oldest unacknowledged packet. A READ requests what has not arrived.
void LinuxQueuePair::go_back() {
  next_ = 0;
  next_psn_ = acked_;
  for (size_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    if (request.state == Request::State::kPosted) break;
    request.state = Request::State::kPosted;
    if (i == 0 && request.is_read()) continue;
    request.left = request.length;
    if (i == 0 && !request.has_answer())
      request.left -= std::min(request.length, mtu_ * static_cast<uint32_t>(acked_ - request.first));
  }
}

// Returns whether the requester should run again.
bool LinuxQueuePair::complete_responses() {
  if (state_ != IBV_QPS_RTS) return false;
  bool timeout = std::exchange(timed_out_, false);
  bool worked = false;
  while (!need_retry_ && state_ == IBV_QPS_RTS) {
    if (!responses_.empty()) {
      timeout = false;
      worked = true;
      const Response response = std::move(responses_.front());
      responses_.pop_front();
      on_response(response.packet, *response.opcode);
      continue;
    }
    if (timeout) {
      retry(true);
    } else {
      restart_timer();
    }
    break;
  }
  return worked || (need_retry_ && !rnr_wait_);
}

void LinuxQueuePair::on_response(const Packet& packet, const OpcodeInfo& opcode) {
  const Psn psn = packet.bth.psn;
  for (;;) {
    if (requests_.empty() || requests_.front().state == Request::State::kPosted) return;
    Request& head = requests_.front();
    if (!is_after(psn, head.last)) break;
    // A response to a later request acknowledges a SEND or WRITE, and shows the loss of the response to a READ.
    if (head.state != Request::State::kSent) return;
    if (head.has_answer()) {
      retry(false);
      return;
    }
    reset_retries();
    advance(head.last, true);
    complete_head(IBV_WC_SUCCESS);
  }
  const int32_t ahead = psn - acked_;
  if (ahead > 0 && requests_.front().has_answer()) return;
  if (ahead < 0) {
    if (opcode.operation != Operation::kAcknowledge || !within_read_) return;
    if (aeth_kind(packet.aeth->syndrome) == AethKind::kAck && !host_.in_order()) return;
  }
  on_fitting_response(packet, opcode);
}

void LinuxQueuePair::on_fitting_response(const Packet& packet, const OpcodeInfo& opcode) {
  Request& head = requests_.front();
  const Psn psn = packet.bth.psn;
  if (!within_read_) {
    if (!opcode.starts_message()) return unfit(packet, opcode);
  } else if (opcode.operation != Operation::kAcknowledge && opcode.starts_message()) {
    // A repeated READ may be answered from its first packet.
    const bool again = (psn == head.first && opcode.opcode == Opcode::kRcReadResponseFirst) ||
                       (head.first == head.last && opcode.opcode == Opcode::kRcReadResponseOnly);
    if (!again) return unfit(packet, opcode);
  }
  if (opcode.operation == Operation::kAcknowledge) return on_acknowledge(packet);
  if (packet.aeth && aeth_kind(packet.aeth->syndrome) != AethKind::kAck) return unfit(packet, opcode);
  if (opcode.operation == Operation::kAtomicAcknowledge) {
    if (!head.is_atomic()) return unfit(packet, opcode);
    reset_retries();
    ByteVector word(sizeof(uint64_t));
    std::memcpy(word.data(), &*packet.atomic_ack, word.size());
    scatter(head.pieces, 0, word);
    complete_head(IBV_WC_SUCCESS);
    return advance(psn, true);
  }
  if (!head.is_read() || packet.payload.size() > head.left) return unfit(packet, opcode);
  reset_retries();
  scatter(head.pieces, head.length - head.left, packet.payload);
  head.left -= static_cast<uint32_t>(packet.payload.size());
  if (head.left == 0 && opcode.ends_message()) complete_head(IBV_WC_SUCCESS);
  advance(psn, opcode.ends_message());
}

void LinuxQueuePair::on_acknowledge(const Packet& packet) {
  const Psn psn = packet.bth.psn;
  const uint8_t syndrome = packet.aeth->syndrome;
  switch (aeth_kind(syndrome)) {
    case AethKind::kAck: {
      reset_retries();
      const Request& head = requests_.front();
      if (head.has_answer() && psn - acked_ >= 0)
        host_.complain("Linux took an acknowledgment at the PSN of a READ or an atomic for its response");
      if (psn == head.last) {
        const Psn last = head.last;
        complete_head(IBV_WC_SUCCESS);
        return advance(last, true);
      }
      return advance(psn, true);
    }
    case AethKind::kRnrNak:
      if (rnr_retries_left_ == 0) return fail_request(IBV_WC_RNR_RETRY_EXC_ERR);
      if (rnr_retries_left_ != kEndlessRetries) --rnr_retries_left_;
      rnr_wait_ = true;
      host_.count("rnr_naks");
      rnr_at_ = host_.after_ticks(std::max<int64_t>(
          1, (rnr_delay(aeth_value(syndrome)) + LinuxHost::kTick - Nanos{1}) / LinuxHost::kTick));
      return;
    case AethKind::kNak:
      break;
    case AethKind::kReserved:
      return unfit(packet, opcode_info(packet.bth.opcode));
  }
  switch (static_cast<NakCode>(aeth_value(syndrome))) {
    case NakCode::kPsnSequenceError:
      host_.count("sequence_naks");
      if (is_after(psn, acked_)) acked_ = psn;
      return retry(false);
    case NakCode::kInvalidRequest:
      return fail_request(IBV_WC_REM_INV_REQ_ERR);
    case NakCode::kRemoteAccessError:
      return fail_request(IBV_WC_REM_ACCESS_ERR);
    default:
      return fail_request(IBV_WC_REM_OP_ERR);
  }
}

// `ends`: the response is complete, as every response but a READ response FIRST or MIDDLE.
void LinuxQueuePair::advance(Psn psn, bool ends) {
  within_read_ = !ends;
  if (psn - acked_ >= 0) acked_ = psn + 1;
}

void LinuxQueuePair::complete_head(ibv_wc_status status) {
  const Request& head = requests_.front();
  if (head.has_read_slot) ++read_slots_;
  // The retransmission of the request was in progress.
  if (next_ == 0) {
    next_psn_ = head.last + 1;
  } else {
    --next_;
  }
  if (signal_all_ || (head.wr.send_flags & IBV_SEND_SIGNALED) != 0 || status != IBV_WC_SUCCESS)
    add_completion(head.wr.wr_id, status, IBV_WC_SEND, head.length, {});
  requests_.pop_front();
}

void LinuxQueuePair::retry(bool after_timeout) {
  if (requests_.empty() || requests_.front().state == Request::State::kPosted) return;
  // A second sign of a loss starts no second retransmission before there was progress.
  if (retry_started_ && !after_timeout) return;
  if (retries_left_ == 0) return fail_request(IBV_WC_RETRY_EXC_ERR);
  if (retries_left_ != kEndlessRetries) --retries_left_;
  if (next_psn_ - acked_ <= 0) return;
  host_.count(after_timeout ? "timeouts" : "retries");
  need_retry_ = retry_started_ = true;
}

void LinuxQueuePair::restart_timer() {
  if (timeout_ticks_ != 0 && next_psn_ - acked_ > 0) retransmit_at_ = host_.after_ticks(timeout_ticks_);
}

void LinuxQueuePair::reset_retries() {
  retries_left_ = retry_count_;
  rnr_retries_left_ = rnr_retry_;
  retry_started_ = false;
}

void LinuxQueuePair::fail_request(ibv_wc_status status) {
  complete_head(status);
  enter_error();
}

// Linux completes the request, with success, and fails the queue pair.
void LinuxQueuePair::unfit(const Packet& packet, const OpcodeInfo& opcode) {
  const Request& head = requests_.front();
  host_.complain("Linux queue pair " + std::to_string(number_) + " failed, because " +
                 std::string(opcode.name) + " with PSN " + std::to_string(packet.bth.psn.value()) +
                 " was no response to request " + std::to_string(head.wr.wr_id) + " of opcode " +
                 std::to_string(head.wr.opcode) + " with PSNs " + std::to_string(head.first.value()) +
                 " to " + std::to_string(head.last.value()) + ", of which " + std::to_string(acked_.value()) +
                 " was due");
  fail_request(IBV_WC_SUCCESS);
}

}  // namespace roci::test
