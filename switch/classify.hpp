// The stage that gives a frame its traffic class, by DSCP or by the priority of its tag, and reads its ECN bits.
#pragma once

#include "switch/class_config.hpp"
#include "switch/packet.hpp"

namespace roci {

// Fills in traffic_class and ecn of a parsed packet, by the headers as they came in.
void classify(SwitchPacket& packet, const ClassifierConfig& config);

}  // namespace roci
