// Messages of the connection manager (CM, IBTA 12.6 to 12.11). Two hosts use them to connect two queue pairs, to
// disconnect them, and to resolve the queue pair of a datagram service.
//
//   REQ ───► (MRA) ◄─── REP ───► RTU    connect    DREQ ───► DREP    disconnect    SIDR_REQ ───► SIDR_REP    resolve
//            REJ from either peer rejects; LAP ───► APR requests an alternate path
//
// Fields of less than a whole number of bytes are in the low bits of their members. build_cm_mad() ignores the other
// bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/headers/address.hpp"
#include "wire/mad/mad.hpp"

namespace roci {

inline constexpr uint8_t kCmClass = 0x07;  // management class of CM datagrams

// Timeout fields have 5 bits; the time is 4.096 us x 2^code.

// Path to the peer: the primary and the alternate path of REQ, and the path of LAP.
struct CmPath {
  uint16_t local_lid = 0, remote_lid = 0;  // RoCE: 0xffff if routers are on the path, otherwise 0
  Gid local_gid{}, remote_gid{};
  uint32_t flow_label = 0;  // 20 bits
  uint8_t packet_rate = 0;  // 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t service_level = 0;  // 4 bits
  bool subnet_local = false;
  uint8_t ack_timeout = 0;  // 5 bits
  friend bool operator==(const CmPath&, const CmPath&) = default;
};

enum class CmTransport : uint8_t {
  kRc = 0,
  kUc = 1,
  kRd = 2,
  // kExtended: XRC; see extended_transport.
  kExtended = 3
};

struct CmRequest {
  static constexpr uint16_t kAttribute = 0x10;
  uint32_t local_id = 0;  // connection ID, chosen by the sender
  // Vendor of the enhanced connection establishment (ECE), 24 bits. The attribute modifier of the MAD has its options.
  uint32_t vendor_id = 0;
  uint64_t service_id = 0;
  uint64_t ca_guid = 0;
  uint32_t qkey = 0;
  Qpn queue_pair{};
  uint8_t responder_resources = 0;  // READs and atomics that the sender serves concurrently
  uint32_t local_eecn = 0;          // 24 bits, for reliable datagrams
  uint8_t initiator_depth = 0;      // READs and atomics that the sender has outstanding at most
  uint32_t remote_eecn = 0;
  uint8_t remote_response_timeout = 0;  // time within which the receiver responds, 5 bits
  CmTransport transport = CmTransport::kRc;
  bool end_to_end_flow_control = false;
  Psn starting_psn{};                  // the first PSN that the receiver of the message sends
  uint8_t local_response_timeout = 0;  // time within which the sender responds, 5 bits
  uint8_t retry_count = 0;             // 3 bits
  uint16_t pkey = 0;
  uint8_t path_mtu = 0;  // ibv_mtu, 4 bits
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  uint8_t extended_transport = 0;  // 3 bits; 1: XRC
  CmPath primary{}, alternate{};
  std::array<uint8_t, 92> private_data{};
  friend bool operator==(const CmRequest&, const CmRequest&) = default;
};

// Message to which an MRA or a REJ refers.
enum class CmAnswered : uint8_t {
  kRequest = 0,
  kReply = 1,
  // kOther: a LAP in an MRA, no message in a REJ.
  kOther = 2
};

struct CmAcknowledged {  // MRA: the message has arrived, and the response is delayed
  static constexpr uint16_t kAttribute = 0x11;
  uint32_t local_id = 0, remote_id = 0;
  CmAnswered answered = CmAnswered::kRequest;
  uint8_t service_timeout = 0;  // 5 bits
  std::array<uint8_t, 222> private_data{};
  friend bool operator==(const CmAcknowledged&, const CmAcknowledged&) = default;
};

struct CmRejected {  // REJ
  static constexpr uint16_t kAttribute = 0x12;
  // Reject reasons (IBTA 12.6.7.2) that this project sends or evaluates.
  static constexpr uint16_t kNoQueuePair = 1, kNoResources = 3, kTimeout = 4, kUnsupported = 5,
                            kInvalidServiceId = 8, kInvalidTransport = 9, kStaleConnection = 10,
                            kInvalidGid = 12, kInvalidMtu = 26, kConsumer = 28, kVendorOption = 35;
  uint32_t local_id = 0;   // 0 if the sender has no connection
  uint32_t remote_id = 0;  // 0 after a timeout
  CmAnswered answered = CmAnswered::kRequest;
  uint8_t info_length = 0;  // length of the additional information, 7 bits
  uint16_t reason = 0;
  std::array<uint8_t, 72> info{};
  std::array<uint8_t, 148> private_data{};
  friend bool operator==(const CmRejected&, const CmRejected&) = default;
};

struct CmReply {  // REP
  static constexpr uint16_t kAttribute = 0x13;
  uint32_t local_id = 0, remote_id = 0;
  uint32_t vendor_id = 0;  // 24 bits
  uint32_t qkey = 0;
  Qpn queue_pair{};
  uint32_t local_eecn = 0;
  Psn starting_psn{};  // the first PSN that the receiver of the message sends
  uint8_t responder_resources = 0, initiator_depth = 0;
  uint8_t target_ack_delay = 0;   // 5 bits
  uint8_t failover_accepted = 0;  // 2 bits; 1: alternate paths are not supported
  bool end_to_end_flow_control = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  uint64_t ca_guid = 0;
  std::array<uint8_t, 196> private_data{};
  friend bool operator==(const CmReply&, const CmReply&) = default;
};

struct CmReady {  // RTU
  static constexpr uint16_t kAttribute = 0x14;
  uint32_t local_id = 0, remote_id = 0;
  std::array<uint8_t, 224> private_data{};
  friend bool operator==(const CmReady&, const CmReady&) = default;
};

struct CmDisconnect {  // DREQ
  static constexpr uint16_t kAttribute = 0x15;
  uint32_t local_id = 0, remote_id = 0;
  Qpn remote_queue_pair{};  // queue pair of the receiver
  std::array<uint8_t, 220> private_data{};
  friend bool operator==(const CmDisconnect&, const CmDisconnect&) = default;
};

struct CmDisconnected {  // DREP
  static constexpr uint16_t kAttribute = 0x16;
  uint32_t local_id = 0, remote_id = 0;
  std::array<uint8_t, 224> private_data{};
  friend bool operator==(const CmDisconnected&, const CmDisconnected&) = default;
};

struct CmServiceRequest {  // SIDR_REQ
  static constexpr uint16_t kAttribute = 0x17;
  uint32_t request_id = 0;
  uint16_t pkey = 0;
  uint64_t service_id = 0;
  std::array<uint8_t, 216> private_data{};
  friend bool operator==(const CmServiceRequest&, const CmServiceRequest&) = default;
};

struct CmServiceReply {  // SIDR_REP
  static constexpr uint16_t kAttribute = 0x18;
  // Status values (IBTA 12.11.2.1).
  static constexpr uint8_t kValid = 0, kUnsupported = 1, kRejected = 2, kNoQueuePair = 3, kRedirect = 4;
  uint32_t request_id = 0;
  uint8_t status = kValid;
  uint8_t info_length = 0;
  uint32_t vendor_id = 0;  // 24 bits
  Qpn queue_pair{};
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<uint8_t, 72> info{};
  std::array<uint8_t, 136> private_data{};
  friend bool operator==(const CmServiceReply&, const CmServiceReply&) = default;
};

struct CmLoadPath {  // LAP
  static constexpr uint16_t kAttribute = 0x19;
  uint32_t local_id = 0, remote_id = 0;
  Qpn remote_queue_pair{};
  uint8_t response_timeout = 0;  // 5 bits
  CmPath alternate{};
  std::array<uint8_t, 168> private_data{};
  friend bool operator==(const CmLoadPath&, const CmLoadPath&) = default;
};

struct CmPathAnswer {  // APR
  static constexpr uint16_t kAttribute = 0x1a;
  static constexpr uint8_t kUnsupported = 2;  // alternate paths are not supported (IBTA 12.8.2.1)
  uint32_t local_id = 0, remote_id = 0;
  uint8_t info_length = 0;
  uint8_t status = 0;
  std::array<uint8_t, 72> info{};
  std::array<uint8_t, 148> private_data{};
  friend bool operator==(const CmPathAnswer&, const CmPathAnswer&) = default;
};

using CmMessage = std::variant<CmRequest, CmAcknowledged, CmRejected, CmReply, CmReady, CmDisconnect,
                               CmDisconnected, CmServiceRequest, CmServiceReply, CmLoadPath, CmPathAnswer>;

struct CmMad {
  // Transaction ID of connection establishment or of disconnection, chosen by the peer that initiates it.
  uint64_t transaction = 0;
  uint32_t modifier = 0;  // ECE options in REQ, REP and SIDR_REP; otherwise 0
  CmMessage message;
  friend bool operator==(const CmMad&, const CmMad&) = default;
};

// Result of parse_cm_mad(), in the order of the checks.
enum class CmOutcome : uint8_t {
  kAccepted,
  kBadSize,          // not 256 bytes
  kBadBaseVersion,   // not 1
  kOtherClass,       // not the CM class
  kBadClassVersion,  // not 2
  kOtherMethod,      // not Send
  kBadStatus,
  kUnknownMessage,
};
inline constexpr unsigned kCmOutcomeCount = 8;
std::string_view cm_outcome_name(CmOutcome outcome);

struct ParsedCm {
  CmOutcome outcome = CmOutcome::kBadSize;
  CmMad mad;  // with kAccepted
};
// `payload` is the payload of a datagram to queue pair 1. Reserved fields are ignored.
ParsedCm parse_cm_mad(std::span<const uint8_t> payload);
std::array<uint8_t, kMadBytes> build_cm_mad(const CmMad& mad);

std::string_view cm_message_name(const CmMessage& message);  // "REQ"

// IP header in the private data of REQ and SIDR_REQ, used by the IP addressing service of the CM (IBTA A11.4). It has
// the addresses and the source port of the connection.
struct CmIpHeader {
  static constexpr size_t kBytes = 36;
  bool v6 = false;
  uint16_t source_port = 0;
  IpAddress source, destination;  // IPv4-mapped for IPv4
  friend bool operator==(const CmIpHeader&, const CmIpHeader&) = default;
};
// Returns null for another version of the format, or if the IP version is neither 4 nor 6. `private_data` has at least
// kBytes.
std::optional<CmIpHeader> read_cm_ip_header(std::span<const uint8_t> private_data);
void write_cm_ip_header(const CmIpHeader& header, std::span<uint8_t> private_data);

// Port space of a service ID of the IP addressing service (IBTA A11.5).
enum class CmPortSpace : uint16_t { kIpoib = 0x0002, kTcp = 0x0106, kUdp = 0x0111, kIb = 0x013f };
constexpr uint64_t cm_service_id(CmPortSpace space, uint16_t port) {
  return uint64_t{static_cast<uint16_t>(space)} << 16 | port;
}

}  // namespace roci
