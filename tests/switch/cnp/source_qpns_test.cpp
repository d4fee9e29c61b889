// Learning of the sender's queue pair number for each flow.
#include "switch/cnp/source_qpns.hpp"

#include <gtest/gtest.h>

#include "support/sanitizer.hpp"
#include "switch/qcn/cnm_bench.hpp"
#include "wire/mad/capability_mad.hpp"
#include "wire/roce/packet.hpp"

namespace roci {
namespace {

using test::ip;

// Source from which a packet's sender was learned.
enum class Learned { kNothing, kFromPacket, kFromCm, kFromAcks, kFull, kAmbiguous, kOtherPort };

class Senders : public SourceQpns {
 public:
  using SourceQpns::SourceQpns;
  // Of the ports, each host has one of its own, unless `ingress` is given.
  Learned observe(const RocePeek& packet, Nanos now, std::optional<uint16_t> ingress = {}) {
    const auto before = values();
    SourceQpns::observe(packet, ingress.value_or(packet.flow.source.bytes.back()), now);
    const auto after = values();
    for (size_t i = 0; i < before.size(); ++i) {
      if (after[i] != before[i]) return static_cast<Learned>(i + 1);
    }
    return Learned::kNothing;
  }

 private:
  [[nodiscard]] std::array<uint64_t, 6> values() const {
    SenderCounts counts;
    counters().add_to(counts);
    counts.events[4] = 0;  // ambiguous acknowledgments: counted by the tests that cause them
    return counts.events;
  }
};

const IpAddress kA = ip("10.0.0.1"), kB = ip("10.0.0.2");

// A packet of a flow, in parsed form.
RocePeek packet(Opcode opcode, const RoceFlow& flow, uint32_t psn, std::optional<Qpn> says = {}) {
  return {.flow = flow,
          .info = &opcode_info(opcode),
          .psn = Psn{psn},
          .pkey = kDefaultPKey,
          .udp_source_port = 0xc000,
          .source_qp = says,
          .rest = {}};
}
RoceFlow to_b(uint32_t qpn) { return {kA, kB, Qpn{qpn}}; }
RoceFlow to_a(uint32_t qpn) { return {kB, kA, Qpn{qpn}}; }

class CmDatagram {
 public:
  CmDatagram(uint16_t attribute, uint32_t local, uint32_t remote, uint32_t qpn) {
    bytes_[0] = 1, bytes_[1] = 7, bytes_[2] = 2, bytes_[3] = 3;
    put(16, attribute, 2);
    put(24, local, 4);
    if (attribute == 0x13) put(28, remote, 4);
    put(24 + (attribute == 0x13 ? 12 : 32), qpn, 3);
  }
  [[nodiscard]] RocePeek from(const IpAddress& source, const IpAddress& destination) const {
    RocePeek glance = packet(Opcode::kUdSendOnly, {source, destination, Qpn{1}}, 0, Qpn{1});
    glance.rest = bytes_;
    return glance;
  }

 private:
  void put(size_t at, uint32_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_[at + i] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - i));
  }
  std::array<uint8_t, 260> bytes_{};
};

TEST(SourceQpns, learns_the_source_qp_from_a_packet_that_contains_it) {
  Senders senders(16, 10s);
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{24}), 0ns), Learned::kFromPacket);
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 2, Qpn{24}), 0ns), Learned::kNothing);
  EXPECT_EQ(senders.find(to_b(17), false, 1s), Qpn{24});
  EXPECT_EQ(senders.find(to_b(18), false, 1s), std::nullopt);
  EXPECT_EQ(senders.find({kB, kA, Qpn{17}}, false, 1s), std::nullopt) << "the other way";
}

TEST(SourceQpns, does_not_store_senders_of_datagrams) {
  Senders senders(16, 10s);
  EXPECT_EQ(senders.observe(packet(Opcode::kUdSendOnly, to_b(17), 1, Qpn{24}), 0ns), Learned::kNothing);
  EXPECT_EQ(senders.size(), 0U);
}

TEST(SourceQpns, ignores_management_queue_pairs_as_senders) {
  Senders senders(16, 10s);
  for (const uint32_t qpn : {0U, 1U}) {
    EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{qpn}), 0ns), Learned::kNothing);
    EXPECT_EQ(senders.find(to_b(17), false, 0ns), std::nullopt);
  }
}

TEST(SourceQpns, learns_both_queue_pairs_from_cm_request_and_reply) {
  Senders senders(16, 10s);
  EXPECT_EQ(senders.observe(CmDatagram(0x10, 100, 0, 24).from(kA, kB), 0ns), Learned::kNothing);
  EXPECT_EQ(senders.find(to_b(17), false, 0ns), std::nullopt) << "not yet answered";
  EXPECT_EQ(senders.observe(CmDatagram(0x13, 200, 100, 17).from(kB, kA), 1ms), Learned::kFromCm);
  EXPECT_EQ(senders.find(to_b(17), false, 1ms), Qpn{24});
  EXPECT_EQ(senders.find(to_a(24), false, 1ms), Qpn{17});
}

TEST(SourceQpns, ignores_cm_replies_without_a_matching_request) {
  Senders senders(16, 10s);
  senders.observe(CmDatagram(0x10, 100, 0, 24).from(kA, kB), 0ns);
  EXPECT_EQ(senders.observe(CmDatagram(0x13, 200, 101, 17).from(kB, kA), 0ns), Learned::kNothing)
      << "another number";
  EXPECT_EQ(senders.observe(CmDatagram(0x13, 200, 100, 17).from(ip("10.0.0.3"), kA), 0ns), Learned::kNothing)
      << "another host";
  EXPECT_EQ(senders.observe(CmDatagram(0x13, 200, 100, 17).from(kB, kA), 11s), Learned::kNothing)
      << "too late";
  EXPECT_EQ(senders.observe(CmDatagram(0x13, 200, 100, 1).from(kB, kA), 1s), Learned::kNothing)
      << "not ordinary";
}

TEST(SourceQpns, learns_a_requested_sender_from_acknowledgments) {
  Senders senders(16, 10s);
  EXPECT_EQ(senders.find(to_b(17), false, 0ns), std::nullopt);
  uint32_t learned_at = 0;
  for (uint32_t psn = 0xfffff0; psn < 0xfffff0 + 64 && learned_at == 0; ++psn) {  // crosses the wrap
    senders.observe(packet(Opcode::kRcWriteMiddle, to_b(17), psn), 1us);
    if (senders.observe(packet(Opcode::kRcAcknowledge, to_a(24), psn), 1us) == Learned::kFromAcks)
      learned_at = psn - 0xfffff0 + 1;
  }
  EXPECT_EQ(learned_at, 1U + (AckCorrelator::kVotes - 1) * AckCorrelator::kStep);
  EXPECT_EQ(senders.find(to_b(17), false, 1us), Qpn{24});
}

TEST(SourceQpns, learns_the_sender_of_read_responses_from_requests) {
  Senders senders(16, 10s);
  EXPECT_EQ(senders.find(to_a(24), true, 0ns), std::nullopt);
  for (uint32_t psn = 0; psn < 100; psn += 10) {
    senders.observe(packet(Opcode::kRcReadRequest, to_b(17), psn), 1us);
    for (uint32_t i = 0; i < 10; ++i)
      senders.observe(packet(Opcode::kRcReadResponseMiddle, to_a(24), psn + i), 1us);
  }
  EXPECT_EQ(senders.find(to_a(24), true, 1us), Qpn{17});
}

TEST(SourceQpns, learns_senders_of_busy_flows_without_a_prior_lookup) {
  Senders senders(16, 10s);
  for (uint32_t psn = 0; psn < 200; ++psn) {
    senders.observe(packet(Opcode::kRcWriteMiddle, to_b(17), psn), 1us);
    senders.observe(packet(Opcode::kRcAcknowledge, to_a(24), psn), 1us);
  }
  EXPECT_EQ(senders.find(to_b(17), false, 1us), Qpn{24});
}

// Two flows between the same hosts with the same PSNs: an ACK could belong to either.
TEST(SourceQpns, does_not_learn_from_ambiguous_acknowledgments) {
  Senders senders(16, 10s);
  (void)senders.find(to_b(17), false, 0ns);
  (void)senders.find(to_b(18), false, 0ns);
  for (uint32_t psn = 0; psn < 1000; ++psn) {
    senders.observe(packet(Opcode::kRcWriteMiddle, to_b(17), psn), 1us);
    senders.observe(packet(Opcode::kRcWriteMiddle, to_b(18), psn), 1us);
    senders.observe(packet(Opcode::kRcAcknowledge, to_a(24), psn), 1us);
    senders.observe(packet(Opcode::kRcAcknowledge, to_a(25), psn), 1us);
  }
  EXPECT_EQ(senders.find(to_b(17), false, 1us), std::nullopt);
  EXPECT_EQ(senders.find(to_b(18), false, 1us), std::nullopt);
  EXPECT_GT(senders.counters().events[static_cast<unsigned>(SenderEvent::kAmbiguous)], 1000U);
}

// Only one of them is watched, so two candidates contradict each other.
TEST(SourceQpns, does_not_learn_from_alternating_candidates) {
  AckCorrelator acks;
  ASSERT_TRUE(acks.watch(to_b(17), false, 0ns));
  for (uint32_t psn = 0; psn < 1000; ++psn) {
    EXPECT_FALSE(acks.observe(packet(Opcode::kRcWriteMiddle, to_b(17), psn), 1us));
    EXPECT_FALSE(acks.observe(packet(Opcode::kRcAcknowledge, to_a(24), psn), 1us));
    EXPECT_FALSE(acks.observe(packet(Opcode::kRcAcknowledge, to_a(25), psn), 1us));
  }
}

TEST(SourceQpns, repeated_acknowledgments_of_one_packet_count_as_one_vote) {
  AckCorrelator acks;
  ASSERT_TRUE(acks.watch(to_b(17), false, 0ns));
  acks.observe(packet(Opcode::kRcWriteMiddle, to_b(17), 5), 1us);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(acks.observe(packet(Opcode::kRcAcknowledge, to_a(24), 5), 1us));
}

// Many queue pairs between the same two hosts, random PSNs, losses in both directions, late and coalesced ACKs.
// Expects that no queue pair is learned for the wrong flow.
TEST(SourceQpns, learns_no_wrong_sender_among_many_flows_of_two_hosts) {
  constexpr uint32_t kFlows = 200;
  Rng rng(7);
  Senders senders(1024, 10s);
  std::vector<Psn> next(kFlows);
  for (Psn& psn : next) psn = Psn{static_cast<uint32_t>(rng.next())};
  std::vector<Psn> acked = next;
  for (int64_t round = 0; round < static_cast<int64_t>(test::repetitions(200'000)); ++round) {
    // Some flows send more than others.
    const auto i = static_cast<uint32_t>(rng.below(rng.chance(0.5) ? 8 : kFlows));
    const Nanos now{round * 100};
    const auto burst = rng.between(1, 16);
    for (uint64_t n = 0; n < burst; ++n, ++next[i]) {
      if (!rng.chance(0.05))
        senders.observe(packet(Opcode::kRcWriteMiddle, to_b(1000 + i), next[i].value()), now);
    }
    if (rng.chance(0.1)) (void)senders.find(to_b(1000 + i), false, now);
    if (rng.chance(0.7)) {
      acked[i] = next[i] - static_cast<uint32_t>(rng.between(1, 8));
      senders.observe(packet(Opcode::kRcAcknowledge, to_a(5000 + i), acked[i].value()), now);
    }
  }
  uint32_t known = 0;
  for (uint32_t i = 0; i < kFlows; ++i) {
    const auto sender = senders.find(to_b(1000 + i), false, 20ms);
    EXPECT_EQ(sender.value_or(Qpn{5000 + i}), Qpn{5000 + i});
    known += sender.has_value();
  }
  EXPECT_GT(known, kFlows * 9 / 10);
}

TEST(SourceQpns, cm_does_not_overwrite_a_sender_learned_from_packets) {
  Senders senders(16, 10s);
  senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{24}), 0ns);
  senders.observe(CmDatagram(0x10, 100, 0, 99).from(kA, kB), 0ns);
  senders.observe(CmDatagram(0x13, 200, 100, 17).from(kB, kA), 0ns);
  EXPECT_EQ(senders.find(to_b(17), false, 0ns), Qpn{24});
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{25}), 0ns), Learned::kFromPacket);
  EXPECT_EQ(senders.find(to_b(17), false, 0ns), Qpn{25});
}

constexpr uint16_t kAttacker = 77;

// Expects that neither packets nor CM messages of another port change the sender, whatever it was learned from.
TEST(SourceQpns, packets_of_another_port_do_not_change_the_sender) {
  Senders senders(16, 10s);
  senders.observe(CmDatagram(0x10, 100, 0, 24).from(kA, kB), 0ns);
  ASSERT_EQ(senders.observe(CmDatagram(0x13, 200, 100, 17).from(kB, kA), 0ns), Learned::kFromCm);
  const RocePeek forged = packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{0x666});
  EXPECT_EQ(senders.observe(forged, 1s, kAttacker), Learned::kOtherPort);
  EXPECT_EQ(senders.find(to_b(17), false, 1s), Qpn{24});
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{25}), 2s), Learned::kFromPacket);
  EXPECT_EQ(senders.observe(forged, 2s, kAttacker), Learned::kOtherPort);
  EXPECT_EQ(senders.find(to_b(17), false, 2s), Qpn{25});
}

// As after a change of the path: the packets with the sender arrive at another port from now on.
TEST(SourceQpns, flow_at_another_port_is_learned_again_after_the_entry_has_expired) {
  Senders senders(16, 10s);
  const RocePeek data = packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{24});
  const RocePeek moved = packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{25});
  senders.observe(data, 0ns);
  for (Nanos now = 1s; now < 10s; now += 1s) EXPECT_EQ(senders.observe(moved, now, 5), Learned::kOtherPort);
  EXPECT_EQ(senders.observe(moved, 10s, 5), Learned::kFromPacket);
  EXPECT_EQ(senders.find(to_b(17), false, 10s), Qpn{25});
}

TEST(SourceQpns, sender_learned_from_acknowledgments_belongs_to_the_port_of_the_data) {
  Senders senders(16, 10s);
  for (uint32_t psn = 0; psn < 400; ++psn) {
    senders.observe(packet(Opcode::kRcWriteMiddle, to_b(17), psn), 1us);
    senders.observe(packet(Opcode::kRcAcknowledge, to_a(24), psn), 1us);
  }
  ASSERT_EQ(senders.find(to_b(17), false, 1us), Qpn{24});
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{0x666}), 2us, kAttacker),
            Learned::kOtherPort);
  EXPECT_EQ(senders.find(to_b(17), false, 2us), Qpn{24});
}

TEST(SourceQpns, active_flows_stay_and_idle_flows_expire) {
  Senders senders(16, 1s);
  senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 1, Qpn{24}), 0ns);
  senders.observe(packet(Opcode::kRcSendOnly, to_b(18), 1, Qpn{25}), 0ns);
  for (int i = 0; i < 1000; ++i) senders.observe(packet(Opcode::kRcSendOnly, to_b(17), 2), i * 2ms);
  EXPECT_EQ(senders.find(to_b(17), false, 2s), Qpn{24});
  EXPECT_EQ(senders.find(to_b(18), false, 2s), std::nullopt);
}

TEST(SourceQpns, reports_a_full_table_until_entries_expire) {
  Senders senders(2, 1s);
  for (uint32_t i = 0; i < 2; ++i)
    EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(17 + i), 1, Qpn{24}), 0ns),
              Learned::kFromPacket);
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(99), 1, Qpn{24}), 0ns), Learned::kFull);
  EXPECT_EQ(senders.observe(packet(Opcode::kRcSendOnly, to_b(99), 1, Qpn{24}), 1s), Learned::kFromPacket);
}

TEST(AckCorrelator, limits_watched_flows_and_removes_them_after_the_timeout) {
  AckCorrelator acks;
  for (uint32_t i = 0; i < AckCorrelator::kMax; ++i) EXPECT_TRUE(acks.watch(to_b(100 + i), false, 0ns));
  EXPECT_TRUE(acks.watch(to_b(100), false, 0ns)) << "already";
  EXPECT_FALSE(acks.watch(to_b(99), false, 0ns));
  EXPECT_EQ(acks.watching(), AckCorrelator::kMax);
  EXPECT_TRUE(acks.watch(to_b(99), false, AckCorrelator::kTimeout));
  EXPECT_EQ(acks.watching(), 1U);
}

}  // namespace
}  // namespace roci
