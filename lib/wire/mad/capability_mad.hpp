// Capability exchange: reports to a peer which wire extensions a host supports, in packets that conform to the
// standard.
//
// The exchange uses management datagrams (MAD, IBTA 13.4) of a vendor class. Each is a UD SEND_ONLY of 256 bytes from
// queue pair 1 to queue pair 1, with Q_Key 0x80010000. The request has method Get. The response has method GetResp and
// the same transaction ID. A peer without this protocol drops the request or responds with a nonzero status; both mean
// that only the standard is used. The bytes are specified in docs/wire-extensions.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/extensions/extension_auth.hpp"
#include "wire/headers/address.hpp"
#include "wire/headers/endian.hpp"
#include "wire/mad/mad.hpp"

namespace roci {

// Follows the MAD header in vendor classes of the range with an OUI (IBTA 16.5.1).
struct VendorMadHeader {
  // RMPP version, type, time and flags, status and two words. All are 0, since RMPP is not used.
  std::array<uint8_t, 12> rmpp{};
  uint8_t reserved = 0;
  std::array<uint8_t, 3> oui{};
};
static_assert(sizeof(VendorMadHeader) == 16);

struct CapabilityBody {
  std::array<uint8_t, 4> magic{};
  uint8_t version = 0;  // highest version that the sender supports
  uint8_t lowest = 0;   // lowest version that the sender supports
  Be16 reserved0;
  Be32 capabilities;
  Be16 mtu_extra;
  uint8_t int_hops = 0;
  uint8_t reserved1 = 0;
  Be32 window;
  Be32 time_unit;
  Be64 incarnation;
  Be64 peer_incarnation;
  AuthMaterial auth{};
};
static_assert(sizeof(CapabilityBody) == 56);

struct CapabilityMad {
  MadHeader mad;
  VendorMadHeader vendor;
  CapabilityBody body;
  // Version 2 only: key material that is used together with the network key, and a MAC under the network key.
  AuthMaterial network_auth{};
  Be64 mac;
  std::array<uint8_t, kMadBytes - 24 - 16 - 56 - 24> reserved{};
};
static_assert(sizeof(CapabilityMad) == kMadBytes);

// Of the vendor range 0x30 to 0x4f, in which the OUI identifies the vendor.
inline constexpr uint8_t kCapabilityClass = 0x3a;
inline constexpr uint8_t kCapabilityClassVersion = 1;
// Locally administered, not assigned to a vendor.
inline constexpr std::array<uint8_t, 3> kCapabilityOui = {0x52, 0x6f, 0x63};
inline constexpr uint16_t kCapabilityAttribute = 0x0101;
inline constexpr std::array<uint8_t, 4> kCapabilityMagic = {'C', 'C', 'X', '1'};
inline constexpr uint8_t kCapabilityVersion = 1;
// Highest version of hosts with a network key. Its datagrams carry a MAC; hosts without the key ignore it.
inline constexpr uint8_t kSignedCapabilityVersion = 2;

// Capability bits. The low 16 bits are the extension types that the sender of the datagram supports (extensions.hpp).
enum class Capability : uint32_t {
  kDataBlocks = 1U << 16,       // extension blocks also in requests and READ responses
  kProbes = 1U << 17,           // CC_PROBE and CC_PROBE_RESP
  kReadAcks = 1U << 18,         // CC_RRACK
  kIntResponses = 1U << 19,     // CC_INT_RESP
  kWindowMessages = 1U << 20,   // CC_RXW
  kSelectiveRepeat = 1U << 21,  // the responder keeps packets that arrive after a gap
  kNetworkAuth = 1U << 22,      // AUTH with keys that are derived from the network key; from version 2
};
inline constexpr uint32_t kAllCapabilities = 0x003f'0000;  // all bits of Capability except kNetworkAuth

// Capabilities and parameters that a host advertises.
struct CapabilityOffer {
  uint8_t version = kCapabilityVersion;
  uint8_t lowest = kCapabilityVersion;
  uint32_t capabilities = 0;
  // Bytes beyond the path MTU and its standard headers that the host accepts in a packet, for extension blocks and INT.
  uint16_t mtu_extra = 0;
  uint8_t int_hops = 0;       // hops of the longest INT-ECHO that the host accepts
  uint32_t window = 0;        // with kSelectiveRepeat: packets beyond a gap that the host keeps
  uint32_t time_unit = 1000;  // unit of the times in packets of this host, in ps; 1000 is a nanosecond
  // Random and new with each start, so that a restarted peer is distinguished from the cached one.
  uint64_t incarnation = 0;
  AuthMaterial auth{};          // key material for packets to this host if it supports AUTH, otherwise 0
  AuthMaterial network_auth{};  // the same for kNetworkAuth
  friend bool operator==(const CapabilityOffer&, const CapabilityOffer&) = default;
};

struct CapabilityMessage {
  bool response = false;
  uint64_t transaction = 0;
  uint64_t peer_incarnation = 0;  // response: incarnation of the sender of the request; request: 0
  CapabilityOffer offer;
  uint64_t mac = 0;  // see compute_capability_mac(); 0 in version 1
  friend bool operator==(const CapabilityMessage&, const CapabilityMessage&) = default;
};

// Result of parse_capability_mad(), in the order of the checks.
enum class MadOutcome : uint8_t {
  kAccepted,
  kBadSize,          // not 256 bytes
  kBadBaseVersion,   // not 1
  kOtherClass,       // not of the class of this exchange
  kBadClassVersion,  // not 1
  kRmpp,             // RMPP header not 0, for example a segment of a longer message
  kOtherOui,         // OUI of another vendor
  kOtherMethod,      // neither Get nor GetResp
  kOtherAttribute,   // other attribute, or attribute modifier not 0
  // A response with a nonzero status: the peer does not support the protocol. The body is ignored, because stacks
  // without an agent for the class return the body of the request.
  kRefused,
  kBadStatus,  // a request with a nonzero status, or reserved header bits that are set
  kBadMagic,
  kBadVersion,    // empty version range, or a lowest version above kCapabilityVersion
  kReservedBits,  // not 0, from a peer without a newer version
  // A value out of range: time unit 0, incarnation 0, or key material without AUTH or vice versa. Also a request with
  // an incarnation of the peer, or a response without one.
  kBadValue,
};
inline constexpr unsigned kMadOutcomeCount = 15;
std::string_view mad_outcome_name(MadOutcome outcome);

struct ParsedMad {
  MadOutcome outcome = MadOutcome::kBadSize;
  CapabilityMessage message;  // valid with kAccepted; with kRefused only `response` and `transaction`
  uint16_t status = 0;        // valid with kRefused
};
ParsedMad parse_capability_mad(std::span<const uint8_t> payload);

CapabilityMad build_capability_mad(const CapabilityMessage& message);

// Computes the MAC of a datagram between two addresses: SipHash-2-4 over the source and destination IP address (16 bytes
// each, IPv4 in the mapped form) and the 256 bytes of the datagram with the MAC as 0. `key`: NetworkKeys::datagrams.
uint64_t compute_capability_mac(const SipKey& key, const IpAddress& source, const IpAddress& destination,
                                std::span<const uint8_t, kMadBytes> mad);
// Writes the MAC into the datagram.
void sign_capability_mad(const SipKey& key, const IpAddress& source, const IpAddress& destination,
                         CapabilityMad& mad);
// Whether the datagram offers kNetworkAuth and its MAC is correct.
bool is_signed(const SipKey& key, const IpAddress& source, const IpAddress& destination,
               std::span<const uint8_t, kMadBytes> mad);

// Returns true if the response repeats the transaction ID and the incarnation of the request.
bool answers(const CapabilityMessage& response, const CapabilityMessage& request);

// Extensions that two hosts use with each other: the capabilities of both, without those that require a missing one.
// With kNetworkAuth, AUTH is one of them even if a host does not offer AUTH without the network key.
struct CapabilityAgreement {
  uint8_t version = 0;
  uint32_t capabilities = 0;
  uint16_t mtu_extra = 0;  // the smaller one of both
  uint8_t int_hops = 0;    // the smaller one of both
  [[nodiscard]] bool has(Capability c) const { return (capabilities & static_cast<uint32_t>(c)) != 0; }
  [[nodiscard]] uint16_t extensions() const { return static_cast<uint16_t>(capabilities); }
  friend bool operator==(const CapabilityAgreement&, const CapabilityAgreement&) = default;
};
// Returns null if the hosts have no version in common. Both hosts compute the same result.
std::optional<CapabilityAgreement> agree(const CapabilityOffer& one, const CapabilityOffer& other);

}  // namespace roci
