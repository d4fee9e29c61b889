// Creation, connection and ending of the queue pairs of an RC connection.
#include <algorithm>

#include "simulation/traffic/reliable.hpp"

namespace roci::test {

ReliableConnection::ReliableConnection(Network& network, const Scenario& scenario, Rng rng,
                                       Verifier& verifier, std::array<size_t, 2> hosts,
                                       std::array<Receives*, 2> shared)
    : network_(network), scenario_(scenario), rng_(rng), verifier_(verifier) {
  for (size_t side = 0; side < 2; ++side) {
    make_end(static_cast<int>(side), hosts[side], shared[side]);
    keeps_wrong_[side] = scenario.faults.corruption > 0 && !scenario.hosts[hosts[side]].check_before_placing;
  }
  terms_ = {.path_mtu = scenario.mtu,
            .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
            .traffic_class = 2,  // ECN-capable, so that links may mark packets
            .reads = static_cast<uint8_t>(rng_.between(1, 8)),
            .timeout = std::max(static_cast<uint8_t>(rng_.between(10, 13)), scenario.least_timeout()),
            .min_rnr_timer = static_cast<uint8_t>(rng_.between(1, 14))};
  if (scenario.kill || scenario.restart || scenario.stale_keys || scenario.long_outages)
    lives_left_ = static_cast<uint32_t>(rng_.between(1, 2));
  connect();
}

void ReliableConnection::make_end(int side, size_t host, Receives* shared) {
  End& end = ends_[side];
  end.side = side;
  end.host = host;
  end.linux_host = network_.linux_host(host);
  end.receives = shared == nullptr ? &end.own : shared;
  if (end.linux_host != nullptr) {
    register_memory(end, *end.linux_host);
  } else {
    Device& device = network_.device(host);
    end.pd = must(device.allocate_pd());
    if (scenario_.channels) end.channel = must(device.create_channel());
    end.cq = must(device.create_cq(512, nullptr, end.channel.get()));
    if (end.channel != nullptr) end.cq->request_notify(false);
    register_memory(end, *end.pd);
  }
  std::memcpy(end.words_image.data(), end.words.data(), sizeof end.words_image);
  end.landing_image = end.landing.copy();
  end.inbox_image = end.inbox.copy();
  end.source_sum = end.source.sum();
  end.signal_all = rng_.chance(0.5);
}

template <class Owner>
void ReliableConnection::register_memory(End& end, Owner& owner) {
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  constexpr size_t kBytes = kSlots * kSlotBytes;
  end.source.make(owner, kBytes, rng_, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
  end.landing.make(owner, kBytes, rng_, kLocal | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
  end.inbox.make(owner, kBytes, rng_, kLocal);
  end.words.make(owner, kWords * sizeof(uint64_t), rng_, kLocal | IBV_ACCESS_REMOTE_ATOMIC);
  end.originals.make(owner, kResultWords * sizeof(uint64_t), rng_, kLocal);
  if (!end.shares()) end.own.make(owner, kSlots, kSlotBytes, rng_);
}

void ReliableConnection::make_qp(End& end) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = end.signal_all ? 1 : 0;
  init.cap = {
      .max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128};
  if (end.linux_host != nullptr) {
    end.qp = std::make_unique<LinuxQueuePair>(*end.linux_host, init, end.completions);
    return;
  }
  end.qp = std::make_unique<DeviceQueuePair>(
      must(end.pd->create_qp(&init, *end.cq, *end.cq, end.receives->srq.get())));
}

// The model of a Linux host has no windows; its queue pairs use those of the peer.
void ReliableConnection::make_windows(End& end) {
  if (end.linux_host != nullptr) return;
  for (Window& window : end.windows) {
    window = Window{};
    window.object = must(end.pd->allocate_window(rng_.chance(0.6) ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1));
    window.key = window.object->rkey();
  }
}

void ReliableConnection::connect() {
  // Distance from every PSN of the last connection, whose packets may still be in flight.
  constexpr uint32_t kFar = 1 << 20;
  for (End& end : ends_) {
    if (end.qp == nullptr) make_qp(end);
    if (scenario_.windows) make_windows(end);
    const uint32_t far = end.first_psn + kFar + static_cast<uint32_t>(rng_.below((1 << 24) - 2 * kFar));
    const bool soon_wraps = rng_.chance(0.3);
    const uint32_t near_end = soon_wraps ? 0xffffff - static_cast<uint32_t>(rng_.below(200)) : 0;
    end.first_psn = soon_wraps && !end.wrapped ? near_end : far & 0xffffff;
    end.wrapped |= soon_wraps;
    end.life = Life::kRunning;
    end.seen_error = end.has_failed = end.forbade = end.abandoned_window = false;
    end.drain = End::Drain::kNo;
    end.to_post = static_cast<uint32_t>(rng_.between(5, 40));
    // Events of the previous connection.
    for (const auto type :
         {IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_FATAL})
      static_cast<void>(network_.take_events(end.host, type, end.qp->qp_num()));
  }
  for (int side = 0; side < 2; ++side) {
    End& local = ends_[side];
    const End& peer = ends_[1 - side];
    ConnectOptions terms = terms_;
    terms.rq_psn = peer.first_psn;
    terms.sq_psn = local.first_psn;
    local.qp->connect(network_.gid(peer.host), peer.qp->qp_num(), terms);
  }
  phase_ = Phase::kTraffic;
  has_cause_ = scenario_.may_give_up();
  choose_ending();
}

void ReliableConnection::choose_ending() {
  ending_ = Ending::kComplete;
  if (lives_left_ == 0) return;
  std::vector<Ending> endings{Ending::kComplete};
  if (scenario_.kill) endings.push_back(Ending::kKill);
  if (scenario_.restart) endings.insert(endings.end(), {Ending::kReset, Ending::kDestroy});
  if (scenario_.stale_keys) endings.push_back(Ending::kForbidden);
  ending_ = endings[rng_.below(endings.size())];
  ending_side_ = static_cast<int>(rng_.below(2));
  const uint32_t left = ends_[ending_side_].to_post;
  ending_at_ = ending_ == Ending::kForbidden ? 0 : static_cast<uint32_t>(rng_.below(left));
}

void ReliableConnection::act(Nanos now) {
  switch (phase_) {
    case Phase::kTraffic:
      for (int side = 0; side < 2; ++side) act_in_traffic(ends_[side], ends_[1 - side]);
      end_on_purpose();
      if (ends_[0].seen_error || ends_[1].seen_error || is_refused_for_ever()) phase_ = Phase::kEnding;
      if (phase_ == Phase::kEnding) patience_ = now + Nanos{static_cast<int64_t>(rng_.below(50'000'000))};
      return;
    case Phase::kEnding:
      for (int side = 0; side < 2; ++side) act_in_ending(ends_[side], ends_[1 - side], now);
      if (!over(ends_[0]) || !over(ends_[1])) return;
      settle();
      phase_ = lives_left_ > 0 ? Phase::kPause : Phase::kDone;
      resume_at_ = now + Nanos{static_cast<int64_t>(rng_.below(5'000'000))};
      return;
    case Phase::kPause:
      if (now < resume_at_) return;
      --lives_left_;
      ++verifier_.tally.reconnected;
      connect();
      return;
    case Phase::kDone:
      return;
  }
}

// Whether a Linux host repeats a forbidden request because the NAK was lost. Its retry count 7 has no limit.
bool ReliableConnection::is_refused_for_ever() const {
  return std::any_of(ends_.begin(), ends_.end(), [this](const End& end) {
    return end.linux_host != nullptr && end.forbade && ends_[1 - end.side].qp->state() == IBV_QPS_ERR;
  });
}

void ReliableConnection::act_in_traffic(End& local, End& peer) {
  look_for_failure(local);
  if (local.qp->state() == IBV_QPS_ERR) return;
  if (!local.shares()) local.receives->refill(local.qp.get(), rng_, scenario_.late_receives, verifier_);
  if (rng_.chance(0.5)) {
    for (uint64_t burst = rng_.between(1, 4); burst > 0; --burst) post_random(local, peer);
  }
  if (local.linux_host != nullptr) return;
  if (scenario_.resize && rng_.chance(0.1)) must(local.cq->resize(static_cast<int>(rng_.between(160, 1024))));
  if (scenario_.drain) drain(local);
}

// A queue pair that requires extensions fails without a completion if it never receives the peer's capability
// response.
void ReliableConnection::look_for_failure(End& end) {
  const uint32_t failures = network_.take_events(end.host, IBV_EVENT_QP_FATAL, end.qp->qp_num());
  if (failures == 0) return;
  if (failures > 1 || !scenario_.extensions_on || !has_cause_)
    verifier_.fail("a queue pair failed " + std::to_string(failures) + " times for no reason");
  end.seen_error = true;
}

// Moves the queue pair to SQD, and back to RTS when it has drained.
void ReliableConnection::drain(End& end) {
  using Drain = End::Drain;
  ibv_qp_attr attr{};
  switch (end.drain) {
    case Drain::kNo:
      if (!rng_.chance(0.05) || end.qp->state() != IBV_QPS_RTS || end.to_post == 0) return;
      attr.qp_state = IBV_QPS_SQD;
      attr.en_sqd_async_notify = rng_.chance(0.5) ? 1 : 0;
      end.drain_notifies = attr.en_sqd_async_notify != 0;
      must(end.verbs().modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
      end.drain = Drain::kDraining;
      return;
    case Drain::kDraining: {
      end.verbs().query(&attr, nullptr);
      const uint32_t events = network_.take_events(end.host, IBV_EVENT_SQ_DRAINED, end.qp->qp_num());
      if (attr.qp_state != IBV_QPS_SQD) return;  // the queue pair has failed
      if (attr.sq_draining != 0) {
        if (events != 0) verifier_.fail("a queue pair that is draining says that it has drained");
        return;
      }
      if (events != (end.drain_notifies ? 1U : 0U))
        verifier_.fail("a drained queue pair raised " + std::to_string(events) + " events");
      ++verifier_.tally.drained;
      end.drain = Drain::kDrained;
      return;
    }
    case Drain::kDrained:
      if (!rng_.chance(0.3) || end.qp->state() != IBV_QPS_SQD) return;
      attr.qp_state = IBV_QPS_RTS;
      attr.min_rnr_timer = terms_.min_rnr_timer;
      must(end.verbs().modify(attr, IBV_QP_STATE | (rng_.chance(0.5) ? IBV_QP_MIN_RNR_TIMER : 0)));
      end.drain = Drain::kNo;
  }
}

void ReliableConnection::end_on_purpose() {
  End& end = ends_[ending_side_];
  if (ending_ == Ending::kComplete || end.to_post > ending_at_ || end.seen_error) return;
  const Ending ending = std::exchange(ending_, Ending::kComplete);
  if (ending == Ending::kForbidden) {
    if (end.qp->state() == IBV_QPS_RTS && post_forbidden(end, ends_[1 - ending_side_])) {
      has_cause_ = end.forbade = true;
      end.losses_before = network_.losses();
    }
    return;
  }
  has_cause_ = true;
  phase_ = Phase::kEnding;
  if (ending == Ending::kKill) {
    fail_queue_pair(end);
    return;
  }
  vanish(end);
  if (ending == Ending::kDestroy) end.qp.reset();
}

// A reset removes completions of the queue pair, so the application polls the completion queue first.
void ReliableConnection::vanish(End& end) {
  reap(end, ends_[1 - end.side], true);
  end.qp->move_to(IBV_QPS_RESET);
  end.life = Life::kGone;
}

void ReliableConnection::fail_queue_pair(End& end) {
  end.qp->move_to(IBV_QPS_ERR);
  end.life = Life::kFailing;
  has_cause_ = true;
}

void ReliableConnection::act_in_ending(End& local, End& peer, Nanos now) {
  if (local.life != Life::kRunning) return;
  // The application stops after an error of its own queue pair, or at a random time. Until then it continues to post.
  if (local.seen_error || now >= patience_ || local.qp->state() == IBV_QPS_ERR || rng_.chance(0.05)) {
    fail_queue_pair(local);
    return;
  }
  if (peer.qp != nullptr && rng_.chance(0.3) && local.drain == End::Drain::kNo) post_random(local, peer);
}

bool ReliableConnection::over(End& end) {
  if (end.life == Life::kGone) return true;
  if (end.life == Life::kRunning || !flushed(end)) return false;
  if (!end.shares()) return end.receives->none_posted();
  const uint32_t events = network_.take_events(end.host, IBV_EVENT_QP_LAST_WQE_REACHED, end.qp->qp_num());
  if (events > 1) verifier_.fail("the last receive of a queue pair came twice");
  end.last_receive_seen |= events == 1;
  return end.last_receive_seen;
}

bool ReliableConnection::finished() const {
  if (phase_ == Phase::kDone) return true;
  return phase_ == Phase::kTraffic && ending_ == Ending::kComplete &&
         std::all_of(ends_.begin(), ends_.end(), [](const End& end) {
           return end.to_post == 0 && end.posted.empty() && end.drain == End::Drain::kNo && !end.seen_error;
         });
}

std::string ReliableConnection::state() const {
  std::string text = "RC, phase " + std::to_string(static_cast<int>(phase_));
  for (const End& end : ends_) {
    text += "; host " + std::to_string(end.host) + " life " + std::to_string(static_cast<int>(end.life)) +
            ", left to post " + std::to_string(end.to_post) + ", posted " + std::to_string(end.posted.size());
    if (end.qp != nullptr) text += ", state " + std::to_string(end.qp->state());
    if (end.posted.empty()) continue;
    text += ", request " + std::to_string(end.posted.front().wr_id) + " of opcode " +
            std::to_string(end.posted.front().opcode) + (end.posted.front().signaled ? " signalled" : "");
  }
  return text;
}

}  // namespace roci::test
