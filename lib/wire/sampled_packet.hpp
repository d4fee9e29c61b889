// Which packet a congestion notification message is about: what the first bytes of a sampled frame, which the message gives
// back (congestion_notification.hpp), say of it. They are at most 64, so headers behind the BTH are mostly beyond them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/sequence.hpp"
#include "wire/link_tags.hpp"

namespace roci {

struct OpcodeInfo;

struct SampledPacket {
  FiveTuple flow;  // of a UDP packet
  // Null when the sample ends before the BTH does, when the packet is not to RoCEv2's port (such as one with in-band
  // telemetry), or when its opcode is not known. The following fields are its.
  const OpcodeInfo* opcode = nullptr;
  Qpn destination_qp;
  Psn psn;
  std::optional<Qpn> source_qp;  // from the DETH, where that is in the sample

  // Of READ responses, which travel from a responder; else it is a request.
  [[nodiscard]] bool is_response() const;
};

// `msdu` begins with its EtherType. Null when it is not, or not up to its ports, a UDP packet with addresses that a wire can
// have.
std::optional<SampledPacket> read_sampled_packet(std::span<const uint8_t> msdu);

}  // namespace roci
