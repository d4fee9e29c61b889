// Fuzz target: frames into a switch with all features enabled. Well-formed frames of many kinds with some bytes
// changed, contiguous or in segments, and passing time. At the end the switch must have empty queues. It must lose no
// buffer and send no frame above the port's MTU.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/fuzz_opcodes.hpp"
#include "fuzz/fuzz_target.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/sim_link.hpp"
#include "support/ports/frames.hpp"
#include "switch/switch.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/net/pause.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {
namespace {

constexpr size_t kPorts = 4;
constexpr uint16_t kMtu = 1600;
constexpr uint16_t kIntPort = 5201;
constexpr uint16_t kCnmPort = 5202;
constexpr size_t kMaxSteps = 400;

SwitchConfig configuration() {
  SwitchConfig config{.name = "fuzzed", .mac = {{2, 0, 0, 0, 9, 9}}};
  for (size_t i = 0; i < kPorts; ++i) {
    SwitchPortConfig port{.name = "p" + std::to_string(i)};
    port.rate = i == 3 ? 100_Mbps : 10_Gbps;
    port.queue = 32_KiB;
    port.queue_frames = 64;
    port.classes[0].aqm = {.mark = {.kmin = Bytes{500}, .kmax = Bytes{8000}, .pmax = 0.5},
                           .drop = {.kmin = Bytes{1000}, .kmax = Bytes{4000}}};
    port.classes[1].aqm.mark = {.kmin = Bytes{0}, .kmax = Bytes{0}};
    port.classes[1].aqm.mark_at = AqmConfig::MarkAt::kDequeue;
    port.classes[2].aqm.mark = {.kmin = Bytes{100}, .kmax = Bytes{5000}};
    port.classes[2].aqm.weight = 0.1;
    port.classes[3].lossless = LosslessConfig{.xoff = 4_KiB, .xon = 2_KiB, .headroom = 4_KiB};
    port.classes[5].weight = 7;
    port.classes[6].strict = true;
    port.watchdog = {.detect = 1ms, .restore = 2ms};
    config.ports.push_back(port);
  }
  config.ports[0].telemetry = TelemetryRole::kEdge;
  config.ports[1].telemetry = TelemetryRole::kSource;
  config.ports[2].telemetry = TelemetryRole::kSink;
  config.ports[1].vlan = 10;
  config.ports[2].all_tagged = false;
  config.ports[2].tagged = {10};
  config.telemetry.enabled = true;
  config.telemetry.udp_port = kIntPort;
  config.telemetry.switch_id = 5;
  config.telemetry.hops = 3;
  config.telemetry.respond.to = TelemetryConfig::Respond::To::kSender;
  config.telemetry.respond.above = Bytes{1000};
  config.telemetry.respond.dscp.set(9);
  config.telemetry.respond.spacing = 2us;
  config.interfaces = {
      {.name = "left",
       .vlan = 1,
       .addresses = {require(IpNetwork::parse("10.0.1.1/24")), require(IpNetwork::parse("fd01::1/64"))}},
      {.name = "right", .vlan = 10, .addresses = {require(IpNetwork::parse("10.0.2.1/24"))}}};
  // One next hop is static, the others never reply.
  config.routes = {{require(IpNetwork::parse("10.9.0.0/16")),
                    {require(IpAddress::parse("10.0.2.9")), require(IpAddress::parse("10.0.2.78")),
                     require(IpAddress::parse("10.0.1.78"))}}};
  config.neighbors = {{require(IpAddress::parse("10.0.2.9")), {{2, 0, 0, 0, 1, 1}}}};
  config.buffer = {.size = 64_KiB, .alpha = 2};
  config.mac_table_size = 16;
  for (const size_t slow : {1UL, 3UL}) {
    ClassConfig& told = config.ports[slow].classes[7];
    told.notify = ClassConfig::Notify::kCnp;
    told.cnp = {.threshold = Bytes{300},
                .sample = Bytes{1000},
                .key_flow = slow == 1 ? CnpConfig::Choice::kSampled : CnpConfig::Choice::kHeaviest};
    for (const unsigned c : {0U, 4U}) {
      ClassConfig& notifying = config.ports[slow].classes[c];
      notifying.notify = ClassConfig::Notify::kQcn;
      notifying.qcn = {.qeq = Bytes{200}, .weight = 1, .sample = Bytes{1000}, .l3 = true};
      if (c == 4)
        notifying.qcn.contents = {
            .port = true, .ecn = true, .available_bandwidth = true, .rate_change = true};
    }
  }
  config.ports[2].keeps_cn_tags = false;
  config.senders = {.flows = 8, .ageing = 1s};
  config.notify = {.port = kCnmPort, .rate = 1'000'000, .tor_size = 8, .tor_ageing = 100ms};
  for (const auto* prefix : {"10.9.0.0/16", "10.0.2.0/24", "fd01::/64"}) {
    SwitchShaperConfig& shaper = config.shapers.emplace_back();
    shaper.prefix = require(IpNetwork::parse(prefix));
    shaper.rate = 1_Gbps;
    shaper.queue = 16_KiB;
    shaper.queue_frames = 32;
    shaper.aqm.mark = {.kmin = Bytes{1000}, .kmax = Bytes{4000}};
    shaper.qcn = QcnConfig{.qeq = Bytes{1000}, .weight = 1, .sample = Bytes{2000}, .l3 = true};
  }
  return config;
}

IpAddress some_address(uint8_t n) {
  static const std::array<IpAddress, 6> kAddresses{
      require(IpAddress::parse("10.0.1.5")),  require(IpAddress::parse("10.0.2.9")),
      require(IpAddress::parse("10.9.3.3")),  require(IpAddress::parse("10.0.1.1")),
      require(IpAddress::parse("10.0.2.77")), require(IpAddress::parse("99.1.1.1"))};
  return kAddresses[n % kAddresses.size()];
}

MacAddress some_mac(uint8_t n) {
  if (n % 8 == 7) return {{2, 0, 0, 0, 9, 9}};  // the switch's address
  if (n % 8 == 6) return {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  return {{2, 0, 0, 0, 1, static_cast<uint8_t>(n % 4)}};
}

std::vector<uint8_t> with_telemetry(std::vector<uint8_t> bytes, uint8_t words) {
  const bool tagged = bytes[12] == 0x81;
  const size_t udp = (tagged ? 18U : 14U) + 20;
  if (bytes.size() < udp + 8 || bytes[tagged ? 16 : 12] != 0x08) return bytes;
  std::vector<uint8_t> stack(16 + 4UL * (words % 12), 0x5a);
  const std::array<uint8_t, 16> head{0x14, static_cast<uint8_t>(3 + words % 12),
                                     0x12, 0xb7,
                                     0x20, 0,
                                     4,    static_cast<uint8_t>(words % 4),
                                     0,    0,
                                     0,    0,
                                     0x80, 0,
                                     0,    0};
  std::memcpy(stack.data(), head.data(), head.size());
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(udp + 8), stack.begin(), stack.end());
  const auto grow = [&](size_t at) {
    const auto value =
        static_cast<uint16_t>((bytes[at] << 8 | bytes[at + 1]) + static_cast<int>(stack.size()));
    bytes[at] = static_cast<uint8_t>(value >> 8);
    bytes[at + 1] = static_cast<uint8_t>(value);
  };
  grow(udp - 18);
  grow(udp + 4);
  bytes[udp + 2] = kIntPort >> 8;
  bytes[udp + 3] = kIntPort & 0xff;
  return bytes;
}

// The frame of a host with QCN.
std::vector<uint8_t> with_cn_tag(std::vector<uint8_t> bytes) {
  const std::array<uint8_t, 4> tag{0x22, 0xe9, 0, 1};
  const ptrdiff_t at = bytes[12] == 0x81 ? 16 : 12;
  bytes.insert(bytes.begin() + at, tag.begin(), tag.end());
  return bytes;
}

// A CNM from a switch beyond routers about the flow of roce_bytes().
std::vector<uint8_t> self_defined_cnm(const FrameSpec& spec) {
  static constexpr std::array<uint8_t, 20> kMsdu{8, 0, 0x45};
  const FiveTuple flow{spec.from, spec.to, kProtocolUdp, 49152, kRoceUdpPort};
  Cnm cnm;
  cnm.feedback = 9;
  cnm.msdu = kMsdu;
  L3CnmTlvs tlvs;
  if ((spec.traffic_class & 1) != 0) tlvs.rate_change = static_cast<int32_t>(spec.payload) * 100 - 50'000;
  if ((spec.traffic_class & 2) != 0) tlvs.available_bandwidth = spec.payload;
  std::vector<uint8_t> bytes(kMaxL3CnmFrame);
  bytes.resize(build_l3_cnm({.source_mac = spec.source,
                             .destination_mac = spec.destination,
                             .source_ip = spec.to,
                             .destination_ip = spec.from},
                            kCnmPort, flow, cnm, tlvs, bytes));
  return bytes;
}

// Packets from which the switch learns senders: data of a few flows with or without SOURCE-QPN, acknowledgments, CNPs
// and connection management messages.
std::vector<uint8_t> of_a_flow(Input& input, const FrameSpec& spec) {
  const OpcodeInfo& info = fuzz::opcode_of(input.byte());
  const uint8_t which = input.byte();
  Packet packet = make_packet(info.opcode).to(Qpn{which % 4U}, Psn{input.byte()});
  packet.between(spec.source, spec.from, spec.destination, spec.to).with_traffic_class(spec.traffic_class);
  if (packet.deth) packet.deth->source_qp = Qpn{which / 4U % 4};
  if (packet.bth.destination_qp == Qpn{1}) {
    ByteVector mad(256);
    mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[17] = (which & 0x40) != 0 ? 0x10 : 0x13;
    mad[27] = which / 4U % 4, mad[31] = which / 16U % 4;
    mad[24 + 14] = mad[24 + 34] = input.byte() % 4;
    packet.with_payload(mad);
  } else if (info.payload != PayloadRule::kNone) {
    packet.with_payload(ByteVector(4UL * input.byte()));
  }
  if ((which & 0x80) != 0) {
    ExtensionBlock block;
    block.source_qp = Qpn{input.byte() % 4U};
    if ((which & 0x20) != 0) block.lsn = Lsn{input.byte()};
    packet.with_extensions(block);
  }
  return encode_packet(packet.finish());
}

// A well-formed frame, with some bytes changed as the input specifies.
std::vector<uint8_t> some_frame(Input& input) {
  const uint8_t kind = input.byte();
  std::vector<uint8_t> bytes;
  if (kind % 8 == 0) {
    PauseMessage message{.source = some_mac(1), .classes = input.byte()};
    for (uint16_t& quanta : message.quanta) quanta = input.number<uint16_t>();
    bytes.resize(kPauseFrameBytes);
    build_pause(message, std::span<uint8_t, kPauseFrameBytes>(bytes.data(), kPauseFrameBytes));
  } else if (kind % 8 == 1) {
    const auto any = input.take(input.number<uint16_t>() % (kMtu + 40));
    bytes.assign(any.begin(), any.end());
  } else {
    FrameSpec spec{.destination = some_mac(input.byte()),
                   .source = some_mac(input.byte()),
                   .traffic_class = input.byte()};
    spec.from = some_address(input.byte());
    spec.to = some_address(input.byte());
    if (kind % 8 == 2) {
      spec.from = require(IpAddress::parse("fd01::5"));
      spec.to = require(IpAddress::parse("fd01::6"));
    }
    if (kind % 8 >= 5) spec.vlan = input.number<uint16_t>();
    spec.payload = 4U * input.byte();
    bytes = kind % 8 == 3 ? of_a_flow(input, spec) : roce_bytes(spec);
    if ((kind & 0x60) == 0x60) bytes = self_defined_cnm(spec);
    if ((kind & 8) != 0) bytes = with_telemetry(bytes, input.byte());
    if ((kind & 0x90) == 0x90) bytes = with_cn_tag(bytes);
  }
  for (uint8_t changes = input.byte() % 8; changes > 0 && !bytes.empty(); --changes)
    bytes[input.number<uint16_t>() % bytes.size()] = input.byte();
  return bytes;
}

rte_mbuf* as_mbuf(MbufPool& pool, std::span<const uint8_t> bytes, size_t split) {
  rte_mbuf* frame = rte_pktmbuf_alloc(pool.get());
  require(frame != nullptr, "no buffer is lost");
  split = std::min(split, bytes.size());
  std::ranges::copy(bytes.first(split),
                    reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(split))));
  if (split < bytes.size()) {
    rte_mbuf* second = rte_pktmbuf_alloc(pool.get());
    require(second != nullptr, "no buffer is lost");
    std::memcpy(rte_pktmbuf_append(second, static_cast<uint16_t>(bytes.size() - split)), &bytes[split],
                bytes.size() - split);
    rte_pktmbuf_chain(frame, second);
  }
  return frame;
}

// Receives and checks all frames of a port.
void receive(Port& host, Nanos now) {
  std::array<rte_mbuf*, 32> frames;
  for (uint16_t count = 0; (count = host.rx_burst(frames, now)) > 0;) {
    for (uint16_t i = 0; i < count; ++i) {
      require(rte_mbuf_check(frames[i], 1, nullptr) == 0, "what leaves is a whole mbuf");
      require(!exceeds_mtu(*frames[i], kMtu), "what leaves fits the port");
      rte_pktmbuf_free(frames[i]);
    }
  }
}

void run(Input input, const std::shared_ptr<MbufPool>& pool) {
  std::vector<std::unique_ptr<SimLink>> links;
  std::vector<Port*> ends;
  for (size_t i = 0; i < kPorts; ++i) {
    links.push_back(std::make_unique<SimLink>(
        SimLinkConfig{.name = "l" + std::to_string(i), .seed = i, .mtu = kMtu}, pool));
    ends.push_back(&links.back()->b());
  }
  const auto sw = require(Switch::create(configuration(), ends, pool));
  Nanos now{1};
  const auto settle = [&] {
    for (int rounds = 0; rounds < 200; ++rounds) {
      bool worked = false;
      for (auto& link : links) worked |= link->poll(now);
      worked |= sw->poll(now);
      for (auto& link : links) receive(link->a(), now);
      if (!worked) return;
    }
    require(false, "a switch comes to rest");
  };
  for (size_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
    const uint8_t what = input.byte();
    if ((what & 3) == 3) {
      now += Nanos{int64_t{1} << (what >> 2 & 0x1f)};
    } else {
      const std::vector<uint8_t> bytes = some_frame(input);
      const size_t split = (what & 0x40) != 0 ? input.byte() : SIZE_MAX;
      rte_mbuf* frame = as_mbuf(*pool, bytes, split);
      if (links[what >> 2 & 3]->a().tx_burst({&frame, 1}, now) == 0) rte_pktmbuf_free(frame);
    }
    if ((what & 0x80) != 0) settle();
  }
  settle();
  // Waits until pauses and address resolutions have ended. The last CNMs may still wait at a slow port.
  for (int i = 0; i < 40; ++i) {
    now += 500ms;
    settle();
  }
  const auto empty = [&] {
    for (size_t i = 0; i < kPorts; ++i) {
      if (sw->counters(i).queue_packets != 0 || sw->counters(i).queue_bytes != 0) return false;
    }
    for (size_t i = 0; i < sw->shaper_count(); ++i) {
      if (sw->shaper_counts(i).queue_bytes != 0) return false;
    }
    return true;
  };
  for (int i = 0; i < 100 && !empty(); ++i) {
    now += 1ms;
    settle();
  }
  require(empty(), "every queue is empty in the end");
  for (size_t i = 0; i < kPorts; ++i) {
    for (const SwitchClassCounters& one : sw->counters(i).classes)
      require(one.queue_bytes == 0, "and so is every class's");
  }
}

}  // namespace
}  // namespace roci::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool started = roci::start_eal().has_value();
  roci::test::require(started, "the EAL starts");
  static const std::shared_ptr<roci::MbufPool> pool =
      roci::test::require(roci::MbufPool::create("switch", 2047, 2200));
  roci::test::run(roci::test::Input(data, size), pool);
  roci::test::require(pool->in_use() == 0, "no buffer is lost");
  return 0;
}
