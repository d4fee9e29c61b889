// Names of the plugin interface's numbers, for output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "roci/cc.h"

namespace roci {

// "fast_recovery"; the number if the plugin has no such label.
std::string label_text(const roci_cc_label* labels, uint32_t count, uint32_t index);

// "ack+rtt": names of the bits that are set, lowest first; bits without a name are appended as one number.
std::string bits_text(uint64_t bits, std::span<const std::string_view> names);
// Names of an event's kinds, a set of ROCI_CC_ON_.
std::string kinds_text(uint32_t kinds);

}  // namespace roci
