#include "wire/cnm/congestion_notification.hpp"

#include <algorithm>
#include <cstring>

namespace roci {
namespace {

constexpr unsigned kVersionShift = 12;
constexpr uint16_t kFeedbackMask = 0x3f;
constexpr unsigned kPriorityShift = 13;
constexpr uint16_t kVlanId = 0x0fff;

}  // namespace

std::string_view cnm_outcome_name(CnmOutcome outcome) {
  constexpr std::string_view kNames[kCnmOutcomeCount] = {"accepted",       "not a CNM",     "truncated",
                                                         "bad version",    "reserved bits", "MSDU too long",
                                                         "MSDU beyond end"};
  return kNames[static_cast<unsigned>(outcome)];
}

ParsedCnm parse_cnm(std::span<const uint8_t> bytes) {
  ParsedCnm parsed;
  const auto is = [&parsed](CnmOutcome outcome) {
    parsed.outcome = outcome;
    return parsed;
  };
  if (bytes.size() < sizeof(CnmPdu)) return is(CnmOutcome::kTruncated);
  const auto& pdu = *reinterpret_cast<const CnmPdu*>(bytes.data());
  const uint16_t first = pdu.version_feedback.get();
  if (first >> kVersionShift != 0) return is(CnmOutcome::kBadVersion);
  if ((first & ~kFeedbackMask) != 0) return is(CnmOutcome::kReservedBits);
  const uint16_t msdu = pdu.msdu_length.get();
  if (msdu > kMaxCnmMsdu) return is(CnmOutcome::kMsduTooLong);
  if (msdu > bytes.size() - sizeof(CnmPdu)) return is(CnmOutcome::kMsduBeyondEnd);

  Cnm& cnm = parsed.cnm;
  cnm.feedback = static_cast<uint8_t>(first & kFeedbackMask);
  cnm.point = pdu.point;
  cnm.queue_offset = static_cast<int16_t>(pdu.queue_offset.get());
  cnm.queue_delta = static_cast<int16_t>(pdu.queue_delta.get());
  cnm.priority = static_cast<uint8_t>(pdu.priority.get() >> kPriorityShift);
  cnm.destination = pdu.destination;
  cnm.msdu = bytes.subspan(sizeof(CnmPdu), msdu);
  return is(CnmOutcome::kAccepted);
}

void write_cnm(const Cnm& cnm, uint8_t* out) {
  assert(cnm.msdu.size() <= kMaxCnmMsdu && cnm.priority < 8);
  auto& pdu = *reinterpret_cast<CnmPdu*>(out);
  pdu.version_feedback.set(std::min(cnm.feedback, kMaxCnmFeedback));
  pdu.point = cnm.point;
  pdu.queue_offset.set(static_cast<uint16_t>(cnm.queue_offset));
  pdu.queue_delta.set(static_cast<uint16_t>(cnm.queue_delta));
  pdu.priority.set(static_cast<uint16_t>(cnm.priority << kPriorityShift));
  pdu.destination = cnm.destination;
  pdu.msdu_length.set(static_cast<uint16_t>(cnm.msdu.size()));
  if (!cnm.msdu.empty()) std::memcpy(out + sizeof pdu, cnm.msdu.data(), cnm.msdu.size());
}

std::optional<Cnm> sample_frame(std::span<const uint8_t> head, uint8_t default_priority) {
  const auto frame = parse_link_tags(head);
  if (!frame) return std::nullopt;
  Cnm cnm;
  cnm.priority = frame->tags.priority().value_or(default_priority);
  cnm.destination = reinterpret_cast<const EthernetHeader*>(head.data())->destination;
  const auto msdu = head.subspan(frame->msdu_offset);
  cnm.msdu = msdu.first(std::min<size_t>(msdu.size(), kMaxCnmMsdu));
  return cnm;
}

std::optional<CnmLink> CnmLink::answering(std::span<const uint8_t> sampled, const MacAddress& own,
                                          uint8_t priority) {
  const auto frame = parse_link_tags(sampled);
  if (!frame) return std::nullopt;
  CnmLink link{reinterpret_cast<const EthernetHeader*>(sampled.data())->source, own, frame->tags};
  for (unsigned i = 0; i < link.tags.vlan_count; ++i) {
    uint16_t& tci = link.tags.vlan[i].tci;
    tci = static_cast<uint16_t>((tci & kVlanId) | priority << kPriorityShift);
  }
  return link;
}

void CnmLink::write(uint8_t* out) const {
  constexpr uint32_t kTagsAt = 2 * sizeof(MacAddress);
  std::memcpy(out, &destination, sizeof destination);
  std::memcpy(out + sizeof destination, &source, sizeof source);
  tags.write(out + kTagsAt);
  const Be16 type{kEtherTypeCnm};
  std::memcpy(out + kTagsAt + tags.size(), &type, sizeof type);
}

uint32_t build_cnm_frame(const CnmLink& link, const Cnm& cnm, std::span<uint8_t> out) {
  const uint32_t length = link.size() + cnm.pdu_bytes();
  assert(out.size() >= length);
  link.write(out.data());
  write_cnm(cnm, out.data() + link.size());
  return length;
}

ParsedCnmFrame parse_cnm_frame(std::span<const uint8_t> frame) {
  ParsedCnmFrame parsed;
  const auto tagged = parse_link_tags(frame);
  if (!tagged) {
    parsed.outcome = CnmOutcome::kTruncated;
    return parsed;
  }
  if (tagged->ether_type != kEtherTypeCnm) return parsed;
  const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame.data());
  parsed.link = {ethernet.destination, ethernet.source, tagged->tags};
  const ParsedCnm pdu = parse_cnm(frame.subspan(tagged->l3_offset()));
  parsed.outcome = pdu.outcome;
  parsed.cnm = pdu.cnm;
  return parsed;
}

}  // namespace roci
