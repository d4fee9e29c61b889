// Frames of every kind that the script decodes, built by the project's encoders, with random values.
#pragma once

#include <string>
#include <utility>

#include "base/rng.hpp"
#include "wire/headers/opcodes.hpp"
#include "wireshark/our_reading.hpp"

namespace roci::test {

struct RandomFrame {
  std::string kind;
  Bytes bytes;
  // Byte range of the message's header fields, which damaged() changes.
  size_t begin = 0, end = 0;
};

RandomFrame random_roce(Rng& rng, Opcode opcode);   // sometimes with an extension block
RandomFrame random_block(Rng& rng, Opcode opcode);  // always with an extension block
RandomFrame random_cn_tagged(Rng& rng);
RandomFrame random_cnm(Rng& rng);
RandomFrame random_l3_cnm(Rng& rng);
RandomFrame random_int(Rng& rng);
RandomFrame random_capabilities(Rng& rng);
RandomFrame random_pause(Rng& rng);
RandomFrame random_cnp(Rng& rng);

// `count` frames of each kind, and `each_opcode` packets of each opcode.
std::vector<RandomFrame> random_frames(Rng& rng, unsigned count, unsigned each_opcode);

// Changes byte `place` of the header fields, or the length, consistently: IP and UDP lengths and checksums are
// correct.
Bytes damaged(Rng& rng, const RandomFrame& frame, size_t place);

}  // namespace roci::test
