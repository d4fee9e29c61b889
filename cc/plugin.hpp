// Descriptor of a built-in plugin: the table that the engine reads (roci_cc_plugin), from an algorithm's tables and its
// functions with typed arguments.
//
//   void start(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& decision);
//   void event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
//              roci_cc_decision& decision);
//
//   extern "C" constinit const roci_cc_plugin roci_cc_NAME = plugin<State, start, event>({.name = "NAME", …});
#pragma once

#include <span>
#include <type_traits>

#include "roci/cc.h"

namespace roci::cc {

// State of an algorithm that keeps nothing.
struct NoState {};

struct Tables {
  std::span<const roci_cc_parameter> parameters;
  std::span<const roci_cc_label> states;
  std::span<const roci_cc_label> reasons;
};

struct Description {
  const char* name;
  const char* summary;
  const char* source;
  uint32_t capabilities;
  Tables tables;
  const char* (*check)(const roci_cc_flow* flow, const double* parameters) = nullptr;
};

// `kReceive`: the receiver's part, with the same type of state; null: none.
template <class State, auto kStart, auto kEvent, auto kReceive = nullptr>
consteval roci_cc_plugin plugin(const Description& of) {
  static_assert(sizeof(State) <= ROCI_CC_MAX_STATE);
  static_assert(alignof(State) <= 8);
  constexpr uint16_t kBytes = std::is_empty_v<State> ? 0 : sizeof(State);
  roci_cc_plugin made{
      .abi = ROCI_CC_ABI,
      .size = sizeof(roci_cc_plugin),
      .name = of.name,
      .summary = of.summary,
      .source = of.source,
      .capabilities = of.capabilities,
      .state_bytes = kBytes,
      .receiver_state_bytes = 0,
      .parameters = of.tables.parameters.data(),
      .parameter_count = static_cast<uint32_t>(of.tables.parameters.size()),
      .state_count = static_cast<uint32_t>(of.tables.states.size()),
      .states = of.tables.states.data(),
      .reasons = of.tables.reasons.data(),
      .reason_count = static_cast<uint32_t>(of.tables.reasons.size()),
      .reserved = 0,
      .check = of.check,
      .start =
          [](void* state, const roci_cc_flow* flow, uint64_t now, const double* p,
             roci_cc_decision* decision) { kStart(*static_cast<State*>(state), *flow, now, p, *decision); },
      .event =
          [](void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
             roci_cc_decision* decision) {
            kEvent(*static_cast<State*>(state), *flow, *event, p, *decision);
          },
      .receive = nullptr,
  };
  if constexpr (!std::is_null_pointer_v<decltype(kReceive)>) {
    made.receiver_state_bytes = kBytes;
    made.receive = [](void* state, const roci_cc_flow* flow, const roci_cc_arrival* arrival, const double* p,
                      roci_cc_grant* grant) {
      kReceive(*static_cast<State*>(state), *flow, *arrival, p, *grant);
    };
  }
  return made;
}

}  // namespace roci::cc
