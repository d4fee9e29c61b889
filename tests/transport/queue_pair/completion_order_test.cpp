// The slot of a send request is free when its completion becomes visible. A completion queue that is full reports the
// completion at that moment: the push fails, and an event is raised.
#include <gtest/gtest.h>

#include <optional>
#include <type_traits>

#include "base/containers/sparse_arena.hpp"
#include "support/hosts/bare_context.hpp"
#include "transport/rc/reliable_queue_pair.hpp"
#include "transport/unreliable/datagram_queue_pair.hpp"

namespace roci::test {
namespace {

// Records whether the send queue is full when the completion queue reports the lost completion.
class Observer final : public EventSink {
 public:
  bool raise(const AsyncEvent& event) override {
    if (event.type == IBV_EVENT_CQ_ERR) full_at_completion = queue_pair->send_queue.full();
    return true;
  }
  QueuePairCore* queue_pair = nullptr;
  std::optional<bool> full_at_completion;
};

template <class QueuePair>
class CompletionOrder : public testing::Test {};
using Kinds = testing::Types<ReliableQueuePair, DatagramQueuePair>;
TYPED_TEST_SUITE(CompletionOrder, Kinds);

TYPED_TEST(CompletionOrder, slot_is_free_when_the_completion_becomes_visible) {
  SparseArena arena;
  CompletionRing completions(1);
  ASSERT_TRUE(completions.push(ibv_wc{}, false));
  QueuePairConfig config;
  config.type = std::is_same_v<TypeParam, DatagramQueuePair> ? IBV_QPT_UD : IBV_QPT_RC;
  config.max_send_wr = 1;
  TypeParam queue_pair(arena, config, completions, completions);
  Observer observer;
  observer.queue_pair = &queue_pair;
  BareContext bare(observer);

  SendWqe& request = queue_pair.send_queue.next_free();
  request.send_flags = IBV_SEND_SIGNALED;
  queue_pair.send_queue.publish();
  ASSERT_TRUE(queue_pair.send_queue.full());
  queue_pair.complete_send(bare.context, request, IBV_WC_SUCCESS);
  EXPECT_EQ(observer.full_at_completion, false);
}

}  // namespace
}  // namespace roci::test
