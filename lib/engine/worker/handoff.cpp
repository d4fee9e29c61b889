#include "engine/worker/handoff.hpp"

namespace roci {

Handoff::Handoff(uint32_t workers, uint32_t queues)
    : workers_(workers),
      queues_(queues),
      inboxes_(size_t{workers} * workers),
      outgoing_(workers),
      port_states_(queues) {
  for (uint32_t from = 0; from < workers; ++from) {
    for (uint32_t to = 0; to < workers; ++to) {
      if (from != to) inboxes_[from * workers + to] = std::make_unique<FrameRing>(kRing);
    }
    if (needs_relay(from)) outgoing_[from] = std::make_unique<FrameRing>(kRing);
  }
}

Handoff::~Handoff() {
  for (const auto* rings : {&inboxes_, &outgoing_}) {
    for (const auto& ring : *rings) {
      rte_mbuf* frame = nullptr;
      while (ring != nullptr && ring->pop({&frame, 1}) == 1) rte_pktmbuf_free(frame);
    }
  }
}

}  // namespace roci
