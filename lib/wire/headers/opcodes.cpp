#include "wire/headers/opcodes.hpp"

#include <array>

namespace roci {
namespace {

constexpr uint8_t kBthBytes = 12;

template <class... H>
constexpr OpcodeInfo entry(Opcode opcode, std::string_view name, Operation operation, Position position,
                           PayloadRule payload, H... headers) {
  OpcodeInfo info{opcode,    name,      static_cast<TransportClass>(static_cast<uint8_t>(opcode) >> 5),
                  operation, position,  HeaderSet{headers...},
                  payload,   kBthBytes, {}};
  for (unsigned h = 0; h < kHeaderCount; ++h) {
    if (!info.has(static_cast<Header>(h))) continue;
    info.offset[h] = info.header_bytes;
    info.header_bytes = static_cast<uint8_t>(info.header_bytes + header_size(static_cast<Header>(h)));
  }
  return info;
}

using enum Operation;
using enum Position;
using enum PayloadRule;
using enum Header;

constexpr std::array kTable = {
    entry(Opcode::kRcSendFirst, "RC_SEND_FIRST", kSend, kFirst, kFullMtu),
    entry(Opcode::kRcSendMiddle, "RC_SEND_MIDDLE", kSend, kMiddle, kFullMtu),
    entry(Opcode::kRcSendLast, "RC_SEND_LAST", kSend, kLast, kOneToMtu),
    entry(Opcode::kRcSendLastImm, "RC_SEND_LAST_IMM", kSend, kLast, kOneToMtu, kImmDt),
    entry(Opcode::kRcSendOnly, "RC_SEND_ONLY", kSend, kOnly, kUpToMtu),
    entry(Opcode::kRcSendOnlyImm, "RC_SEND_ONLY_IMM", kSend, kOnly, kUpToMtu, kImmDt),
    entry(Opcode::kRcWriteFirst, "RC_WRITE_FIRST", kWrite, kFirst, kFullMtu, kReth),
    entry(Opcode::kRcWriteMiddle, "RC_WRITE_MIDDLE", kWrite, kMiddle, kFullMtu),
    entry(Opcode::kRcWriteLast, "RC_WRITE_LAST", kWrite, kLast, kOneToMtu),
    entry(Opcode::kRcWriteLastImm, "RC_WRITE_LAST_IMM", kWrite, kLast, kOneToMtu, kImmDt),
    entry(Opcode::kRcWriteOnly, "RC_WRITE_ONLY", kWrite, kOnly, kUpToMtu, kReth),
    entry(Opcode::kRcWriteOnlyImm, "RC_WRITE_ONLY_IMM", kWrite, kOnly, kUpToMtu, kReth, kImmDt),
    entry(Opcode::kRcReadRequest, "RC_READ_REQUEST", kReadRequest, kOnly, kNone, kReth),
    entry(Opcode::kRcReadResponseFirst, "RC_READ_RESP_FIRST", kReadResponse, kFirst, kFullMtu, kAeth),
    entry(Opcode::kRcReadResponseMiddle, "RC_READ_RESP_MIDDLE", kReadResponse, kMiddle, kFullMtu),
    entry(Opcode::kRcReadResponseLast, "RC_READ_RESP_LAST", kReadResponse, kLast, kOneToMtu, kAeth),
    entry(Opcode::kRcReadResponseOnly, "RC_READ_RESP_ONLY", kReadResponse, kOnly, kUpToMtu, kAeth),
    entry(Opcode::kRcAcknowledge, "RC_ACK", kAcknowledge, kOnly, kNone, kAeth),
    entry(Opcode::kRcAtomicAcknowledge, "RC_ATOMIC_ACK", kAtomicAcknowledge, kOnly, kNone, kAeth,
          kAtomicAckEth),
    entry(Opcode::kRcCompareSwap, "RC_CMP_SWAP", kCompareSwap, kOnly, kNone, kAtomicEth),
    entry(Opcode::kRcFetchAdd, "RC_FETCH_ADD", kFetchAdd, kOnly, kNone, kAtomicEth),
    entry(Opcode::kRcSendLastInv, "RC_SEND_LAST_INV", kSend, kLast, kOneToMtu, kIeth),
    entry(Opcode::kRcSendOnlyInv, "RC_SEND_ONLY_INV", kSend, kOnly, kUpToMtu, kIeth),
    entry(Opcode::kRcFlush, "RC_FLUSH", kFlush, kOnly, kNone, kFeth, kReth),
    entry(Opcode::kRcAtomicWrite, "RC_ATOMIC_WRITE", kAtomicWrite, kOnly, kUpToMtu, kReth),
    entry(Opcode::kUcSendFirst, "UC_SEND_FIRST", kSend, kFirst, kFullMtu),
    entry(Opcode::kUcSendMiddle, "UC_SEND_MIDDLE", kSend, kMiddle, kFullMtu),
    entry(Opcode::kUcSendLast, "UC_SEND_LAST", kSend, kLast, kOneToMtu),
    entry(Opcode::kUcSendLastImm, "UC_SEND_LAST_IMM", kSend, kLast, kOneToMtu, kImmDt),
    entry(Opcode::kUcSendOnly, "UC_SEND_ONLY", kSend, kOnly, kUpToMtu),
    entry(Opcode::kUcSendOnlyImm, "UC_SEND_ONLY_IMM", kSend, kOnly, kUpToMtu, kImmDt),
    entry(Opcode::kUcWriteFirst, "UC_WRITE_FIRST", kWrite, kFirst, kFullMtu, kReth),
    entry(Opcode::kUcWriteMiddle, "UC_WRITE_MIDDLE", kWrite, kMiddle, kFullMtu),
    entry(Opcode::kUcWriteLast, "UC_WRITE_LAST", kWrite, kLast, kOneToMtu),
    entry(Opcode::kUcWriteLastImm, "UC_WRITE_LAST_IMM", kWrite, kLast, kOneToMtu, kImmDt),
    entry(Opcode::kUcWriteOnly, "UC_WRITE_ONLY", kWrite, kOnly, kUpToMtu, kReth),
    entry(Opcode::kUcWriteOnlyImm, "UC_WRITE_ONLY_IMM", kWrite, kOnly, kUpToMtu, kReth, kImmDt),
    entry(Opcode::kUdSendOnly, "UD_SEND_ONLY", kSend, kOnly, kUpToMtu, kDeth),
    entry(Opcode::kUdSendOnlyImm, "UD_SEND_ONLY_IMM", kSend, kOnly, kUpToMtu, kDeth, kImmDt),
    entry(Opcode::kCnp, "CNP", kCongestionNotification, kOnly, kNone, kCnpReserved),
    entry(Opcode::kXrcSendFirst, "XRC_SEND_FIRST", kSend, kFirst, kFullMtu, kXrcEth),
    entry(Opcode::kXrcSendMiddle, "XRC_SEND_MIDDLE", kSend, kMiddle, kFullMtu, kXrcEth),
    entry(Opcode::kXrcSendLast, "XRC_SEND_LAST", kSend, kLast, kOneToMtu, kXrcEth),
    entry(Opcode::kXrcSendLastImm, "XRC_SEND_LAST_IMM", kSend, kLast, kOneToMtu, kXrcEth, kImmDt),
    entry(Opcode::kXrcSendOnly, "XRC_SEND_ONLY", kSend, kOnly, kUpToMtu, kXrcEth),
    entry(Opcode::kXrcSendOnlyImm, "XRC_SEND_ONLY_IMM", kSend, kOnly, kUpToMtu, kXrcEth, kImmDt),
    entry(Opcode::kXrcWriteFirst, "XRC_WRITE_FIRST", kWrite, kFirst, kFullMtu, kXrcEth, kReth),
    entry(Opcode::kXrcWriteMiddle, "XRC_WRITE_MIDDLE", kWrite, kMiddle, kFullMtu, kXrcEth),
    entry(Opcode::kXrcWriteLast, "XRC_WRITE_LAST", kWrite, kLast, kOneToMtu, kXrcEth),
    entry(Opcode::kXrcWriteLastImm, "XRC_WRITE_LAST_IMM", kWrite, kLast, kOneToMtu, kXrcEth, kImmDt),
    entry(Opcode::kXrcWriteOnly, "XRC_WRITE_ONLY", kWrite, kOnly, kUpToMtu, kXrcEth, kReth),
    entry(Opcode::kXrcWriteOnlyImm, "XRC_WRITE_ONLY_IMM", kWrite, kOnly, kUpToMtu, kXrcEth, kReth, kImmDt),
    entry(Opcode::kXrcReadRequest, "XRC_READ_REQUEST", kReadRequest, kOnly, kNone, kXrcEth, kReth),
    entry(Opcode::kXrcReadResponseFirst, "XRC_READ_RESP_FIRST", kReadResponse, kFirst, kFullMtu, kAeth),
    entry(Opcode::kXrcReadResponseMiddle, "XRC_READ_RESP_MIDDLE", kReadResponse, kMiddle, kFullMtu),
    entry(Opcode::kXrcReadResponseLast, "XRC_READ_RESP_LAST", kReadResponse, kLast, kOneToMtu, kAeth),
    entry(Opcode::kXrcReadResponseOnly, "XRC_READ_RESP_ONLY", kReadResponse, kOnly, kUpToMtu, kAeth),
    entry(Opcode::kXrcAcknowledge, "XRC_ACK", kAcknowledge, kOnly, kNone, kAeth),
    entry(Opcode::kXrcAtomicAcknowledge, "XRC_ATOMIC_ACK", kAtomicAcknowledge, kOnly, kNone, kAeth,
          kAtomicAckEth),
    entry(Opcode::kXrcCompareSwap, "XRC_CMP_SWAP", kCompareSwap, kOnly, kNone, kXrcEth, kAtomicEth),
    entry(Opcode::kXrcFetchAdd, "XRC_FETCH_ADD", kFetchAdd, kOnly, kNone, kXrcEth, kAtomicEth),
    entry(Opcode::kXrcSendLastInv, "XRC_SEND_LAST_INV", kSend, kLast, kOneToMtu, kXrcEth, kIeth),
    entry(Opcode::kXrcSendOnlyInv, "XRC_SEND_ONLY_INV", kSend, kOnly, kUpToMtu, kXrcEth, kIeth),
    entry(Opcode::kCcProbe, "CC_PROBE", kProbeRequest, kOnly, kNone, kProbe),
    entry(Opcode::kCcProbeResponse, "CC_PROBE_RESP", kProbeResponse, kOnly, kNone, kProbe, kProbeTimes),
    entry(Opcode::kCcReadAcknowledge, "CC_RRACK", kReadAcknowledge, kOnly, kNone, kAeth),
    entry(Opcode::kCcIntResponse, "CC_INT_RESP", kIntResponse, kOnly, kNone, kIntReport),
    entry(Opcode::kCcRxWindow, "CC_RXW", kReceiverWindow, kOnly, kNone),
};

constexpr uint8_t kUnknown = 0xff;
constexpr auto kIndex = [] {
  std::array<uint8_t, 256> index{};
  index.fill(kUnknown);
  for (size_t i = 0; i < kTable.size(); ++i)
    index[static_cast<uint8_t>(kTable[i].opcode)] = static_cast<uint8_t>(i);
  return index;
}();

}  // namespace

std::string_view header_name(Header h) {
  constexpr std::string_view kNames[kHeaderCount] = {
      "DETH",  "XRCETH", "FETH",         "RETH",  "AtomicETH",   "AETH",      "AtomicAckETH",
      "ImmDt", "IETH",   "CNP reserved", "probe", "probe times", "INT report"};
  return kNames[static_cast<unsigned>(h)];
}

std::string_view payload_check_name(PayloadCheck check) {
  constexpr std::string_view kNames[kPayloadCheckCount] = {
      "right",        "payload not allowed", "payload missing", "not the path MTU", "beyond the path MTU",
      "bad pad count"};
  return kNames[static_cast<unsigned>(check)];
}

const OpcodeInfo* find_opcode(uint8_t raw) {
  const uint8_t i = kIndex[raw];
  return i == kUnknown ? nullptr : &kTable[i];
}

const OpcodeInfo& opcode_info(Opcode opcode) { return kTable[kIndex[static_cast<uint8_t>(opcode)]]; }

std::span<const OpcodeInfo> opcode_table() { return kTable; }

}  // namespace roci
