// Queue pair 1 of a host, the general services interface (IBTA 13.5): sends and receives management datagrams, in
// frames with the Linux kernel's format. Users of a management class process the contents.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "base/time/rate_limit.hpp"
#include "port/neighbors/neighbors.hpp"
#include "telemetry/counters.hpp"
#include "transport/messages/datagram.hpp"
#include "transport/packet_sink.hpp"
#include "wire/mad/mad.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// User of a class of management datagrams. Called by the holder of the first worker's token.
class ManagementClass {
 public:
  ManagementClass() = default;
  ManagementClass(const ManagementClass&) = delete;
  ManagementClass& operator=(const ManagementClass&) = delete;
  virtual ~ManagementClass() = default;

  // Receives a MAD of this class, with a valid Q_Key and between queue pairs 1.
  virtual void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) = 0;
  // Whether the MAD refers to no existing state, and can therefore be sent by any host at any time.
  [[nodiscard]] virtual bool is_from_unknown_peer(const MadHeader& mad) const = 0;
  // Does the work that is due. Returns whether there was any.
  virtual bool poll(Nanos now) = 0;
  [[nodiscard]] virtual Nanos next_deadline() const = 0;
};

// Length over IPv6, with a VLAN tag.
inline constexpr uint32_t kMaxMadFrame = 14 + 4 + 40 + 8 + 12 + 8 + kMadBytes + kIcrcBytes;

enum class MadSent : uint8_t {
  kYes,          // sent or queued
  kLater,        // the next hop is being resolved, or the queue is full
  kUnreachable,  // the next hop does not reply, or there is no route to it
};

// Owned by the holder of the first worker's token.
class Management {
 public:
  Management(MacAddress mac, uint16_t vlan_id, PacketSink& sink, Neighbors& neighbors, Counters& counters)
      : mac_(mac), vlan_id_(vlan_id), sink_(sink), neighbors_(neighbors), counters_(counters) {}

  // Sets the user of a class; null removes it.
  void set_class(uint8_t management_class, ManagementClass* user);
  [[nodiscard]] bool has_users() const { return classes_[0].user != nullptr || classes_[1].user != nullptr; }

  // Whether a UD packet to queue pair 1 is within the rate limits; checked before its ICRC is validated, so that
  // dropped packets cost almost nothing. MADs without existing state have a separate limit: floods consist of them.
  bool admits(const FrameView& view, const rte_mbuf* frame, Nanos now);
  // Processes an admitted packet whose ICRC is valid.
  void handle(const FrameView& view, const rte_mbuf* frame, Nanos now);
  // MADs that the full port does not accept are queued and sent in
  // a later round, because few of them are retransmitted soon.
  MadSent send(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad, Nanos now);
  // Writes the frame that send() would send, for transmission by another process.
  // Returns its length; 0 if the next hop is not resolved.
  uint32_t write(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad,
                 std::span<uint8_t, kMaxMadFrame> frame, Nanos now);

  // Called in every round, so it must cost almost nothing.
  bool poll(Nanos now) { return now >= due_ && poll_classes(now); }
  [[nodiscard]] Nanos next_deadline() const { return due_; }
  // Whether MADs are queued.
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  // A class has work before its last reported deadline.
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
  static constexpr uint32_t kFromUnknownPeers = 50'000, kOthers = 100'000;  // per second
  static constexpr size_t kMaxWaiting = 16384;

  bool poll_classes(Nanos now);
  // Fills in the path to the peer, if the next hop is resolved.
  Resolution find_path(const MadRoute& route, RocePath& path, Nanos now);
  [[nodiscard]] DatagramFields fields() const;
  SendOutcome send_now(const RocePath& path, std::span<const uint8_t, kMadBytes> mad);
  // Returns whether any was sent.
  bool send_waiting();
  // Null if the class has no user.
  [[nodiscard]] ManagementClass* user_of(uint8_t number) const;

  const MacAddress mac_;
  const uint16_t vlan_id_;
  PacketSink& sink_;
  Neighbors& neighbors_;
  Counters& counters_;
  std::array<Class, 2> classes_{};
  std::deque<Waiting> waiting_;
  RateLimit from_unknown_peers_{kFromUnknownPeers}, others_{kOthers};
  Nanos due_ = kNever;  // earliest deadline of the classes; 0: poll in the next round
  Psn psn_{};           // of the next datagram, counted as in the Linux kernel; receivers ignore it
};

}  // namespace roci
