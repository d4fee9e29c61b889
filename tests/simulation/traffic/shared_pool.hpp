// Shared receive queue of a host. The application refills it at the limit event or at random times.
#pragma once

#include "simulation/scenario/network.hpp"
#include "simulation/traffic/receives.hpp"

namespace roci::test {

class SharedPool {
 public:
  // A queue pair that is reset during a message loses a request, so there are spare slots.
  static constexpr size_t kSlots = 24;

  SharedPool(Network& network, size_t host, Rng rng, Verifier& verifier, size_t slot_bytes)
      : network_(network), host_(host), rng_(rng), verifier_(verifier) {
    pd_ = must(network.device(host).allocate_pd());
    receives.make(*pd_, kSlots, slot_bytes, rng_);
    receives.share(*pd_, kSlots);
  }

  void act(bool late) {
    const uint32_t reached = network_.take_events(host_, IBV_EVENT_SRQ_LIMIT_REACHED, receives.srq->number());
    if (reached > armed_)
      verifier_.fail("a shared receive queue says that it reached a limit which was not armed");
    verifier_.tally.limits_reached += reached;
    armed_ -= reached;
    if (reached == 0 && receives.srq->query().srq_limit == 0 && armed_ > 0)
      verifier_.fail("a shared receive queue disarmed its limit and said nothing");
    receives.refill(static_cast<QueuePair*>(nullptr), rng_, late && reached == 0, verifier_);
    if (armed_ == 0 && rng_.chance(0.2)) {
      ibv_srq_attr attr{};
      attr.srq_limit = static_cast<uint32_t>(rng_.between(1, 8));
      must(receives.srq->modify(attr, IBV_SRQ_LIMIT));
      armed_ = 1;
    }
  }
  void check() {
    if (!receives.memory.guards_hold()) verifier_.fail("bytes outside a shared mailbox were written");
  }

  Receives receives;

 private:
  Network& network_;
  size_t host_;
  Rng rng_;
  Verifier& verifier_;
  std::unique_ptr<ProtectionDomain> pd_;
  uint32_t armed_ = 0;
};

}  // namespace roci::test
