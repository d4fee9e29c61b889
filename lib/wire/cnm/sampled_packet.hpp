// Identification of the packet to which a congestion notification message refers. The message contains the first bytes
// of the sampled frame (congestion_notification.hpp). These are at most 64, so most headers after the BTH are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/sequence.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

struct OpcodeInfo;

struct SampledPacket {
  FiveTuple flow;  // of the UDP packet
  // Null if the sample ends before the end of the BTH, if the UDP destination port is not that of RoCEv2 (as with
  // in-band telemetry), or if the opcode is unknown. The fields below are then undefined.
  const OpcodeInfo* opcode = nullptr;
  Qpn destination_qp;
  Psn psn;
  std::optional<Qpn> source_qp;  // from the DETH if the sample contains it

  // Returns true for a READ response, sent by a responder; false for a request.
  [[nodiscard]] bool is_response() const;
};

// `msdu` starts with its EtherType. Returns null if it does not contain the headers of a UDP packet up to the ports, or
// if the addresses cannot appear on the wire.
std::optional<SampledPacket> read_sampled_packet(std::span<const uint8_t> msdu);

}  // namespace roci
