// Receive completion of a message.
#pragma once

#include <infiniband/verbs.h>

#include "wire/roce/frame.hpp"

namespace roci {

// `last` is the last packet of the message, `length` the message's length in bytes.
inline ibv_wc receive_completion(const FrameView& last, uint32_t length) {
  ibv_wc wc{};
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = last.opcode->operation == Operation::kSend ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  wc.byte_len = length;
  if (last.opcode->has(Header::kImmDt)) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = __builtin_bswap32(last.imm().data.get());
  }
  if (last.opcode->has(Header::kIeth)) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = last.ieth().rkey.get();
  }
  return wc;
}

}  // namespace roci
