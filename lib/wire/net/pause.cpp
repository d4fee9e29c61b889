#include "wire/net/pause.hpp"

#include <cstring>

namespace roci {
namespace {

constexpr uint16_t kPauseOpcode = 0x0001;
constexpr uint16_t kPfcOpcode = 0x0101;
constexpr uint32_t kHeaderAt = sizeof(EthernetHeader);
constexpr uint32_t kQuantaAt = kHeaderAt + sizeof(PauseHeader);

}  // namespace

std::string_view pause_outcome_name(PauseOutcome outcome) {
  constexpr std::string_view kNames[kPauseOutcomeCount] = {"accepted", "not MAC control", "truncated",
                                                           "unknown opcode", "other destination"};
  return kNames[static_cast<unsigned>(outcome)];
}

ParsedPause parse_pause(std::span<const uint8_t> frame, const MacAddress& own) {
  ParsedPause parsed;
  const auto is = [&parsed](PauseOutcome outcome) {
    parsed.outcome = outcome;
    return parsed;
  };
  if (frame.size() < sizeof(EthernetHeader)) return is(PauseOutcome::kTruncated);
  const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame.data());
  if (ethernet.ether_type.get() != kEtherTypeMacControl) return is(PauseOutcome::kNotMacControl);
  if (frame.size() < kHeaderAt + sizeof(Be16)) return is(PauseOutcome::kTruncated);
  const auto& header = *reinterpret_cast<const PauseHeader*>(frame.data() + kHeaderAt);
  const uint16_t opcode = header.opcode.get();
  if (opcode != kPauseOpcode && opcode != kPfcOpcode) return is(PauseOutcome::kUnknownOpcode);
  const bool to_group = ethernet.destination == kMacControlGroup;
  if (!to_group && (opcode == kPfcOpcode || ethernet.destination != own))
    return is(PauseOutcome::kOtherDestination);
  const uint32_t fields = opcode == kPfcOpcode ? kQuantaAt + sizeof(PauseQuanta) : kQuantaAt;
  if (frame.size() < fields) return is(PauseOutcome::kTruncated);

  PauseMessage& message = parsed.message;
  message.source = ethernet.source;
  if (opcode == kPauseOpcode) {
    message.kind = PauseKind::kLink;
    message.classes = 0xff;
    message.quanta.fill(header.value.get());
    return is(PauseOutcome::kAccepted);
  }
  message.kind = PauseKind::kPriority;
  message.classes = static_cast<uint8_t>(header.value.get());
  const auto& quanta = *reinterpret_cast<const PauseQuanta*>(frame.data() + kQuantaAt);
  for (unsigned p = 0; p < kPriorities; ++p) {
    if (message.includes(p)) message.quanta[p] = quanta[p].get();
  }
  return is(PauseOutcome::kAccepted);
}

void build_pause(const PauseMessage& message, std::span<uint8_t, kPauseFrameBytes> out) {
  std::memset(out.data(), 0, out.size());
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(out.data());
  ethernet.destination = kMacControlGroup;
  ethernet.source = message.source;
  ethernet.ether_type.set(kEtherTypeMacControl);
  auto& header = *reinterpret_cast<PauseHeader*>(out.data() + kHeaderAt);
  if (message.kind == PauseKind::kLink) {
    header = {Be16{kPauseOpcode}, Be16{message.quanta[0]}};
    return;
  }
  header = {Be16{kPfcOpcode}, Be16{message.classes}};
  auto& quanta = *reinterpret_cast<PauseQuanta*>(out.data() + kQuantaAt);
  for (unsigned p = 0; p < kPriorities; ++p) {
    if (message.includes(p)) quanta[p].set(message.quanta[p]);
  }
}

}  // namespace roci
