#include <gtest/gtest.h>

#include <map>
#include <set>

#include "wire/headers/opcodes.hpp"

namespace roci {
namespace {

// Independent copy of the opcodes of the specification: value, name, bytes of headers from the BTH on, request (R),
// response (A) or neither (-), and payload rule. Opcodes from 0xe0 on are those of docs/wire-extensions.md.
struct Row {
  unsigned opcode;
  const char* name;
  unsigned header_bytes;
  char direction;
  PayloadRule payload;
};
constexpr PayloadRule kNone = PayloadRule::kNone, kFull = PayloadRule::kFullMtu,
                      kSome = PayloadRule::kOneToMtu, kAny = PayloadRule::kUpToMtu;
constexpr Row kRows[] = {
    {0x00, "RC_SEND_FIRST", 12, 'R', kFull},        {0x01, "RC_SEND_MIDDLE", 12, 'R', kFull},
    {0x02, "RC_SEND_LAST", 12, 'R', kSome},         {0x03, "RC_SEND_LAST_IMM", 16, 'R', kSome},
    {0x04, "RC_SEND_ONLY", 12, 'R', kAny},          {0x05, "RC_SEND_ONLY_IMM", 16, 'R', kAny},
    {0x06, "RC_WRITE_FIRST", 28, 'R', kFull},       {0x07, "RC_WRITE_MIDDLE", 12, 'R', kFull},
    {0x08, "RC_WRITE_LAST", 12, 'R', kSome},        {0x09, "RC_WRITE_LAST_IMM", 16, 'R', kSome},
    {0x0a, "RC_WRITE_ONLY", 28, 'R', kAny},         {0x0b, "RC_WRITE_ONLY_IMM", 32, 'R', kAny},
    {0x0c, "RC_READ_REQUEST", 28, 'R', kNone},      {0x0d, "RC_READ_RESP_FIRST", 16, 'A', kFull},
    {0x0e, "RC_READ_RESP_MIDDLE", 12, 'A', kFull},  {0x0f, "RC_READ_RESP_LAST", 16, 'A', kSome},
    {0x10, "RC_READ_RESP_ONLY", 16, 'A', kAny},     {0x11, "RC_ACK", 16, 'A', kNone},
    {0x12, "RC_ATOMIC_ACK", 24, 'A', kNone},        {0x13, "RC_CMP_SWAP", 40, 'R', kNone},
    {0x14, "RC_FETCH_ADD", 40, 'R', kNone},         {0x16, "RC_SEND_LAST_INV", 16, 'R', kSome},
    {0x17, "RC_SEND_ONLY_INV", 16, 'R', kAny},      {0x1c, "RC_FLUSH", 32, 'R', kNone},
    {0x1d, "RC_ATOMIC_WRITE", 28, 'R', kAny},       {0x20, "UC_SEND_FIRST", 12, 'R', kFull},
    {0x21, "UC_SEND_MIDDLE", 12, 'R', kFull},       {0x22, "UC_SEND_LAST", 12, 'R', kSome},
    {0x23, "UC_SEND_LAST_IMM", 16, 'R', kSome},     {0x24, "UC_SEND_ONLY", 12, 'R', kAny},
    {0x25, "UC_SEND_ONLY_IMM", 16, 'R', kAny},      {0x26, "UC_WRITE_FIRST", 28, 'R', kFull},
    {0x27, "UC_WRITE_MIDDLE", 12, 'R', kFull},      {0x28, "UC_WRITE_LAST", 12, 'R', kSome},
    {0x29, "UC_WRITE_LAST_IMM", 16, 'R', kSome},    {0x2a, "UC_WRITE_ONLY", 28, 'R', kAny},
    {0x2b, "UC_WRITE_ONLY_IMM", 32, 'R', kAny},     {0x64, "UD_SEND_ONLY", 20, 'R', kAny},
    {0x65, "UD_SEND_ONLY_IMM", 24, 'R', kAny},      {0x81, "CNP", 28, '-', kNone},
    {0xa0, "XRC_SEND_FIRST", 16, 'R', kFull},       {0xa1, "XRC_SEND_MIDDLE", 16, 'R', kFull},
    {0xa2, "XRC_SEND_LAST", 16, 'R', kSome},        {0xa3, "XRC_SEND_LAST_IMM", 20, 'R', kSome},
    {0xa4, "XRC_SEND_ONLY", 16, 'R', kAny},         {0xa5, "XRC_SEND_ONLY_IMM", 20, 'R', kAny},
    {0xa6, "XRC_WRITE_FIRST", 32, 'R', kFull},      {0xa7, "XRC_WRITE_MIDDLE", 16, 'R', kFull},
    {0xa8, "XRC_WRITE_LAST", 16, 'R', kSome},       {0xa9, "XRC_WRITE_LAST_IMM", 20, 'R', kSome},
    {0xaa, "XRC_WRITE_ONLY", 32, 'R', kAny},        {0xab, "XRC_WRITE_ONLY_IMM", 36, 'R', kAny},
    {0xac, "XRC_READ_REQUEST", 32, 'R', kNone},     {0xad, "XRC_READ_RESP_FIRST", 16, 'A', kFull},
    {0xae, "XRC_READ_RESP_MIDDLE", 12, 'A', kFull}, {0xaf, "XRC_READ_RESP_LAST", 16, 'A', kSome},
    {0xb0, "XRC_READ_RESP_ONLY", 16, 'A', kAny},    {0xb1, "XRC_ACK", 16, 'A', kNone},
    {0xb2, "XRC_ATOMIC_ACK", 24, 'A', kNone},       {0xb3, "XRC_CMP_SWAP", 44, 'R', kNone},
    {0xb4, "XRC_FETCH_ADD", 44, 'R', kNone},        {0xb6, "XRC_SEND_LAST_INV", 20, 'R', kSome},
    {0xb7, "XRC_SEND_ONLY_INV", 20, 'R', kAny},     {0xe0, "CC_PROBE", 36, '-', kNone},
    {0xe1, "CC_PROBE_RESP", 64, '-', kNone},        {0xe2, "CC_RRACK", 16, '-', kNone},
    {0xe3, "CC_INT_RESP", 52, '-', kNone},          {0xe4, "CC_RXW", 12, '-', kNone},
};

TEST(OpcodeTable, matches_specification) {
  ASSERT_EQ(opcode_table().size(), std::size(kRows));
  size_t i = 0;
  for (const Row& row : kRows) {
    const OpcodeInfo& info = opcode_table()[i++];
    EXPECT_EQ(static_cast<unsigned>(info.opcode), row.opcode);
    EXPECT_EQ(info.name, row.name);
    EXPECT_EQ(info.header_bytes, row.header_bytes) << row.name;
    EXPECT_EQ(info.payload, row.payload) << row.name;
    EXPECT_EQ(info.is_request(), row.direction == 'R') << row.name;
    EXPECT_EQ(info.is_response(), row.direction == 'A') << row.name;
  }
}

TEST(OpcodeTable, finds_known_opcodes_and_no_others) {
  std::set<unsigned> known;
  for (const Row& row : kRows) known.insert(row.opcode);
  for (unsigned raw = 0; raw < 256; ++raw) {
    const OpcodeInfo* info = find_opcode(static_cast<uint8_t>(raw));
    if (!known.contains(raw)) {
      EXPECT_EQ(info, nullptr) << raw;
      continue;
    }
    ASSERT_NE(info, nullptr) << raw;
    EXPECT_EQ(static_cast<unsigned>(info->opcode), raw);
    EXPECT_EQ(&opcode_info(info->opcode), info);
  }
}

TEST(OpcodeTable, only_cnp_and_private_opcodes_are_neither_request_nor_response) {
  for (const OpcodeInfo& info : opcode_table()) {
    const bool neither = info.transport == TransportClass::kCnp || info.is_private();
    EXPECT_EQ(info.is_request() != info.is_response(), !neither) << info.name;
    EXPECT_EQ(info.is_private(), static_cast<unsigned>(info.opcode) >= 0xe0) << info.name;
    EXPECT_FALSE(info.is_request() && info.is_response()) << info.name;
  }
}

TEST(OpcodeTable, header_offsets_are_contiguous) {
  for (const OpcodeInfo& info : opcode_table()) {
    unsigned at = 12;
    for (unsigned h = 0; h < kHeaderCount; ++h) {
      if (!info.has(static_cast<Header>(h))) continue;
      EXPECT_EQ(info.offset[h], at) << info.name << " " << header_name(static_cast<Header>(h));
      at += header_size(static_cast<Header>(h));
    }
    EXPECT_EQ(info.header_bytes, at) << info.name;
  }
}

TEST(OpcodeTable, headers_and_positions_match_opcode_names) {
  const std::map<std::string_view, TransportClass> classes = {
      {"RC_", TransportClass::kRc},  {"UC_", TransportClass::kUc},  {"UD_", TransportClass::kUd},
      {"CNP", TransportClass::kCnp}, {"XRC", TransportClass::kXrc}, {"CC_", TransportClass::kPrivate}};
  for (const OpcodeInfo& info : opcode_table()) {
    const auto named = [&](std::string_view part) { return info.name.find(part) != std::string_view::npos; };
    EXPECT_EQ(info.transport, classes.at(info.name.substr(0, 3))) << info.name;
    EXPECT_EQ(info.has(Header::kImmDt), named("_IMM")) << info.name;
    EXPECT_EQ(info.has(Header::kIeth), named("_INV")) << info.name;
    EXPECT_EQ(info.has(Header::kDeth), named("UD_")) << info.name;
    EXPECT_EQ(info.has(Header::kXrcEth), named("XRC_") && info.is_request()) << info.name;
    EXPECT_EQ(info.has(Header::kReth), named("WRITE_FIRST") || named("WRITE_ONLY") || named("READ_REQUEST") ||
                                           named("FLUSH") || named("ATOMIC_WRITE"))
        << info.name;
    EXPECT_EQ(info.has(Header::kFeth), named("FLUSH")) << info.name;
    EXPECT_EQ(info.has(Header::kAeth), named("ACK") || (named("READ_RESP") && !named("MIDDLE"))) << info.name;
    EXPECT_EQ(info.has(Header::kProbe), named("PROBE")) << info.name;
    EXPECT_EQ(info.has(Header::kProbeTimes), named("PROBE_RESP")) << info.name;
    EXPECT_EQ(info.has(Header::kIntReport), named("INT_RESP")) << info.name;
    EXPECT_EQ(info.starts_message(), !named("MIDDLE") && !named("LAST")) << info.name;
    EXPECT_EQ(info.ends_message(), !named("MIDDLE") && !named("FIRST")) << info.name;
    EXPECT_EQ(info.consumes_receive(), named("SEND") || (named("WRITE") && named("_IMM"))) << info.name;
  }
}

struct PayloadRow {
  Opcode opcode;
  uint32_t length;
  unsigned pad;
  PayloadCheck found;
};

TEST(PayloadValidation, applies_payload_rule_of_the_opcode) {
  constexpr uint32_t kMtu = 1024;
  const PayloadRow rows[] = {
      {Opcode::kRcSendFirst, 1024, 0, PayloadCheck::kRight},
      {Opcode::kRcSendFirst, 1023, 1, PayloadCheck::kNotFullMtu},
      {Opcode::kRcSendFirst, 0, 0, PayloadCheck::kNotFullMtu},
      {Opcode::kRcSendMiddle, 1025, 3, PayloadCheck::kNotFullMtu},
      {Opcode::kRcSendMiddle, 1024, 1, PayloadCheck::kBadPad},
      {Opcode::kRcSendLast, 0, 0, PayloadCheck::kEmpty},
      {Opcode::kRcSendLast, 1, 3, PayloadCheck::kRight},
      {Opcode::kRcSendLast, 1, 0, PayloadCheck::kBadPad},
      {Opcode::kRcSendLast, 1024, 0, PayloadCheck::kRight},
      {Opcode::kRcSendLast, 1025, 3, PayloadCheck::kTooLong},
      {Opcode::kRcWriteOnly, 0, 0, PayloadCheck::kRight},
      {Opcode::kRcWriteOnly, 2, 2, PayloadCheck::kRight},
      {Opcode::kRcWriteOnly, 3, 1, PayloadCheck::kRight},
      {Opcode::kRcWriteOnly, 3, 2, PayloadCheck::kBadPad},
      {Opcode::kRcWriteOnly, 1028, 0, PayloadCheck::kTooLong},
      {Opcode::kRcAcknowledge, 0, 0, PayloadCheck::kRight},
      {Opcode::kRcAcknowledge, 4, 0, PayloadCheck::kNotEmpty},
      {Opcode::kRcAcknowledge, 0, 1, PayloadCheck::kBadPad},
      {Opcode::kRcReadRequest, 1, 3, PayloadCheck::kNotEmpty},
      {Opcode::kCnp, 0, 0, PayloadCheck::kRight},
  };
  for (const PayloadRow& row : rows) {
    const PayloadCheck found =
        check_payload(opcode_info(row.opcode), row.length, static_cast<uint8_t>(row.pad), kMtu);
    EXPECT_EQ(found, row.found) << opcode_info(row.opcode).name << " " << row.length << "+" << row.pad << ": "
                                << payload_check_name(found);
  }
}

TEST(PayloadValidation, pad_completes_a_multiple_of_four) {
  for (uint32_t length = 0; length < 5000; ++length) {
    EXPECT_EQ((length + pad_for(length)) % 4, 0U);
    EXPECT_LT(pad_for(length), 4);
  }
}

}  // namespace
}  // namespace roci
