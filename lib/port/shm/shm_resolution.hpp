// Address resolution within a shared-memory network: answers ARP requests and neighbor solicitations on behalf of the
// processes. Their addresses are known, so a busy process need not answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wire/headers/headers.hpp"

namespace roci {

struct SlotAddresses {
  MacAddress mac;
  std::vector<IpAddress> ips;
};

// Result for a frame that a port is to send.
struct ResolutionAnswer {
  bool is_request = false;       // the frame is an address request; it must not be sent to a process
  uint32_t slot = UINT32_MAX;    // the slot with the address; UINT32_MAX: none
  std::vector<uint8_t> frame{};  // the reply, as that slot's process would send it
};

// `head`: the first bytes of an untagged frame, including the whole
// request. Frames with a VLAN tag are never address requests.
ResolutionAnswer answer_resolution(std::span<const uint8_t> head, std::span<const SlotAddresses> slots);

}  // namespace roci
