// Flow rule of a raw packet queue pair: selects the frames that it receives. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;

// Flow rule, as ibv_flow. Created by QueuePair::create_flow(). It ends with this object or with its queue pair.
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
