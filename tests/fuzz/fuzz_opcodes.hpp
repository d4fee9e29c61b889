// Numbers of opcodes in fuzzer inputs. Inputs are kept in the corpus, so opcodes of a service that was added later
// (XRC) follow the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "wire/headers/opcodes.hpp"

namespace roci::fuzz {

inline const std::vector<OpcodeInfo>& opcodes() {
  static const std::vector<OpcodeInfo> all = [] {
    std::vector<OpcodeInfo> table(opcode_table().begin(), opcode_table().end());
    std::stable_partition(table.begin(), table.end(),
                          [](const OpcodeInfo& info) { return info.transport != TransportClass::kXrc; });
    return table;
  }();
  return all;
}

inline const OpcodeInfo& opcode_of(uint8_t number) { return opcodes()[number % opcodes().size()]; }

inline uint8_t number_of(Opcode opcode) {
  return static_cast<uint8_t>(std::ranges::find(opcodes(), opcode, &OpcodeInfo::opcode) - opcodes().begin());
}

}  // namespace roci::fuzz
