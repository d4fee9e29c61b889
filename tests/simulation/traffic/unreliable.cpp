#include "simulation/traffic/unreliable.hpp"

#include <algorithm>

namespace roci::test {

UnreliableConnection::UnreliableConnection(Network& network, const Scenario& scenario, Rng rng,
                                           Verifier& verifier, std::array<size_t, 2> hosts)
    : scenario_(scenario),
      rng_(rng),
      verifier_(verifier),
      // A corrupted DSCP or VLAN priority, which the ICRC does not cover, can change the order of packets in the switch.
      in_order_(scenario.faults.duplication == 0 && scenario.faults.reordering == 0 &&
                scenario.faults.corruption == 0) {
  for (size_t side = 0; side < 2; ++side) {
    End& end = ends_[side];
    end.host = hosts[side];
    end.pd = must(network.device(end.host).allocate_pd());
    end.cq = must(network.device(end.host).create_cq(256));
    end.source.make(*end.pd, 8 * kSlotBytes, rng_, 0);
    end.landing.make(*end.pd, kWriteSlots * kSlotBytes, rng_,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    end.landing_image = end.landing.copy();
    end.receives.make(*end.pd, 16, kSlotBytes, rng_);
    end.to_post = static_cast<uint32_t>(rng_.between(5, 40));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_UC;
    init.sq_sig_all = rng_.chance(0.5) ? 1 : 0;
    init.cap = {
        .max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128};
    end.qp = must(end.pd->create_qp(&init, *end.cq, *end.cq));
  }
  const std::array<uint32_t, 2> psns{static_cast<uint32_t>(rng_.chance(0.5) ? 0xffffff - rng_.below(50) : 7),
                                     static_cast<uint32_t>(rng_.below(1 << 24))};
  for (size_t side = 0; side < 2; ++side) {
    connect_to(*ends_[side].qp, IBV_QPT_UC, network.gid(ends_[1 - side].host), ends_[1 - side].qp->qp_num(),
               {.rq_psn = psns[1 - side],
                .sq_psn = psns[side],
                .path_mtu = scenario.mtu,
                .access = IBV_ACCESS_REMOTE_WRITE,
                .traffic_class = 2});
  }
}

void UnreliableConnection::act(Nanos) {
  for (size_t side = 0; side < 2; ++side) {
    End& local = ends_[side];
    local.receives.refill(local.qp.get(), rng_, scenario_.late_receives, verifier_);
    if (!rng_.chance(0.5)) continue;
    for (uint64_t burst = rng_.between(1, 3); burst > 0; --burst) post_random(local, ends_[1 - side]);
  }
}

void UnreliableConnection::post_random(End& local, End& peer) {
  if (local.to_post == 0) return;
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                        IBV_WR_RDMA_WRITE_WITH_IMM};
  Message message;
  message.opcode = kOpcodes[rng_.below(std::size(kOpcodes))];
  if (message.is_write() && local.next_slot == kWriteSlots) message.opcode = IBV_WR_SEND;
  message.wr_id = local.messages.size();
  message.signaled = rng_.chance(0.5) || local.to_post == 1;
  message.length = rng_.chance(0.1)   ? 0
                   : rng_.chance(0.5) ? static_cast<uint32_t>(rng_.between(1, 128))
                                      : static_cast<uint32_t>(rng_.between(1, kSlotBytes));
  message.source = rng_.below(local.source.size() - message.length + 1);
  message.imm = static_cast<uint32_t>(rng_.next());
  if (message.is_write()) message.target = local.next_slot++ * kSlotBytes;
  ibv_sge list[4];
  ibv_send_wr wr{};
  wr.wr_id = message.wr_id;
  wr.sg_list = list;
  wr.num_sge = local.source.pieces(rng_, message.source, message.length, 4, list);
  wr.opcode = message.opcode;
  wr.imm_data = message.imm;
  if (message.signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  if (message.length <= 128 && rng_.chance(0.5)) wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.rdma = {peer.landing.address(message.target), peer.landing.region->rkey()};
  ibv_send_wr* bad = nullptr;
  if (const int code = local.qp->post_send(&wr, &bad); code != 0) {
    if (code != ENOMEM) verifier_.fail("post_send of UC gave " + std::to_string(code));
    if (message.is_write()) --local.next_slot;
    return;  // the send queue is full
  }
  ibv_qp_init_attr init{};
  local.qp->query(nullptr, &init);
  message.signaled |= init.sq_sig_all != 0;
  local.messages.push_back(message);
  --local.to_post;
}

void UnreliableConnection::reap() {
  reap(ends_[0], ends_[1]);
  reap(ends_[1], ends_[0]);
}

void UnreliableConnection::reap(End& local, End& peer) {
  ibv_wc wc{};
  while (verifier_.content() && local.cq->poll(1, &wc) == 1) {
    if (wc.status != IBV_WC_SUCCESS) {
      verifier_.fail("a UC request ended with status " + std::to_string(wc.status));
    } else if (wc.wr_id >= kFirstReceiveId) {
      on_receive_done(local, peer, wc);
    } else {
      on_send_done(local, wc);
    }
  }
}

void UnreliableConnection::on_send_done(End& local, const ibv_wc& wc) {
  if (wc.wr_id < local.next_done || wc.wr_id >= local.messages.size()) {
    verifier_.fail("UC request " + std::to_string(wc.wr_id) + " completed twice, or was never posted");
    return;
  }
  for (; local.next_done < wc.wr_id; ++local.next_done) {
    if (local.messages[local.next_done].signaled)
      verifier_.fail("UC request " + std::to_string(local.next_done) + " got no completion");
  }
  if (!local.messages[wc.wr_id].signaled) verifier_.fail("an unsignalled UC request has a completion");
  local.next_done = wc.wr_id + 1;
  ++verifier_.tally.completed;
}

bool UnreliableConnection::is(const Message& message, const End& sender, const ibv_wc& wc,
                              const uint8_t* bytes) const {
  const bool has_imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (!message.tells() || message.is_write() != (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) ||
      message.length != wc.byte_len || message.has_imm() != has_imm ||
      (has_imm && message.imm != wc.imm_data))
    return false;
  return std::memcmp(bytes + (message.is_write() ? message.target : 0), sender.source.data() + message.source,
                     message.length) == 0;
}

void UnreliableConnection::on_receive_done(End& local, End& peer, const ibv_wc& wc) {
  const auto slot = local.receives.complete(wc.wr_id, verifier_);
  if (!slot) return;
  local.receives.give_back(*slot);
  const uint8_t* bytes = wc.opcode == IBV_WC_RECV ? local.receives.at(*slot) : local.landing.data();
  auto& sent = peer.messages;
  const auto from = sent.begin() + static_cast<std::ptrdiff_t>(in_order_ ? peer.next_due : 0);
  const auto found =
      std::find_if(from, sent.end(), [&](const Message& message) { return is(message, peer, wc, bytes); });
  if (found == sent.end()) {
    verifier_.fail("a UC message of " + std::to_string(wc.byte_len) +
                   " bytes arrived that was not sent, or not whole, or out of order, or twice");
    return;
  }
  ++found->arrived;
  peer.next_due = static_cast<size_t>(found - sent.begin()) + 1;
}

bool UnreliableConnection::finished() const {
  return std::all_of(ends_.begin(), ends_.end(),
                     [](const End& end) { return end.to_post == 0 && end.next_done == end.messages.size(); });
}

std::string UnreliableConnection::state() const {
  std::string text = "UC";
  for (const End& end : ends_) {
    text += "; host " + std::to_string(end.host) + " left to post " + std::to_string(end.to_post) +
            ", posted " + std::to_string(end.messages.size()) + ", done " + std::to_string(end.next_done);
  }
  return text;
}

void UnreliableConnection::check() {
  reap();
  for (size_t side = 0; side < 2; ++side) {
    End& end = ends_[side];
    if (!end.source.guards_hold() || !end.landing.guards_hold() || !end.receives.memory.guards_hold())
      verifier_.fail("bytes outside a region of UC were written");
    check_writes(end, ends_[1 - side]);
    for (const Message& message : end.messages) {
      if (!message.tells()) continue;
      ++(message.arrived == 0 ? verifier_.tally.messages_lost : verifier_.tally.messages_arrived);
    }
  }
}

void UnreliableConnection::check_writes(End& local, End& peer) {
  std::vector<uint8_t> expected = peer.landing_image;
  for (const Message& message : local.messages) {
    if (!message.is_write()) continue;
    const uint8_t* there = peer.landing.data() + message.target;
    const uint8_t* sent = local.source.data() + message.source;
    if (message.arrived > 0 && std::memcmp(there, sent, message.length) != 0)
      verifier_.fail("a UC WRITE that has arrived is not whole");
    for (size_t i = 0; i < message.length; ++i) {
      if (there[i] == sent[i]) expected[message.target + i] = sent[i];
    }
  }
  if (peer.landing.copy() != expected) verifier_.fail("a UC WRITE left bytes that are neither old nor new");
}

}  // namespace roci::test
