// Table of the configuration keys of HPCC's ns-3 simulator and of ConWeave, a descendant.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace roci::lab {

// Algorithms that use a key.
enum Ns3Users : uint8_t {
  kNs3None = 0,
  kNs3Dcqcn = 1,
  kNs3Hpcc = 2,
  kNs3Timely = 4,
  kNs3Dctcp = 8,
  kNs3All = 15,
};

struct Ns3Key {
  static constexpr size_t kByRate = 0;  // number of values: a count, and as many pairs of rate and value

  std::string_view name;
  size_t values = 1;
  uint8_t users = kNs3All;
  std::string_view untranslated{};  // reason for which the key is not translated; empty: it is
  std::string_view same{};          // first value with which `untranslated` does not apply
};

std::span<const Ns3Key> ns3_keys();
const Ns3Key* find_ns3_key(std::string_view name);

}  // namespace roci::lab
