#include "wire/roce/roce_writer.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

// Writes the payload at once or in parts as from a scatter list, with or without computing the ICRC during the copy.
void fill_payload(RoceWriter::Open& open, const ByteVector& payload, Rng& rng) {
  const bool sum = rng.chance(0.7);
  const uint64_t pieces = rng.between(1, 3);
  for (size_t at = 0; at < payload.size();) {
    const size_t left = payload.size() - at;
    const size_t length = pieces == 1 ? left : rng.between(1, left);
    if (sum) {
      RoceWriter::copy_payload(open, open.payload + at, payload.data() + at, static_cast<uint32_t>(length));
    } else {
      std::memcpy(open.payload + at, payload.data() + at, length);
    }
    at += length;
  }
}

// Compares RoceWriter with encode_packet(): two implementations that share only the header structs.
TEST(RoceWriter, frame_equals_encoded_packet) {
  Rng rng{13};
  for (const OpcodeInfo& info : opcode_table()) {
    for (const bool ipv6 : {false, true}) {
      for (const bool tagged : {false, true}) {
        Packet seed = make_packet(info.opcode, ipv6);
        RocePath path;
        path.source_mac = seed.source_mac;
        path.destination_mac = seed.destination_mac;
        path.source_ip = seed.source;
        path.destination_ip = seed.destination;
        path.vlan_id = tagged ? 5 : 0;
        path.priority = 3;
        path.traffic_class = static_cast<uint8_t>(rng.next());
        path.hop_limit = static_cast<uint8_t>(rng.next());
        path.flow_label = static_cast<uint32_t>(rng.next()) & 0xfffff;
        path.udp_source_port = static_cast<uint16_t>(rng.next());
        if (tagged) seed.with_vlan(3 << 13 | 5);
        seed.udp_source_port = path.udp_source_port;
        if (ipv6) {
          seed.ip = Ipv6Values{path.traffic_class, path.flow_label, path.hop_limit};
        } else {
          seed.with_traffic_class(path.traffic_class);
          seed.v4().ttl = path.hop_limit;
        }
        RoceWriter writer(path);
        uint16_t id = 0;  // each writer counts from 0
        for (const size_t length : test::payload_lengths(info)) {
          Packet p = seed;
          const BthFields bth{.opcode = info.opcode,
                              .destination_qp = Qpn{static_cast<uint32_t>(rng.next()) & 0xffffff},
                              .psn = Psn{static_cast<uint32_t>(rng.next())},
                              .pkey = PKey{static_cast<uint16_t>(rng.next())},
                              .solicited = rng.chance(0.5),
                              .ack_request = rng.chance(0.5),
                              .becn = rng.chance(0.5)};
          const auto payload = test::random_bytes(rng, length);
          p.to(bth.destination_qp, bth.psn).with_payload(payload);
          p.bth.pkey = bth.pkey;
          p.bth.solicited = bth.solicited;
          p.bth.ack_request = bth.ack_request;
          p.bth.becn = bth.becn;
          if (!ipv6) p.v4().id = id++;
          const ByteVector wanted = encode_packet(p.finish());

          ByteVector frame(writer.frame_bytes(info, static_cast<uint32_t>(length)), 0xee);
          ASSERT_EQ(frame.size(), wanted.size()) << info.name;
          RoceWriter::Open open = writer.begin(frame.data(), bth, static_cast<uint32_t>(length));
          if (rng.chance(0.2)) open.discard_sum();  // like a processor without carry-less multiplication
          // The caller writes the extended headers; here they are copied.
          const FrameView view = test::parse(wanted);
          std::memcpy(open.extended, wanted.data() + view.bth_offset + sizeof(Bth),
                      info.header_bytes - sizeof(Bth));
          if (info.has(Header::kReth) && rng.chance(0.8)) {
            std::memset(static_cast<void*>(&open.header<Reth>(Header::kReth)), 0, sizeof(Reth));
            RoceWriter::put_reth(open, view.reth().va.get(), MemoryKey{view.reth().rkey.get()},
                                 view.reth().length.get());
          }
          if (info.has(Header::kAeth) && rng.chance(0.8)) {
            std::memset(static_cast<void*>(&open.header<Aeth>(Header::kAeth)), 0, sizeof(Aeth));
            RoceWriter::put_aeth(open, view.aeth().syndrome, Msn{view.aeth().msn.get()});
          }
          fill_payload(open, payload, rng);
          RoceWriter::finish(open);
          const auto decoded = decode_packet(frame);
          ASSERT_TRUE(decoded) << info.name << ": " << decoded.error().message;
          EXPECT_EQ(frame, wanted) << info.name << ::testing::PrintToString(packet_differences(*decoded, p));
        }
      }
    }
  }
}

// For the writer an extension block is the first part of the payload.
TEST(RoceWriter, extension_blocks_equal_those_of_encoded_packet) {
  Rng rng{15};
  for (const OpcodeInfo& info : opcode_table()) {
    for (int round = 0; round < 20; ++round) {
      const ExtensionBlock block = test::random_extensions(rng);
      const ByteVector payload =
          test::random_bytes(rng, info.payload == PayloadRule::kNone ? 0 : rng.between(1, 9));
      Packet p = make_packet(info.opcode).to(Qpn{7}, Psn{8});
      p.v4().id = 0;
      const ByteVector wanted = encode_packet(p.with_extensions(block).with_payload(payload).finish());

      RocePath path;
      path.source_mac = p.source_mac;
      path.destination_mac = p.destination_mac;
      path.source_ip = p.source;
      path.destination_ip = p.destination;
      RoceWriter writer(path);
      const auto length = block.bytes() + static_cast<uint32_t>(payload.size());
      ByteVector frame(writer.frame_bytes(info, length), 0xee);
      const BthFields bth{.opcode = info.opcode,
                          .destination_qp = Qpn{7},
                          .psn = Psn{8},
                          .becn = p.bth.becn,
                          .extensions = true};
      RoceWriter::Open open = writer.begin(frame.data(), bth, length);
      const FrameView view = test::parse(wanted);
      std::memcpy(open.extended, wanted.data() + view.bth_offset + sizeof(Bth),
                  info.header_bytes - sizeof(Bth));
      ASSERT_EQ(write_extensions(block, {open.payload, length}), block.bytes());
      std::copy(payload.begin(), payload.end(), open.payload + block.bytes());
      RoceWriter::finish(open);
      EXPECT_EQ(hex_text(frame), hex_text(wanted)) << info.name;
    }
  }
}

struct PortRow {
  uint32_t flow_label, local, remote;
  unsigned port;
  const char* why;
};

TEST(RoceWriter, udp_source_ports_match_linux_kernel) {
  const PortRow rows[] = {
      {0, 0x16, 0x16, 49636, "read.pcap: both queue pairs are 0x16"},
      {0, 0x44, 0x45, 0xc000 | 0x1254, "corrupt.pcap: 0x44 and 0x45"},
      {0, 0x45, 0x44, 0xc000 | 0x1254, "the same seen from the other side"},
      {1, 0x16, 0x16, 0xc001, "a flow label wins over the numbers"},
      {0x04000, 0, 0, 0xc001, "bits above the 14th are folded in"},
      {0xfffff, 0, 0, 0xc000 | (0x3fff ^ 0x3f), "all ones"},
      {0x100001, 0x16, 0x16, 0xc001, "20 bits only"},
  };
  for (const PortRow& row : rows) {
    const uint16_t port = flow_udp_source_port(row.flow_label, Qpn{row.local}, Qpn{row.remote});
    EXPECT_EQ(port, row.port) << row.why;
  }
}

}  // namespace
}  // namespace roci
