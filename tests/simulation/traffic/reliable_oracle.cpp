// Oracle of an RC connection.
#include <algorithm>

#include "simulation/traffic/reliable.hpp"
#include "transport/rc/reliable_queue_pair.hpp"

namespace roci::test {
namespace {

std::string name_of(uint64_t wr_id) { return "request " + std::to_string(wr_id); }

}  // namespace

ReliableQueuePair& ReliableConnection::inside(const End& end) {
  const Qpn number{end.qp->qp_num()};
  return dynamic_cast<ReliableQueuePair&>(
      network_.device(end.host).host().worker_of(number).find(number)->core);
}

int ReliableConnection::End::poll_completions(int most, ibv_wc* out) {
  if (cq != nullptr) return cq->poll(most, out);
  int count = 0;
  for (; count < most && !completions.empty(); completions.pop_front()) out[count++] = completions.front();
  return count;
}

void ReliableConnection::reap() {
  reap(ends_[0], ends_[1], false);
  reap(ends_[1], ends_[0], false);
}

void ReliableConnection::reap(End& local, End& peer, bool forced) {
  if (local.channel != nullptr && !forced) {
    if (!local.channel->get_event()) return;
    local.cq->ack_events(1);
    local.cq->request_notify(false);
  }
  ibv_wc wc[8];
  for (;;) {
    const int count = local.poll_completions(8, wc);
    if (count < 0) verifier_.fail("a completion queue overflowed");
    if (count <= 0) return;
    for (int i = 0; i < count && verifier_.content(); ++i) {
      if (local.qp == nullptr || local.life == Life::kGone || wc[i].qp_num != local.qp->qp_num()) {
        verifier_.fail("a completion names a queue pair that is not there");
      } else if (wc[i].wr_id >= kFirstReceiveId) {
        on_receive_done(local, peer, wc[i]);
      } else {
        on_send_done(local, peer, wc[i]);
      }
    }
  }
}

void ReliableConnection::on_send_done(End& local, End& peer, const ibv_wc& wc) {
  // A completion also completes all unsignaled requests before it.
  for (; !local.posted.empty() && local.posted.front().wr_id != wc.wr_id; local.posted.pop_front()) {
    const Posted& before = local.posted.front();
    if (before.signaled || local.seen_error) {
      verifier_.fail(name_of(before.wr_id) + " got no completion before " + std::to_string(wc.wr_id));
      return;
    }
    retire(local, peer, before, true);
  }
  if (local.posted.empty()) {
    verifier_.fail(name_of(wc.wr_id) + " completed twice, or was never posted");
    return;
  }
  const Posted op = local.posted.front();
  local.posted.pop_front();
  const bool success = wc.status == IBV_WC_SUCCESS;
  if (success) {
    if (local.seen_error) verifier_.fail("a success after the error");
    if (!op.signaled) verifier_.fail("an unsignalled request has a completion");
    ++verifier_.tally.completed;
  } else {
    verify_error(local, op, wc);
    local.seen_error = true;
    local.has_failed |= wc.status != IBV_WC_WR_FLUSH_ERR;
  }
  retire(local, peer, op, success);
}

// Returns whether the send queue of a failed queue pair is empty. An unsignaled request that was acknowledged just
// before the error has no completion if no later request is flushed.
bool ReliableConnection::flushed(End& end) {
  if (end.posted.empty()) return true;
  // A queue pair of Linux has flushed its queues when it is in the error state.
  if (end.linux_host == nullptr && !inside(end).send_queue.empty()) return false;
  End& peer = ends_[1 - end.side];
  reap(end, peer, true);
  for (; !end.posted.empty(); end.posted.pop_front()) {
    if (end.posted.front().signaled || end.seen_error)
      verifier_.fail(name_of(end.posted.front().wr_id) + " got no completion");
    retire(end, peer, end.posted.front(), true);
  }
  return true;
}

// Whether the NAK of a rejected request arrives before anything else ends the queue pair.
bool ReliableConnection::learns_of_rejections(const End& local) const {
  return local.life == Life::kRunning && !local.has_failed && !scenario_.slow_hosts &&
         !scenario_.small_ports && network_.losses() == local.losses_before;
}

void ReliableConnection::verify_error(End& local, const Posted& op, const ibv_wc& wc) {
  if (op.forbidden && learns_of_rejections(local)) {
    ++verifier_.tally.refusals_due;
    if (wc.status != IBV_WC_REM_ACCESS_ERR)
      verifier_.fail("forbidden " + name_of(op.wr_id) + " ended with status " + std::to_string(wc.status));
  }
  switch (wc.status) {
    case IBV_WC_RETRY_EXC_ERR:
      if (local.seen_error) break;
      ++(has_cause_ ? verifier_.tally.gave_up_with_cause : verifier_.tally.gave_up);
      return;
    case IBV_WC_REM_ACCESS_ERR:
      if (!op.forbidden) break;
      ++verifier_.tally.accesses_refused;
      return;
    case IBV_WC_WR_FLUSH_ERR:
      // Caused by an earlier error of this queue pair, by its application, or by a request of the peer. READs before
      // a rejected request are flushed, too.
      if (local.seen_error || local.life == Life::kFailing || has_cause_) return;
      break;
    default:
      break;
  }
  verifier_.fail(name_of(op.wr_id) + " (opcode " + std::to_string(op.opcode) + ") ended with status " +
                 std::to_string(wc.status));
}

void ReliableConnection::retire(End& local, End& peer, const Posted& op, bool success) {
  if (op.through != nullptr) --op.through->users;
  if (!success) {
    local.abandoned_window |= op.through != nullptr;
    local.unfinished.push_back(op);
    return;
  }
  if (op.forbidden) verifier_.fail("an access through the key of a window that is gone was granted");
  retire_success(local, peer, op);
}

void ReliableConnection::retire_success(End& local, End& peer, const Posted& op) {
  for (Announced& message : local.announced) {
    if (message.wr_id == op.wr_id) message.acknowledged = true;
  }
  if (op.is_atomic()) {
    retire_atomic(local, peer, op);
  } else if (op.is_read()) {
    local.inbox_busy[op.target / kSlotBytes] = false;
    std::memcpy(local.inbox_image.data() + op.target, peer.source.data() + op.source, op.length);
    if (std::memcmp(local.inbox.data() + op.target, peer.source.data() + op.source, op.length) != 0)
      verifier_.fail("READ " + name_of(op.wr_id) + " brought wrong bytes");
  } else if (op.is_write()) {
    peer.landing_busy[op.target / kSlotBytes] = false;
    std::memcpy(peer.landing_image.data() + op.target, local.source.data() + op.source, op.length);
    // The completion of an unsignaled WRITE is known only now. Its slot was not reused before.
    if (std::memcmp(peer.landing.data() + op.target, local.source.data() + op.source, op.length) != 0)
      verifier_.fail("WRITE " + name_of(op.wr_id) + " left wrong bytes");
  } else if (op.subject != nullptr) {
    Window& window = *op.subject;
    const bool opened = window.state == Window::State::kBinding;
    if (!opened) window.stale_key = window.closing_key;
    window.state = opened ? Window::State::kOpen : Window::State::kFree;
  }
}

// Atomics of one queue pair are executed once each, in the order of posting. So the model's word is the original
// value of each.
void ReliableConnection::retire_atomic(End& local, End& peer, const Posted& op) {
  uint64_t original = 0;
  std::memcpy(&original, local.originals.data() + op.target * sizeof original, sizeof original);
  uint64_t& word = peer.words_image[op.source];
  if (original != word) verifier_.fail("atomic " + name_of(op.wr_id) + " found a word that was not there");
  if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    word += op.operands[0];
  } else if (word == op.operands[0]) {
    word = op.operands[1];
  }
}

void ReliableConnection::on_receive_done(End& local, End& peer, const ibv_wc& wc) {
  const auto slot = local.receives->complete(wc.wr_id, verifier_);
  if (!slot) return;
  local.receives->give_back(*slot);
  const std::string receive = "receive " + std::to_string(wc.wr_id - kFirstReceiveId);
  if (wc.status == IBV_WC_WR_FLUSH_ERR && (local.seen_error || has_cause_ || local.life == Life::kFailing))
    return;
  if (wc.status != IBV_WC_SUCCESS) {
    verifier_.fail(receive + " ended with status " + std::to_string(wc.status));
    return;
  }
  if (peer.announced.empty()) {
    verifier_.fail(receive + " completed, and nobody had sent for it");
    return;
  }
  const Announced message = peer.announced.front();
  peer.announced.pop_front();
  const bool has_imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  const bool has_inv = (wc.wc_flags & IBV_WC_WITH_INV) != 0;
  if ((wc.opcode == IBV_WC_RECV) != message.is_send || wc.byte_len != message.length ||
      has_imm != message.has_imm || (has_imm && wc.imm_data != message.imm) ||
      has_inv != (message.invalidates != nullptr) ||
      (has_inv && wc.invalidated_rkey != message.invalidates->key)) {
    verifier_.fail(receive + " tells of another message than the one that was due");
  }
  if (message.is_send &&
      std::memcmp(local.receives->at(*slot), peer.source.data() + message.source, message.length) != 0) {
    verifier_.fail("SEND brought wrong bytes to " + receive);
  }
  if (has_inv) {
    message.invalidates->stale_key = message.invalidates->key;
    message.invalidates->state = Window::State::kFree;
  }
}

// Both queue pairs have ended and write nothing more. A request without a completion had no effects other than a part
// of its own.
void ReliableConnection::settle() {
  for (int side = 0; side < 2; ++side) reap(ends_[side], ends_[1 - side], true);
  for (End& end : ends_) {
    const End& other = ends_[1 - end.side];
    // The window may have been invalidated after the request ended and before its packets arrived.
    const bool provoked = other.forbade || other.abandoned_window;
    const uint32_t violations =
        end.qp == nullptr ? 0 : network_.take_events(end.host, IBV_EVENT_QP_ACCESS_ERR, end.qp->qp_num());
    if (violations > (provoked ? 1U : 0U))
      verifier_.fail("an access violation was raised that nobody committed");
    if (end.life == Life::kFailing) end.qp->move_to(IBV_QPS_RESET);
    // Linux takes any later PSN for an acknowledgment, also that of a late packet for the previous connection.
    if (end.qp != nullptr && (rng_.chance(0.3) || end.linux_host != nullptr)) end.qp.reset();
    end.life = Life::kGone;
    end.last_receive_seen = false;
    if (!end.shares()) end.receives->forget_posted();
  }
  for (int side = 0; side < 2; ++side) settle_requests(ends_[side], ends_[1 - side]);
}

void ReliableConnection::settle_requests(End& local, End& peer) {
  for (const Posted& op : local.posted) local.unfinished.push_back(op);
  local.posted.clear();
  for (const Announced& message : local.announced) {
    if (message.acknowledged) verifier_.fail(name_of(message.wr_id) + " was acknowledged and never received");
  }
  local.announced.clear();
  for (const Posted& op : local.unfinished) {
    const size_t length = op.forbidden ? 0 : op.length;
    if (op.is_write()) {
      settle_range(peer.landing, peer.landing_image, op.target, local.source.data() + op.source, length,
                   "WRITE", keeps_wrong_[&peer == &ends_[1] ? 1 : 0]);
      peer.landing_busy[op.target / kSlotBytes] = false;
    } else if (op.is_read()) {
      settle_range(local.inbox, local.inbox_image, op.target, peer.source.data() + op.source, length, "READ",
                   keeps_wrong_[&local == &ends_[1] ? 1 : 0]);
      local.inbox_busy[op.target / kSlotBytes] = false;
    }
  }
  settle_atomics(local, peer);
  local.unfinished.clear();
}

// Each byte of the range must have its old or its new value, except with `keeps_wrong`.
void ReliableConnection::settle_range(Arena& memory, std::vector<uint8_t>& image, size_t target,
                                      const uint8_t* data, size_t length, const char* what,
                                      bool keeps_wrong) {
  for (size_t i = 0; i < length; ++i) {
    uint8_t& old = image[target + i];
    const uint8_t now = memory.data()[target + i];
    if (now != old && now != data[i] && !keeps_wrong) {
      verifier_.fail(std::string("an unfinished ") + what + " left bytes that are neither old nor new");
      return;
    }
    old = now;
  }
}

// Of the atomics without a completion, a prefix was executed.
void ReliableConnection::settle_atomics(End& local, End& peer) {
  std::array<uint64_t, kWords> now{};
  std::memcpy(now.data(), peer.words.data(), sizeof now);
  auto& model = peer.words_image;
  bool reached = model == now;
  for (const Posted& op : local.unfinished) {
    if (reached) break;
    if (!op.is_atomic()) continue;
    uint64_t& word = model[op.source];
    if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      word += op.operands[0];
    } else if (word == op.operands[0]) {
      word = op.operands[1];
    }
    reached = model == now;
  }
  if (!reached) verifier_.fail("no number of the unfinished atomics explains what the words are");
  model = now;
}

void ReliableConnection::check() {
  for (int side = 0; side < 2; ++side) {
    End& local = ends_[side];
    reap(local, ends_[1 - side], true);
  }
  for (int side = 0; side < 2; ++side) {
    check_end(ends_[side]);
    if (phase_ == Phase::kTraffic) check_sequences(ends_[side], ends_[1 - side]);
  }
}

void ReliableConnection::check_end(End& end) {
  for (const Arena* arena :
       {&end.source, &end.landing, &end.inbox, &end.words, &end.originals, &end.receives->memory}) {
    if (!arena->guards_hold()) verifier_.fail("bytes outside a region were written");
  }
  if (end.source.sum() != end.source_sum) verifier_.fail("memory that nobody may write was written");
  if (end.landing.copy() != end.landing_image) verifier_.fail("memory for WRITEs differs from the oracle's");
  if (end.inbox.copy() != end.inbox_image) verifier_.fail("memory for READs differs from the oracle's");
  if (std::memcmp(end.words.data(), end.words_image.data(), sizeof end.words_image) != 0)
    verifier_.fail("memory for atomics differs from the oracle's");
  if (!end.announced.empty())
    verifier_.fail(name_of(end.announced.front().wr_id) + " was acknowledged and never received");
}

// Both hosts must have the same byte counts in each direction, and keep no packet after a gap was closed.
void ReliableConnection::check_sequences(End& local, End& peer) {
  if (local.linux_host != nullptr) return;
  ReliableQueuePair& mine = inside(local);
  const SendFlow& sent = mine.requester.flow();
  if (peer.linux_host != nullptr) {
    if (!(sent.next == sent.acknowledged)) verifier_.fail("bytes of requests are not acknowledged");
    return;
  }
  ReliableQueuePair& theirs = inside(peer);
  if (!(sent.next == sent.acknowledged) || !(sent.next == theirs.responder.flow().received))
    verifier_.fail("the two ends count different bytes of requests");
  if (!(mine.requester.response_flow().received == theirs.responder.response_flow().next))
    verifier_.fail("the two ends count different bytes of READ responses");
  if (mine.session != nullptr && mine.session->reorder_buffer && !mine.session->reorder_buffer->empty())
    verifier_.fail("frames are kept though no gap is open");
}

}  // namespace roci::test
