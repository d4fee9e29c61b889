// Tables of the members of the plugin interface's structs, for writing, reading and comparing all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "roci/cc.h"

namespace roci {

// Integer member of a struct.
struct TraceField {
  std::string_view name;
  size_t offset;
  size_t bytes;
  bool is_signed;

  // Bits of the member. Signed members must have 64 bits; they are in two's complement.
  [[nodiscard]] uint64_t get(const void* of) const {
    const auto* at = static_cast<const uint8_t*>(of) + offset;
    if (bytes == sizeof(uint16_t)) return load<uint16_t>(at);
    return bytes == sizeof(uint32_t) ? load<uint32_t>(at) : load<uint64_t>(at);
  }
  void set(void* of, uint64_t value) const {  // little endian, as all supported hosts
    std::memcpy(static_cast<uint8_t*>(of) + offset, &value, bytes);
  }
  [[nodiscard]] std::string text(const void* of) const {
    const uint64_t value = get(of);
    return is_signed ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value);
  }

 private:
  template <class T>
  static T load(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
};

#define ROCI_TRACE_FIELD(type, member)                                                                \
  TraceField {                                                                                        \
#member, offsetof(type, member), sizeof(type::member), std::is_signed_v < decltype(type::member)> \
  }

inline constexpr std::array kFlowFields{
    ROCI_TRACE_FIELD(roci_cc_flow, line_rate),    ROCI_TRACE_FIELD(roci_cc_flow, base_rtt_ns),
    ROCI_TRACE_FIELD(roci_cc_flow, packet_bytes), ROCI_TRACE_FIELD(roci_cc_flow, payload_bytes),
    ROCI_TRACE_FIELD(roci_cc_flow, direction),    ROCI_TRACE_FIELD(roci_cc_flow, provides),
    ROCI_TRACE_FIELD(roci_cc_flow, seed),
};

inline constexpr std::array kEventFields{
    ROCI_TRACE_FIELD(roci_cc_event, now_ns),
    ROCI_TRACE_FIELD(roci_cc_event, kinds),
    ROCI_TRACE_FIELD(roci_cc_event, cnps),
    ROCI_TRACE_FIELD(roci_cc_event, acked),
    ROCI_TRACE_FIELD(roci_cc_event, next),
    ROCI_TRACE_FIELD(roci_cc_event, in_flight),
    ROCI_TRACE_FIELD(roci_cc_event, acked_bytes),
    ROCI_TRACE_FIELD(roci_cc_event, acked_packets),
    ROCI_TRACE_FIELD(roci_cc_event, marked_packets),
    ROCI_TRACE_FIELD(roci_cc_event, sent_bytes),
    ROCI_TRACE_FIELD(roci_cc_event, sent_packets),
    ROCI_TRACE_FIELD(roci_cc_event, losses),
    ROCI_TRACE_FIELD(roci_cc_event, timeouts),
    ROCI_TRACE_FIELD(roci_cc_event, rtt_ns),
    ROCI_TRACE_FIELD(roci_cc_event, least_rtt_ns),
    ROCI_TRACE_FIELD(roci_cc_event, peer_delay_ns),
    ROCI_TRACE_FIELD(roci_cc_event, hops),
    ROCI_TRACE_FIELD(roci_cc_event, receiver_window),
    ROCI_TRACE_FIELD(roci_cc_event, flows_at_receiver),
};

inline constexpr std::array kCnmFields{
    ROCI_TRACE_FIELD(roci_cc_cnm, point),       ROCI_TRACE_FIELD(roci_cc_cnm, queue_offset),
    ROCI_TRACE_FIELD(roci_cc_cnm, queue_delta), ROCI_TRACE_FIELD(roci_cc_cnm, available),
    ROCI_TRACE_FIELD(roci_cc_cnm, rate_change), ROCI_TRACE_FIELD(roci_cc_cnm, feedback),
};

// Without `hops`, the number of hops.
inline constexpr std::array kPathFields{
    ROCI_TRACE_FIELD(roci_cc_path, flags),
    ROCI_TRACE_FIELD(roci_cc_path, age_ns),
};

inline constexpr std::array kHopFields{
    ROCI_TRACE_FIELD(roci_cc_hop, node),    ROCI_TRACE_FIELD(roci_cc_hop, port),
    ROCI_TRACE_FIELD(roci_cc_hop, time_ns), ROCI_TRACE_FIELD(roci_cc_hop, sent_units),
    ROCI_TRACE_FIELD(roci_cc_hop, rate),    ROCI_TRACE_FIELD(roci_cc_hop, queue_bytes),
};

inline constexpr std::array kDecisionFields{
    ROCI_TRACE_FIELD(roci_cc_decision, window),
    ROCI_TRACE_FIELD(roci_cc_decision, rate),
    ROCI_TRACE_FIELD(roci_cc_decision, gap_ns),
    ROCI_TRACE_FIELD(roci_cc_decision, not_ect_below),
    TraceField{"timer0_ns", offsetof(roci_cc_decision, timer_ns), sizeof(uint64_t), false},
    TraceField{"timer1_ns", offsetof(roci_cc_decision, timer_ns) + sizeof(uint64_t), sizeof(uint64_t), false},
    ROCI_TRACE_FIELD(roci_cc_decision, sent_notice),
    ROCI_TRACE_FIELD(roci_cc_decision, idle_ns),
    ROCI_TRACE_FIELD(roci_cc_decision, requests),
    ROCI_TRACE_FIELD(roci_cc_decision, state),
    ROCI_TRACE_FIELD(roci_cc_decision, reason),
};

#undef ROCI_TRACE_FIELD

// A new member of the interface must be added to these tables.
template <size_t kCount>
constexpr size_t bytes_of_fields(const std::array<TraceField, kCount>& fields) {
  size_t bytes = 0;
  for (const TraceField& field : fields) bytes += field.bytes;
  return bytes;
}
static_assert(bytes_of_fields(kFlowFields) == sizeof(roci_cc_flow));
static_assert(bytes_of_fields(kEventFields) + sizeof(uint32_t) /* reserved */ ==
              offsetof(roci_cc_event, cnm));
static_assert(bytes_of_fields(kCnmFields) + sizeof(uint32_t) == sizeof(roci_cc_cnm));
static_assert(bytes_of_fields(kPathFields) + sizeof(uint32_t) == offsetof(roci_cc_path, hop));
static_assert(bytes_of_fields(kHopFields) + sizeof(uint32_t) == sizeof(roci_cc_hop));
static_assert(bytes_of_fields(kDecisionFields) == sizeof(roci_cc_decision));

}  // namespace roci
