#include "simulation/verifier.hpp"

namespace roci::test {

void Tally::add(const Tally& other) {
  for (const Sum& sum : kSums) this->*sum.value += other.*sum.value;
}

}  // namespace roci::test
