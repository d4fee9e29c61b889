// What roci-run says of the networks of this machine, and how it ends one.
#pragma once

#include <string>

#include "base/result.hpp"

namespace roci::run {

// A table: each network with its switch, addresses, and who has which place.
Result<std::string> nets_table();
// Ends the network's switch, and says what happened.
Result<std::string> stop_net(const std::string& name);

}  // namespace roci::run
