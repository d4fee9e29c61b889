// Frames of every kind that the script reads, made by our builders, with random values.
#pragma once

#include <string>
#include <utility>

#include "base/rng.hpp"
#include "wire/opcodes.hpp"
#include "wireshark/our_reading.hpp"

namespace roci::test {

struct RandomFrame {
  std::string kind;
  Bytes bytes;
  // The bytes in which the message says of itself what it is: which to damage.
  size_t begin = 0, end = 0;
};

RandomFrame random_roce(Rng& rng, Opcode opcode);   // sometimes with an extension block
RandomFrame random_block(Rng& rng, Opcode opcode);  // always with one
RandomFrame random_cn_tagged(Rng& rng);
RandomFrame random_cnm(Rng& rng);
RandomFrame random_l3_cnm(Rng& rng);
RandomFrame random_int(Rng& rng);
RandomFrame random_capabilities(Rng& rng);
RandomFrame random_pause(Rng& rng);
RandomFrame random_cnp(Rng& rng);

// `count` of each, of the packets of each opcode `each_opcode`.
std::vector<RandomFrame> random_frames(Rng& rng, unsigned count, unsigned each_opcode);

// The frame with another value in the byte at `place` of those that say what it is, or with fewer bytes or more, as if its
// sender had meant it: IP and UDP say so, and checksums are right.
Bytes damaged(Rng& rng, const RandomFrame& frame, size_t place);

}  // namespace roci::test
