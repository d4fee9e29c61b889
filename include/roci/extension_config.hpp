// What a device may say to its peers beyond RoCEv2 (docs/wire-extensions.md). Two devices find out by management
// datagrams on queue pair 1 what they have in common; a peer that does not answer is spoken to as the standard says.
#pragma once

#include <cstdint>

namespace roci {

enum class ExtensionMode : uint8_t {
  kAuto,  // ask every peer, and use what both have
  kOn,    // the same, and a queue pair whose peer has not what is asked for goes to the error state
  kOff,   // neither ask nor answer
};

struct ExtensionConfig {
  ExtensionMode mode = ExtensionMode::kAuto;
  // Acknowledgements always carry counts of marked packets and the byte sequence where the peer takes them. More, when
  // both ends want it:
  bool selective_repeat = false;  // losses cost the lost packets and not all behind them
  bool authenticate = false;      // acknowledgements carry a MAC
  // More, as the sending end wants it:
  bool timestamps =
      false;  // on every request, for a round trip time with every acknowledgement: 12 and 20 bytes
  bool source_qpn = false;  // on every request, for switches that notify senders: 8 bytes
  bool data_lsn = false;    // the byte sequence on every request, for those who watch: 12 bytes
  // Bytes that a peer may have in flight to one of our queue pairs, told in every acknowledgement; 0 does not say.
  uint32_t receive_window = 0;
};

}  // namespace roci
