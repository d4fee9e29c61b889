// Captures of UC and UD: Rocinante's receiver must accept the same messages as the recorded one, and its sender must
// send the same bytes.
#include <gtest/gtest.h>

#include <map>

#include "replay/replay_host.hpp"
#include "wire/roce/packet_fields.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kPathMtu = 1024;

// The packets of one host to one queue pair of the other.
struct Direction {
  ibv_qp_type type = IBV_QPT_UC;
  std::vector<RecordedFrame> frames;
  [[nodiscard]] const Packet& first() const { return frames.front().packet; }
};

std::vector<Direction> load_directions(const std::string& capture) {
  std::map<std::pair<IpAddress, Qpn>, Direction> found;
  for (RecordedFrame& frame : load_frames(capture)) {
    Direction& direction = found[{frame.packet.source, frame.packet.bth.destination_qp}];
    direction.type = frame.info().transport == TransportClass::kUd ? IBV_QPT_UD : IBV_QPT_UC;
    direction.frames.push_back(std::move(frame));
  }
  std::vector<Direction> all;
  for (auto& [key, direction] : found) all.push_back(std::move(direction));
  return all;
}

// A posted message and its frames.
struct Recorded {
  ReplayHost::Message message;
  std::vector<ByteVector> frames;
};

std::vector<Recorded> messages_of(const Direction& direction) {
  std::vector<Recorded> all;
  for (const RecordedFrame& frame : direction.frames) {
    const Packet& p = frame.packet;
    if (frame.info().starts_message()) all.emplace_back();
    Recorded& recorded = all.back();
    const bool write = frame.info().operation == Operation::kWrite;
    recorded.message.opcode = write ? (p.imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE)
                                    : (p.imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
    recorded.message.bytes.insert(recorded.message.bytes.end(), p.payload.begin(), p.payload.end());
    if (p.imm) recorded.message.immediate = *p.imm;
    if (p.reth) {
      recorded.message.remote = p.reth->va;
      recorded.message.rkey = p.reth->rkey.value();
    }
    if (p.deth) recorded.message.qkey = p.deth->qkey;
    recorded.frames.push_back(frame.bytes);
  }
  return all;
}

// Configuration of the direction's receiver, with the memory for its WRITEs.
ReplayHost::Config receiver_of(const Direction& direction) {
  const Packet& first = direction.first();
  ReplayHost::Config host = ReplayHost::Config::receiver_of(first);
  host.type = direction.type;
  host.qpn = first.bth.destination_qp;
  host.peer_qpn = first.deth ? first.deth->source_qp : host.qpn;  // UC encodes it only in the UDP source port
  host.first_psn = first.bth.psn;
  host.first_own_psn = Psn{0};
  host.path_mtu = kPathMtu;
  if (first.deth) host.qkey = first.deth->qkey;
  for (const Recorded& recorded : messages_of(direction)) {
    const auto& message = recorded.message;
    if (message.rkey == 0) continue;
    Region& region = host.regions[message.rkey];
    region.va = message.remote;  // all WRITEs use the same address
    region.bytes.resize(std::max(region.bytes.size(), message.bytes.size()), ReplayHost::kUntouched);
  }
  return host;
}

class UnreliableReplay : public testing::TestWithParam<const char*> {};

TEST_P(UnreliableReplay, receiver_delivers_recorded_messages) {
  for (const Direction& direction : load_directions(GetParam())) {
    const auto messages = messages_of(direction);
    ReplayHost host(receiver_of(direction));
    std::vector<ByteVector> expected;
    std::map<uint32_t, ByteVector> written;
    for (const auto& [message, frames] : messages) {
      ByteVector bytes = message.bytes;
      const bool write = message.rkey != 0;
      const bool imm = message.opcode == IBV_WR_SEND_WITH_IMM || message.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
      if (write) {
        written[message.rkey] = bytes;
        bytes.clear();
        if (!imm) continue;
      }
      if (imm) {
        for (int shift = 24; shift >= 0; shift -= 8)
          bytes.push_back(static_cast<uint8_t>(message.immediate >> shift));
      }
      // A datagram with a wrong Q_Key is dropped, as by the recorded receiver. Its receive request stays unused.
      host.post_receive(static_cast<uint32_t>(message.bytes.size()) +
                        (direction.type == IBV_QPT_UD ? 40 : 0));
      if (direction.type == IBV_QPT_UD && message.qkey != messages.front().message.qkey) continue;
      if (direction.type == IBV_QPT_UD) {
        const ByteVector& frame = frames.front();
        bytes.insert(bytes.begin(), frame.begin() + 14, frame.begin() + 34);  // the IPv4 header
        bytes.insert(bytes.begin(), 20, 0);
      }
      expected.push_back(bytes);
    }
    for (const RecordedFrame& frame : direction.frames)
      EXPECT_TRUE(host.feed({&frame.bytes, 1}).empty()) << "frame " << frame.number << " is answered";
    EXPECT_EQ(host.received(), expected);
    for (const auto& [rkey, bytes] : written) {
      const ByteVector& memory = host.regions().at(rkey).bytes;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin()));
    }
    EXPECT_EQ(host.state(), IBV_QPS_RTS);
  }
}

// The sender's queue pair number. UD packets contain it; for UC it is derived.
Qpn sender_of(const Direction& direction) {
  const Packet& first = direction.first();
  return first.deth ? first.deth->source_qp : find_sender(first);
}

TEST_P(UnreliableReplay, sender_sends_same_bytes_as_recorded) {
  for (const Direction& direction : load_directions(GetParam())) {
    const Packet& first = direction.first();
    ReplayHost::Config sender = ReplayHost::Config::sender_of(first);
    sender.type = direction.type;
    sender.qpn = sender_of(direction);
    sender.peer_qpn = first.bth.destination_qp;
    sender.first_own_psn = first.bth.psn;
    sender.path_mtu = kPathMtu;
    sender.traffic_class = first.traffic_class();
    ReplayHost host(sender);
    for (const auto& [message, frames] : messages_of(direction)) {
      const auto ours = host.send(message);
      ASSERT_EQ(ours.size(), frames.size());
      for (size_t i = 0; i < ours.size(); ++i) {
        const Packet theirs = *decode_packet(frames[i]);
        Packet our = *decode_packet(ours[i]);
        // The identification has no meaning if a packet must not be fragmented (RFC 6864 4.1).
        our.v4().id = theirs.v4().id;
        our.finish();
        EXPECT_EQ(packet_differences(theirs, our), std::vector<std::string>{});
        EXPECT_EQ(encode_packet(our), frames[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(captures, UnreliableReplay,
                         testing::Values("uc", "uc_pingpong", "ud", "ud_pingpong"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace roci::test
