#include "wire/int/telemetry_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace roci {
namespace {

constexpr uint16_t kEightByteInstructions =
    int_instruction::kIngressTime | int_instruction::kEgressTime | int_instruction::kLevel2Ports;
constexpr uint64_t kMega = 1'000'000;

uint32_t at_most_32_bits(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
}

IntOutcome outcome_of(UdpOutcome outcome) {
  switch (outcome) {
    case UdpOutcome::kFound:
      return IntOutcome::kAccepted;
    case UdpOutcome::kTruncated:
      return IntOutcome::kTruncated;
    case UdpOutcome::kBadIp:
      return IntOutcome::kBadIp;
    case UdpOutcome::kFragment:
      return IntOutcome::kFragment;
    case UdpOutcome::kBadUdp:
      return IntOutcome::kBadUdp;
    case UdpOutcome::kNotUdp:
      break;
  }
  return IntOutcome::kNotInt;
}

// Parses from the shim on. The caller has validated the headers before the shim.
IntOutcome parse_behind_udp(IntView& view, std::span<const uint8_t> head) {
  const uint32_t payload = view.udp.end - view.shim_offset();
  if (payload < kIntHeaderBytes) return IntOutcome::kBeyondPacket;
  if (head.size() < view.stack_offset()) return IntOutcome::kTruncated;
  if (view.shim().type() != IntShim::kTypeMd) return IntOutcome::kUnknownType;
  if (view.shim().next_type() != IntShim::kOriginalPort) return IntOutcome::kUnknownNext;
  if (view.header().version() != IntMdHeader::kVersion) return IntOutcome::kBadVersion;
  const uint32_t bytes = view.shim().words * 4U;
  if (bytes < sizeof(IntMdHeader)) return IntOutcome::kTooShort;
  if (bytes > payload - sizeof(IntShim)) return IntOutcome::kBeyondPacket;
  const uint32_t stack = bytes - static_cast<uint32_t>(sizeof(IntMdHeader));
  if (head.size() < view.stack_offset() + stack) return IntOutcome::kTruncated;
  view.hop_bytes = view.header().hop_words() * 4;
  if (stack == 0) return IntOutcome::kAccepted;
  if (view.hop_bytes == 0 || stack % view.hop_bytes != 0) return IntOutcome::kUnevenStack;
  view.hop_count = stack / view.hop_bytes;
  return IntOutcome::kAccepted;
}

// A switch writes all ones for a value that it does not know (INT v2.1, "INT-MD Metadata Header Format").
template <class T>
bool is_unknown(const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  return std::all_of(bytes, bytes + sizeof value, [](uint8_t byte) { return byte == 0xff; });
}

}  // namespace

uint32_t int_baseline_bytes(uint16_t instructions) {
  const auto counted = static_cast<uint16_t>(instructions & ~int_instruction::kChecksumComplement);
  const auto longer = static_cast<uint16_t>(instructions & kEightByteInstructions);
  return 4U * static_cast<uint32_t>(std::popcount(counted) + std::popcount(longer));
}

uint32_t int_domain_bytes(uint16_t domain_instructions) {
  uint32_t bytes = 0;
  if ((domain_instructions & int_domain_instruction::kCompactHop) != 0) bytes += sizeof(IntHop);
  if ((domain_instructions & int_domain_instruction::kFullHop) != 0) bytes += sizeof(FullHop);
  return bytes;
}

IntHopValues compact_hop(const HopReport& report) {
  return {report.switch_id & 0xfffff,
          static_cast<uint16_t>(report.egress_port & 0xfff),
          static_cast<uint32_t>(report.egress_time),
          static_cast<uint32_t>(report.tx_bytes / IntHopValues::kTxUnit),
          ScaledCount::of(report.rate.value() / kMega),
          ScaledCount::of(report.queue_bytes)};
}

FullHop full_hop(const HopReport& report) {
  return {Be32{report.switch_id},
          Be16{report.ingress_port},
          Be16{report.egress_port},
          Be64{report.egress_time},
          Be64{report.tx_bytes},
          Be32{at_most_32_bits(report.queue_bytes)},
          Be32{at_most_32_bits(report.rate.value() / kMega)}};
}

std::string_view int_outcome_name(IntOutcome outcome) {
  constexpr std::string_view kNames[kIntOutcomeCount] = {
      "accepted",    "not INT",   "truncated",     "bad IP",
      "IP fragment", "bad UDP",   "unknown type",  "unknown next protocol",
      "bad version", "too short", "beyond packet", "uneven stack"};
  return kNames[static_cast<unsigned>(outcome)];
}

const uint8_t* IntView::domain_part(uint32_t i, uint16_t domain, uint16_t instruction) const {
  const IntMdHeader& h = header();
  if (i >= hop_count || h.domain.get() != domain || h.domain_instructions.get() != instruction)
    return nullptr;
  const uint32_t complement = (h.instructions.get() & int_instruction::kChecksumComplement) != 0 ? 4 : 0;
  const uint32_t before = int_baseline_bytes(h.instructions.get());
  if (hop_bytes != before + int_domain_bytes(instruction) + complement) return nullptr;
  return frame + stack_offset() + i * hop_bytes + before;
}

const FullHop* IntView::full(uint32_t i, uint16_t domain) const {
  const auto* hop =
      reinterpret_cast<const FullHop*>(domain_part(i, domain, int_domain_instruction::kFullHop));
  return hop == nullptr || is_unknown(*hop) ? nullptr : hop;
}

std::optional<IntHopValues> IntView::hop(uint32_t i, uint16_t domain) const {
  const auto* compact =
      reinterpret_cast<const IntHop*>(domain_part(i, domain, int_domain_instruction::kCompactHop));
  if (compact != nullptr) {
    if (is_unknown(*compact)) return std::nullopt;
    return read_hop(*compact);
  }
  const FullHop* hop = full(i, domain);
  if (hop == nullptr) return std::nullopt;
  HopReport report;
  report.switch_id = hop->switch_id.get();
  report.egress_port = hop->egress_port.get();
  report.egress_time = hop->time.get();
  report.tx_bytes = hop->tx_bytes.get();
  report.queue_bytes = hop->queue_bytes.get();
  report.rate = BitsPerSec{hop->rate_mbps.get() * kMega};
  return compact_hop(report);
}

IntView parse_int(std::span<const uint8_t> head, uint32_t frame_length, uint16_t port) {
  IntView view;
  view.frame = head.data();
  view.udp = find_udp(head, frame_length);
  view.outcome = outcome_of(view.udp.outcome);
  if (view.outcome != IntOutcome::kAccepted) return view;
  const auto& udp = *reinterpret_cast<const UdpHeader*>(head.data() + view.udp.l4_offset);
  view.outcome = udp.destination_port.get() == port ? parse_behind_udp(view, head) : IntOutcome::kNotInt;
  return view;
}

}  // namespace roci
