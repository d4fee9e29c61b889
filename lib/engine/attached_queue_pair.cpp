#include "engine/attached_queue_pair.hpp"

#include "transport/datagram_queue_pair.hpp"
#include "transport/reliable_queue_pair.hpp"
#include "transport/unreliable_queue_pair.hpp"

namespace roci {
namespace {

template <class Service>
struct Attached final : AttachedQueuePair {
  Attached(const QueuePairConfig& config, CompletionRing& send_cq, CompletionRing& recv_cq)
      : AttachedQueuePair(service), service(config, send_cq, recv_cq) {}
  Service service;
};

}  // namespace

std::unique_ptr<AttachedQueuePair> make_queue_pair(const QueuePairConfig& config, CompletionRing& send_cq,
                                                   CompletionRing& recv_cq) {
  switch (config.type) {
    case IBV_QPT_UC:
      return std::make_unique<Attached<UnreliableQueuePair>>(config, send_cq, recv_cq);
    case IBV_QPT_UD:
      return std::make_unique<Attached<DatagramQueuePair>>(config, send_cq, recv_cq);
    default:
      return std::make_unique<Attached<ReliableQueuePair>>(config, send_cq, recv_cq);
  }
}

}  // namespace roci
