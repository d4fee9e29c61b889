// Flow rule of a raw packet queue pair: selects the frames that it receives. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "roci/result.hpp"

namespace roci {

class Host;
class QueuePair;

// Receive side scaling of a flow rule: a hash of each frame selects the queue pair that receives it.
struct RssTable {
  static constexpr uint32_t kMaxQueues = 128;
  // Fields that can be hashed.
  static constexpr uint64_t kFields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |
                                      IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP |
                                      IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP |
                                      IBV_RX_HASH_DST_PORT_UDP;

  // Raw packet queue pairs of the device, which may be repeated: a power of two, 1 to kMaxQueues of them.
  std::vector<QueuePair*> queues;
  std::array<uint8_t, 40> key{};  // of the Toeplitz function
  uint64_t fields = 0;            // ibv_rx_hash_fields, of kFields
};

// Flow rule, as ibv_flow. Created by QueuePair::create_flow(). It ends with this object, with its queue pair, or with one
// of its RssTable.
class FlowRule {
 public:
  ~FlowRule();
  FlowRule(const FlowRule&) = delete;
  FlowRule& operator=(const FlowRule&) = delete;

 private:
  friend class QueuePair;
  FlowRule(std::shared_ptr<Host> host, uint32_t id);
  std::shared_ptr<Host> host_;
  uint32_t id_;
};

}  // namespace roci
