// Search for a key in a client's copy of a bucket.
#pragma once

#include <string>
#include <string_view>

#include "layout.hpp"

namespace kv {

enum class Found {
  kValue,
  kMissing,
  kChanging,  // the server wrote to the bucket during the READ: repeat the READ
};

// Sets `value` for Found::kValue.
Found find(const Bucket& copy, std::string_view key, std::string& value);

}  // namespace kv
