#include "engine/worker/attached_queue_pair.hpp"

#include "transport/rc/reliable_queue_pair.hpp"
#include "transport/unreliable/datagram_queue_pair.hpp"
#include "transport/unreliable/raw_packet_queue_pair.hpp"
#include "transport/unreliable/unreliable_queue_pair.hpp"
#include "transport/xrc/xrc_initiator.hpp"
#include "transport/xrc/xrc_target.hpp"

namespace roci {
namespace {

template <class Service>
struct Attached final : AttachedQueuePair {
  template <class... Needs>
  explicit Attached(SparseArena& arena, Needs&&... needs)
      : AttachedQueuePair(service), service(arena, std::forward<Needs>(needs)...) {}
  Service service;
};

// Memory of an idle queue pair: 12 cache lines. The headers state the content of each line.
static_assert(sizeof(AttachedQueuePair) == 2 * 64);
static_assert(sizeof(Attached<ReliableQueuePair>) == 12 * 64 && alignof(Attached<ReliableQueuePair>) == 64);

template <class Service, class... Needs>
std::unique_ptr<AttachedQueuePair> make(SparseArena& arena, Needs&&... needs) {
  std::unique_ptr<AttachedQueuePair> made(new (arena)
                                              Attached<Service>(arena, std::forward<Needs>(needs)...));
  return made != nullptr && made->core.complete() ? std::move(made) : nullptr;
}

}  // namespace

std::unique_ptr<AttachedQueuePair> make_queue_pair(SparseArena& arena, const QueuePairConfig& config,
                                                   CompletionRing& send_cq, CompletionRing& recv_cq) {
  switch (config.type) {
    case IBV_QPT_UC:
      return make<UnreliableQueuePair>(arena, config, send_cq, recv_cq);
    case IBV_QPT_UD:
      return make<DatagramQueuePair>(arena, config, send_cq, recv_cq);
    case IBV_QPT_RAW_PACKET:
      return make<RawPacketQueuePair>(arena, config, send_cq, recv_cq);
    case IBV_QPT_XRC_SEND:
      return make<XrcInitiator>(arena, config, send_cq, recv_cq);
    default:
      return make<ReliableQueuePair>(arena, config, send_cq, recv_cq);
  }
}

std::unique_ptr<AttachedQueuePair> make_xrc_target(SparseArena& arena, const QueuePairConfig& config,
                                                   XrcReceiveQueues& queues, const XrcDomainCore& domain) {
  return make<XrcTarget>(arena, config, queues, domain);
}

}  // namespace roci
