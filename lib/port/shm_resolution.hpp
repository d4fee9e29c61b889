// Answers ARP and neighbor solicitations on behalf of the processes of a shared-memory network: their addresses are known, and a
// process that is busy need not be asked for its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wire/headers.hpp"

namespace roci {

struct SlotAddresses {
  MacAddress mac;
  std::vector<IpAddress> ips;
};

// What a port does with a frame that it is to send.
struct ResolutionAnswer {
  bool asks = false;             // the frame asks for an address; it is not for any process
  uint32_t slot = UINT32_MAX;    // that has the address; UINT32_MAX: none
  std::vector<uint8_t> frame{};  // the answer, as that slot's process would send it
};

// `head`: the first bytes of an untagged frame, all of a request's. Frames with a VLAN tag ask for nothing.
ResolutionAnswer answer_resolution(std::span<const uint8_t> head, std::span<const SlotAddresses> slots);

}  // namespace roci
