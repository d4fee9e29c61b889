// Custom libFuzzer mutator for host programs. It mostly changes whole steps and their fields, so that a long valid
// history remains valid.
#include <algorithm>
#include <random>

#include "fuzz/host_program.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace roci::test;
using Rng = std::minstd_rand;

size_t below(Rng& rng, size_t bound) { return bound == 0 ? 0 : rng() / 7 % bound; }

// Values that are more likely to reach new code.
uint8_t interesting(Rng& rng) {
  constexpr uint8_t kValues[] = {0,  0,    1,    2,    3,    4,    7,    8,    15,
                                 16, 0x1f, 0x20, 0x60, 0x61, 0x7f, 0x80, 0xfe, 0xff};
  return below(rng, 3) == 0 ? static_cast<uint8_t>(rng() >> 8) : kValues[below(rng, std::size(kValues))];
}

Step any_step(Rng& rng) {
  Step step;
  auto* bytes = reinterpret_cast<uint8_t*>(&step);
  for (size_t i = 0; i < sizeof step; ++i) bytes[i] = below(rng, 2) == 0 ? uint8_t{0} : interesting(rng);
  step.act = static_cast<uint8_t>(below(rng, 3) == 0 ? rng() : static_cast<unsigned>(Act::kPacket));
  step.opcode = static_cast<uint8_t>(rng() >> 4);
  step.stray = below(rng, 8) == 0 ? static_cast<uint8_t>(kFirstStray + below(rng, 16)) : uint8_t{0};
  return step;
}

void change_field(Step& step, Rng& rng) {
  auto* bytes = reinterpret_cast<uint8_t*>(&step);
  uint8_t& byte = bytes[below(rng, sizeof step)];
  switch (below(rng, 4)) {
    case 0:
      byte = static_cast<uint8_t>(byte + 1);
      break;
    case 1:
      byte = static_cast<uint8_t>(byte - 1);
      break;
    case 2:
      byte = static_cast<uint8_t>(byte ^ 1U << below(rng, 8));
      break;
    default:
      byte = interesting(rng);
  }
}

void change(HostProgram& program, Rng& rng) {
  std::vector<Step>& steps = program.steps;
  const size_t at = below(rng, steps.size());
  const auto place = steps.begin() + static_cast<ptrdiff_t>(at);
  switch (steps.empty() ? 0 : below(rng, 12)) {
    case 0:
      steps.insert(steps.begin() + static_cast<ptrdiff_t>(below(rng, steps.size() + 1)), any_step(rng));
      break;
    case 1:
      steps.erase(place);
      break;
    case 2:  // duplicates the step
      steps.insert(place, Step(*place));
      break;
    case 3:  // reorders steps
      std::swap(*place, steps[below(rng, steps.size())]);
      break;
    case 4: {  // repeats the step later
      const Step copy = *place;
      steps.insert(steps.begin() + static_cast<ptrdiff_t>(at + below(rng, steps.size() - at + 1)), copy);
      break;
    }
    case 5:  // removes a range of steps
      steps.erase(place,
                  place + static_cast<ptrdiff_t>(below(rng, std::min<size_t>(steps.size() - at, 16) + 1)));
      break;
    case 6:  // moves the step to another queue pair
      place->slot = static_cast<uint8_t>(below(rng, 8));
      break;
    case 7:
      program.setup.habits = static_cast<uint8_t>(program.setup.habits ^ 1U << below(rng, 5));
      break;
    case 8:
      change_field(reinterpret_cast<Step&>(program.setup), rng);
      break;
    default:
      change_field(*place, rng);
  }
  if (steps.size() > kMaxSteps) steps.resize(kMaxSteps);
}

size_t store(const HostProgram& program, uint8_t* data, size_t max_size) {
  const std::vector<uint8_t> bytes = program.bytes();
  const size_t size = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), size);
  return size;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Rng rng(seed);
  if (below(rng, 6) == 0) return LLVMFuzzerMutate(data, size, max_size);
  HostProgram program = HostProgram::read({data, size});
  for (size_t changes = 1 + below(rng, 4); changes > 0; --changes) change(program, rng);
  return store(program, data, max_size);
}

// Inserts a range of the second program's steps into the first program.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size, unsigned seed) {
  Rng rng(seed);
  HostProgram program = HostProgram::read({one, one_size});
  const HostProgram second = HostProgram::read({other, other_size});
  if (!second.steps.empty()) {
    const size_t from = below(rng, second.steps.size());
    const size_t count = 1 + below(rng, second.steps.size() - from);
    const auto first = second.steps.begin() + static_cast<ptrdiff_t>(from);
    program.steps.insert(program.steps.begin() + static_cast<ptrdiff_t>(below(rng, program.steps.size() + 1)),
                         first, first + static_cast<ptrdiff_t>(count));
    if (program.steps.size() > kMaxSteps) program.steps.resize(kMaxSteps);
  }
  return store(program, out, max_size);
}
