// Text descriptions of frames: the error of a malformed RoCEv2 packet, and the contents of other frames.
#pragma once

#include <string>

#include "wire/roce/frame.hpp"

namespace roci::pcap_tool {

// Whether the frame is UDP to port 4791, as far as captured, even if it is damaged.
bool is_meant_as_roce(const FrameView& view, uint32_t captured);

// The invalid field of a frame that satisfies is_meant_as_roce() but was not parsed: "bth.opcode: 0x1d is not a known
// opcode".
std::string why_malformed(const FrameView& view, uint32_t captured);

// Describes a frame that is not RoCEv2: "ARP request: who has 10.0.0.1? tell 10.0.0.2".
std::string describe_other(const FrameView& view, uint32_t captured);

// Describes an AETH syndrome: "ACK", "RNR NAK, wait 1280 us", "NAK: PSN sequence error".
std::string describe_syndrome(uint8_t syndrome);

}  // namespace roci::pcap_tool
