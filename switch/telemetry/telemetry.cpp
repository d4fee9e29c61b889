#include "switch/telemetry/telemetry.hpp"

#include "port/port.hpp"
#include "switch/pipeline/frame_edit.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {
namespace {

constexpr uint32_t kLastSwitchId = (1U << 20) - 1;
constexpr uint32_t kMaxResponses = 1'000'000'000;  // per second

// Not secure against an adversary: flows with the same slot are sampled less often.
uint64_t hash_of(const FiveTuple& flow) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15; };
  for (const IpAddress* address : {&flow.source, &flow.destination}) {
    for (const uint8_t byte : address->bytes) mix(byte);
  }
  mix(uint64_t{flow.source_port} << 32 | uint64_t{flow.destination_port} << 8 | flow.protocol);
  return hash ^ hash >> 29;
}

Status read_dscps(ConfigNode& item, std::bitset<64>& dscps) {
  std::vector<uint8_t> listed;
  ROCI_TRY(item.optional_list("dscp", listed, integer_in<uint8_t>(0, 63)));
  if (item.has("dscp")) dscps.reset();
  for (const uint8_t one : listed) dscps.set(one);
  return {};
}

Status read_respond(ConfigNode& node, TelemetryConfig::Respond& respond) {
  using To = TelemetryConfig::Respond::To;
  return node.section("respond", Need::kOptional, [&](ConfigNode& item) -> Status {
    respond.to = To::kSender;
    ROCI_TRY(
        item.optional("to", respond.to, one_of<To>({{"sender", To::kSender}, {"receiver", To::kReceiver}})));
    ROCI_TRY(item.required("above", respond.above));
    ROCI_TRY(item.optional("spacing", respond.spacing));
    ROCI_TRY(item.optional("rate", respond.rate, integer_in<uint32_t>(1, kMaxResponses)));
    return read_dscps(item, respond.dscp);
  });
}

}  // namespace

bool responds(const TelemetryConfig& config) {
  return config.enabled && config.respond.to != TelemetryConfig::Respond::To::kNone;
}

Status read_telemetry(ConfigNode& node, TelemetryConfig& config) {
  using When = TelemetryConfig::When;
  return node.section("telemetry", Need::kOptional, [&](ConfigNode& item) -> Status {
    config.enabled = true;
    ROCI_TRY(item.required("udp_port", config.udp_port, integer_in<uint16_t>(1, UINT16_MAX)));
    ROCI_TRY(item.required("switch_id", config.switch_id, integer_in<uint32_t>(0, kLastSwitchId)));
    ROCI_TRY(item.optional("domain", config.domain));
    ROCI_TRY(item.optional("full", config.full));
    ROCI_TRY(item.optional("hops", config.hops, integer_in<uint8_t>(1, 60)));
    ROCI_TRY(item.optional(
        "when", config.when,
        one_of<When>(
            {{"packet", When::kPacket}, {"interval", When::kInterval}, {"congestion", When::kCongestion}})));
    ROCI_TRY(item.optional("interval", config.interval));
    ROCI_TRY(item.optional("congestion", config.congestion));
    ROCI_TRY(item.optional("wants_response", config.wants_response));
    ROCI_TRY(read_dscps(item, config.dscp));
    ROCI_TRY(read_respond(item, config.respond));
    if (Status s = check_telemetry(config); !s) return item.error(s.error().message);
    return {};
  });
}

Status check_telemetry(const TelemetryConfig& config) {
  if (!config.enabled) return {};
  if (config.udp_port == 0 || config.udp_port == kRoceUdpPort) {
    return fail("telemetry: UDP port " + std::to_string(config.udp_port) +
                " is not distinguishable from other traffic; use an unused port");
  }
  if (config.switch_id > kLastSwitchId) return fail("telemetry: switch_id must fit in 20 bits");
  if (config.when == TelemetryConfig::When::kInterval && config.interval <= Nanos{0})
    return fail("telemetry: sampling by interval requires interval, about a round-trip time");
  if (config.when == TelemetryConfig::When::kInterval && config.interval > 1h)
    return fail("telemetry: interval must be at most 1 h");
  if (responds(config)) {
    if (config.respond.rate == 0 || config.respond.rate > kMaxResponses)
      return fail("telemetry: the response rate must be 1 to " + std::to_string(kMaxResponses));
    if (config.respond.spacing < 1us || config.respond.spacing > 1s)
      return fail("telemetry: the response spacing must be 1 us to 1 s");
  }
  return {};
}

Telemetry::Telemetry(const TelemetryConfig& config, rte_mempool* pool)
    : config_(config),
      source_{.port = config.udp_port,
              .domain = config.domain,
              .domain_instructions =
                  config.full ? int_domain_instruction::kFullHop : int_domain_instruction::kCompactHop,
              .domain_flags = config.wants_response ? int_domain_flag::kWantsResponse : uint16_t{0},
              .hops = config.hops},
      pool_(pool) {}

HopReport Telemetry::report(const Departure& departure) const {
  return {.switch_id = config_.switch_id,
          .ingress_port = departure.ingress,
          .egress_port = departure.egress,
          .queue = departure.traffic_class,
          .ingress_time = static_cast<uint64_t>(departure.arrived.count()),
          .egress_time = static_cast<uint64_t>(departure.now.count()),
          .tx_bytes = departure.tx_bytes,
          .queue_bytes = departure.queue_bytes,
          .rate = departure.rate};
}

IntView Telemetry::look(const rte_mbuf* frame) const {
  return parse_int(head_of(frame), frame->pkt_len, config_.udp_port);
}

bool Telemetry::inserts_header(const rte_mbuf* frame, const UdpLocation& udp, const Departure& departure) {
  if (!departure.from_source || departure.to_sink) return false;
  if (udp.outcome != UdpOutcome::kFound) return false;
  const auto* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
  const auto& header = *reinterpret_cast<const UdpHeader*>(bytes + udp.l4_offset);
  if (header.destination_port.get() != kRoceUdpPort) return false;
  if (!config_.dscp.test(udp.dscp(head_of(frame)))) return false;
  switch (config_.when) {
    case TelemetryConfig::When::kPacket:
      return true;
    case TelemetryConfig::When::kCongestion:
      return departure.queue_bytes > config_.congestion.value();
    case TelemetryConfig::When::kInterval:
      break;
  }
  const auto flow = read_five_tuple(head_of(frame));
  if (!flow) return false;
  if (sampled_.empty()) sampled_.resize(kFlows);
  Nanos& next = sampled_[hash_of(*flow) % kFlows];
  if (departure.now < next) return false;
  next = departure.now + config_.interval;
  return true;
}

rte_mbuf* Telemetry::stamp(rte_mbuf* frame, const Departure& departure, SwitchPortCounters& counters) {
  const IntView view = look(frame);
  if (view.accepted())
    return departure.to_sink ? end(frame, view, counters) : extend(frame, view, departure, counters);
  if (view.outcome != IntOutcome::kNotInt &&
      view.udp.outcome == UdpOutcome::kFound) {  // malformed: forwarded unchanged
    bump(counters.telemetry_malformed);
    return frame;
  }
  return inserts_header(frame, view.udp, departure) ? begin(frame, view, departure, counters) : frame;
}

rte_mbuf* Telemetry::own(rte_mbuf* frame, uint32_t headroom, IntView& view,
                         SwitchPortCounters& counters) const {
  rte_mbuf* own = own_front(frame, headroom, pool_);
  if (own == nullptr) {
    bump(counters.drops[static_cast<unsigned>(DropReason::kNoBuffer)]);
  } else if (own != frame) {
    view = look(own);
  }
  return own;
}

rte_mbuf* Telemetry::begin(rte_mbuf* frame, IntView view, const Departure& departure,
                           SwitchPortCounters& counters) {
  frame = own(frame, kHeadroom, view, counters);
  if (frame == nullptr) return nullptr;
  FrameFront front = FrameFront::of(*frame);
  if (begin_int(front, view.udp, source_, departure.mtu, view) != IntEdit::kDone) {
    bump(counters.telemetry_too_long);
    return frame;
  }
  bump(counters.telemetry_inserted);
  push(front, view, departure, counters);
  front.store(*frame);
  return frame;
}

rte_mbuf* Telemetry::extend(rte_mbuf* frame, IntView view, const Departure& departure,
                            SwitchPortCounters& counters) {
  frame = own(frame, kHeadroom, view, counters);
  if (frame == nullptr) return nullptr;
  FrameFront front = FrameFront::of(*frame);
  push(front, view, departure, counters);
  front.store(*frame);
  return frame;
}

void Telemetry::push(FrameFront& front, const IntView& view, const Departure& departure,
                     SwitchPortCounters& counters) {
  const IntEdit edit = push_int_hop(front, view, report(departure), config_.domain, departure.mtu);
  bump(edit == IntEdit::kDone ? counters.telemetry_hops : counters.telemetry_too_long);
}

rte_mbuf* Telemetry::end(rte_mbuf* frame, IntView view, SwitchPortCounters& counters) {
  if (view.header().has(IntMdHeader::kDiscard)) {
    rte_pktmbuf_free(frame);
    bump(counters.telemetry_discarded);
    return nullptr;
  }
  frame = own(frame, 0, view, counters);
  if (frame == nullptr) return nullptr;
  FrameFront front = FrameFront::of(*frame);
  strip_int(front, view);
  front.store(*frame);
  bump(counters.telemetry_stripped);
  return frame;
}

}  // namespace roci
