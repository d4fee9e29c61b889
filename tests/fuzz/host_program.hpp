// Input format of host_fuzz, host_control_fuzz and xrc_fuzz: a setup and a sequence of steps of 16 bytes each. Inputs can be
// cut, spliced and generated from recorded exchanges. Every byte value is valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace roci::test {

struct Setup {
  // Bits of `extensions`.
  static constexpr uint8_t kOff = 1, kOn = 2, kSelective = 4, kAuthenticate = 8, kTimestamps = 16,
                           kSourceQpn = 32, kDataLsn = 64;
  // Bits of `peers`. kNegotiate: the second peer answers the host's capability request before the first step.
  // kRefuse, kPeerAnswers: the first peer refuses or answers it.
  static constexpr uint8_t kNegotiate = 1;
  static constexpr uint8_t kRefuse = 2;
  static constexpr uint8_t kPeerAnswers = 4;
  // Bits of `habits`.
  static constexpr uint8_t kTwoWorkers = 1, kSmallCq = 2, kUnsignalled = 4, kLazyPoll = 8, kFewBuffers = 16;

  // Bits of `congestion`. kPeersTag: packets of peers have a CN-TAG. kPoint: the host is a congestion point and sends
  // CNMs when frames wait.
  static constexpr uint8_t kTag = 1, kCnmPort = 2, kCnmKey = 4, kShortSamples = 8, kPoint = 16,
                           kPeersTag = 32, kVlan = 64;

  uint8_t extensions = 0;
  uint8_t peers = 0;
  uint8_t habits = 0;
  uint8_t path_mtu = 0;         // 256 bytes << (value % 5)
  uint8_t receives = 4;         // per receive queue, modulo 16
  uint8_t window = 0;           // KiB; 0: 16
  uint8_t packets_per_ack = 0;  // 0: 64
  uint8_t offer = 0;            // capability offer of the peers, see LiveHost::offer()
  uint8_t congestion = 0;       // congestion notification
  // For host_control_fuzz only, whose queue pairs have congestion control.
  uint8_t algorithm = 0;  // index of the built-in algorithm of slot 0
  uint8_t next = 0;       // increment of that index per slot, modulo 8
  uint8_t control = 0;    // bits below
  uint8_t base_rtt = 0;   // us; 0: unknown
  uint8_t line_rate = 0;  // Gb/s; 0: the port's rate
  uint8_t cnp_every = 0;  // minimum interval of the host's CNPs, us
  uint8_t reserved = 0;

  // Bits of `control`. kFallback: dcqcn replaces an algorithm that the peer does not support. Without it the
  // algorithm is rejected.
  static constexpr uint8_t kFallback = 1, kNoCnps = 2, kTelemetry = 4, kBeginAll = 8, kTrace = 16,
                           kReceiveWindow = 32, kOneAlgorithm = 64, kOthersNone = 128;
};
static_assert(sizeof(Setup) == 16);

enum class Act : uint8_t { kPacket, kPost, kReceive, kTime, kMad, kRaw, kControl, kNeighbor };
inline constexpr unsigned kActs = 8;

enum class Control : uint8_t {
  kError,
  kReconnect,
  kReset,
  kConnect,
  kDrain,
  kResume,
  kRecreate,
  kBlockPort,
  kDeregister,
  kRegister,
  kPoll,
  kArmLimit,
  kGroup,
  kNotify,
  kChange,
  kNewWindow,
};
inline constexpr unsigned kControls = 16;

// xrc_fuzz: calls of a kNeighbor step. Queue and domain are selected by Step::slot.
enum class XrcCall : uint8_t {
  kReplaceQueue,
  kDestroyQueue,
  kMakeQueue,
  kResizeQueue,
  kArmLimit,
  kCloseDomain,    // fails while objects use it
  kDropDomain,     // deletes it while objects use it
  kReplaceDomain,  // with all its objects
};
inline constexpr unsigned kXrcCalls = 8;
// xrc_fuzz: bit of Step::opcode of a packet. The other bits are a row of the opcode table, as in host_fuzz; without it,
// they are a row of the XRC opcodes that the queue pair receives.
inline constexpr uint8_t kAnyOpcode = 0x80;

// Defect of a packet, for values from kFirstStray on. Lower values: no defect.
enum class Stray : uint8_t {
  kOtherPeer = 16,
  kUnknownPeer,
  kPKey,
  kVersion,
  kIcrc,
  kPad,
  kCut,
  kVlan,
  kOtherAddress,
  kOtherMac,
  kTrailing,
  kLength,
  kMulticast,
  kOtherQp,
  kUnknownQp,
  kQKey,
};
// With Setup::congestion a kNeighbor step with this opcode, modulo 4, is a CNM from a switch.
inline constexpr uint8_t kTellsOfCongestion = 3;
inline constexpr uint8_t kFirstStray = 16;
inline constexpr uint8_t kStrays = 32;

struct Step {
  // Bits of `flags` of a packet. kHold: arrives together with the next one.
  static constexpr uint8_t kAckRequest = 1, kSolicited = 2, kMigReq = 4, kBecn = 8, kMarked = 16, kBlock = 32,
                           kChained = 64, kHold = 128;
  // Bits of `types`.
  static constexpr uint8_t kCeEcho = 1, kLsn = 2, kTimestamp = 4, kTimestampEcho = 8, kRxWindow = 16,
                           kSack = 32, kAuth = 64, kOthers = 128;

  uint8_t act = 0;
  uint8_t slot = 0;     // queue pair
  uint8_t opcode = 0;   // packet: row of the opcode table; post: work request; control: Control
  uint8_t flags = 0;    // packet: bits above; post: ibv_send_flags
  uint8_t psn = 0;      // signed, relative to the expected PSN
  uint8_t value = 0;    // AETH syndrome; exponent of a time; destination of a datagram
  uint8_t length[2]{};  // little-endian; payload or work request, in bytes
  uint8_t offset[2]{};  // relative to 64 bytes before the memory of `key`
  uint8_t dma[2]{};     // length in a RETH
  uint8_t key = 0;
  uint8_t stray = 0;
  uint8_t types = 0;  // of the extension block; XRC: shared receive queue, see LiveHost::xrc_number_of()
  uint8_t extra = 0;

  [[nodiscard]] Act kind() const { return static_cast<Act>(act % kActs); }
  [[nodiscard]] int8_t distance() const { return static_cast<int8_t>(psn); }
  [[nodiscard]] static uint16_t number(const uint8_t (&bytes)[2]) {
    return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  }
  static void set(uint8_t (&bytes)[2], size_t value) {
    bytes[0] = static_cast<uint8_t>(value);
    bytes[1] = static_cast<uint8_t>(value >> 8);
  }
};
static_assert(sizeof(Step) == 16);

inline constexpr size_t kMaxSteps = 160;

struct HostProgram {
  Setup setup;
  std::vector<Step> steps;

  static HostProgram read(std::span<const uint8_t> bytes) {
    HostProgram program;
    std::memcpy(&program.setup, bytes.data(), std::min(bytes.size(), sizeof(Setup)));
    while (bytes.size() > sizeof(Step) && program.steps.size() < kMaxSteps) {
      bytes = bytes.subspan(sizeof(Step));
      Step& step = program.steps.emplace_back();
      std::memcpy(&step, bytes.data(), std::min(bytes.size(), sizeof(Step)));
    }
    return program;
  }
  [[nodiscard]] std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out(sizeof(Setup) + steps.size() * sizeof(Step));
    std::memcpy(out.data(), &setup, sizeof setup);
    if (!steps.empty()) std::memcpy(out.data() + sizeof setup, steps.data(), steps.size() * sizeof(Step));
    return out;
  }
};

}  // namespace roci::test
