#include "congestion/labels.hpp"

#include <array>

namespace roci {

std::string label_text(const roci_cc_label* labels, uint32_t count, uint32_t index) {
  return index < count ? labels[index].name : std::to_string(index);
}

std::string bits_text(uint64_t bits, std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    text.append(text.empty() ? "" : "+").append(names[i]);
    bits &= ~(uint64_t{1} << i);
  }
  if (bits != 0) text.append(text.empty() ? "" : "+").append(std::to_string(bits));
  return text;
}

std::string kinds_text(uint32_t kinds) {
  constexpr std::array<std::string_view, 13> kNames{"ack",    "loss",   "timeout",   "cnp",  "notice",
                                                    "rtt",    "probe",  "telemetry", "sent", "timer0",
                                                    "timer1", "resume", "window"};
  return bits_text(kinds, kNames);
}

}  // namespace roci
