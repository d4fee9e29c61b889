#include "wire/mad/capability_mad.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace roci {
namespace {

template <class Bytes>
bool is_zero(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

constexpr uint32_t kAuthBit = bit_of(ExtensionType::kAuth);
constexpr auto kNetworkAuthBit = static_cast<uint32_t>(Capability::kNetworkAuth);

bool has_network_auth(const CapabilityBody& body) {
  return body.version >= kSignedCapabilityVersion && (body.capabilities.get() & kNetworkAuthBit) != 0;
}
bool has_network_auth(const CapabilityOffer& offer) {
  return offer.version >= kSignedCapabilityVersion && (offer.capabilities & kNetworkAuthBit) != 0;
}

MadOutcome check_headers(const CapabilityMad& m) {
  using enum MadOutcome;
  if (m.mad.base_version != MadHeader::kBaseVersion) return kBadBaseVersion;
  if (m.mad.management_class != kCapabilityClass) return kOtherClass;
  if (m.mad.class_version != kCapabilityClassVersion) return kBadClassVersion;
  if (!is_zero(m.vendor.rmpp)) return kRmpp;
  if (m.vendor.oui != kCapabilityOui) return kOtherOui;
  if (m.mad.method != MadHeader::kGet && m.mad.method != MadHeader::kGetResponse) return kOtherMethod;
  if (m.mad.attribute.get() != kCapabilityAttribute || m.mad.modifier.get() != 0) return kOtherAttribute;
  if (m.mad.status.get() != 0) return m.mad.method == MadHeader::kGetResponse ? kRefused : kBadStatus;
  if (m.mad.class_specific.get() != 0 || m.mad.reserved.get() != 0 || m.vendor.reserved != 0)
    return kBadStatus;
  return kAccepted;
}

MadOutcome check_body(const CapabilityMad& m) {
  using enum MadOutcome;
  const CapabilityBody& b = m.body;
  if (b.magic != kCapabilityMagic) return kBadMagic;
  if (b.lowest == 0 || b.lowest > b.version || b.lowest > kCapabilityVersion) return kBadVersion;
  // A newer version may have values there, which this version ignores.
  const bool reserved_is_zero = b.reserved0.get() == 0 && b.reserved1 == 0 && is_zero(m.reserved);
  if (b.version <= kSignedCapabilityVersion && !reserved_is_zero) return kReservedBits;
  const bool unsigned_is_zero = is_zero(m.network_auth) && m.mac.get() == 0;
  if (b.version <= kSignedCapabilityVersion && !has_network_auth(b) && !unsigned_is_zero)
    return kReservedBits;
  const bool has_auth = (b.capabilities.get() & kAuthBit) != 0;
  if (b.time_unit.get() == 0 || b.incarnation.get() == 0 || has_auth == is_zero(b.auth)) return kBadValue;
  if (has_network_auth(b) && is_zero(m.network_auth)) return kBadValue;
  const bool response = m.mad.method == MadHeader::kGetResponse;
  if (response != (b.peer_incarnation.get() != 0)) return kBadValue;
  return kAccepted;
}

}  // namespace

std::string_view mad_outcome_name(MadOutcome outcome) {
  constexpr std::string_view kNames[kMadOutcomeCount] = {
      "accepted",   "bad size",  "bad base version", "other class",     "bad class version",
      "RMPP",       "other OUI", "other method",     "other attribute", "refused by the peer",
      "bad status", "bad magic", "bad version",      "reserved bits",   "bad value"};
  return kNames[static_cast<unsigned>(outcome)];
}

ParsedMad parse_capability_mad(std::span<const uint8_t> payload) {
  ParsedMad out;
  if (payload.size() != kMadBytes) return out;
  const auto& m = *reinterpret_cast<const CapabilityMad*>(payload.data());
  out.outcome = check_headers(m);
  if (out.outcome == MadOutcome::kAccepted) out.outcome = check_body(m);
  if (out.outcome != MadOutcome::kAccepted && out.outcome != MadOutcome::kRefused) return out;
  out.message.response = m.mad.method == MadHeader::kGetResponse;
  out.message.transaction = m.mad.transaction.get();
  out.status = m.mad.status.get();
  if (out.outcome == MadOutcome::kRefused) return out;
  const CapabilityBody& b = m.body;
  out.message.peer_incarnation = b.peer_incarnation.get();
  out.message.offer = {.version = b.version,
                       .lowest = b.lowest,
                       .capabilities = b.capabilities.get(),
                       .mtu_extra = b.mtu_extra.get(),
                       .int_hops = b.int_hops,
                       .window = b.window.get(),
                       .time_unit = b.time_unit.get(),
                       .incarnation = b.incarnation.get(),
                       .auth = b.auth};
  if (has_network_auth(b)) {
    out.message.offer.network_auth = m.network_auth;
    out.message.mac = m.mac.get();
  }
  return out;
}

CapabilityMad build_capability_mad(const CapabilityMessage& message) {
  CapabilityMad m;
  m.mad.base_version = MadHeader::kBaseVersion;
  m.mad.management_class = kCapabilityClass;
  m.mad.class_version = kCapabilityClassVersion;
  m.mad.method = message.response ? MadHeader::kGetResponse : MadHeader::kGet;
  m.mad.transaction.set(message.transaction);
  m.mad.attribute.set(kCapabilityAttribute);
  m.vendor.oui = kCapabilityOui;
  const CapabilityOffer& offer = message.offer;
  m.body.magic = kCapabilityMagic;
  m.body.version = offer.version;
  m.body.lowest = offer.lowest;
  m.body.capabilities.set(offer.capabilities);
  m.body.mtu_extra.set(offer.mtu_extra);
  m.body.int_hops = offer.int_hops;
  m.body.window.set(offer.window);
  m.body.time_unit.set(offer.time_unit);
  m.body.incarnation.set(offer.incarnation);
  m.body.peer_incarnation.set(message.peer_incarnation);
  m.body.auth = offer.auth;
  m.network_auth = offer.network_auth;
  m.mac.set(message.mac);
  return m;
}

uint64_t compute_capability_mac(const SipKey& key, const IpAddress& source, const IpAddress& destination,
                                std::span<const uint8_t, kMadBytes> mad) {
  constexpr size_t kMacAt = offsetof(CapabilityMad, mac);
  constexpr std::array<uint8_t, sizeof(Be64)> kNoMac{};
  SipHash hash(key);
  hash.update(source.bytes);
  hash.update(destination.bytes);
  hash.update(mad.first<kMacAt>());
  hash.update(kNoMac);
  hash.update(mad.subspan<kMacAt + sizeof(Be64)>());
  return hash.finish();
}

void sign_capability_mad(const SipKey& key, const IpAddress& source, const IpAddress& destination,
                         CapabilityMad& mad) {
  std::array<uint8_t, kMadBytes> bytes;
  std::memcpy(bytes.data(), &mad, sizeof bytes);
  mad.mac.set(compute_capability_mac(key, source, destination, bytes));
}

bool is_signed(const SipKey& key, const IpAddress& source, const IpAddress& destination,
               std::span<const uint8_t, kMadBytes> mad) {
  const auto& m = *reinterpret_cast<const CapabilityMad*>(mad.data());
  return has_network_auth(m.body) &&
         is_same_mac(m.mac.get(), compute_capability_mac(key, source, destination, mad));
}

bool answers(const CapabilityMessage& response, const CapabilityMessage& request) {
  return response.response && !request.response && response.transaction == request.transaction &&
         response.peer_incarnation == request.offer.incarnation;
}

std::optional<CapabilityAgreement> agree(const CapabilityOffer& one, const CapabilityOffer& other) {
  const uint8_t version = std::min(one.version, other.version);
  if (version < std::max(one.lowest, other.lowest)) return std::nullopt;
  CapabilityAgreement out;
  out.version = version;
  out.mtu_extra = std::min(one.mtu_extra, other.mtu_extra);
  out.int_hops = std::min({one.int_hops, other.int_hops, kMaxIntHops});
  const auto bit = [](Capability c) { return static_cast<uint32_t>(c); };
  uint32_t both = one.capabilities & other.capabilities & (kAllCapabilities | known_extensions());
  if (has_network_auth(one) && has_network_auth(other)) both |= kNetworkAuthBit | kAuthBit;
  // Removes capabilities that depend on a missing one.
  const auto needs = [&](uint32_t what, uint32_t other_half) {
    if ((both & other_half) != other_half) both &= ~what;
  };
  if (out.int_hops == 0) both &= ~uint32_t{bit_of(ExtensionType::kIntEcho)};
  needs(bit_of(ExtensionType::kTimestamp), bit(Capability::kDataBlocks));
  needs(bit_of(ExtensionType::kTimestamp), bit_of(ExtensionType::kTimestampEcho));
  needs(bit_of(ExtensionType::kTimestampEcho), bit_of(ExtensionType::kTimestamp));
  needs(bit_of(ExtensionType::kSourceQp), bit(Capability::kDataBlocks));
  needs(bit(Capability::kWindowMessages), bit_of(ExtensionType::kRxWindow));
  needs(bit(Capability::kSelectiveRepeat), bit_of(ExtensionType::kSack));
  if (one.window == 0 || other.window == 0) both &= ~bit(Capability::kSelectiveRepeat);
  out.capabilities = both;
  return out;
}

}  // namespace roci
