#include "wire/headers/address_hash.hpp"

#include <array>
#include <bit>

#include "base/rng.hpp"

namespace roci {

AddressHash::AddressHash() : key_(std::bit_cast<SipKey>(std::array{os_random(), os_random()})) {}

size_t AddressHash::operator()(const IpAddress& address) const { return siphash(key_, address.bytes); }

}  // namespace roci
