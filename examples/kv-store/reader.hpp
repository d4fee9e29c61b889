// The client's side of the table: what a copy of a bucket, as a READ brought it, says about a key.
#pragma once

#include <string>
#include <string_view>

#include "layout.hpp"

namespace kv {

enum class Found {
  kValue,
  kMissing,
  kChanging,  // the server was writing while the bucket was read: read it again
};

// `value` is set when there is one.
Found find(const Bucket& copy, std::string_view key, std::string& value);

}  // namespace kv
