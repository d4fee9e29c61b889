// The capability exchange: how a host learns which extensions a peer has, without ever sending it a packet that the
// standard does not know.
//
// A management datagram (MAD, IBTA 13.4) of a vendor class goes from queue pair 1 to queue pair 1: a UD SEND_ONLY
// of 256 bytes with Q_Key 0x80010000. The method is Get, the answer is GetResp with the same transaction. A peer
// without this protocol drops it or answers with a status other than 0; both mean "standard".
// docs/wire-extensions.md draws the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/endian.hpp"
#include "wire/extension_auth.hpp"
#include "wire/mad.hpp"

namespace roci {

// Behind the header, of a vendor class of the range with an OUI (IBTA 16.5.1).
struct VendorMadHeader {
  std::array<uint8_t, 12>
      rmpp{};  // version, type, time and flags, status, two words: all 0, RMPP is not used
  uint8_t reserved = 0;
  std::array<uint8_t, 3> oui{};
};
static_assert(sizeof(VendorMadHeader) == 16);

struct CapabilityBody {
  std::array<uint8_t, 4> magic{};
  uint8_t version = 0;  // the highest that the sender speaks
  uint8_t lowest = 0;   // and the lowest
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
  std::array<uint8_t, kMadBytes - 24 - 16 - 56> reserved{};
};
static_assert(sizeof(CapabilityMad) == kMadBytes);

inline constexpr uint8_t kCapabilityClass =
    0x3a;  // of the range 0x30 to 0x4f, where the OUI says whose it is
inline constexpr uint8_t kCapabilityClassVersion = 1;
inline constexpr std::array<uint8_t, 3> kCapabilityOui = {0x52, 0x6f,
                                                          0x63};  // locally administered: no one's
inline constexpr uint16_t kCapabilityAttribute = 0x0101;
inline constexpr std::array<uint8_t, 4> kCapabilityMagic = {'C', 'C', 'X', '1'};
inline constexpr uint8_t kCapabilityVersion = 1;

// The low 16 bits are the extension types that the sender of the datagram understands (extensions.hpp); above them:
enum class Capability : uint32_t {
  kDataBlocks = 1U << 16,       // blocks in requests and READ responses, not only in acknowledgements
  kProbes = 1U << 17,           // CC_PROBE and CC_PROBE_RESP
  kReadAcks = 1U << 18,         // CC_RRACK
  kIntResponses = 1U << 19,     // CC_INT_RESP
  kWindowMessages = 1U << 20,   // CC_RXW
  kSelectiveRepeat = 1U << 21,  // keeps packets behind a gap
};
inline constexpr uint32_t kAllCapabilities = 0x003f'0000;  // of the enumeration

// What a host says of itself.
struct CapabilityOffer {
  uint8_t version = kCapabilityVersion;
  uint8_t lowest = kCapabilityVersion;
  uint32_t capabilities = 0;
  // Bytes beyond the path MTU and its standard headers that it takes in one packet; extension blocks and INT count.
  uint16_t mtu_extra = 0;
  uint8_t int_hops = 0;       // the longest INT-ECHO that it takes
  uint32_t window = 0;        // packets beyond a gap that it keeps, with kSelectiveRepeat
  uint32_t time_unit = 1000;  // of the times that it puts into packets, in ps; 1000 is a nanosecond
  uint64_t incarnation =
      0;                // random, new with each start: a peer that restarted is not the one that is cached
  AuthMaterial auth{};  // for packets to this host, when it understands AUTH; otherwise 0
  friend bool operator==(const CapabilityOffer&, const CapabilityOffer&) = default;
};

struct CapabilityMessage {
  bool response = false;
  uint64_t transaction = 0;
  uint64_t peer_incarnation = 0;  // response: that of the request it answers; request: 0
  CapabilityOffer offer;
  friend bool operator==(const CapabilityMessage&, const CapabilityMessage&) = default;
};

// In the order of the checks.
enum class MadOutcome : uint8_t {
  kAccepted,
  kBadSize,          // not 256 bytes
  kBadBaseVersion,   // not 1
  kOtherClass,       // for somebody else
  kBadClassVersion,  // not 1
  kRmpp,             // a part of a longer message, or rubbish in the RMPP header
  kOtherOui,         // another vendor's
  kOtherMethod,      // neither Get nor GetResp
  kOtherAttribute,   // not the capabilities, or with a modifier
  kRefused,    // a response with a status: the peer has not this protocol. Its body is not looked at: stacks
               // that know nothing of the class return the request's own
  kBadStatus,  // a request with a status, or bits where there must be none in the header
  kBadMagic,
  kBadVersion,    // the versions make no range, or do not include ours
  kReservedBits,  // not 0, from a peer that speaks no newer version
  kBadValue,  // a number that makes no sense: a time unit of 0, an incarnation of 0, key material without AUTH
};
inline constexpr unsigned kMadOutcomeCount = 15;
std::string_view mad_outcome_name(MadOutcome outcome);

struct ParsedMad {
  MadOutcome outcome = MadOutcome::kBadSize;
  CapabilityMessage message;  // with kAccepted; with kRefused only `response` and `transaction`
  uint16_t status = 0;        // with kRefused
};
ParsedMad parse_capability_mad(std::span<const uint8_t> payload);

CapabilityMad build_capability_mad(const CapabilityMessage& message);

// Whether the response belongs to the request: transaction and incarnation are repeated.
bool answers(const CapabilityMessage& response, const CapabilityMessage& request);

// What two hosts may use with each other: the capabilities of both, without those whose other half is missing.
struct CapabilityAgreement {
  uint8_t version = 0;
  uint32_t capabilities = 0;
  uint16_t mtu_extra = 0;  // the smaller
  uint8_t int_hops = 0;    // the smaller
  [[nodiscard]] bool has(Capability c) const { return (capabilities & static_cast<uint32_t>(c)) != 0; }
  [[nodiscard]] uint16_t extensions() const { return static_cast<uint16_t>(capabilities); }
  friend bool operator==(const CapabilityAgreement&, const CapabilityAgreement&) = default;
};
// Nothing when there is no version that both speak. The same from both ends.
std::optional<CapabilityAgreement> agree(const CapabilityOffer& one, const CapabilityOffer& other);

}  // namespace roci
