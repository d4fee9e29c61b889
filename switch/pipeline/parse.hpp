// Parse stage: determines EtherType and VLAN of a frame, and whether a bridge may forward it.
#pragma once

#include "switch/pipeline/packet.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Sets ether_type, l3_offset, the CN-TAG and vlan, which is `native` if no tag names a VLAN. Reads only the first
// segment: if it is shorter than the Ethernet header and its tags, the frame is a runt. `own` is the switch's MAC.
DropReason parse(SwitchPacket& packet, uint16_t native, const MacAddress& own);

}  // namespace roci
