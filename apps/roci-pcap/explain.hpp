// What a frame is, in words: why one to the RoCEv2 port is no RoCEv2 packet, and what the other frames are.
#pragma once

#include <string>

#include "wire/frame.hpp"

namespace roci::pcap_tool {

// Whether the frame was meant to be RoCEv2, even if it is damaged: UDP to port 4791, or as much of it as is
// there.
bool is_meant_as_roce(const FrameView& view, uint32_t captured);

// For a frame that is_meant_as_roce() but was not parsed: the field that is wrong and how,
// "bth.opcode: 0x1d is not a known opcode".
std::string why_malformed(const FrameView& view, uint32_t captured);

// For any other frame: "ARP request: who has 10.0.0.1? tell 10.0.0.2".
std::string describe_other(const FrameView& view, uint32_t captured);

// What an AETH syndrome says: "ACK", "RNR NAK, wait 1280 us", "NAK: PSN sequence error".
std::string describe_syndrome(uint8_t syndrome);

}  // namespace roci::pcap_tool
