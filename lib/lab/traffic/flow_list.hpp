// List of flows from a file: one flow per line with sender, receiver, bytes, and start in ns. `#` starts a comment.
//
//   h12 h9 402988 49729
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/network/topology.hpp"

namespace roci::lab {

struct ListedFlow {
  uint32_t from = 0, to = 0;  // hosts
  uint64_t bytes = 0;
  Nanos start{0};

  friend bool operator==(const ListedFlow&, const ListedFlow&) = default;
};

inline constexpr size_t kMaxListedFlows = 20'000'000;
inline constexpr uint64_t kMaxListedBytes = 1ULL << 40;

// `name` of the file, for errors.
Result<std::vector<ListedFlow>> parse_flow_list(std::string_view text, const std::string& name,
                                                const Topology& topology);
Result<std::vector<ListedFlow>> read_flow_list(const std::string& file, const Topology& topology);

}  // namespace roci::lab
