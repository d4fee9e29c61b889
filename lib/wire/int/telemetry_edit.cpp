#include "wire/int/telemetry_edit.hpp"

#include <rte_ip.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/headers/header_at.hpp"
#include "wire/net/rewrite.hpp"

namespace roci {
namespace {

constexpr uint32_t kMaxIpBytes = 0xffff;
constexpr unsigned kHopWordsShift = 8;
constexpr uint32_t kHeaderWords = sizeof(IntMdHeader) / 4;

// Updates a UDP checksum for a change: subtracts the bytes that it covered before and adds those that it covers now.
// All pieces start at an even offset and have an even length, so the byte order of a word does not matter (RFC 1071 2).
class UdpChecksumUpdate {
 public:
  explicit UdpChecksumUpdate(const UdpHeader& udp) : none_(udp.checksum.get() == 0) {
    sum_ = static_cast<uint16_t>(~std::bit_cast<uint16_t>(udp.checksum));
    take_header(udp);
  }
  void take(const void* bytes, size_t length) {
    if (!none_) sum_ += static_cast<uint16_t>(~rte_raw_cksum(bytes, length));
  }
  void add(const void* bytes, size_t length) {
    if (!none_) sum_ += rte_raw_cksum(bytes, length);
  }
  // Adds the changed header fields and stores the checksum.
  void finish(UdpHeader& udp) {
    if (none_) return;
    add(&udp.destination_port, sizeof udp.destination_port);
    for (int i = 0; i < 2; ++i) add(&udp.length, sizeof udp.length);
    while (sum_ >> 16 != 0) sum_ = (sum_ & 0xffff) + (sum_ >> 16);
    const auto checksum = static_cast<uint16_t>(~sum_);
    udp.checksum = std::bit_cast<Be16>(checksum == 0 ? uint16_t{0xffff} : checksum);
  }

 private:
  void take_header(const UdpHeader& udp) {
    take(&udp.destination_port, sizeof udp.destination_port);
    for (int i = 0; i < 2; ++i) take(&udp.length, sizeof udp.length);  // also in the pseudo header
  }

  uint32_t sum_ = 0;
  bool none_;
};

void change_lengths(FrameFront& frame, const UdpLocation& where, int32_t by) {
  const auto changed = [by](const Be16& length) { return static_cast<uint16_t>(length.get() + by); };
  if (where.ipv6) {
    Be16& length = header_at<Ipv6Header>(frame.data, where.l3_offset).payload_length;
    length.set(changed(length));
  } else {
    auto& ip = header_at<Ipv4Header>(frame.data, where.l3_offset);
    const uint16_t before = ip.total_length.get();
    ip.total_length.set(changed(ip.total_length));
    ip.checksum.set(updated_checksum(ip.checksum.get(), before, ip.total_length.get()));
  }
  Be16& length = header_at<UdpHeader>(frame.data, where.l4_offset).length;
  length.set(changed(length));
}

UdpHeader& udp_of(FrameFront& frame, const UdpLocation& where) {
  return header_at<UdpHeader>(frame.data, where.l4_offset);
}

IntEdit flagged(FrameFront& frame, const IntView& view, uint32_t flag, IntEdit edit) {
  UdpHeader& udp = udp_of(frame, view.udp);
  auto& header = header_at<IntMdHeader>(frame.data, view.shim_offset() + sizeof(IntShim));
  UdpChecksumUpdate checksum(udp);
  checksum.take(&header.flags, sizeof header.flags);
  header.flags.set(header.flags.get() | flag);
  checksum.add(&header.flags, sizeof header.flags);
  checksum.finish(udp);
  return edit;
}

// Writes metadata values sequentially.
class HopWriter {
 public:
  explicit HopWriter(uint8_t* to) : to_(to) {}
  template <class T>
  void put(const T& value) {
    std::memcpy(to_, &value, sizeof value);
    to_ += sizeof value;
  }
  void put_unknown(uint32_t bytes) {
    std::memset(to_, 0xff, bytes);
    to_ += bytes;
  }

 private:
  uint8_t* to_;
};

// All ones mean "not known", so the maximum of an amount is one less.
constexpr uint32_t known(uint64_t value, uint32_t most) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, most - 1));
}

// Writes the value of the standard instruction `bit`.
void put_instruction(HopWriter& hop, uint16_t bit, const HopReport& r) {
  using namespace int_instruction;  // NOLINT(google-build-using-namespace)
  constexpr uint32_t kMaxOccupancy = 0xffffff;
  switch (bit) {
    case kNodeId:
      return hop.put(Be32{r.switch_id});
    case kLevel1Ports:
      hop.put(Be16{r.ingress_port});
      return hop.put(Be16{r.egress_port});
    case kHopLatency:
      return hop.put(Be32{known(r.egress_time - r.ingress_time, UINT32_MAX)});
    case kQueue:
      return hop.put(Be32{static_cast<uint32_t>(r.queue) << 24 | known(r.queue_bytes, kMaxOccupancy)});
    case kIngressTime:
      return hop.put(Be64{r.ingress_time});
    case kEgressTime:
      return hop.put(Be64{r.egress_time});
    default:
      return hop.put_unknown(int_baseline_bytes(bit));
  }
}

void put_hop(uint8_t* to, const IntMdHeader& header, const HopReport& report, uint16_t domain) {
  const uint16_t instructions = header.instructions.get();
  const uint32_t complement = (instructions & int_instruction::kChecksumComplement) != 0 ? 4 : 0;
  HopWriter hop(to);
  for (unsigned bit = 0x8000; bit > int_instruction::kChecksumComplement; bit >>= 1) {
    if ((instructions & bit) != 0) put_instruction(hop, static_cast<uint16_t>(bit), report);
  }
  if (header.domain.get() == domain) {
    const uint16_t domain_bits = header.domain_instructions.get();
    if ((domain_bits & int_domain_instruction::kCompactHop) != 0) hop.put(write_hop(compact_hop(report)));
    if ((domain_bits & int_domain_instruction::kFullHop) != 0) hop.put(full_hop(report));
  } else {
    hop.put_unknown(header.hop_words() * 4 - int_baseline_bytes(instructions) - complement);
  }
  hop.put_unknown(complement);
}

// Returns true if the hop that put_hop() writes has the length that the source specified.
bool can_write_hop(const IntMdHeader& header, uint16_t domain) {
  const uint16_t instructions = header.instructions.get();
  const uint32_t wanted = header.hop_words() * 4;
  const uint32_t standard =
      int_baseline_bytes(instructions) + ((instructions & int_instruction::kChecksumComplement) != 0 ? 4 : 0);
  if (wanted == 0 || header.domain.get() != domain) return wanted != 0 && wanted >= standard;
  return wanted == standard + int_domain_bytes(header.domain_instructions.get());
}

}  // namespace

std::string_view int_edit_name(IntEdit edit) {
  constexpr std::string_view kNames[kIntEditCount] = {"done",         "hops exceeded", "stack full",
                                                      "MTU exceeded", "skipped",       "not RoCEv2",
                                                      "bad source",   "no headroom"};
  return kNames[static_cast<unsigned>(edit)];
}

uint32_t int_hop_words(const IntSource& source) {
  const uint32_t complement = (source.instructions & int_instruction::kChecksumComplement) != 0 ? 1 : 0;
  return (int_baseline_bytes(source.instructions) + int_domain_bytes(source.domain_instructions)) / 4 +
         complement;
}

IntEdit begin_int(FrameFront& frame, const IntSource& source, uint32_t mtu) {
  IntView inserted;
  return begin_int(frame, find_udp(frame.head(), frame.length), source, mtu, inserted);
}

IntEdit begin_int(FrameFront& frame, const UdpLocation& where, const IntSource& source, uint32_t mtu,
                  IntView& inserted) {
  const uint32_t words = int_hop_words(source);
  if (words == 0 || words > kMaxIntHopWords || source.port == kRoceUdpPort) return IntEdit::kBadSource;
  if (where.outcome != UdpOutcome::kFound) return IntEdit::kNotRoce;
  if (udp_of(frame, where).destination_port.get() != kRoceUdpPort) return IntEdit::kNotRoce;
  if (where.ip_bytes() + kIntHeaderBytes > std::min(mtu, kMaxIpBytes)) return IntEdit::kMtuExceeded;
  const uint32_t shim_at = where.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  if (!frame.open_gap(shim_at, kIntHeaderBytes)) return IntEdit::kNoHeadroom;

  struct Added {
    IntShim shim;
    IntMdHeader header;
  };
  static_assert(sizeof(Added) == kIntHeaderBytes);
  UdpHeader& udp = udp_of(frame, where);
  auto& added = header_at<Added>(frame.data, shim_at);
  added = Added{};
  added.shim.words = kHeaderWords;
  added.shim.next = udp.destination_port;
  const uint32_t hops = std::min<uint32_t>(source.hops, (kMaxIntWords - kHeaderWords) / words);
  added.header.flags.set(uint32_t{IntMdHeader::kVersion} << 28 |
                         (source.discard ? IntMdHeader::kDiscard : 0) | words << kHopWordsShift | hops);
  added.header.instructions.set(source.instructions);
  added.header.domain.set(source.domain);
  added.header.domain_instructions.set(source.domain_instructions);
  added.header.domain_flags.set(source.domain_flags);

  UdpChecksumUpdate checksum(udp);
  checksum.add(&added, sizeof added);
  udp.destination_port.set(source.port);
  change_lengths(frame, where, static_cast<int32_t>(kIntHeaderBytes));
  checksum.finish(udp);

  inserted = {.frame = frame.data, .udp = where, .outcome = IntOutcome::kAccepted, .hop_bytes = words * 4};
  inserted.udp.end += kIntHeaderBytes;
  return IntEdit::kDone;
}

IntEdit push_int_hop(FrameFront& frame, const IntView& view, const HopReport& report, uint16_t domain,
                     uint32_t mtu) {
  assert(view.accepted() && view.frame == frame.data);
  const IntMdHeader& header = view.header();
  if (header.hops_left() == 0)
    return flagged(frame, view, IntMdHeader::kHopsExceeded, IntEdit::kHopsExceeded);
  if (!can_write_hop(header, domain)) return IntEdit::kSkipped;
  if (view.shim().words + header.hop_words() > kMaxIntWords)
    return flagged(frame, view, IntMdHeader::kHopsExceeded, IntEdit::kStackFull);
  const uint32_t bytes = header.hop_words() * 4;
  if (view.udp.ip_bytes() + bytes > std::min(mtu, kMaxIpBytes))
    return flagged(frame, view, IntMdHeader::kMtuExceeded, IntEdit::kMtuExceeded);
  if (!frame.open_gap(view.stack_offset(), bytes)) return IntEdit::kNoHeadroom;

  UdpHeader& udp = udp_of(frame, view.udp);
  auto& shim = header_at<IntShim>(frame.data, view.shim_offset());
  auto& changed = header_at<IntMdHeader>(frame.data, view.shim_offset() + sizeof(IntShim));
  UdpChecksumUpdate checksum(udp);
  checksum.take(frame.data + view.shim_offset(), kIntHeaderBytes);
  shim.words = static_cast<uint8_t>(shim.words + changed.hop_words());
  changed.flags.set(changed.flags.get() - 1);  // decrements hops left, which is not 0
  put_hop(frame.data + view.stack_offset(), changed, report, domain);
  checksum.add(frame.data + view.shim_offset(), kIntHeaderBytes + bytes);
  change_lengths(frame, view.udp, static_cast<int32_t>(bytes));
  checksum.finish(udp);
  return IntEdit::kDone;
}

void strip_int(FrameFront& frame, const IntView& view) {
  assert(view.accepted() && view.frame == frame.data);
  const uint32_t bytes = view.bytes();
  const Be16 port = view.shim().next;
  UdpChecksumUpdate checksum(udp_of(frame, view.udp));
  checksum.take(frame.data + view.shim_offset(), bytes);
  frame.close_gap(view.shim_offset(), bytes);
  UdpHeader& udp = udp_of(frame, view.udp);
  udp.destination_port = port;
  change_lengths(frame, view.udp, -static_cast<int32_t>(bytes));
  checksum.finish(udp);
}

}  // namespace roci
