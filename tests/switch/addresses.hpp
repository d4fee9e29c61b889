// Addresses and networks from text.
#pragma once

#include <string_view>

#include "wire/headers/address.hpp"

namespace roci::test {

inline IpAddress ip(std::string_view text) { return *IpAddress::parse(text); }
inline IpNetwork net(std::string_view text) { return *IpNetwork::parse(text); }

}  // namespace roci::test
