// Replays connections of two Linux hosts, with Rocinante's connection manager in place of either. Its messages for
// the same program must equal the recorded ones byte for byte, except for the fields below that a host chooses
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "cm/agent.hpp"
#include "cm/service.hpp"
#include "rdmacm/messages.hpp"
#include "replay/recording.hpp"
#include "support/captured_mads.hpp"

namespace roci::cm {
namespace {

using rdmacm::Endpoints;
using rdmacm::OwnQueuePair;
using rdmacm::Terms;
using test::heard_in;
using test::HeardMad;

// Fields that a host chooses, which are replaced before bytes are compared. Other identifiers are passed to the
// replay: GUID, queue pair numbers, starting PSNs and ports.
constexpr size_t kTransactionAt = 8, kOwnIdAt = sizeof(MadHeader), kPeersIdAt = sizeof(MadHeader) + 4;

// Parameters of the programs: rdma-core 44, rping.c and cmatose.c. Both accept with NULL parameters.
struct Program {
  const char* name;
  const char* capture;
  uint8_t retry_count, rnr_retry_count;
};
constexpr Program kPrograms[] = {{"rping", "rping.pcap", 7, 7},
                                 {"ucmatose", "ucmatose.pcap", 5, 0},
                                 {"rping_refused", "cm_refused.pcap", 7, 7}};
constexpr rdmacm::TermLimits kMax{128, 128};  // limits of rxe
constexpr uint8_t kPathMtu = IBV_MTU_1024;    // for an Ethernet MTU of 1500

bool is_of(const CmMad& mad, uint32_t id) {
  return std::visit(
      [&](const auto& message) {
        if constexpr (requires { message.remote_id; }) {
          return message.local_id == id || message.remote_id == id;
        } else if constexpr (requires { message.local_id; }) {
          return message.local_id == id;
        } else {
          return false;
        }
      },
      mad.message);
}

// Groups the messages by connection.
std::vector<std::vector<HeardMad>> conversations(const char* capture) {
  std::vector<std::vector<HeardMad>> out;
  const auto all = heard_in(capture);
  for (const HeardMad& begin : all) {
    const auto* request = std::get_if<CmRequest>(&begin.mad.message);
    if (request == nullptr) continue;
    auto& one = out.emplace_back();
    for (const HeardMad& heard : all) {
      if (is_of(heard.mad, request->local_id)) one.push_back(heard);
    }
  }
  return out;
}

class Replay final : public EventHandler, private Sender {
 public:
  Replay(const Program& program, const std::vector<HeardMad>& said, bool active)
      : program_(program),
        said_(said),
        active_(active),
        ours_(active ? said[0].flow.source : said[0].flow.destination),
        theirs_(active ? said[0].flow.destination : said[0].flow.source),
        agent_(*this, ids_, guid_of(said, ours_)) {}

  void run() {
    const auto& request = std::get<CmRequest>(said_[0].mad.message);
    listener_.service = request.service_id;
    listener_.handler = this;
    const bool somebody_listens = std::get_if<CmRejected>(&said_[1].mad.message) == nullptr;
    if (!active_ && somebody_listens) {
      ASSERT_TRUE(agent_.listen(listener_));
    }
    for (const HeardMad& heard : said_) {
      SCOPED_TRACE(cm_message_name(heard.mad.message));
      now_ += 1ms;
      if (heard.flow.source == ours_) {
        std::visit([&](const auto& message) { say(message); }, heard.mad.message);
        ASSERT_EQ(sent_.size(), 1U);
        expect_as_heard(heard, sent_[0]);
        sent_.clear();
      } else {
        hear(heard);
      }
    }
    EXPECT_TRUE(sent_.empty());
  }

  std::vector<EventKind> events;

 private:
  static uint64_t guid_of(const std::vector<HeardMad>& said, const IpAddress& host) {
    for (const HeardMad& heard : said) {
      if (heard.flow.source != host) continue;
      if (const auto* request = std::get_if<CmRequest>(&heard.mad.message)) return request->ca_guid;
      if (const auto* reply = std::get_if<CmReply>(&heard.mad.message)) return reply->ca_guid;
    }
    return 1;  // the host has sent no GUID
  }

  bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos) override {
    EXPECT_EQ(route.local, ours_);
    EXPECT_EQ(route.remote, theirs_);
    sent_.emplace_back(mad.begin(), mad.end());
    return true;
  }
  [[nodiscard]] bool stores() const override { return false; }
  uint32_t store(uint32_t, const Route&, std::span<const uint8_t, kMadBytes>) override { return kNotStored; }
  void remove(uint32_t) override {}
  bool on_event(Connection& connection, const Event& event) override {
    connection_ = &connection;
    events.push_back(event.kind);
    if (event.kind == EventKind::kRequest) terms_ = rdmacm::terms_of(std::get<CmRequest>(event.mad->message));
    return true;
  }

  // ---- Calls that make the program's side send the message, with the parameter functions of librdmacm.

  void say(const CmRequest& captured) {
    const auto ip = read_cm_ip_header(captured.private_data);
    ASSERT_TRUE(ip);
    const Endpoints ends{.local = ours_,
                         .remote = theirs_,
                         .local_port = ip->source_port,
                         .remote_port = static_cast<uint16_t>(captured.service_id)};
    rdma_conn_param wanted{};
    wanted.responder_resources = wanted.initiator_depth = 1;
    wanted.retry_count = program_.retry_count;
    wanted.rnr_retry_count = program_.rnr_retry_count;
    rdmacm::request_terms(terms_, &wanted, kMax, ends);
    terms_.rq_psn = captured.starting_psn.value();
    terms_.path_mtu = kPathMtu;
    const OwnQueuePair own{.number = captured.queue_pair.value()};
    const auto made =
        agent_.connect({.local = ours_, .remote = theirs_},
                       rdmacm::request_for(ends, terms_, own, false, TimeoutSettings{}), 0, *this, now_);
    ASSERT_TRUE(made);
    connection_ = *made;
  }
  void say(const CmReply& captured) {
    rdmacm::agree_to(terms_, nullptr, kMax);
    terms_.rq_psn = captured.starting_psn.value();
    const OwnQueuePair own{.number = captured.queue_pair.value()};
    EXPECT_TRUE(agent_.accept(*connection_, rdmacm::reply_for(terms_, own, nullptr), 0, now_));
  }
  void say(const CmReady&) { EXPECT_TRUE(agent_.ready(*connection_, {}, now_)); }
  void say(const CmDisconnect&) { EXPECT_TRUE(agent_.disconnect(*connection_, {}, now_)); }
  void say(const CmDisconnected&) { EXPECT_TRUE(agent_.reply_disconnect(*connection_, {}, now_)); }
  void say(const CmRejected&) {}  // no listener: the agent rejects by itself
  template <class Other>
  void say(const Other&) {
    FAIL() << "not in these captures";
  }

  // ---- Numbers that each host chose.

  static uint64_t number_at(const ByteVector& bytes, size_t at, size_t count) {
    uint64_t out = 0;
    for (size_t i = 0; i < count; ++i) out = out << 8 | bytes[at + i];
    return out;
  }
  static void copy_to(ByteVector& bytes, size_t at, size_t count, const ByteVector& from) {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(at), count, bytes.begin() + static_cast<ptrdiff_t>(at));
  }
  static void put_at(ByteVector& bytes, size_t at, size_t count, uint64_t number) {
    for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<uint8_t>(number >> 8 * (count - 1 - i));
  }

  void expect_as_heard(const HeardMad& heard, ByteVector said) {
    // The local ID: the same in all messages of the connection, and in no other.
    const uint64_t their_choice = number_at(heard.bytes, kOwnIdAt, 4);
    if (their_choice != 0) {
      const uint64_t id = number_at(said, kOwnIdAt, 4);
      EXPECT_EQ(own_ids_.try_emplace(their_choice, id).first->second, id);
      copy_to(said, kOwnIdAt, 4, heard.bytes);
    }
    // The transaction ID: different exactly where the recorded ones differ. The peer's is unchanged.
    const uint64_t their_transaction = number_at(heard.bytes, kTransactionAt, 8);
    const uint64_t transaction = number_at(said, kTransactionAt, 8);
    EXPECT_EQ(transactions_.try_emplace(their_transaction, transaction).first->second, transaction);
    for (const auto& [theirs, ours] : transactions_)
      EXPECT_EQ(ours == transaction, theirs == their_transaction);
    copy_to(said, kTransactionAt, 8, heard.bytes);
    for (size_t at = 0; at < kMadBytes; ++at) EXPECT_EQ(said[at], heard.bytes[at]) << "byte " << at;
  }

  // Delivers a recorded message, with the numbers of this host in place of the recorded ones.
  void hear(const HeardMad& heard) {
    ByteVector bytes = heard.bytes;
    if (const auto own = own_ids_.find(number_at(bytes, kPeersIdAt, 4)); own != own_ids_.end())
      put_at(bytes, kPeersIdAt, 4, own->second);
    const uint64_t transaction = number_at(bytes, kTransactionAt, 8);
    put_at(bytes, kTransactionAt, 8, transactions_.try_emplace(transaction, transaction).first->second);
    agent_.on_mad({.local = ours_, .remote = theirs_}, bytes, now_);
  }

  const Program& program_;
  const std::vector<HeardMad>& said_;
  const bool active_;
  const IpAddress ours_, theirs_;
  IdSource ids_{1};
  Agent agent_;
  Listener listener_;
  Connection* connection_ = nullptr;
  Terms terms_;
  Nanos now_{0};
  std::vector<ByteVector> sent_;
  std::map<uint64_t, uint64_t> own_ids_, transactions_;  // this host's number by recorded number
};

class CmReplay : public testing::TestWithParam<Program> {
 protected:
  const std::vector<std::vector<HeardMad>> captured = conversations(GetParam().capture);

  std::vector<std::vector<EventKind>> play(bool active) {
    std::vector<std::vector<EventKind>> told;
    for (const auto& one : captured) {
      Replay replay(GetParam(), one, active);
      replay.run();
      told.push_back(replay.events);
    }
    return told;
  }
};

TEST_P(CmReplay, active_side_sends_same_messages_as_linux) {
  for (const auto& events : play(true)) {
    const bool refused = GetParam().capture == std::string("cm_refused.pcap");
    EXPECT_EQ(events.front(), refused ? EventKind::kRejected : EventKind::kReply);
  }
}

TEST_P(CmReplay, passive_side_sends_same_messages_as_linux) {
  for (const auto& events : play(false)) {
    if (GetParam().capture == std::string("cm_refused.pcap")) {
      EXPECT_TRUE(events.empty());
    } else {
      ASSERT_EQ(events.size(), 3U);
      EXPECT_EQ(events[0], EventKind::kRequest);
      EXPECT_EQ(events[1], EventKind::kReady);
    }
  }
}

TEST_P(CmReplay, every_captured_message_belongs_to_an_exchange) {
  size_t messages = 0;
  for (const auto& one : captured) messages += one.size();
  EXPECT_EQ(messages, heard_in(GetParam().capture).size());
}

// First data packet of each host, after the messages that set the PSNs of its queue pair.
TEST_P(CmReplay, data_starts_with_psn_from_the_peers_message) {
  const auto frames = test::load_frames(std::filesystem::path(GetParam().capture).stem());
  size_t started = 0;
  for (const auto& one : captured) {
    const auto& request = std::get<CmRequest>(one.at(0).mad.message);
    const auto* const reply = std::get_if<CmReply>(&one.at(1).mad.message);
    if (reply == nullptr) continue;  // refused
    Terms active{.rq_psn = request.starting_psn.value()};
    rdmacm::apply(active, *reply, IBV_QPT_RC);
    const Terms passive = rdmacm::terms_of(request);
    const auto first_psn_to = [&](Qpn destination, const IpAddress& from) -> std::optional<uint32_t> {
      const auto found = std::ranges::find_if(frames, [&](const test::RecordedFrame& frame) {
        return frame.is_request() && frame.packet.bth.destination_qp == destination &&
               frame.packet.source == from;
      });
      if (found == frames.end()) return std::nullopt;
      return found->packet.bth.psn.value();
    };
    const auto of_active = first_psn_to(Qpn{active.remote_qpn}, one.at(0).flow.source);
    const auto of_passive = first_psn_to(Qpn{passive.remote_qpn}, one.at(1).flow.source);
    if (of_active) {
      EXPECT_EQ(*of_active, active.sq_psn);
      ++started;
    }
    if (of_passive) {
      EXPECT_EQ(*of_passive, passive.sq_psn);
      EXPECT_EQ(*of_passive, active.rq_psn);
      ++started;
    }
  }
  EXPECT_EQ(started > 0, GetParam().capture != std::string("cm_refused.pcap"));
}

INSTANTIATE_TEST_SUITE_P(Programs, CmReplay, testing::ValuesIn(kPrograms),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace roci::cm
