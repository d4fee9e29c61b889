// What host_fuzz and host_control_fuzz run: a set-up and a sequence of steps, 16 bytes each, so that inputs can be cut, spliced and made from
// recorded exchanges without losing their meaning. Every value of every byte means something.
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
  // Bits of `peers`.
  static constexpr uint8_t kNegotiate =
      1;                                 // the second peer answers the host's question before the first step
  static constexpr uint8_t kRefuse = 2;  // the first peer refuses it
  static constexpr uint8_t kPeerAnswers = 4;  // the first peer answers it too
  // Bits of `habits`.
  static constexpr uint8_t kTwoWorkers = 1, kSmallCq = 2, kUnsignalled = 4, kLazyPoll = 8, kFewBuffers = 16;

  // Bits of `congestion`. kPeersTag: packets of peers have a CN-TAG; kPoint: the host tells them when frames wait.
  static constexpr uint8_t kTag = 1, kCnmPort = 2, kCnmKey = 4, kShortSamples = 8, kPoint = 16,
                           kPeersTag = 32, kVlan = 64;

  uint8_t extensions = 0;
  uint8_t peers = 0;
  uint8_t habits = 0;
  uint8_t path_mtu = 0;         // from 256 bytes, doubled so often, modulo 5
  uint8_t receives = 4;         // posted to each receive queue, modulo 16
  uint8_t window = 0;           // KiB; 0 is 16
  uint8_t packets_per_ack = 0;  // 0 is 64
  uint8_t offer = 0;            // of the peers, see LiveHost::offer()
  uint8_t congestion = 0;       // notification
  // For host_control_fuzz, whose queue pairs have congestion control; host_fuzz does not look at these.
  uint8_t algorithm = 0;  // of slot 0, from those built in
  uint8_t next = 0;       // from the algorithm of one slot to that of the next; modulo 8
  uint8_t control = 0;    // below
  uint8_t base_rtt = 0;   // us; 0 is not known
  uint8_t line_rate = 0;  // Gb/s; 0 is as the port says
  uint8_t cnp_every = 0;  // us, that the host leaves between two CNPs
  uint8_t reserved = 0;

  // Bits of `control`. kFallback: what the peer cannot do with, runs dcqcn, and else is refused.
  static constexpr uint8_t kFallback = 1, kNoCnps = 2, kTelemetry = 4, kBeginAll = 8, kTrace = 16,
                           kReceiveWindow = 32, kOneAlgorithm = 64, kOthersNone = 128;
};
static_assert(sizeof(Setup) == 16);

enum class Act : uint8_t { kPacket, kPost, kReceive, kTime, kMad, kRaw, kControl, kNeighbour };
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

// What is wrong with a packet, from kFirstStray on; below, nothing.
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
// With Setup::congestion, neighbours with this opcode, modulo 4, are switches that tell of congestion.
inline constexpr uint8_t kTellsOfCongestion = 3;
inline constexpr uint8_t kFirstStray = 16;
inline constexpr uint8_t kStrays = 32;

struct Step {
  // Bits of `flags` of a packet.
  static constexpr uint8_t kAckRequest = 1, kSolicited = 2, kMigReq = 4, kBecn = 8, kMarked = 16, kBlock = 32,
                           kChained = 64, kHold = 128;  // kHold: arrives together with the next one
  // Bits of `types`.
  static constexpr uint8_t kCeEcho = 1, kLsn = 2, kTimestamp = 4, kTimestampEcho = 8, kRxWindow = 16,
                           kSack = 32, kAuth = 64, kOthers = 128;

  uint8_t act = 0;
  uint8_t slot = 0;     // the queue pair
  uint8_t opcode = 0;   // packets: a row of the opcode table; posts: of a work request; controls: Control
  uint8_t flags = 0;    // packets: above; posts: ibv_send_flags
  uint8_t psn = 0;      // signed, from the one that is expected
  uint8_t value = 0;    // syndrome of an AETH; seconds' exponent of a time; addressee of a datagram
  uint8_t length[2]{};  // little-endian: bytes of payload, or of a work request
  uint8_t offset[2]{};  // into the memory that `key` opens, from 64 bytes before it on
  uint8_t dma[2]{};     // length in a RETH
  uint8_t key = 0;
  uint8_t stray = 0;
  uint8_t types = 0;  // of the block
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

inline constexpr size_t kMostSteps = 160;

struct HostProgram {
  Setup setup;
  std::vector<Step> steps;

  static HostProgram read(std::span<const uint8_t> bytes) {
    HostProgram program;
    std::memcpy(&program.setup, bytes.data(), std::min(bytes.size(), sizeof(Setup)));
    while (bytes.size() > sizeof(Step) && program.steps.size() < kMostSteps) {
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
