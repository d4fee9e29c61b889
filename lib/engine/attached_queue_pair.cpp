#include "engine/attached_queue_pair.hpp"

#include "transport/datagram_queue_pair.hpp"
#include "transport/reliable_queue_pair.hpp"
#include "transport/unreliable_queue_pair.hpp"

namespace roci {
namespace {

template <class Service>
struct Attached final : AttachedQueuePair {
  Attached(SparseArena& arena, const QueuePairConfig& config, CompletionRing& send_cq,
           CompletionRing& recv_cq)
      : AttachedQueuePair(service), service(arena, config, send_cq, recv_cq) {}
  Service service;
};

// What an idle queue pair takes: 12 cache lines, of which the headers name each.
static_assert(sizeof(AttachedQueuePair) == 2 * 64);
static_assert(sizeof(Attached<ReliableQueuePair>) == 12 * 64 && alignof(Attached<ReliableQueuePair>) == 64);

template <class Service>
std::unique_ptr<AttachedQueuePair> make(SparseArena& arena, const QueuePairConfig& config,
                                        CompletionRing& send_cq, CompletionRing& recv_cq) {
  std::unique_ptr<AttachedQueuePair> made(new (arena) Attached<Service>(arena, config, send_cq, recv_cq));
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
    default:
      return make<ReliableQueuePair>(arena, config, send_cq, recv_cq);
  }
}

}  // namespace roci
