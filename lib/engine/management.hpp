// Queue pair 1 of a host, the general services interface (IBTA 13.5): management datagrams in and out, in frames as the Linux
// kernel's are. What is in them is for whoever has their class.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "base/rate_limit.hpp"
#include "port/neighbours.hpp"
#include "telemetry/counters.hpp"
#include "transport/datagram.hpp"
#include "transport/packet_sink.hpp"
#include "wire/mad.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// Who has a class of management datagrams. Called by the holder of the first worker's token.
class ManagementClass {
 public:
  ManagementClass() = default;
  ManagementClass(const ManagementClass&) = delete;
  ManagementClass& operator=(const ManagementClass&) = delete;
  virtual ~ManagementClass() = default;

  // One for this class, with the right Q_Key, between queue pairs 1.
  virtual void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) = 0;
  // Whether it is about nothing that there is yet, which anybody may send at any time.
  [[nodiscard]] virtual bool is_from_stranger(const MadHeader& mad) const = 0;
  // Does what is due. Returns whether anything was.
  virtual bool poll(Nanos now) = 0;
  [[nodiscard]] virtual Nanos next_deadline() const = 0;
};

// Over IPv6, with a VLAN tag.
inline constexpr uint32_t kMostMadFrame = 14 + 4 + 40 + 8 + 12 + 8 + kMadBytes + kIcrcBytes;

enum class MadSent : uint8_t {
  kYes,          // or it waits for room
  kLater,        // nobody has said yet where the next hop is, or very many wait already
  kUnreachable,  // nobody answers for it, or no network leads there
};

// Owned by the holder of the first worker's token.
class Management {
 public:
  Management(MacAddress mac, uint16_t vlan_id, PacketSink& sink, Neighbours& neighbours, Counters& counters)
      : mac_(mac), vlan_id_(vlan_id), sink_(sink), neighbours_(neighbours), counters_(counters) {}

  // From now on, or nobody with null.
  void set_class(uint8_t management_class, ManagementClass* user);
  [[nodiscard]] bool has_users() const { return classes_[0].user != nullptr || classes_[1].user != nullptr; }

  // Whether a UD packet to queue pair 1 is worth the sum of its ICRC and all that follows: so many a second are, those that begin
  // something apart from the others, since floods are made of them. What is dropped here costs next to nothing.
  bool admits(const FrameView& view, const rte_mbuf* frame, Nanos now);
  // Such a packet with a right ICRC.
  void handle(const FrameView& view, const rte_mbuf* frame, Nanos now);
  // Nothing repeats most of them soon, so what finds no room goes out in a later round.
  MadSent send(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad, Nanos now);
  // Writes the frame that send() would send into `frame`, for somebody else to. How long it is; 0 when nobody has said where the
  // next hop is.
  uint32_t write(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad,
                 std::span<uint8_t, kMostMadFrame> frame, Nanos now);

  // Asked in every round, so this must cost next to nothing.
  bool poll(Nanos now) { return now >= due_ && poll_classes(now); }
  [[nodiscard]] Nanos next_deadline() const { return due_; }
  // Whether something has found no room yet.
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  // A class has something to do earlier than it said.
  void wake() { due_ = Nanos{0}; }

 private:
  struct Class {
    uint8_t number = 0;
    ManagementClass* user = nullptr;
  };
  struct Waiting {
    RocePath path;
    std::array<uint8_t, kMadBytes> mad;
  };
  static constexpr uint32_t kFromStrangers = 50'000, kOthers = 100'000;  // a second
  static constexpr size_t kMostWaiting = 16384;

  bool poll_classes(Nanos now);
  // The way to the peer, when it is known.
  Resolution find_path(const MadRoute& route, RocePath& path, Nanos now);
  [[nodiscard]] DatagramFields fields() const;
  SendOutcome send_now(const RocePath& path, std::span<const uint8_t, kMadBytes> mad);
  // Whether any found room.
  bool send_waiting();
  // Null when nobody has it.
  [[nodiscard]] ManagementClass* user_of(uint8_t number) const;

  const MacAddress mac_;
  const uint16_t vlan_id_;
  PacketSink& sink_;
  Neighbours& neighbours_;
  Counters& counters_;
  std::array<Class, 2> classes_{};
  std::deque<Waiting> waiting_;
  RateLimit from_strangers_{kFromStrangers}, others_{kOthers};
  Nanos due_ = kNever;  // of the first class; 0: nobody has looked yet
  Psn psn_{};           // of the next datagram, as the Linux kernel counts; it means nothing
};

}  // namespace roci
