#include "wire/extensions/extension_block.hpp"

#include <algorithm>
#include <cstring>

namespace roci {
namespace {

constexpr uint32_t kRateMask = 0x0fff'ffff;

Rate write_rate(const RateValues& v) {
  constexpr int32_t kHalf = 1 << 27;
  const int32_t rate = v.delta ? std::clamp(v.rate, -kHalf, kHalf - 1) : std::clamp(v.rate, 0, 2 * kHalf - 1);
  return {Be32{(v.delta ? Rate::kDelta : 0) | (static_cast<uint32_t>(rate) & kRateMask)}};
}

RateValues read_rate(const Rate& rate) {
  const uint32_t word = rate.flags_rate.get();
  const bool delta = (word & Rate::kDelta) != 0;
  const auto low = static_cast<int32_t>(word & kRateMask);
  return {delta, delta && low >= 1 << 27 ? low - (1 << 28) : low};
}

uint8_t hops_written(const IntEchoValues& echo) { return std::min(echo.hop_count, kMaxIntHops); }

class Writer {
 public:
  explicit Writer(uint8_t* at) : at_(at) {}
  template <class T>
  void put(const T& value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

 private:
  uint8_t* at_;
};

}  // namespace

bool operator==(const IntEchoValues& a, const IntEchoValues& b) {
  return a.flags == b.flags && a.age == b.age && a.hop_count == b.hop_count &&
         std::equal(a.hops.begin(), a.hops.begin() + hops_written(a), b.hops.begin());
}

uint16_t ExtensionBlock::types() const {
  using enum ExtensionType;
  uint16_t bits = 0;
  const auto add = [&](bool there, ExtensionType type) {
    if (there) bits = static_cast<uint16_t>(bits | bit_of(type));
  };
  add(source_qp.has_value(), kSourceQp);
  add(ce_echo.has_value(), kCeEcho);
  add(lsn.has_value(), kLsn);
  add(timestamp.has_value(), kTimestamp);
  add(timestamp_echo.has_value(), kTimestampEcho);
  add(rx_window.has_value(), kRxWindow);
  add(flows.has_value(), kFlows);
  add(rate.has_value(), kRate);
  add(int_echo.has_value(), kIntEcho);
  add(sack.has_value(), kSack);
  add(auth.has_value(), kAuth);
  return bits;
}

uint32_t ExtensionBlock::bytes() const {
  const uint16_t present = types();
  if (present == 0) return 0;
  uint32_t words = 1;
  for (const ExtensionInfo& info : extension_table()) {
    if ((present & bit_of(info.type)) == 0) continue;
    words += info.words;
    if (info.words_per_hop != 0) words += uint32_t{info.words_per_hop} * hops_written(*int_echo);
  }
  return 4 * words;
}

uint32_t write_extensions(const ExtensionBlock& block, std::span<uint8_t> out) {
  const uint32_t bytes = block.bytes();
  if (bytes == 0 || bytes > out.size()) return 0;
  Writer writer(out.data());
  writer.put(ExtensionHeader{.words = static_cast<uint8_t>(bytes / 4), .types = Be16{block.types()}});
  // Values in ascending order of type bits.
  if (block.source_qp) writer.put(SourceQp{0, Be24{block.source_qp->value()}});
  if (block.ce_echo) writer.put(CeEcho{Be32{block.ce_echo->packets}, Be32{block.ce_echo->marked}});
  if (block.lsn) writer.put(LsnValue{Be64{block.lsn->value()}});
  if (block.timestamp) writer.put(Timestamp{Be64{*block.timestamp}});
  if (block.timestamp_echo) {
    const TimestampEchoValues& v = *block.timestamp_echo;
    writer.put(TimestampEcho{Be64{v.time}, Be32{v.hold}, Be32{v.host_delay}});
  }
  if (block.rx_window)
    writer.put(RxWindow{Be32{block.rx_window->bytes}, 0, Be24{block.rx_window->psn.value()}});
  if (block.flows) {
    writer.put(Flows{block.flows->last_hop ? Flows::kLastHop : uint8_t{0},
                     Be24{std::min(block.flows->count, uint32_t{0xffffff})}});
  }
  if (block.rate) writer.put(write_rate(*block.rate));
  if (block.int_echo) {
    const uint8_t hops = hops_written(*block.int_echo);
    writer.put(
        IntEchoHeader{hops, static_cast<uint8_t>(block.int_echo->flags & 0xf), Be16{block.int_echo->age}});
    for (uint8_t i = 0; i < hops; ++i) writer.put(write_hop(block.int_echo->hops[i]));
  }
  if (block.sack) writer.put(Sack{0, Be24{block.sack->psn.value()}, Be64{block.sack->kept}});
  if (block.auth) writer.put(Auth{Be32{block.auth->sequence}, Be64{block.auth->mac}});
  return bytes;
}

ExtensionBlock read_extensions(const ExtensionView& view) {
  using enum ExtensionType;
  ExtensionBlock block;
  if (view.has(kSourceQp)) block.source_qp = Qpn{view.source_qp().qp.get()};
  if (view.has(kCeEcho))
    block.ce_echo = CeEchoValues{view.ce_echo().packets.get(), view.ce_echo().marked.get()};
  if (view.has(kLsn)) block.lsn = view.lsn();
  if (view.has(kTimestamp)) block.timestamp = view.timestamp().time.get();
  if (view.has(kTimestampEcho)) {
    const TimestampEcho& v = view.timestamp_echo();
    block.timestamp_echo = TimestampEchoValues{v.time.get(), v.hold.get(), v.host_delay.get()};
  }
  if (view.has(kRxWindow)) {
    block.rx_window = RxWindowValues{view.rx_window().bytes.get(), Psn{view.rx_window().psn.get()}};
  }
  if (view.has(kFlows)) {
    block.flows = FlowsValues{(view.flows().flags & Flows::kLastHop) != 0, view.flows().count.get()};
  }
  if (view.has(kRate)) block.rate = read_rate(view.rate());
  if (view.has(kIntEcho)) {
    IntEchoValues& echo = block.int_echo.emplace();
    echo.flags = view.int_echo().flags;
    echo.age = view.int_echo().age.get();
    for (const IntHop& hop : view.hops()) echo.hops[echo.hop_count++] = read_hop(hop);
  }
  if (view.has(kSack)) block.sack = SackValues{Psn{view.sack().psn.get()}, view.sack().kept.get()};
  if (view.has(kAuth)) block.auth = AuthValues{view.auth().sequence.get(), view.auth().mac.get()};
  return block;
}

}  // namespace roci
