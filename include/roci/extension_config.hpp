// Configuration of the wire extensions to RoCEv2 (docs/wire-extensions.md). Two devices negotiate them with management
// datagrams on queue pair 1. With a peer that does not answer, packets are standard RoCEv2.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace roci {

enum class ExtensionMode : uint8_t {
  kAuto,  // negotiate with every peer and use the common subset
  // As kAuto; a queue pair whose peer has no extensions enters the error state.
  kOn,
  kOff,  // neither send nor answer capability requests
};

struct ExtensionConfig {
  ExtensionMode mode = ExtensionMode::kAuto;
  // Acknowledgments to peers that accept them always carry counts of marked packets and the byte sequence. Further
  // extensions, which both hosts must enable:
  bool selective_repeat = false;  // a loss costs only the lost packets
  // Acknowledgments carry a MAC with peers that enable it too (`authenticate: prefer`).
  bool authenticate = false;
  // Further extensions, which the sender enables:
  // On each request (12 bytes), and an echo in each acknowledgment (20 bytes), which is a round-trip time sample.
  bool timestamps = false;
  bool source_qpn = false;  // on each request, for switches that notify senders: 8 bytes
  bool data_lsn = false;    // byte sequence number on each request, for captures and analysis: 12 bytes
  // Maximum bytes that a peer may have in flight to a queue pair, advertised in every acknowledgment; 0: not
  // advertised.
  uint32_t receive_window = 0;
  // Queue pairs work only with peers that hold the same network key and authenticate (`authenticate: require`): RC
  // queue pairs with other peers enter the error state, and other types are not created. Needs `authenticate`, a
  // network key, and a mode other than kOff.
  bool require_authentication = false;
  // 128-bit secret of the hosts of a network. It signs capability datagrams and is mixed into the keys of AUTH; the
  // device does not store it anywhere else. Without it, any host that reads the capability exchange can compute the
  // keys of AUTH. Needs `authenticate`.
  std::optional<std::array<uint8_t, 16>> network_key{};
  // Ignores CNPs, which any host can forge, from peers whose acknowledgments are authenticated. The CE marks that these
  // acknowledgments report take the place of CNPs. Needs `authenticate`.
  bool ignore_cnps = false;
};

}  // namespace roci
