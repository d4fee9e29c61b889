#include "transport/messages/local_operations.hpp"

namespace roci {
namespace {

// Additional parameters of a bind are stored in fields of other requests: the length in compare_add, the region's key
// and the access flags in swap, the window in immediate.
uint64_t pack(uint32_t region, unsigned access) { return uint64_t{region} << 32 | access; }

WindowBind bind_of(const SendWqe& wqe) {
  return {.window = MemoryKey{wqe.immediate},
          .new_key = MemoryKey{wqe.rkey},
          .region = MemoryKey{static_cast<uint32_t>(wqe.swap >> 32)},
          .start = wqe.remote_address,
          .length = wqe.compare_add,
          .access = static_cast<int>(wqe.swap & 0xffffffff)};
}

}  // namespace

void take_local_operation(SendWqe& wqe, const ibv_send_wr& wr) {
  wqe.send_flags &= ~static_cast<unsigned>(IBV_SEND_INLINE);
  wqe.length = 0;
  if (wr.opcode == IBV_WR_LOCAL_INV) {
    wqe.rkey = wr.invalidate_rkey;
    return;
  }
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  wqe.immediate = wr.bind_mw.mw->rkey;
  wqe.rkey = with_key_byte(MemoryKey{wqe.immediate}, MemoryKey{wr.bind_mw.rkey}).value();
  wqe.remote_address = info.addr;
  wqe.compare_add = info.mr == nullptr ? 0 : info.length;
  wqe.swap = pack(info.mr == nullptr ? 0 : info.mr->lkey, info.mw_access_flags);
  if (wr.bind_mw.mw->context != nullptr) wr.bind_mw.mw->rkey = wqe.rkey;
}

ibv_wc_status execute_local_operation(const TransportContext& context, const Accessor& accessor,
                                      const SendWqe& wqe) {
  const bool done = wqe.opcode == IBV_WR_LOCAL_INV
                        ? context.memory.invalidate(accessor, MemoryKey{wqe.rkey})
                        : context.memory.bind(accessor, bind_of(wqe)) == BindOutcome::kBound;
  return done ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

}  // namespace roci
