#include "wire/roce/roce_cnp.hpp"

#include <cassert>

namespace roci {

uint32_t build_cnp(const RocePath& path, Qpn sender, std::span<uint8_t> out, PKey pkey) {
  RoceWriter writer(path);
  const uint32_t length = writer.frame_bytes(opcode_info(Opcode::kCnp), 0);
  assert(out.size() >= length);
  BthFields bth{.opcode = Opcode::kCnp, .destination_qp = sender, .psn = Psn{0}};
  bth.pkey = pkey;
  bth.becn = true;
  RoceWriter::Open open = writer.begin(out.data(), bth, 0);
  open.header<CnpReserved>(Header::kCnpReserved) = CnpReserved{};
  RoceWriter::finish(open);
  return length;
}

}  // namespace roci
