// Loss of a single packet between two hosts.
#pragma once

#include <functional>
#include <string>

namespace roci::test {

// For TwoHosts::lose: drops the first packet that is logged as `line`.
inline std::function<bool(const std::string&)> once(const std::string& line) {
  return [line, done = false](const std::string& seen) mutable {
    if (done || seen != line) return false;
    return done = true;
  };
}

}  // namespace roci::test
