#include "transport/messages/scatter.hpp"

namespace roci {

bool scatter_bytes(const MemoryTable& memory, PdNumber pd, std::span<const ibv_sge> list,
                   std::span<const uint8_t> bytes) {
  const bool allowed =
      for_each_sge(memory, pd, list, 0, static_cast<uint32_t>(bytes.size()), Access::kLocalWrite,
                   [&](uint8_t* host, uint32_t at, uint32_t n) { guarded_copy(host, bytes.data() + at, n); });
  return !take_memory_fault() && allowed;
}

}  // namespace roci
