// Invalid requests: each header field with values that the responder must reject. The responder increments a named
// counter and either keeps the queue pair's state or sends the NAK of IBTA 9.7.4.1. It never writes outside the
// region, and a rejected request does not change the region.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kInvalidRequest = 0x61;  // NAK syndromes
constexpr uint8_t kAccessError = 0x62;

struct Refused {
  const char* name;
  std::function<void(Packet&)> change;
  const char* counter;
};

// None of these packets changes the state of the queue pair.
const Refused kRefusedSilently[] = {
    {"MAC of somebody else", [](Packet& p) { p.destination_mac = MacAddress::local(9); }, "rx_not_for_host"},
    {"VLAN that is not ours", [](Packet& p) { p.with_vlan(7); }, "rx_not_for_host"},
    {"source IP", [](Packet& p) { p.source = IpAddress::from_v4(0x0a000003); }, "rx_wrong_source"},
    {"destination IP", [](Packet& p) { p.destination = IpAddress::from_v4(0x0a000009); }, "rx_wrong_source"},
    {"fragment", [](Packet& p) { p.v4().flags_fragment = 0x2000; }, "rx_malformed"},
    {"later fragment", [](Packet& p) { p.v4().flags_fragment = 1; }, "rx_malformed"},
    {"UDP port", [](Packet& p) { p.udp_destination_port = 4792; }, "rx_other_protocol"},
    {"reserved opcode 0x15", [](Packet& p) { p.bth.opcode = Opcode{0x15}; }, "rx_unknown_opcode"},
    {"opcode 0xff", [](Packet& p) { p.bth.opcode = Opcode{0xff}; }, "rx_unknown_opcode"},
    {"UC opcode", [](Packet& p) { p.bth.opcode = Opcode::kUcWriteOnly; }, "rx_wrong_transport"},
    {"UD opcode", [](Packet& p) { p.bth.opcode = Opcode::kUdSendOnly; }, "rx_wrong_transport"},
    {"BTH version", [](Packet& p) { p.bth.version = 1; }, "rx_malformed"},
    {"P_Key", [](Packet& p) { p.bth.pkey = PKey{0x8001}; }, "rx_wrong_pkey"},
    {"P_Key 0", [](Packet& p) { p.bth.pkey = PKey{0}; }, "rx_wrong_pkey"},
    {"queue pair 0", [](Packet& p) { p.bth.destination_qp = Qpn{0}; }, "rx_unknown_qp"},
    {"queue pair 1", [](Packet& p) { p.bth.destination_qp = Qpn{1}; }, "rx_unknown_qp"},
    {"multicast queue pair", [](Packet& p) { p.bth.destination_qp = Qpn{0xffffff}; }, "rx_unknown_qp"},
    {"unused queue pair", [](Packet& p) { p.bth.destination_qp = Qpn{p.bth.destination_qp.value() ^ 1}; },
     "rx_unknown_qp"},
    {"PSN far ahead", [](Packet& p) { p.bth.psn = Psn{100 + 0x7fffff}; }, "requests_out_of_order"},
    {"PSN behind everything", [](Packet& p) { p.bth.psn = Psn{99}; }, "rx_bad_state"},
    {"PSN half the circle behind", [](Packet& p) { p.bth.psn = Psn{100 + 0x800000}; }, "rx_bad_state"},
    {"CNP",
     [](Packet& p) {
       p = [&] {
         Packet cnp = make_packet(Opcode::kCnp);
         cnp.between(p.source_mac, p.source, p.destination_mac, p.destination);
         return cnp.to(p.bth.destination_qp, Psn{0});
       }();
     },
     "rx_cnp"},
    {"CNP of somebody else",
     [](Packet& p) {
       p = [&] {
         Packet cnp = make_packet(Opcode::kCnp);
         cnp.between(p.source_mac, IpAddress::from_v4(0x0a000063), p.destination_mac, p.destination);
         return cnp.to(p.bth.destination_qp, Psn{0});
       }();
     },
     "rx_wrong_source"},
};

TEST(HostilePacket, invalid_header_fields_are_counted_and_change_no_memory) {
  for (const Refused& row : kRefusedSilently) {
    SCOPED_TRACE(row.name);
    LoneHost host;
    const std::vector<uint8_t> before = host.side.memory;
    Packet packet = host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
    row.change(packet);
    const uint64_t counted = host.side.counter(row.counter);
    const Lines answers = host.receive(packet);
    EXPECT_EQ(host.side.counter(row.counter), counted + 1);
    EXPECT_EQ(answers, std::string(row.counter) == "requests_out_of_order" ? Lines{"RC_ACK 0 60"} : Lines{});
    EXPECT_EQ(host.side.memory, before);
    // A valid packet is still executed.
    EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16)), Lines{"RC_ACK 0 1f"});
    EXPECT_EQ(host.side.memory[LoneHost::kGuard], 1);
    EXPECT_EQ(host.side.counter("requests_received"), 1U);
  }
}

TEST(HostilePacket, irrelevant_header_fields_are_ignored) {
  const std::pair<const char*, std::function<void(Packet&)>> kRows[] = {
      {"migration request", [](Packet& p) { p.bth.mig_req = true; }},
      {"FECN and BECN", [](Packet& p) { p.bth.fecn = p.bth.becn = true; }},
      {"reserved bits", [](Packet& p) { p.bth.reserved6 = 0x3f, p.bth.reserved7 = 0x7f; }},
      {"limited member of the partition", [](Packet& p) { p.bth.pkey = PKey{0x7fff}; }},
      {"hop limit", [](Packet& p) { p.v4().ttl = 1; }},
      {"UDP source port", [](Packet& p) { p.udp_source_port = 1; }},
      {"UDP checksum", [](Packet& p) { p.udp_checksum = 1; }},
      {"IP options", [](Packet& p) { p.v4().options.assign(40, 1); }},
      {"Ethernet padding", [](Packet& p) { p.trailing.assign(18, 0xee); }},
      {"priority tag", [](Packet& p) { p.with_vlan(0xe000); }},
  };
  for (const auto& [name, change] : kRows) {
    SCOPED_TRACE(name);
    LoneHost host;
    Packet packet = host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
    change(packet);
    EXPECT_EQ(host.receive(packet), Lines{"RC_ACK 0 1f"});
    EXPECT_EQ(host.side.memory[LoneHost::kGuard + 15], 16);
    EXPECT_TRUE(host.guards_whole());
  }
}

struct Fatal {
  const char* name;
  std::function<std::vector<Packet>(const LoneHost&)> packets;  // the responder rejects the last one
  uint8_t syndrome;
  int psn;  // of the NAK, relative to the first PSN
};

Packet with_reth(Packet packet, uint64_t va, uint32_t rkey, uint32_t length) {
  return packet.with_reth(va, MemoryKey{rkey}, length);
}
Packet with_pad(Packet packet, size_t pad) {
  packet.pad.assign(pad, 0);
  return packet;
}

const Fatal kFatal[] = {
    {"unknown key",
     [](const LoneHost& h) {
       return std::vector{with_reth(h.write(Opcode::kRcWriteOnly, 0, 0, 16, 16),
                                    h.side.address(LoneHost::kGuard), h.side.region->rkey() ^ 1, 16)};
     },
     kAccessError, 0},
    {"one byte before the region",
     [](const LoneHost& h) {
       return std::vector{with_reth(h.write(Opcode::kRcWriteOnly, 0, 0, 16, 16),
                                    h.side.address(LoneHost::kGuard) - 1, h.side.region->rkey(), 16)};
     },
     kAccessError, 0},
    {"one byte behind the region",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteOnly, 0, 8192 - 15, 16, 16)}; },
     kAccessError, 0},
    {"an address that wraps",
     [](const LoneHost& h) {
       return std::vector{with_reth(h.write(Opcode::kRcWriteOnly, 0, 0, 16, 16), ~uint64_t{0} - 7,
                                    h.side.region->rkey(), 16)};
     },
     kAccessError, 0},
    {"a message that begins inside and ends behind the region",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 8193)}; },
     kAccessError, 0},
    {"a WRITE of more than 2^31 bytes",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 0x80000001)}; },
     kInvalidRequest, 0},
    {"less payload than announced",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteOnly, 0, 0, 15, 16)}; },
     kInvalidRequest, 0},
    {"more payload than announced",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteOnly, 0, 0, 17, 16)}; },
     kInvalidRequest, 0},
    {"a first packet that is all of it",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 256)}; },
     kInvalidRequest, 0},
    {"a last packet that comes too early",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 1000),
                          h.write(Opcode::kRcWriteLast, 1, 0, 100, 0)};
     },
     kInvalidRequest, 1},
    {"a middle packet where the last is due",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 512),
                          h.write(Opcode::kRcWriteMiddle, 1, 0, 256, 0)};
     },
     kInvalidRequest, 1},
    {"a middle packet out of nothing",
     [](const LoneHost& h) { return std::vector{h.request(Opcode::kRcWriteMiddle, 0, 256)}; },
     kInvalidRequest, 0},
    {"a last packet out of nothing",
     [](const LoneHost& h) { return std::vector{h.request(Opcode::kRcSendLast, 0, 16)}; }, kInvalidRequest,
     0},
    {"a message within a message",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 512),
                          h.write(Opcode::kRcWriteOnly, 1, 0, 16, 16)};
     },
     kInvalidRequest, 1},
    {"a READ within a message",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 512), h.read(1, 0, 16)};
     },
     kInvalidRequest, 1},
    {"a SEND packet within a WRITE",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 512),
                          h.request(Opcode::kRcSendLast, 1, 256)};
     },
     kInvalidRequest, 1},
    {"a first packet below the path MTU",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 252, 512)}; },
     kInvalidRequest, 0},
    {"a first packet above the path MTU",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 260, 512)}; },
     kInvalidRequest, 0},
    {"an only packet above the path MTU",
     [](const LoneHost& h) { return std::vector{h.write(Opcode::kRcWriteOnly, 0, 0, 257, 257)}; },
     kInvalidRequest, 0},
    {"an empty last packet",
     [](const LoneHost& h) {
       return std::vector{h.write(Opcode::kRcWriteFirst, 0, 0, 256, 512),
                          h.request(Opcode::kRcWriteLast, 1, 0)};
     },
     kInvalidRequest, 1},
    {"a READ request with payload",
     [](const LoneHost& h) {
       Packet p = h.read(0, 0, 16);
       return std::vector{p.with_payload(ByteVector(4, 1))};
     },
     kInvalidRequest, 0},
    {"pad that is not needed",
     [](const LoneHost& h) { return std::vector{with_pad(h.write(Opcode::kRcWriteOnly, 0, 0, 15, 15), 3)}; },
     kInvalidRequest, 0},
    {"no pad where some is due",
     [](const LoneHost& h) { return std::vector{with_pad(h.write(Opcode::kRcWriteOnly, 0, 0, 15, 15), 0)}; },
     kInvalidRequest, 0},
    {"a READ of more than 2^31 bytes",
     [](const LoneHost& h) { return std::vector{h.read(0, 0, 0x80000001)}; }, kInvalidRequest, 0},
    {"a READ of 2^32 - 1 bytes", [](const LoneHost& h) { return std::vector{h.read(0, 0, 0xffffffff)}; },
     kInvalidRequest, 0},
    {"a READ over the end", [](const LoneHost& h) { return std::vector{h.read(0, 8000, 193)}; }, kAccessError,
     0},
    {"compare and swap without the right to it",
     [](const LoneHost& h) { return std::vector{h.request(Opcode::kRcCompareSwap, 0)}; }, kInvalidRequest, 0},
    {"fetch and add without the right to it",
     [](const LoneHost& h) { return std::vector{h.request(Opcode::kRcFetchAdd, 0)}; }, kInvalidRequest, 0},
};

TEST(HostilePacket, invalid_requests_get_a_fatal_nak_and_write_no_memory) {
  for (const Fatal& row : kFatal) {
    SCOPED_TRACE(row.name);
    LoneHost host;
    ASSERT_EQ(host.side.receive(7, LoneHost::kGuard + 4096, 1024), 0);
    const auto packets = row.packets(host);
    for (size_t i = 0; i + 1 < packets.size(); ++i) host.receive(packets[i]);
    const std::vector<uint8_t> before = host.side.memory;
    const char* counter = row.syndrome == kAccessError ? "naks_access_sent" : "naks_invalid_sent";
    const std::string nak =
        "RC_ACK " + std::to_string(row.psn) + (row.syndrome == kAccessError ? " 62" : " 61");
    EXPECT_EQ(host.receive(packets.back()), Lines{nak});
    EXPECT_EQ(host.side.counter(counter), 1U);
    EXPECT_EQ(host.side.memory, before);
    EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
    EXPECT_EQ(host.statuses(), Statuses{IBV_WC_WR_FLUSH_ERR});  // the receive, once
    // A queue pair in the error state does not respond.
    EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, row.psn, 0, 16, 16)), Lines{});
    EXPECT_EQ(host.side.memory, before);
  }
}

TEST(HostilePacket, access_not_permitted_by_queue_pair_or_region_is_rejected) {
  for (const bool is_read : {false, true}) {
    LoneHostOptions options;
    options.access = IBV_ACCESS_LOCAL_WRITE | (is_read ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
    LoneHost host(options);
    const Packet packet = is_read ? host.read(0, 0, 16) : host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
    EXPECT_EQ(host.receive(packet), Lines{"RC_ACK 0 61"});  // the queue pair's access flags are checked first

    LoneHost other;
    auto region = must(other.side.pd->register_memory(other.side.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE));
    Packet wrong = is_read ? other.read(0, 0, 16) : other.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
    wrong.with_reth(other.side.address(0), MemoryKey{region->rkey()}, 16);
    EXPECT_EQ(other.receive(wrong), Lines{"RC_ACK 0 62"});
    EXPECT_TRUE(other.guards_whole());
  }
}

TEST(HostilePacket, atomics_access_only_aligned_words_of_their_region) {
  const std::pair<int, const char*> kRows[] = {
      {0, "RC_ATOMIC_ACK 0"}, {8184, "RC_ATOMIC_ACK 0"}, {4, "RC_ACK 0 61"},       {1, "RC_ACK 0 61"},
      {8192, "RC_ACK 0 62"},  {-8, "RC_ACK 0 62"},       {1 << 30, "RC_ACK 0 62"},
  };
  for (const auto& [offset, line] : kRows) {
    SCOPED_TRACE(offset);
    LoneHostOptions options;
    options.access |= IBV_ACCESS_REMOTE_ATOMIC;
    LoneHost host(options);
    Packet packet = host.request(Opcode::kRcFetchAdd, 0);
    packet.atomic_eth->va = host.side.address(LoneHost::kGuard) + static_cast<uint64_t>(int64_t{offset});
    packet.atomic_eth->rkey = MemoryKey{host.side.region->rkey()};
    packet.atomic_eth->swap_or_add = 1;
    EXPECT_EQ(host.receive(packet), Lines{line});
    EXPECT_TRUE(host.guards_whole());
    const bool executed = std::string(line).find("ATOMIC") != std::string::npos;
    const auto& memory = host.side.memory;
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 0xa6), executed ? 1 : 0);
    if (!executed) continue;
    EXPECT_EQ(host.receive(packet), Lines{line});  // a duplicate gets the same response and is not executed
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 0xa6), 1);
  }
}

TEST(HostilePacket, region_of_another_protection_domain_is_an_access_error) {
  LoneHost host;
  auto pd = must(host.side.device->allocate_pd());
  auto region = must(pd->register_memory(host.side.memory.data(), host.side.memory.size(),
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  Packet packet = host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
  packet.with_reth(host.side.address(0), MemoryKey{region->rkey()}, 16);
  EXPECT_EQ(host.receive(packet), Lines{"RC_ACK 0 62"});
  EXPECT_TRUE(host.guards_whole());
}

TEST(HostilePacket, zero_length_request_requires_no_key) {
  LoneHost host;
  EXPECT_EQ(host.receive(with_reth(host.write(Opcode::kRcWriteOnly, 0, 0, 0, 0), 1, 1, 0)),
            Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.receive(with_reth(host.read(1, 0, 0), 1, 1, 0)), Lines{"RC_READ_RESP_ONLY 1"});
}

TEST(HostilePacket, too_long_send_gets_an_invalid_request_nak_and_a_length_error) {
  LoneHost host;
  ASSERT_EQ(host.side.receive(7, LoneHost::kGuard, 300), 0);
  ASSERT_EQ(host.side.receive(8, LoneHost::kGuard, 300), 0);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendFirst, 0, 256)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendLast, 1, 45)), Lines{"RC_ACK 1 61"});
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[0].wr_id, 7U);
  EXPECT_EQ(completions[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(completions[1].wr_id, 8U);
  EXPECT_EQ(completions[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(host.side.memory[LoneHost::kGuard + 256], 0xa5);
}

TEST(HostilePacket, receive_into_read_only_memory_causes_an_operational_nak) {
  LoneHost host;
  auto region = must(host.side.pd->register_memory(host.side.memory.data(), 64, 0));
  ibv_sge sge{host.side.address(0), 64, region->lkey()};
  ibv_recv_wr wr{};
  wr.wr_id = 3;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(host.side.qp->post_recv(&wr, &bad), 0);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 16)), Lines{"RC_ACK 0 63"});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_LOC_PROT_ERR});
  EXPECT_TRUE(host.guards_whole());
}

// Receives a valid packet in segments of 20, 27, 34, ... bytes. Expects the same result as for a contiguous frame.
TEST(HostilePacket, segmented_frames_are_processed_like_contiguous_ones) {
  LoneHost host;
  ByteVector frame = encode_packet(host.write(Opcode::kRcWriteOnly, 0, 0, 200, 200).finish());
  int psn = 0;
  for (size_t segment = 20; segment < frame.size(); segment += 7, ++psn) {
    SCOPED_TRACE(segment);
    std::fill_n(host.side.memory.begin() + LoneHost::kGuard, 256, uint8_t{0});
    frame = encode_packet(host.write(Opcode::kRcWriteOnly, psn, 0, 200, 200).finish());
    EXPECT_EQ(host.receive_bytes(frame, segment), Lines{"RC_ACK " + std::to_string(psn) + " 1f"});
    for (size_t i = 0; i < 200; ++i)
      ASSERT_EQ(host.side.memory[LoneHost::kGuard + i], static_cast<uint8_t>(i + 1));
  }
  EXPECT_TRUE(host.guards_whole());
}

TEST(HostilePacket, truncated_frames_are_counted_as_malformed) {
  for (const unsigned tags : {0U, 1U, 2U}) {
    LoneHost host;
    Packet packet = host.write(Opcode::kRcWriteOnly, 0, 0, 32, 32);
    for (unsigned i = 0; i < tags; ++i) packet.with_vlan(0);
    const ByteVector frame = encode_packet(packet.finish());
    const uint64_t frames = host.side.counter("rx_frames");
    for (size_t length = 0; length < frame.size(); ++length) {
      EXPECT_EQ(host.receive_bytes(ByteVector(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length))),
                Lines{});
      if (length > 1) {  // the same in two segments
        host.receive_bytes(ByteVector(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length)),
                           length / 2 + 1);
      }
    }
    EXPECT_EQ(host.side.counter("rx_frames"), frames + 2 * frame.size() - 2);
    EXPECT_EQ(host.side.counter("rx_malformed"), 2 * frame.size() - 2);
    EXPECT_EQ(host.receive_bytes(frame), Lines{"RC_ACK 0 1f"});
  }
}

TEST(HostilePacket, every_single_bit_error_under_the_icrc_is_rejected) {
  LoneHost host;
  const ByteVector frame = encode_packet(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16).finish());
  const std::vector<uint8_t> before = host.side.memory;
  const auto view =
      parse_frame(frame.data(), static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(frame.size()));
  for (size_t bit = view.bth_offset * 8UL; bit < frame.size() * 8; ++bit) {
    if (bit / 8 == view.bth_offset + 4UL) continue;  // FECN and BECN are not covered by the ICRC
    ByteVector flipped = frame;
    flipped[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    EXPECT_EQ(host.receive_bytes(flipped), Lines{});
  }
  EXPECT_EQ(host.side.memory, before);
  EXPECT_EQ(host.side.counter("requests_received"), 0U);
  EXPECT_GT(host.side.counter("rx_icrc_errors"), 100U);
}

// --- READ requests

TEST(HostilePacket, reads_beyond_the_responder_depth_are_an_invalid_request) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  host.port().blocked = true;  // no READ is answered completely
  ASSERT_EQ(host.receive(host.read(0, 0, 65536)), Lines{});
  host.receive(host.read(256, 0, 512));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
  host.receive(host.read(258, 0, 512));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  host.port().blocked = false;
  const Lines lines = host.work();
  ASSERT_EQ(lines.size(), 259U);  // the permitted READs are answered, then the NAK follows
  EXPECT_EQ(lines.front(), "RC_READ_RESP_FIRST 0");
  EXPECT_EQ(lines[257], "RC_READ_RESP_LAST 257");
  EXPECT_EQ(lines.back(), "RC_ACK 258 61");
}

TEST(HostilePacket, new_read_cancels_the_response_to_a_duplicate_read) {
  LoneHost host;
  EXPECT_EQ(host.receive(host.read(0, 0, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  EXPECT_EQ(host.receive(host.read(1, 0, 16)), Lines{"RC_READ_RESP_ONLY 1"});
  // Late responses reach a requester that retransmitted after a timeout; it continues from there.
  host.port().blocked = true;
  host.port().put(encode_packet(host.read(0, 0, 16).finish()));
  host.port().put(encode_packet(host.read(2, 64, 16).finish()));
  host.port().put(encode_packet(host.read(3, 64, 16).finish()));
  host.port().blocked = false;
  EXPECT_EQ(host.work(), (Lines{"RC_READ_RESP_ONLY 2", "RC_READ_RESP_ONLY 3"}));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
}

TEST(HostilePacket, duplicate_reads_are_answered_in_psn_order) {
  LoneHost host;
  host.receive(host.read(0, 0, 512));
  host.receive(host.read(2, 0, 512));
  // The requester retransmits the later READ first. Expects that the responder answers the earlier one first, each
  // once.
  host.port().put(encode_packet(host.read(2, 0, 512).finish()));
  host.port().put(encode_packet(host.read(0, 0, 512).finish()));
  EXPECT_EQ(host.work(), (Lines{"RC_READ_RESP_FIRST 0", "RC_READ_RESP_LAST 1", "RC_READ_RESP_FIRST 2",
                                "RC_READ_RESP_LAST 3"}));
  EXPECT_EQ(host.side.counter("read_replays"), 2U);
}

TEST(HostilePacket, duplicate_read_must_be_a_part_of_the_original) {
  LoneHost host;
  host.receive(host.read(0, 0, 1024));
  EXPECT_EQ(host.receive(host.read(1, 256, 768)),
            (Lines{"RC_READ_RESP_FIRST 1", "RC_READ_RESP_MIDDLE 2", "RC_READ_RESP_LAST 3"}));
  EXPECT_EQ(host.receive(host.read(3, 768, 256)), Lines{"RC_READ_RESP_ONLY 3"});
  EXPECT_EQ(host.receive(host.read(1, 0, 768)), Lines{});     // different address
  EXPECT_EQ(host.receive(host.read(1, 256, 4096)), Lines{});  // longer than the original
  EXPECT_EQ(host.receive(host.read(-1, 0, 1024)), Lines{});   // starts before the original
  Packet packet = host.read(0, 0, 1024);
  EXPECT_EQ(host.receive(with_reth(packet, packet.reth->va, packet.reth->rkey.value() ^ 2, 1024)), Lines{});
  EXPECT_EQ(host.side.counter("read_replays"), 2U);
  EXPECT_EQ(host.side.counter("replays_refused"), 4U);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
}

// A requester that repeats a READ from PSN n on has received the responses before n. The responder has not sent
// those, so the duplicate is invalid.
TEST(HostilePacket, duplicate_read_beyond_the_sent_responses_is_rejected) {
  LoneHost host;
  host.port().put(encode_packet(host.read(0, 0, 1024).finish()));
  host.port().put(encode_packet(host.read(2, 512, 512).finish()));
  EXPECT_EQ(host.work(), (Lines{"RC_READ_RESP_FIRST 0", "RC_READ_RESP_MIDDLE 1", "RC_READ_RESP_MIDDLE 2",
                                "RC_READ_RESP_LAST 3"}));
  EXPECT_EQ(host.side.counter("read_replays"), 0U);
  EXPECT_EQ(host.side.counter("replays_refused"), 1U);
}

TEST(HostilePacket, deregistration_during_a_read_ends_its_responses_with_a_nak) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  host.port().blocked = true;
  host.receive(host.read(0, 0, 65536));
  host.receive(with_reth(host.read(256, 0, 0), 0, 0, 0));
  host.side.region.reset();
  host.port().blocked = false;
  const Lines lines = host.work();
  // The responder had built some responses. Expects the NAK at the first missing one and no response to the second
  // READ.
  ASSERT_LT(lines.size(), 200U);
  EXPECT_EQ(lines.back(), "RC_ACK " + std::to_string(lines.size() - 1) + " 62");
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
}

TEST(HostilePacket, acknowledgment_waits_for_the_read_responses_before_it) {
  LoneHost host;
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4).finish()));
  host.port().put(encode_packet(host.read(1, 0, 512).finish()));
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, 3, 0, 4, 4).finish()));
  EXPECT_EQ(host.work(), (Lines{"RC_READ_RESP_FIRST 1", "RC_READ_RESP_LAST 2", "RC_ACK 3 1f"}));
}

TEST(HostilePacket, nak_waits_for_the_read_responses_before_it) {
  LoneHost host;
  host.port().put(encode_packet(host.read(0, 0, 512).finish()));
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, 3, 0, 4, 4).finish()));
  EXPECT_EQ(host.work(), (Lines{"RC_READ_RESP_FIRST 0", "RC_READ_RESP_LAST 1", "RC_ACK 2 60"}));
  // The responder sends one NAK per gap. After the missing packet has arrived, the next gap gets a NAK of its own.
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 4, 0, 4, 4)), Lines{});
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 2, 0, 4, 4)), Lines{"RC_ACK 2 1f"});
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 4, 0, 4, 4)), Lines{"RC_ACK 3 60"});
}

}  // namespace
}  // namespace roci::test
