// A flow of a congestion control algorithm that is destroyed with its owner.
#pragma once

#include <memory>

#include "congestion/control_flow.hpp"

namespace roci::test {

struct DestroyFlow {
  void operator()(ControlFlow* flow) const { flow->destroy(); }
};
using OwnedFlow = std::unique_ptr<ControlFlow, DestroyFlow>;

}  // namespace roci::test
