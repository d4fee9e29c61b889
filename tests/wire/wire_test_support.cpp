#include "wire/wire_test_support.hpp"

#include <charconv>
#include <stdexcept>

namespace roci::test {

ByteVector from_hex(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != '\n') digits += c;
  }
  ByteVector out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    if (error != std::errc{} || end != digits.data() + i + 2) throw std::invalid_argument("not hexadecimal");
    out.push_back(byte);
  }
  return out;
}

ByteVector random_bytes(Rng& rng, size_t length) {
  ByteVector out(length);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(rng.next());
  return out;
}

IntHopValues random_hop(Rng& rng) {
  const auto u16 = [&] { return static_cast<uint16_t>(rng.next()); };
  const auto u32 = [&] { return static_cast<uint32_t>(rng.next()); };
  return {u32() & 0xfffff, static_cast<uint16_t>(u16() & 0xfff), u32(),
          u32(),           ScaledCount::from_code(u16()),        ScaledCount::from_code(u16())};
}

ExtensionBlock random_extensions(Rng& rng) {
  const auto u16 = [&] { return static_cast<uint16_t>(rng.next()); };
  const auto u24 = [&] { return static_cast<uint32_t>(rng.next()) & 0xffffff; };
  const auto u32 = [&] { return static_cast<uint32_t>(rng.next()); };
  const auto coin = [&] { return rng.chance(0.5); };

  ExtensionBlock b;
  while (b.types() == 0) {
    if (coin()) b.source_qp = Qpn{u24()};
    if (coin()) b.ce_echo = CeEchoValues{u32(), u32()};
    if (coin()) b.lsn = Lsn{rng.next()};
    if (coin()) b.timestamp = rng.next();
    if (coin()) b.timestamp_echo = TimestampEchoValues{rng.next(), u32(), u32()};
    if (coin()) b.rx_window = RxWindowValues{u32(), Psn{u24()}};
    if (coin()) b.flows = FlowsValues{coin(), u24()};
    if (coin()) {
      const bool delta = coin();
      const auto rate = static_cast<int32_t>(rng.below(1U << 28));
      b.rate = RateValues{delta, delta ? rate - (1 << 27) : rate};
    }
    if (coin()) {
      IntEchoValues& echo = b.int_echo.emplace();
      echo.flags = u16() & 0xf;
      echo.age = u16();
      echo.hop_count = static_cast<uint8_t>(rng.below(kMaxIntHops + 1));
      for (uint8_t i = 0; i < echo.hop_count; ++i) echo.hops[i] = random_hop(rng);
    }
    if (coin()) b.sack = SackValues{Psn{u32() & Psn::kMask}, rng.next()};
    if (coin()) b.auth = AuthValues{u32(), rng.next()};
  }
  return b;
}

Packet random_packet(Rng& rng, Opcode opcode, bool ipv6, unsigned vlan_tags, size_t payload_length) {
  const auto u8 = [&] { return static_cast<uint8_t>(rng.next()); };
  const auto u16 = [&] { return static_cast<uint16_t>(rng.next()); };
  const auto u24 = [&] { return static_cast<uint32_t>(rng.next()) & 0xffffff; };
  const auto u32 = [&] { return static_cast<uint32_t>(rng.next()); };
  const auto coin = [&] { return rng.chance(0.5); };

  Packet p = make_packet(opcode, ipv6);
  p.source_mac = MacAddress::local(rng.next());
  p.destination_mac = MacAddress::local(rng.next());
  for (unsigned i = 0; i < vlan_tags; ++i)
    p.with_vlan(u16(), i == 0 && vlan_tags == 2 ? kEtherTypeSTag : kEtherTypeVlan);
  if (rng.chance(0.25)) p.with_cn_tag(u16());
  if (ipv6) {
    for (auto* address : {&p.source, &p.destination}) {
      for (uint8_t& byte : address->bytes) byte = u8();
    }
    p.ip = Ipv6Values{u8(), u32() & 0xfffff, u8()};
  } else {
    p.source = IpAddress::from_v4(u32());
    p.destination = IpAddress::from_v4(u32());
    // The reserved flag and DF vary; MF or an offset would make a fragment.
    p.ip = Ipv4Values{u8(), u16(), static_cast<uint16_t>(u16() & 0xc000),
                      u8(), 0,     random_bytes(rng, 4 * rng.below(11))};
  }
  p.udp_source_port = u16();
  p.udp_checksum = coin() ? uint16_t{1} : uint16_t{0};  // finish() replaces any value but 0
  p.bth.solicited = coin();
  p.bth.mig_req = coin();
  p.bth.pkey = PKey{u16()};
  p.bth.fecn = coin();
  p.bth.becn = coin();
  p.bth.reserved6 = u8() & 0x3f;
  p.bth.ack_request = coin();
  p.bth.reserved7 = u8() & 0x7f;
  p.to(Qpn{u24()}, Psn{u24()});
  if (p.deth) p.deth = DethValues{QKey{u32()}, u8(), Qpn{u24()}};
  if (p.xrc_eth) p.xrc_eth = XrcEthValues{u8(), Srqn{u24()}};
  if (p.reth) p.reth = RethValues{rng.next(), MemoryKey{u32()}, u32()};
  if (p.atomic_eth) p.atomic_eth = AtomicEthValues{rng.next(), MemoryKey{u32()}, rng.next(), rng.next()};
  if (p.aeth) p.aeth = AethValues{u8(), Msn{u24()}};
  if (p.atomic_ack) p.atomic_ack = rng.next();
  if (p.imm) p.imm = u32();
  if (p.ieth) p.ieth = MemoryKey{u32()};
  if (p.cnp_reserved) {
    for (uint8_t& byte : *p.cnp_reserved) byte = u8();
  }
  if (p.probe) p.probe = ProbeValues{u32(), u16(), u16(), rng.next(), Lsn{rng.next()}};
  if (p.probe_times) {
    p.probe_times = ProbeTimesValues{rng.next(), rng.next(), {}};
    for (uint8_t& byte : p.probe_times->raw) byte = u8();
  }
  if (p.int_report) {
    p.int_report = IntReportValues{u16(), u16(), Lsn{rng.next()}, random_hop(rng), {}};
    for (uint8_t& byte : p.int_report->sampled) byte = u8();
  }
  // Without a block the BTH bit may still be set; then the payload stays payload. A block is omitted if the opcode
  // permits no payload but the packet has one.
  const bool may_extend = payload_length == 0 || opcode_info(opcode).payload != PayloadRule::kNone;
  if (may_extend && rng.chance(0.3)) p.with_extensions(random_extensions(rng));
  p.with_payload(random_bytes(rng, payload_length));
  for (uint8_t& byte : p.pad) byte = u8();
  p.trailing = random_bytes(rng, rng.below(3));
  return p.finish();
}

std::vector<size_t> payload_lengths(const OpcodeInfo& info) {
  switch (info.payload) {
    case PayloadRule::kNone:
      return {0};
    case PayloadRule::kFullMtu:
      return {256, 512, 1024, 2048, 4096};
    case PayloadRule::kOneToMtu:
      return {1, 2, 3, 4, 5, 255, 1000, 4095, 4096};
    case PayloadRule::kUpToMtu:
      break;
  }
  return {0, 1, 2, 3, 4, 5, 255, 1000, 4095, 4096};
}

}  // namespace roci::test
