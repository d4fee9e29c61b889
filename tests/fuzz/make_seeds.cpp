// Generator of fuzzer seeds from recorded exchanges: captures of other stacks (tests/pcaps), and exchanges between
// Rocinante hosts in virtual time with every extension and with losses.
//
// Usage: fuzz_seeds FOLDER CAPTURE…   Writes to the subdirectories host, xrc, extensions, capability_mad and frame of
// FOLDER.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fuzz/fuzz_opcodes.hpp"
#include "fuzz/host_program.hpp"
#include "support/hosts/services.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/hosts/xrc.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci::test {
namespace {

struct Observed {
  Nanos at{};
  Packet packet;
  bool incoming = false;  // to the host that the seed represents
};
using History = std::vector<Observed>;

std::filesystem::path folder;

void write_seed(const std::string& target, const std::string& name, std::span<const uint8_t> bytes) {
  std::filesystem::create_directories(folder / target);
  std::ofstream file(folder / target / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

const OpcodeInfo& info_of(const Packet& packet) { return opcode_info(packet.bth.opcode); }
bool is_mad(const Packet& packet) { return packet.bth.destination_qp == kManagementQp; }

// Converts the packets that one host received and sent into the steps of a host program.
class Conversion {
 public:
  // `xrc_numbers`: SRQ numbers of the XRC queues 0, 1, ...; empty for another service.
  Conversion(const History& history, const Setup& setup, uint8_t slot, std::vector<uint32_t> xrc_numbers = {})
      : history_(history), slot_(slot), xrc_numbers_(std::move(xrc_numbers)) {
    program_.setup = setup;
    for (const Observed& seen : history) {
      if (seen.packet.reth && seen.incoming) lowest_ = std::min(lowest_, seen.packet.reth->va);
    }
  }

  HostProgram run() {
    for (size_t i = 0; i < history_.size() && program_.steps.size() + 3 < kMaxSteps; ++i) {
      const Observed& seen = history_[i];
      if (i > 0) pass(seen.at - history_[i - 1].at);
      if (is_mad(seen.packet)) {
        if (seen.incoming) take_mad(seen.packet);
      } else if (seen.incoming) {
        take(seen.packet);
      } else {
        send(i);
      }
    }
    return program_;
  }

 private:
  Step& add(Act act) {
    Step& step = program_.steps.emplace_back();
    step.act = static_cast<uint8_t>(act);
    step.slot = slot_;
    return step;
  }

  void pass(Nanos span) {
    if (span < 100us) return;
    const auto count = static_cast<uint64_t>(span.count());
    const int shift = std::max(0, static_cast<int>(std::bit_width(count)) - 7);
    Step& step = add(Act::kTime);
    step.value = static_cast<uint8_t>(std::min(shift, 23));
    step.extra = static_cast<uint8_t>((count >> shift) - 64);
  }

  void take_mad(const Packet& packet) {
    const ParsedMad parsed = parse_capability_mad(packet.payload);
    Step& step = add(Act::kMad);
    step.slot = slot_ == 0 ? 0 : 1;
    step.opcode = parsed.message.response ? 1 : 0;
  }

  void take(const Packet& packet) {
    const OpcodeInfo& info = info_of(packet);
    const Psn psn = packet.bth.psn;
    std::optional<Psn>& expected = info.is_request() ? expected_ : unacknowledged_;
    if (!expected) expected = psn;
    const bool needs_receive =
        info.is_request() && (info.operation == Operation::kSend || info.has(Header::kImmDt));
    const bool begins = info.position == Position::kFirst || info.position == Position::kOnly;
    // Without receives from the start, only a retransmitted message finds a receive.
    const bool again = seen_.contains(psn.value());
    if (needs_receive && begins && (program_.setup.receives > 0 || again)) {
      Step& receive = add(Act::kReceive);
      Step::set(receive.length, 8192);
      if (packet.xrc_eth) receive.types = static_cast<uint8_t>(xrc_queue(packet) - slot_);
    }
    seen_.insert(psn.value());

    Step& step = add(Act::kPacket);
    step.opcode = row(packet.bth.opcode);
    step.flags = static_cast<uint8_t>(
        (packet.bth.ack_request ? Step::kAckRequest : 0) | (packet.bth.solicited ? Step::kSolicited : 0) |
        (packet.bth.mig_req ? Step::kMigReq : 0) | (packet.bth.becn ? Step::kBecn : 0) |
        (packet.ecn() == Ecn{3} ? Step::kMarked : 0) | (packet.extensions ? Step::kBlock : 0));
    step.psn = static_cast<uint8_t>(std::clamp(psn - *expected, -128, 127));
    Step::set(step.length, packet.payload.size());
    Step::set(step.offset, 64);
    if (packet.aeth) {
      step.value = packet.aeth->syndrome;
      Step::set(step.dma, packet.aeth->msn.value());
    }
    if (packet.reth) {
      Step::set(step.offset, 64 + std::min<uint64_t>(packet.reth->va - lowest_, 8192));
      Step::set(step.dma, std::min<uint32_t>(packet.reth->length, 16384));
    }
    if (packet.extensions) step.types = types_of(*packet.extensions);
    if (packet.xrc_eth) step.types = xrc_queue(packet);
    follow(packet, *expected);
  }

  // Updates the PSN that the host expects next.
  void follow(const Packet& packet, Psn& expected) {
    const OpcodeInfo& info = info_of(packet);
    if (!info.is_request() && info.operation == Operation::kAcknowledge &&
        (packet.aeth->syndrome & 0x60) != 0) {
      expected = packet.bth.psn;
      return;
    }
    if (packet.bth.psn - expected != 0 && (info.is_request() || packet.bth.psn - expected < 0)) return;
    uint32_t packets = 1;
    if (info.operation == Operation::kReadRequest) {
      const uint32_t mtu = 256U << program_.setup.path_mtu;
      packets = std::max(1U, (packet.reth->length + mtu - 1) / mtu);
    }
    expected = packet.bth.psn + packets;
  }

  void send(size_t at) {
    const Packet& packet = history_[at].packet;
    const OpcodeInfo& info = info_of(packet);
    if (!info.is_request()) return;
    const bool begins = info.position == Position::kFirst || info.position == Position::kOnly;
    if (!begins || (next_ && packet.bth.psn - *next_ < 0)) return;  // retransmission
    if (!unacknowledged_) unacknowledged_ = packet.bth.psn;
    next_ = packet.bth.psn + 1;
    size_t length = packet.payload.size();
    bool immediate = info.has(Header::kImmDt);
    for (size_t i = at + 1; info.position == Position::kFirst && i < history_.size(); ++i) {
      const Observed& later = history_[i];
      if (later.incoming || !info_of(later.packet).is_request()) continue;
      if (later.packet.bth.psn - *next_ != 0) continue;
      next_ = later.packet.bth.psn + 1;
      length += later.packet.payload.size();
      immediate |= info_of(later.packet).has(Header::kImmDt);
      if (info_of(later.packet).position == Position::kLast) break;
    }
    Step& step = add(Act::kPost);
    step.flags = IBV_SEND_SIGNALED;
    if (packet.xrc_eth) step.types = xrc_queue(packet);
    switch (info.operation) {
      case Operation::kSend:
        step.opcode = immediate ? 1 : 0;
        break;
      case Operation::kWrite:
        step.opcode = immediate ? 3 : 2;
        break;
      case Operation::kReadRequest:
        step.opcode = 4;
        length = packet.reth->length;
        break;
      case Operation::kCompareSwap:
        step.opcode = 5;
        length = 8;
        break;
      default:
        step.opcode = 6;
        length = 8;
    }
    Step::set(step.length, std::min<size_t>(length, 16384));
  }

  [[nodiscard]] uint8_t row(Opcode opcode) const {
    return static_cast<uint8_t>(fuzz::number_of(opcode) | (xrc_numbers_.empty() ? 0 : kAnyOpcode));
  }
  [[nodiscard]] uint8_t xrc_queue(const Packet& packet) const {
    const auto found = std::ranges::find(xrc_numbers_, packet.xrc_eth->srq.value());
    return static_cast<uint8_t>(found - xrc_numbers_.begin());
  }

  static uint8_t types_of(const ExtensionBlock& block) {
    return static_cast<uint8_t>((block.ce_echo ? Step::kCeEcho : 0) | (block.lsn ? Step::kLsn : 0) |
                                (block.timestamp ? Step::kTimestamp : 0) |
                                (block.timestamp_echo ? Step::kTimestampEcho : 0) |
                                (block.rx_window ? Step::kRxWindow : 0) | (block.sack ? Step::kSack : 0) |
                                (block.auth ? Step::kAuth : 0) | (block.source_qp ? Step::kOthers : 0));
  }

  const History& history_;
  uint8_t slot_;
  std::vector<uint32_t> xrc_numbers_;
  HostProgram program_;
  std::optional<Psn> expected_, unacknowledged_, next_;
  std::set<uint32_t> seen_;
  uint64_t lowest_ = UINT64_MAX;
};

void write_life(const std::string& name, const History& history, const Setup& setup, uint8_t slot) {
  if (history.empty()) return;
  const HostProgram program = Conversion(history, setup, slot).run();
  if (!program.steps.empty()) write_seed("host", name, program.bytes());
}

void write_parts(const std::string& name, const Packet& packet) {
  const ByteVector frame = encode_packet(packet);
  if (is_mad(packet)) {
    write_seed("capability_mad", name, packet.payload);
    write_seed("frame", name, frame);
  }
  if (!packet.extensions) return;
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  const uint8_t row = fuzz::number_of(packet.bth.opcode);
  ByteVector seed{row};
  const uint8_t* behind = frame.data() + view.bth_offset + sizeof(Bth);
  seed.insert(seed.end(), behind, frame.data() + view.icrc_offset);
  write_seed("extensions", name, seed);
  seed.assign(1, row);
  seed.insert(seed.end(), view.frame + view.payload_offset, frame.data() + view.icrc_offset);
  write_seed("extensions", name + "-block", seed);
  write_seed("frame", name, frame);
}

// Reads a classic little-endian pcap file.
std::vector<std::pair<Nanos, Packet>> read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> data{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::pair<Nanos, Packet>> out;
  const auto word = [&](size_t at) {
    return data[at] | uint32_t{data[at + 1]} << 8 | uint32_t{data[at + 2]} << 16 |
           uint32_t{data[at + 3]} << 24;
  };
  for (size_t at = 24; at + 16 <= data.size();) {
    const Nanos when{int64_t{word(at)} * 1'000'000'000 + int64_t{word(at + 4)} * 1000};
    const uint32_t length = word(at + 8);
    if (at + 16 + length > data.size()) break;
    const auto packet = decode_packet({&data[at + 16], length});
    if (packet) out.emplace_back(when, *packet);
    at += 16 + length;
  }
  return out;
}

uint8_t slot_of(const Packet& packet) {
  switch (info_of(packet).transport) {
    case TransportClass::kUc:
      return 2;
    case TransportClass::kUd:
      return 3;
    default:
      return 0;
  }
}

void convert_capture(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  std::map<std::pair<uint16_t, uint8_t>, std::vector<std::pair<Nanos, Packet>>> connections;
  for (auto& [at, packet] : read_capture(path)) {
    if (packet.bth.destination_qp == kManagementQp) continue;  // connection management
    connections[{packet.udp_source_port, slot_of(packet)}].emplace_back(at, packet);
  }
  int number = 0;
  for (const auto& [key, packets] : connections) {
    if (number == 2) break;  // enough of this capture
    std::set<IpAddress> hosts;
    size_t longest = 0;
    for (const auto& [at, packet] : packets) {
      hosts.insert(packet.destination);
      hosts.insert(packet.source);
      longest = std::max(longest, packet.payload.size());
    }
    Setup setup;
    setup.extensions = Setup::kOff;
    setup.receives = name.starts_with("rnr") ? 0 : 8;
    setup.window = 255;
    while ((256U << setup.path_mtu) < longest && setup.path_mtu < 4) ++setup.path_mtu;
    int side = 0;
    for (const IpAddress& host : hosts) {
      History history;
      for (const auto& [at, packet] : packets) history.push_back({at, packet, packet.destination == host});
      write_life(name + "-" + std::to_string(number) + "-" + std::to_string(side++), history, setup,
                 key.second);
    }
    ++number;
  }
}

// An exchange of all operations between Rocinante hosts with these extensions. Every n-th packet is lost.
void converse(const std::string& name, const ExtensionConfig& extensions, uint8_t bits, uint64_t lose_every) {
  TwoHostsOptions options;
  options.path_mtu = IBV_MTU_256;
  options.extensions_a = options.extensions_b = extensions;
  options.delay = 5us;
  options.window_bytes = 16 * 1024;
  TwoHosts net(options);
  History of_a, of_b;
  uint64_t count = 0;
  std::set<std::string> parts;
  net.watch = [&](const Packet& packet, char direction) {
    SimVerdict verdict;
    verdict.drop = !is_mad(packet) && lose_every != 0 && ++count % lose_every == lose_every - 1;
    const bool to_b = direction == '>';
    if (!(verdict.drop && !to_b)) of_a.push_back({net.now(), packet, !to_b});
    if (!(verdict.drop && to_b)) of_b.push_back({net.now(), packet, to_b});
    const std::string part = name + "-" + std::string(info_of(packet).name) + (is_mad(packet) ? "-mad" : "");
    if (parts.insert(part).second) write_parts(part, packet);
    return verdict;
  };
  net.connect();
  TwoHosts::wake(net.a, net.now());
  TwoHosts::wake(net.b, net.now());
  for (uint64_t i = 0; i < 2; ++i) {
    must(net.b.receive(i, 500'000, 4000) == 0 ? Status{} : fail("no receive"));
    net.a.post(IBV_WR_SEND, i, 0, 700);
    net.a.post(IBV_WR_RDMA_WRITE, i, 0, 1500, net.b.address(64), net.b.region->rkey());
    net.a.post(IBV_WR_RDMA_READ, i, 8192, 1000, net.b.address(64), net.b.region->rkey());
    net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, net.b.address(64), net.b.region->rkey(), 3);
    net.b.post(IBV_WR_RDMA_READ, i, 8192, 900, net.a.address(64), net.a.region->rkey());
    net.b.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, i, 0, net.a.address(64), net.a.region->rkey(), 3, 4);
    (void)TwoHosts::core(net.a).requester.request_probe(net.now());
    net.run(20ms);
  }
  Setup setup;
  setup.extensions = bits;
  setup.receives = 4;
  setup.peers = Setup::kNegotiate | Setup::kRefuse;
  const bool extended = extensions.mode != ExtensionMode::kOff;
  for (const uint8_t slot : {uint8_t{1}, uint8_t{4}, uint8_t{7}}) {
    if (!extended && slot == 1) continue;
    Setup of_slot = setup;
    if (slot == 4) of_slot.habits = Setup::kTwoWorkers;
    write_life("ours-" + name + "-a" + std::to_string(slot), of_a, of_slot, slot);
    write_life("ours-" + name + "-b" + std::to_string(slot), of_b, of_slot, slot);
  }
}

// An exchange of all operations of XRC for two queues. Every n-th packet is lost. With `receives` 0, the target lacks a
// receive request for a while.
void converse_xrc(const std::string& name, uint8_t receives, uint64_t lose_every) {
  constexpr uint8_t kInitiatorSlot = 0, kTargetSlot = 2;
  TwoHostsOptions options;
  options.extensions_a = options.extensions_b = {.mode = ExtensionMode::kOff};
  options.delay = 5us;
  TwoHosts net(options);
  net.connect();
  const auto domain = must(net.b.device->open_xrc_domain());
  const std::array<std::unique_ptr<SharedReceiveQueue>, 2> srqs{make_xrc_srq(net.b, *domain, *net.b.cq),
                                                                make_xrc_srq(net.b, *domain, *net.b.cq)};
  const auto from = make_service(net.a, IBV_QPT_XRC_SEND);
  const auto to = make_target(*domain);
  const int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  connect_to(*from, IBV_QPT_XRC_SEND, must(net.b.device->query_gid(1)), to->qp_num(), {.sq_psn = 0x1000});
  connect_to(*to, IBV_QPT_XRC_RECV, must(net.a.device->query_gid(1)), from->qp_num(),
             {.rq_psn = 0x1000, .access = access});
  net.run(1ms);
  History of_initiator, of_target;
  uint64_t count = 0;
  net.watch = [&](const Packet& packet, char direction) {
    SimVerdict verdict;
    if (info_of(packet).transport != TransportClass::kXrc) return verdict;
    verdict.drop = lose_every != 0 && ++count % lose_every == lose_every - 1;
    const bool is_request = direction == '>';
    if (is_request || !verdict.drop) of_initiator.push_back({net.now(), packet, !is_request});
    if (!is_request || !verdict.drop) of_target.push_back({net.now(), packet, is_request});
    return verdict;
  };
  const auto give = [&](uint64_t id) {
    must(receive(net.b, *srqs[id % 2], id, 500'000, 4000) == 0 ? Status{} : fail("no receive"));
  };
  uint64_t id = 0;
  for (const ibv_wr_opcode opcode :
       {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_IMM,
        IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
    const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    ++id;
    XrcOptions post{.srq = srqs[id % 2]->xrc_number(), .compare_add = 3};
    post.request = {.wr_id = id,
                    .opcode = opcode,
                    .length = atomic ? size_t{8} : size_t{700},
                    .remote = net.b.address(64),
                    .rkey = net.b.region->rkey()};
    if (receives > 0) give(id);
    must(send_xrc(net.a, *from, post) == 0 ? Status{} : fail("no send"));
    net.run(100us);
    if (receives == 0) give(id);
    net.run(20ms);
  }
  Setup setup;
  setup.extensions = Setup::kOff;
  setup.receives = receives;
  const std::vector<uint32_t> numbers{srqs[0]->xrc_number(), srqs[1]->xrc_number()};
  write_seed("xrc", name + "-initiator",
             Conversion(of_initiator, setup, kInitiatorSlot, numbers).run().bytes());
  write_seed("xrc", name + "-target", Conversion(of_target, setup, kTargetSlot, numbers).run().bytes());
}

// Valid and invalid CNMs from switches.
void tell_of_congestion() {
  constexpr uint8_t kSetups[] = {
      Setup::kTag,
      Setup::kTag | Setup::kVlan | Setup::kPeersTag,
      Setup::kCnmPort,
      Setup::kTag | Setup::kCnmPort | Setup::kCnmKey,
      Setup::kTag | Setup::kShortSamples,
      Setup::kTag | Setup::kCnmPort | Setup::kPoint | Setup::kPeersTag,
      Setup::kCnmPort | Setup::kCnmKey | Setup::kPoint,
  };
  for (const uint8_t congestion : kSetups) {
    HostProgram program;
    program.setup.extensions = Setup::kOff;
    program.setup.congestion = congestion;
    if ((congestion & Setup::kPoint) != 0) program.setup.habits = Setup::kTwoWorkers;
    const auto add = [&](Act act, uint8_t slot, uint8_t opcode, uint8_t flags) -> Step& {
      Step& step = program.steps.emplace_back();
      step.act = static_cast<uint8_t>(act);
      step.slot = slot;
      step.opcode = opcode;
      step.flags = flags;
      return step;
    };
    for (const uint8_t slot : {uint8_t{0}, uint8_t{2}, uint8_t{3}, uint8_t{7}}) {
      Step& post = add(Act::kPost, slot, slot == 3 ? 0 : 2, 0);
      Step::set(post.length, slot == 3 ? 100 : 600);
      Step::set(post.offset, 64);
      for (const uint8_t form : {uint8_t{0}, uint8_t{1}}) {
        Step& told = add(Act::kNeighbor, 1, kTellsOfCongestion, form);
        told.value = 21;
        told.psn = static_cast<uint8_t>(program.steps.size());
        told.types = form == 0 ? 0 : 15;
        // Layer 2: unsigned; layer 3: signed with an old sequence number.
        add(Act::kNeighbor, 1, kTellsOfCongestion, form);
        add(Act::kNeighbor, 1, kTellsOfCongestion, form).key = 40;
        Step& forged = add(Act::kNeighbor, 1, kTellsOfCongestion, form);
        forged.stray = kFirstStray;
        Step::set(forged.offset, 53);  // destination queue pair of the packet
        add(Act::kNeighbor, 1, kTellsOfCongestion, form).types = 64 | 128;
      }
    }
    // All packets arrive at once, so that more frames wait than the threshold permits.
    for (int i = 0; i < 40; ++i) {
      Step& write = add(Act::kPacket, 0, 0, static_cast<uint8_t>(i < 39 ? Step::kHold : 0));
      write.psn = static_cast<uint8_t>(i);
      Step::set(write.length, 256);
    }
    add(Act::kControl, 0, static_cast<uint8_t>(Control::kReconnect), 0);
    add(Act::kNeighbor, 1, kTellsOfCongestion, 0);
    write_seed("host", "congestion-" + std::to_string(congestion), program.bytes());
  }
}

void converse_all() {
  const ExtensionConfig off{.mode = ExtensionMode::kOff};
  const ExtensionConfig plain;
  ExtensionConfig selective;
  selective.selective_repeat = true;
  ExtensionConfig everything = selective;
  everything.authenticate = everything.timestamps = everything.source_qpn = everything.data_lsn = true;
  constexpr uint8_t kAll =
      Setup::kSelective | Setup::kAuthenticate | Setup::kTimestamps | Setup::kSourceQpn | Setup::kDataLsn;
  for (const uint64_t lose_every : {0, 5, 11}) {
    const std::string suffix = lose_every == 0 ? "" : "-loss" + std::to_string(lose_every);
    converse("standard" + suffix, off, Setup::kOff, lose_every);
    converse("extended" + suffix, plain, 0, lose_every);
    converse("selective" + suffix, selective, Setup::kSelective, lose_every);
    converse("everything" + suffix, everything, kAll, lose_every);
  }
}

}  // namespace
}  // namespace roci::test

int main(int argc, char** argv) {
  using namespace roci::test;
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER CAPTURE…\n", argv[0]);
    return 2;
  }
  folder = argv[1];
  for (int i = 2; i < argc; ++i) convert_capture(argv[i]);
  converse_all();
  for (const uint64_t lose_every : {0, 4, 7}) {
    for (const uint8_t receives : {uint8_t{0}, uint8_t{4}})
      converse_xrc("xrc-" + std::to_string(receives) + "-loss" + std::to_string(lose_every), receives,
                   lose_every);
  }
  tell_of_congestion();
  return 0;
}
