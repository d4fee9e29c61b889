// Queue pair attributes derived from connection messages (lib/rdmacm/messages.hpp).
#include <gtest/gtest.h>

#include "rdmacm/messages.hpp"

namespace roci::rdmacm {
namespace {

TEST(Terms, passive_side_uses_the_ack_timeout_of_the_request) {
  CmRequest request;
  request.primary.ack_timeout = 14;
  EXPECT_EQ(terms_of(request).ack_timeout, 14);
}

// The values of cm_ack_timeout() in Linux (drivers/infiniband/core/cm.c), for a packet lifetime of 16.
TEST(Terms, active_side_adds_the_ack_delay_of_the_peer) {
  const auto timeout_for = [](uint8_t ack_delay) {
    Terms terms;
    CmReply reply;
    reply.target_ack_delay = ack_delay;
    apply(terms, reply, IBV_QPT_RC);
    return terms.ack_timeout;
  };
  EXPECT_EQ(timeout_for(0), 17);
  EXPECT_EQ(timeout_for(15), 17) << "rdma_rxe";
  EXPECT_EQ(timeout_for(16), 18);
  EXPECT_EQ(timeout_for(17), 18);
  EXPECT_EQ(timeout_for(18), 19);
  EXPECT_EQ(timeout_for(19), 19);
  EXPECT_EQ(timeout_for(31), 31);
}

}  // namespace
}  // namespace roci::rdmacm
