// Hash of IP addresses for tables that unauthenticated senders can fill.
#pragma once

#include <cstddef>

#include "wire/extensions/siphash.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// SipHash-2-4 with a random key for each object. Senders choose the addresses, so without a secret they could choose
// addresses with one bucket, and each look-up would compare all of them.
class AddressHash {
 public:
  AddressHash();  // takes the key from the operating system
  size_t operator()(const IpAddress& address) const;

 private:
  SipKey key_;
};

}  // namespace roci
