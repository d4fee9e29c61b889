// Names for people in the place of the plugin interface's numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "roci/cc.h"

namespace roci {

// "fast_recovery"; a number where the plugin has no such label.
std::string label_text(const roci_cc_label* labels, uint32_t count, uint32_t index);

// "ack+rtt": the names of the bits that are set, from the lowest up, and as one number those that have none.
std::string bits_text(uint64_t bits, std::span<const std::string_view> names);
// What an event stands for: a set of ROCI_CC_ON_.
std::string kinds_text(uint32_t kinds);

}  // namespace roci
