// Fuzz target: random bytes as a capability MAD. An accepted message has valid values, is encoded to the same bytes
// again, and can be used for an agreement.
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "wire/mad/capability_mad.hpp"

namespace {

using namespace roci;
using test::require;

void check(std::span<const uint8_t> bytes) {
  const ParsedMad parsed = parse_capability_mad(bytes);
  (void)mad_outcome_name(parsed.outcome);
  if (parsed.outcome != MadOutcome::kAccepted) return;
  const CapabilityOffer& offer = parsed.message.offer;
  require(offer.time_unit != 0 && offer.incarnation != 0);
  if (offer.version == kCapabilityVersion) {
    const CapabilityMad again = build_capability_mad(parsed.message);
    require(std::memcmp(&again, bytes.data(), sizeof again) == 0);
  }
  CapabilityOffer ours;
  ours.capabilities = kAllCapabilities | known_extensions();
  ours.int_hops = kMaxIntHops;
  ours.window = 64;
  const auto agreement = agree(ours, offer);
  require(agreement && agreement == agree(offer, ours));
  require((agreement->capabilities & ~offer.capabilities) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({data, size});
  if (size == 0) return 0;
  // Changes bytes of a valid datagram, so that the fuzzer need not find the constants.
  CapabilityMessage message;
  message.response = (data[0] & 1) != 0;
  message.peer_incarnation = data[0] & 1;
  message.offer.incarnation = 1;
  const CapabilityMad right = build_capability_mad(message);
  const auto* first = reinterpret_cast<const uint8_t*>(&right);
  std::vector<uint8_t> changed(first, first + sizeof right);
  for (size_t i = 1; i + 1 < size; i += 2) changed[data[i]] = data[i + 1];
  check(changed);
  return 0;
}
