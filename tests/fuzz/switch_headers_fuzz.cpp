// Fuzz target for headers that a switch parses and edits in addition to RoCEv2: pauses, CN-TAGs, CNMs of layer 2 and
// 3, INT. Nothing outside the frame is read. An accepted message is encoded to the same bytes. An edit and its
// inverse leave the frame unchanged, and so does an edit that fails.
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/net/pause.hpp"

namespace {

using namespace roci;
using test::Input;
using test::require;
using Bytes = std::vector<uint8_t>;

constexpr uint16_t kIntPort = 5000;
constexpr uint16_t kCnmPort = 5001;
constexpr uint16_t kDomain = 7;

// A frame in an allocation of exactly its size and headroom.
class Frame {
 public:
  explicit Frame(std::span<const uint8_t> bytes, uint32_t headroom)
      : memory_(std::make_unique<uint8_t[]>(headroom + bytes.size())) {
    if (!bytes.empty()) std::memcpy(memory_.get() + headroom, bytes.data(), bytes.size());
    const auto length = static_cast<uint32_t>(bytes.size());
    front = {memory_.get() + headroom, length, length, headroom};
  }
  [[nodiscard]] Bytes bytes() const { return {front.data, front.data + front.length}; }

  FrameFront front;

 private:
  std::unique_ptr<uint8_t[]> memory_;
};

void require_same(std::span<const uint8_t> a, std::span<const uint8_t> b, int line = __builtin_LINE()) {
  require(a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0),
          "the same bytes", line);
}

void check_pause(std::span<const uint8_t> bytes) {
  const ParsedPause parsed = parse_pause(bytes, MacAddress::local(1));
  (void)pause_outcome_name(parsed.outcome);
  if (parsed.outcome != PauseOutcome::kAccepted) return;
  Bytes again(kPauseFrameBytes);
  build_pause(parsed.message, std::span<uint8_t, kPauseFrameBytes>(again.data(), kPauseFrameBytes));
  require(parse_pause(again, MacAddress::local(1)).message == parsed.message);
  uint64_t any = 0;
  for (const uint16_t quanta : parsed.message.quanta) any = any << 8 ^ quanta;
  const BitsPerSec rate{any};
  for (const uint16_t quanta : parsed.message.quanta) {
    const Nanos time = pause_time(quanta, rate);
    require(time.count() >= 0 && (rate.value() == 0 || pause_quanta(time, rate) >= quanta));
  }
}

void check_cn_tag(std::span<const uint8_t> bytes) {
  (void)read_five_tuple(bytes);
  const auto before = parse_link_tags(bytes);
  Frame frame(bytes, sizeof(CnTag));
  const CnTagEdit inserted = insert_cn_tag(frame.front, 0x1234);
  if (inserted == CnTagEdit::kDone) {
    const auto after = parse_link_tags(frame.front.head());
    require(after && after->tags.flow == 0x1234 && after->ether_type == before->ether_type);
    // A third VLAN tag is not supported: then the inserted CN-TAG cannot be removed.
    if (remove_cn_tag(frame.front) == CnTagEdit::kMisplaced) return;
  }
  require_same(frame.bytes(), bytes);
  if (inserted != CnTagEdit::kPresent) return;
  if (remove_cn_tag(frame.front) == CnTagEdit::kDone)
    require(insert_cn_tag(frame.front, *before->tags.flow) == CnTagEdit::kDone);
  require_same(frame.bytes(), bytes);
}

void check_cnm(std::span<const uint8_t> bytes) {
  const ParsedCnm parsed = parse_cnm(bytes);
  (void)cnm_outcome_name(parsed.outcome);
  if (parsed.outcome == CnmOutcome::kAccepted) {
    Bytes again(parsed.cnm.pdu_bytes());
    write_cnm(parsed.cnm, again.data());
    // The bits below the priority are ignored.
    again[14] = static_cast<uint8_t>(again[14] | (bytes[14] & 0x1f));
    again[15] = bytes[15];
    require_same(again, bytes.first(again.size()));
  }
  const ParsedCnmFrame frame = parse_cnm_frame(bytes);
  if (frame.outcome == CnmOutcome::kAccepted) {
    Bytes again(kMaxCnmFrame);
    again.resize(build_cnm_frame(frame.link, frame.cnm, again));
    const ParsedCnmFrame second = parse_cnm_frame(again);
    require(second.outcome == CnmOutcome::kAccepted && second.link.tags == frame.link.tags);
    require_same(second.cnm.msdu, frame.cnm.msdu);
  }
  // The same bytes as a sampled frame.
  const auto sample = sample_frame(bytes, 1);
  const auto link = CnmLink::answering(bytes, MacAddress::local(1));
  require(sample.has_value() == link.has_value());
  if (!sample) return;
  Bytes answer(kMaxCnmFrame);
  answer.resize(build_cnm_frame(*link, *sample, answer));
  const ParsedCnmFrame read = parse_cnm_frame(answer);
  require(read.outcome == CnmOutcome::kAccepted && read.link.tags == link->tags);
  require_same(read.cnm.msdu, sample->msdu);
}

void check_l3_cnm(std::span<const uint8_t> bytes) {
  const L3CnmView view = parse_l3_cnm(bytes, kCnmPort);
  (void)l3_cnm_outcome_name(view.outcome);
  if (!view.accepted()) return;
  RocePath path;
  path.source_ip = view.flow.destination;
  path.destination_ip = view.flow.source;
  Bytes again(kMaxL3CnmFrame);
  again.resize(build_l3_cnm(path, kCnmPort, view.flow, view.cnm, view.tlvs, again));
  const SipKey key{1};
  require(sign_l3_cnm(again, kCnmPort, key) == view.tlvs.auth_sequence.has_value());
  const L3CnmView second = parse_l3_cnm(again, kCnmPort);
  require(second.accepted() && second.flow == view.flow && second.tlvs == view.tlvs);
  require_same(second.cnm.msdu, view.cnm.msdu);
  require(verify_l3_cnm(again, second, key) == view.tlvs.auth_sequence.has_value());
  (void)verify_l3_cnm(bytes, view, key);

  CnmLink link{MacAddress::local(2), MacAddress::local(1), {}};
  link.tags.vlan_count = 2;
  link.tags.vlan = {VlanTag{kEtherTypeSTag, 1}, VlanTag{kEtherTypeVlan, 2}};
  link.tags.flow = 3;
  Frame frame(bytes, 0);
  require(to_l2_cnm(frame.front, view, link));
  const ParsedCnmFrame standard = parse_cnm_frame(frame.front.head());
  require(standard.outcome == CnmOutcome::kAccepted && standard.link.tags == link.tags);
  require(frame.front.length == link.size() + view.cnm.pdu_bytes());
}

HopReport any_report(Input& input) {
  HopReport report;
  report.switch_id = input.number<uint32_t>();
  report.egress_port = input.number<uint16_t>();
  report.egress_time = input.number<uint64_t>();
  report.queue_bytes = input.number<uint64_t>();
  report.rate = BitsPerSec{input.number<uint64_t>()};
  return report;
}

// Replaces an IPv4 checksum of ffff by the equivalent 0, which the edit writes.
void with_plain_checksum(Bytes& frame) {
  const UdpLocation where = find_udp(frame, static_cast<uint32_t>(frame.size()));
  if (where.outcome != UdpOutcome::kFound || where.ipv6) return;
  uint8_t* checksum = frame.data() + where.l3_offset + 10;
  if (checksum[0] == 0xff && checksum[1] == 0xff) checksum[0] = checksum[1] = 0;
}

void push_hops(Frame& frame, Input& input) {
  while (!input.empty()) {
    const uint16_t domain = kDomain + (input.byte() & 1);
    const uint32_t mtu = input.number<uint16_t>();
    const IntView view = parse_int(frame.front.head(), frame.front.length, kIntPort);
    require(view.accepted());
    for (uint32_t i = 0; i < view.hop_count; ++i) (void)view.hop(i, kDomain);
    const Bytes before = frame.bytes();
    const IntEdit edit = push_int_hop(frame.front, view, any_report(input), domain, mtu);
    (void)int_edit_name(edit);
    const IntView after = parse_int(frame.front.head(), frame.front.length, kIntPort);
    require(after.accepted());
    require(after.hop_count == view.hop_count + (edit == IntEdit::kDone ? 1 : 0));
    if (edit == IntEdit::kDone) require(after.udp.ip_bytes() <= mtu);
    if (edit == IntEdit::kSkipped || edit == IntEdit::kNoHeadroom) require_same(frame.bytes(), before);
  }
}

// `bytes` as a packet with INT: adds hops and removes the INT header.
void check_int(std::span<const uint8_t> bytes, Input input) {
  Frame frame(bytes, 256);
  const IntView view = parse_int(frame.front.head(), frame.front.length, kIntPort);
  (void)int_outcome_name(view.outcome);
  if (!view.accepted()) return;
  require(view.stack_offset() + view.hop_bytes * view.hop_count <= view.udp.end);
  Frame plain(bytes, 0);
  strip_int(plain.front, parse_int(plain.front.head(), plain.front.length, kIntPort));
  push_hops(frame, input);
  strip_int(frame.front, parse_int(frame.front.head(), frame.front.length, kIntPort));
  Bytes wanted = plain.bytes();
  Bytes got = frame.bytes();
  with_plain_checksum(wanted);
  with_plain_checksum(got);
  require_same(got, wanted);
}

// `bytes` as a packet to which an INT header is added.
void check_begin(std::span<const uint8_t> bytes, Input input) {
  IntSource source;
  source.port = kIntPort;
  source.instructions = input.number<uint16_t>();
  source.domain = kDomain;
  source.domain_instructions = input.number<uint16_t>();
  source.hops = input.byte();
  Frame frame(bytes, 256);
  const IntEdit edit = begin_int(frame.front, source, 9000);
  if (edit == IntEdit::kDone) {
    push_hops(frame, input);
    strip_int(frame.front, parse_int(frame.front.head(), frame.front.length, kIntPort));
  }
  Bytes wanted(bytes.begin(), bytes.end());
  Bytes got = frame.bytes();
  if (edit == IntEdit::kDone) {
    with_plain_checksum(wanted);
    with_plain_checksum(got);
  }
  require_same(got, wanted);
}

}  // namespace

// The first byte is the number of the following bytes that select operations. The rest is the frame.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  const auto choices = input.take(1 + input.byte());
  const auto rest = std::span(data, size).subspan(std::min(size, 1 + choices.size()));
  const auto copy = std::make_unique<uint8_t[]>(rest.size());
  if (!rest.empty()) std::memcpy(copy.get(), rest.data(), rest.size());
  const std::span<const uint8_t> frame(copy.get(), rest.size());
  check_pause(frame);
  check_cn_tag(frame);
  check_cnm(frame);
  check_l3_cnm(frame);
  check_int(frame, {choices.data(), choices.size()});
  check_begin(frame, {choices.data(), choices.size()});
  return 0;
}
