// Fuzz target: random bytes as an extension block, alone and in a packet. Nothing outside of them is read. An
// accepted block is encoded to the same bytes again. Also feedback between two peers over time: unsigned and replayed
// feedback is rejected, accepted values are valid, and the sender learns exactly which packets the receiver keeps.
#include <cstdint>
#include <cstring>
#include <set>

#include "fuzz/fuzz_opcodes.hpp"
#include "fuzz/fuzz_target.hpp"
#include "transport/queue_pair/extension_session.hpp"
#include "wire/extensions/extension_auth.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"

namespace {

using namespace roci;
using test::Input;
using test::require;

void check_block(std::span<const uint8_t> bytes, AfterBlock behind, uint16_t allowed) {
  const ExtensionView view = parse_extensions(bytes, behind, allowed);
  (void)extension_outcome_name(view.outcome);
  if (!view.accepted()) return;
  require(view.bytes <= bytes.size() && view.bytes <= max_extension_bytes());
  require((view.types & ~allowed) == 0);
  const ExtensionBlock block = read_extensions(view);
  require(block.types() == view.types && block.bytes() == view.bytes);
  ByteVector again(view.bytes);
  require(write_extensions(block, again) == view.bytes);
  require(std::memcmp(again.data(), bytes.data(), view.bytes) == 0);
}

// The bytes are those after the BTH of a packet with this opcode.
void check_packet(std::span<const uint8_t> bytes, const OpcodeInfo& info, bool ipv6) {
  Packet packet;
  packet.bth.opcode = info.opcode;
  packet.bth.reserved7 = Bth::kExtensions;
  if (ipv6) packet.ip = Ipv6Values{};
  packet.payload.assign(bytes.begin(), bytes.end());
  packet.finish();
  const ByteVector frame = encode_packet(packet);
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind != FrameKind::kRoce) return;
  const ExtendedPayload split = split_payload(view, length, known_extensions());
  require(split.payload_offset + split.payload_length + view.pad + kIcrcBytes == length);
  if (split.block.accepted() && split.block.has(ExtensionType::kAuth)) {
    AuthReceiver receiver(SipKey{});
    (void)receiver.check(view, split.block);
  }
  const auto decoded = decode_packet(frame);
  require(decoded && encode_packet(*decoded) == frame);
  const auto fields = packet_fields(*decoded);
  require(fields.back().offset + fields.back().length == length);
}

// Feedback from one end of a queue pair to the other.
class Conversation {
 public:
  explicit Conversation(Input input) : input_(input) {
    const uint8_t choice = input_.byte();
    authenticates_ = (choice & 1) != 0;
    terms_.capabilities = known_extensions() | kAllCapabilities;
    if ((choice & 2) != 0) terms_.capabilities &= ~uint32_t{bit_of(ExtensionType::kCeEcho)};
    terms_.may_send = true;
    terms_.on_feedback = static_cast<uint16_t>(terms_.capabilities);
    terms_.reorder_window = terms_.peer_reorder_window = kWindow;
    terms_.authenticate = authenticates_;
    terms_.send_key.fill(1);
    terms_.receive_key.fill(2);
    ExtensionTerms of_peer = terms_;
    std::swap(of_peer.send_key, of_peer.receive_key);
    ours_.emplace(terms_, budget_);
    peer_.emplace(of_peer, budget_);
    flow_.next = Lsn{1000};
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 100; ++steps) {
      switch (input_.byte() & 3) {
        case 0:
          now_ += Nanos{input_.number<uint16_t>()};
          break;
        case 1:
          tell_kept();
          break;
        default:
          feedback();
      }
    }
  }

 private:
  static constexpr uint32_t kWindow = 64;

  ExtensionBlock any_block() {
    const auto types = input_.number<uint16_t>();
    const auto has = [types](ExtensionType type) { return (types & bit_of(type)) != 0; };
    ExtensionBlock block;
    using enum ExtensionType;
    if (has(kSourceQp)) block.source_qp = Qpn{input_.number<uint32_t>() & 0xffffff};
    if (has(kCeEcho)) block.ce_echo = CeEchoValues{input_.number<uint32_t>(), input_.number<uint16_t>()};
    if (has(kLsn)) block.lsn = Lsn{input_.number<uint64_t>()};
    if (has(kTimestamp)) block.timestamp = input_.number<uint64_t>();
    if (has(kTimestampEcho)) {
      block.timestamp_echo =
          TimestampEchoValues{input_.number<uint32_t>(), input_.number<uint16_t>(), input_.byte()};
    }
    if (has(kRxWindow)) block.rx_window = RxWindowValues{input_.number<uint32_t>(), Psn{input_.byte()}};
    if (has(kFlows)) block.flows = FlowsValues{false, input_.byte()};
    if (has(kRate)) block.rate = RateValues{(types & 1) != 0, input_.byte()};
    if (has(kIntEcho)) {
      block.int_echo.emplace();
      block.int_echo->hop_count = input_.byte() & 0xf;
    }
    if (has(kSack)) block.sack = SackValues{Psn{input_.number<uint32_t>()}, input_.number<uint64_t>()};
    if (has(kAuth)) block.auth = AuthValues{};
    return block;
  }

  // An acknowledgment with a random block: signed correctly, incorrectly, replayed or unsigned.
  void feedback() {
    Packet packet = make_packet(Opcode::kRcAcknowledge);
    packet.to(Qpn{7}, Psn{input_.byte()}).with_aeth(input_.byte(), Msn{1});
    const ExtensionBlock block = any_block();
    if (block.types() != 0) packet.with_extensions(block);
    ByteVector frame = encode_packet(packet.finish());
    const uint8_t how = input_.byte();
    const bool signs = block.auth && (how & 1) == 0;
    if (signs) {
      const FrameView view = parse(frame);
      peer_->sign_feedback(view, split_payload(view, view.frame_length, known_extensions()).block);
    }
    const bool again = signs && !last_signed_.empty() && (how & 6) == 6;
    if (again) frame = last_signed_;
    bool changed = false;
    if ((how & 0x18) == 0x18) {  // changes a signed byte after the BTH
      const FrameView view = parse(frame);
      const size_t begin = view.bth_offset + sizeof(Bth);
      uint8_t& byte = frame[begin + input_.byte() % (view.icrc_offset - begin)];
      const uint8_t before = std::exchange(byte, input_.byte());
      changed = byte != before;
    }
    take(frame, signs && !again && !changed, again && !changed, changed);
    if (signs && !changed) last_signed_ = frame;
  }

  void take(const ByteVector& frame, bool is_right, bool again, bool changed) {
    FrameView view = parse(frame);
    if (view.kind != FrameKind::kRoce) return;
    const ExtendedPayload split = split_payload(view, view.frame_length, terms_.types());
    if (split.block.outcome != ExtensionOutcome::kAbsent && !split.block.accepted()) return;
    const bool believed = ours_->accepts_feedback(view, split.block);
    if (authenticates_) {
      require(!again || !believed);
      require(!is_right || believed);
      if (signed_ && !is_right) require(!believed);
      signed_ |= is_right;
    } else {
      require(believed);
    }
    if (!believed || changed) return;
    const SendFlow before = flow_;
    const EchoedCounts echoed_before = echoed_;
    const RefusedFeedback refused = take_feedback(split.block, now_, 1000, flow_, echoed_);
    require(refused.values <= 3 && refused.windows <= 1);
    require(flow_.receiver_window == before.receiver_window ||
            (refused.windows == 0 && is_receiver_window(flow_.receiver_window)));
    require(echoed_.marked <= echoed_.packets && echoed_.packets >= echoed_before.packets);
    require(flow_.packets_marked <= flow_.packets_acked && flow_.packets_acked >= before.packets_acked);
    require(flow_.next == before.next && flow_.acknowledged == before.acknowledged);
    require(flow_.rtt == kNever || (flow_.rtt.count() >= 0 && flow_.rtt <= now_));
  }

  // The receiver's block lists the packets that it keeps. The sender marks them, and clears the acknowledged ones.
  void tell_kept() {
    const Psn una{input_.number<uint32_t>()};
    std::set<uint32_t> kept;
    for (unsigned n = input_.byte() % 16U; n > 0; --n) kept.insert(input_.byte() % kWindow);
    ExtensionBlock block;
    block.sack = SackValues{una, 0};
    for (const uint32_t distance : kept) block.sack->kept |= uint64_t{1} << distance;
    ByteVector bytes(block.bytes());
    require(write_extensions(block, bytes) == bytes.size());
    const ExtensionView view = parse_extensions(bytes, AfterBlock::kNothing, known_extensions());
    require(view.accepted() && Psn{view.sack().psn.get()} == una);
    SackBoard board(kWindow);
    for (uint64_t left = view.sack().kept.get(); left != 0; left &= left - 1) {
      const auto distance = static_cast<uint32_t>(std::countr_zero(left));
      require(board.set(una + distance) && kept.contains(distance) && !board.set(una + distance));
    }
    const uint32_t acknowledged = input_.byte() % (kWindow + 1);
    board.remove(una, una + acknowledged);
    for (uint32_t i = 0; i < kWindow; ++i)
      require(board.has(una + i) == (i >= acknowledged && kept.contains(i)));
  }

  static FrameView parse(const ByteVector& frame) {
    const auto length = static_cast<uint32_t>(frame.size());
    return parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  }

  Input input_;
  Nanos now_{1'000'000};
  BufferBudget budget_;
  ExtensionTerms terms_;
  std::optional<ExtensionSession> ours_, peer_;
  SendFlow flow_;
  EchoedCounts echoed_;
  ByteVector last_signed_;
  bool authenticates_ = false;
  bool signed_ = false;  // a signed packet of the peer was accepted
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > 2000) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  check_block(bytes, AfterBlock::kNothing, known_extensions());
  check_block(bytes, AfterBlock::kPayload, static_cast<uint16_t>(0x8000 | data[0]));
  check_packet(bytes, fuzz::opcode_of(data[0]), data[0] >= 0x80);
  Conversation(Input(data + 1, size - 1)).run();
  return 0;
}
