#include "transport/queue_pair/extension_session.hpp"

#include <algorithm>

#include "transport/packet_sink.hpp"

namespace roci {

RefusedFeedback take_feedback(const ExtensionView& block, Nanos now, uint32_t time_unit, SendFlow& flow,
                              EchoedCounts& echoed) {
  using enum ExtensionType;
  RefusedFeedback refused;
  if (block.has(kCeEcho)) {
    // Counts since the queue pair was connected, modulo 2^32. Counts of a reordered packet are lower than the known
    // ones.
    const uint32_t packets = block.ce_echo().packets.get() - static_cast<uint32_t>(echoed.packets);
    const uint32_t marked = block.ce_echo().marked.get() - static_cast<uint32_t>(echoed.marked);
    const bool newer = packets >> 31 == 0;
    if (newer && marked > packets) ++refused.values;
    if (newer && marked <= packets) {
      echoed.packets += packets;
      echoed.marked += marked;
      flow.packets_acked = std::max(flow.packets_acked, echoed.packets);
      flow.packets_marked = std::max(flow.packets_marked, echoed.marked);
    }
  }
  if (block.has(kLsn) && block.lsn() > flow.next) ++refused.values;
  if (block.has(kTimestampEcho)) {
    const TimestampEcho& echo = block.timestamp_echo();
    const auto here = static_cast<uint64_t>(now.count());
    const uint64_t hold = uint64_t{echo.hold.get()} * time_unit / 1000;
    if (echo.time.get() <= here && here - echo.time.get() >= hold) {
      flow.note_rtt(Nanos{static_cast<int64_t>(here - echo.time.get() - hold)},
                    Nanos{static_cast<int64_t>(hold)});
    } else {
      ++refused.values;
    }
  }
  if (block.has(kRxWindow)) {
    if (const uint32_t window = block.rx_window().bytes.get(); is_receiver_window(window)) {
      flow.receiver_window = window;
      ++flow.receiver_windows;
    } else {
      ++refused.windows;
    }
  }
  if (block.has(kFlows)) flow.flows_at_receiver = block.flows().count.get();
  return refused;
}

void ExtensionSession::take_feedback(TransportContext& context, const ExtensionView& block, Direction about,
                                     SendFlow& flow) {
  const RefusedFeedback refused =
      roci::take_feedback(block, context.now, terms.peer_time_unit, flow, echoed_[index(about)]);
  context.counters.add(Counter::kFeedbackImpossible, refused.values);
  if (refused.windows != 0) [[unlikely]]
    context.counters.add(Counter::kWindowsImpossible, refused.windows);
  if (block.has(ExtensionType::kIntEcho)) take_hops(context, block, hops_of(about));
}

void ExtensionSession::take_hops(TransportContext& context, const ExtensionView& block, HopsOf of) {
  context.counters.add(Counter::kIntEchoesReceived);
  if (telemetry != nullptr && !telemetry->take_echo(block, of, context.now))
    context.counters.add(Counter::kIntEchoesOld);
}

void ExtensionSession::write_hops(const TransportContext& context, const ExtensionView& block, HopsOf of) {
  telemetry->write_echo(block, of, context.now);
  context.counters.add(Counter::kIntEchoesSent);
}

void ExtensionSession::write_data_block(const ExtensionView& block, Qpn from, Lsn lsn, Nanos now) {
  using enum ExtensionType;
  if (block.has(kSourceQp)) value_to_write<SourceQp>(block, kSourceQp).qp.set(from.value());
  if (block.has(kLsn)) value_to_write<LsnValue>(block, kLsn).lsn.set(lsn.value());
  if (block.has(kTimestamp))
    value_to_write<Timestamp>(block, kTimestamp).time.set(static_cast<uint64_t>(now.count()));
}

void ExtensionSession::write_feedback(const TransportContext& context, const ExtensionView& block,
                                      Direction about, const ReceiveFlow& flow) {
  using enum ExtensionType;
  if (block.has(kCeEcho)) {
    auto& echo = value_to_write<CeEcho>(block, kCeEcho);
    echo.packets.set(flow.packets);
    echo.marked.set(flow.marked);
  }
  if (block.has(kLsn)) value_to_write<LsnValue>(block, kLsn).lsn.set(flow.received.value());
  if (std::optional<Echo>& caused = echo_[index(about)]; block.has(kTimestampEcho) && caused) {
    auto& echo = value_to_write<TimestampEcho>(block, kTimestampEcho);
    const auto hold =
        static_cast<uint32_t>(std::clamp<int64_t>((context.now - caused->arrived).count(), 0, UINT32_MAX));
    echo.time.set(caused->time);
    echo.hold.set(hold);
    echo.host_delay.set(hold);  // the only delay in this host is the wait until the queue pair is served
    caused.reset();
  }
  if (block.has(kRxWindow)) {
    auto& window = value_to_write<RxWindow>(block, kRxWindow);
    window.bytes.set(receiver_window_.value_or(kLargestReceiverWindow));
    window_message_due_ = false;
    window.psn.set(flow.next_psn.value());
  }
  if (block.has(kFlows))
    value_to_write<Flows>(block, kFlows).count.set(std::min(context.flows, uint32_t{0xffffff}));
  if (block.has(kIntEcho)) write_hops(context, block, hops_of(about));
}

}  // namespace roci
