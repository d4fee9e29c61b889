#include "engine/attached_queue_pair.hpp"

#include "transport/reliable_queue_pair.hpp"

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
  return std::make_unique<Attached<ReliableQueuePair>>(config, send_cq, recv_cq);
}

}  // namespace roci
