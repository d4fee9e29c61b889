// The first stage: what a frame is, in which VLAN, and whether a bridge may touch it at all.
#pragma once

#include "switch/packet.hpp"
#include "wire/address.hpp"

namespace roci {

// Fills in ether_type, l3_offset, the CN-TAG and vlan, which is `native` when no tag names another. Looks at the first segment
// only; one that is shorter than the Ethernet header and its tag is a runt. `own` is the switch's MAC.
DropReason parse(SwitchPacket& packet, uint16_t native, const MacAddress& own);

}  // namespace roci
