// Captures of UC and UD: our responder makes of the recorded packets what their receiver made of them, and our requester
// sends the same messages in the same bytes.
#include <gtest/gtest.h>

#include <map>

#include "replay/replay_host.hpp"
#include "wire/packet_fields.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kMtu = 1024;

// What one side sent to one queue pair of the other.
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

// A message as its sender posted it, with the frames it took.
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

// The receiving side of a direction, with the memory that its WRITEs go to.
ReplayHost::Config receiver_of(const Direction& direction) {
  const Packet& first = direction.first();
  ReplayHost::Config host = ReplayHost::Config::receiver_of(first);
  host.type = direction.type;
  host.qpn = first.bth.destination_qp;
  host.peer_qpn = first.deth ? first.deth->source_qp : host.qpn;  // UC has it in the UDP port only
  host.first_psn = first.bth.psn;
  host.first_own_psn = Psn{0};
  host.path_mtu = kMtu;
  if (first.deth) host.qkey = first.deth->qkey;
  for (const Recorded& recorded : messages_of(direction)) {
    const auto& message = recorded.message;
    if (message.rkey == 0) continue;
    Region& region = host.regions[message.rkey];
    region.va = message.remote;  // they all go to one place
    region.bytes.resize(std::max(region.bytes.size(), message.bytes.size()), ReplayHost::kUntouched);
  }
  return host;
}

class UnreliableReplay : public testing::TestWithParam<const char*> {};

TEST_P(UnreliableReplay, our_receiver_takes_what_their_sender_sent) {
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
      // A wrong Q_Key is dropped, as the capture's receiver did; its receive request serves nobody.
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

// Their sender's queue pair number: UD says it in every packet; of a UC sender it is not in the capture.
Qpn sender_of(const Direction& direction) {
  const Packet& first = direction.first();
  return first.deth ? first.deth->source_qp : find_sender(first);
}

TEST_P(UnreliableReplay, our_sender_sends_the_same_bytes) {
  for (const Direction& direction : load_directions(GetParam())) {
    const Packet& first = direction.first();
    ReplayHost::Config sender = ReplayHost::Config::sender_of(first);
    sender.type = direction.type;
    sender.qpn = sender_of(direction);
    sender.peer_qpn = first.bth.destination_qp;
    sender.first_own_psn = first.bth.psn;
    sender.path_mtu = kMtu;
    sender.traffic_class = first.traffic_class();
    ReplayHost host(sender);
    for (const auto& [message, frames] : messages_of(direction)) {
      const auto ours = host.send(message);
      ASSERT_EQ(ours.size(), frames.size());
      for (size_t i = 0; i < ours.size(); ++i) {
        const Packet theirs = *decode_packet(frames[i]);
        Packet our = *decode_packet(ours[i]);
        // The identification of a packet that must not be fragmented means nothing (RFC 6864 4.1).
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
