// Fuzz target for the capability exchange: requests and responses of peers on queue pair 1, lookups of queue pairs,
// and passing time. A peer is confirmed only by a valid response to a request, which must be signed if authentication is
// required; requests change no agreement in use; requests and responses are rate limited; all sent datagrams are
// well-formed.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "engine/management/peers.hpp"
#include "fuzz/fuzz_target.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "wire/extensions/extensions.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kNear = 6;              // number of peer addresses in lookups
constexpr uint32_t kAnswersAtOnce = 1001;  // the burst of a tenth of a second, and one
constexpr uint32_t kAnswersPerSecond = 10'000;

constexpr SipKey kNetworkKey{1, 2, 3};

IpAddress host_address() { return IpAddress::from_v4(0x0a000001); }
// The last two peers have no MAC address.
IpAddress peer_address(uint32_t n) { return IpAddress::from_v4(0x0a000002U + n); }

class Session final : public FrameSink, public PacketSink {
 public:
  explicit Session(Input& input) : input_(input) {
    ExtensionConfig config;
    const uint8_t wishes = input.byte();
    config.selective_repeat = (wishes & 1) != 0;
    config.authenticate = (wishes & 2) != 0;
    if ((wishes & 6) == 6) config.network_key = kNetworkKey;
    config.require_authentication = (wishes & 0xe) == 0xe;
    attempts_ = config.require_authentication ? Peers::kMaxAttempts : Peers::kAttempts;
    config.mode = (wishes & 0x30) == 0x30 ? ExtensionMode::kOff : ExtensionMode::kAuto;
    NeighborConfig neighbors;
    neighbors.mac = MacAddress::local(1);
    neighbors.addresses = {{host_address(), 16}};
    for (uint32_t n = 0; n + 2 < kNear; ++n)
      neighbors.static_entries.push_back({peer_address(n), MacAddress::local(n + 2)});
    neighbors_ = require(Neighbors::create(neighbors, *this));
    management_ =
        std::make_unique<Management>(MacAddress::local(1), uint16_t{0}, *this, *neighbors_, counters_);
    peers_ = std::make_unique<Peers>(config, 256, static_cast<uint16_t>(100), uint8_t{4}, ids_, *management_,
                                     counters_);
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 200; ++steps) {
      step();
      poll();
      check();
    }
    no_buffers_ = false;
    pass(1s);
    check();
    for (const auto& [address, known] : known_) {
      if (known.record != nullptr)
        require(known.record->read().status != PeerStatus::kUnknown || !known.has_mac,
                "a question ends in an answer or in silence");
    }
    peers_.reset();
    management_.reset();
    neighbors_.reset();
    require(pool().in_use() == 0, "no buffer is lost");
  }

 private:
  struct Known {
    std::shared_ptr<const PeerRecord> record;
    std::optional<CapabilityMessage> asked;
    std::set<uint64_t> right;  // incarnations of valid responses
    uint32_t questions = 0, questions_allowed = 0;
    bool has_mac = true;
  };

  static const MbufPool& pool() {
    static const std::shared_ptr<MbufPool> kPool = [] {
      EalConfig config;
      config.memory_mib = 64;
      require(start_eal(config));
      return require(MbufPool::create("fuzz", 64, 2048));
    }();
    return *kPool;
  }

  rte_mbuf* allocate() override { return no_buffers_ ? nullptr : rte_pktmbuf_alloc(pool().get()); }
  void send(rte_mbuf* frame) override {
    const auto* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
    const FrameView view = parse_frame(bytes, frame->data_len, frame->pkt_len);
    if (view.kind == FrameKind::kRoce) {
      record_sent(view);
    } else {
      require(view.kind == FrameKind::kArp || view.kind == FrameKind::kIpv6,
              "a host sends well-formed frames");
    }
    rte_pktmbuf_free(frame);
  }

  void record_sent(const FrameView& view) {
    require(compute_icrc(view) == stored_icrc(view), "a host sends right ICRCs");
    require(view.opcode->opcode == Opcode::kUdSendOnly && view.destination_qp() == kManagementQp &&
                view.deth().qkey.get() == kManagementQKey.value(),
            "what is sent is a management datagram");
    const ParsedMad parsed = parse_capability_mad({view.frame + view.payload_offset, view.payload_length});
    require(parsed.outcome == MadOutcome::kAccepted, "what is sent is one that we would take");
    if (parsed.message.response) {
      ++answers_;
      std::vector<CapabilityMessage>& open = open_questions_[view.destination_ip()];
      const auto question = std::ranges::find_if(
          open, [&](const CapabilityMessage& asked) { return answers(parsed.message, asked); });
      require(question != open.end(), "an answer belongs to a question of who gets it");
      open.erase(question);
      const auto elapsed = static_cast<uint64_t>((now_ - begin_).count());
      require(answers_ <= kAnswersAtOnce + elapsed * kAnswersPerSecond / 1'000'000'000,
              "answers are limited in rate");
      return;
    }
    Known& known = known_[view.destination_ip()];
    require(++known.questions <= known.questions_allowed,
            "nobody is asked more often than four times in a row");
    known.asked = parsed.message;
  }

  void step() {
    switch (input_.byte() & 7) {
      case 0:
        return pass(input_.byte() * 1ms);
      case 1:
        return want();
      case 2:
        return tell(question(), input_.byte() % kNear);
      case 3:
        return respond(0);
      case 4:
        return respond(input_.byte());
      case 5:
        return refuse();
      case 6: {
        for (uint32_t n = input_.byte() * 4U; n > 0; --n) {
          CapabilityMessage message;
          message.transaction = n;
          message.offer = offer(0);
          tell(message, 1000 + n);
        }
        return;
      }
      default:
        return odd();
    }
  }

  void odd() {
    const uint8_t what = input_.byte();
    if ((what & 1) != 0) no_buffers_ = !no_buffers_;
    if ((what & 2) != 0) known_[peer_address(what % kNear)].record.reset();
  }

  void want() {
    const uint32_t n = input_.byte() % kNear;
    RocePath path;
    path.source_mac = MacAddress::local(1);
    path.source_ip = host_address();
    path.destination_ip = peer_address(n);
    Known& known = known_[path.destination_ip];
    known.has_mac = n + 2 < kNear;
    known.questions_allowed += attempts_;
    known.record = peers_->request_capabilities(path, now_);
    require((known.record != nullptr) == peers_->enabled(), "who has extensions knows its peers");
  }

  static CapabilityOffer offer(uint8_t choice) {
    CapabilityOffer offer;
    offer.capabilities = known_extensions() | kAllCapabilities;
    if ((choice & 1) != 0) offer.capabilities &= ~static_cast<uint32_t>(bit_of(ExtensionType::kAuth));
    if ((choice & 2) != 0) offer.capabilities &= 0xffffU;
    if ((choice & 4) != 0) {
      offer.version = 3;
      offer.lowest = 2;
    }
    if ((choice & 8) != 0) {
      offer.version = std::max(offer.version, kSignedCapabilityVersion);
      offer.capabilities |= static_cast<uint32_t>(Capability::kNetworkAuth);
      offer.network_auth.fill(0xa5);
    }
    offer.window = choice;
    offer.incarnation = 1U + (choice >> 5);
    if ((offer.capabilities & bit_of(ExtensionType::kAuth)) != 0) offer.auth.fill(0x5a);
    return offer;
  }

  CapabilityMessage question() {
    CapabilityMessage message;
    message.transaction = input_.byte();
    message.offer = offer(input_.byte());
    return message;
  }

  // Responds to the host's last request. `wrong` has one bit per defect.
  void respond(uint8_t wrong) {
    const uint32_t n = input_.byte() % kNear;
    const Known& known = known_[peer_address(n)];
    CapabilityMessage message;
    message.response = true;
    message.offer = offer(input_.byte());
    if (known.asked) {
      message.transaction = known.asked->transaction;
      message.peer_incarnation = known.asked->offer.incarnation;
    }
    if ((wrong & 1) != 0) message.transaction ^= uint64_t{1} << (wrong >> 2);
    if ((wrong & 2) != 0) message.peer_incarnation ^= uint64_t{1} << (wrong >> 2);
    tell(message, (wrong & 0x80) != 0 ? (n + 1) % kNear : n);
  }

  void refuse() {
    const uint32_t n = input_.byte() % kNear;
    const Known& known = known_[peer_address(n)];
    CapabilityMad mad = build_capability_mad(known.asked.value_or(CapabilityMessage{}));
    mad.mad.method = MadHeader::kGetResponse;
    mad.mad.status.set(0x0c);
    deliver(mad, n);
  }

  void tell(const CapabilityMessage& message, uint32_t from) {
    CapabilityMad mad = build_capability_mad(message);
    if (offers_network_key(message.offer))
      sign_capability_mad(derive_network_keys(kNetworkKey).datagrams, peer_address(from), host_address(),
                          mad);
    deliver(mad, from);
  }
  static bool offers_network_key(const CapabilityOffer& offer) {
    return offer.version >= kSignedCapabilityVersion &&
           (offer.capabilities & static_cast<uint32_t>(Capability::kNetworkAuth)) != 0;
  }

  // Changes some bytes if the input requests it.
  void deliver(CapabilityMad mad, uint32_t from) {
    auto* bytes = reinterpret_cast<uint8_t*>(&mad);
    if (from < kNear) {
      for (unsigned changes = input_.byte(); changes >= 0xf8 && changes < 0xff; ++changes) {
        const uint8_t at = input_.byte();
        bytes[at] = input_.byte();
      }
    }
    Packet packet = make_packet(Opcode::kUdSendOnly);
    packet.between(MacAddress::local(2), peer_address(from), MacAddress::local(1), host_address());
    packet.to(kManagementQp, Psn{0});
    packet.deth = DethValues{kManagementQKey, 0, kManagementQp};
    packet.with_payload({bytes, sizeof mad});
    const ByteVector frame = encode_packet(packet.finish());
    const ParsedMad parsed = parse_capability_mad({bytes, sizeof mad});
    Known& known = known_[packet.source];
    const bool is_authentic =
        attempts_ == Peers::kAttempts ||
        is_signed(derive_network_keys(kNetworkKey).datagrams, packet.source, host_address(),
                  std::span<const uint8_t, kMadBytes>(bytes, kMadBytes));
    if (parsed.outcome == MadOutcome::kAccepted && parsed.message.response && known.asked && is_authentic &&
        answers(parsed.message, *known.asked)) {
      known.right.insert(parsed.message.offer.incarnation);
    }
    std::vector<CapabilityMessage>& open = open_questions_[packet.source];
    if (parsed.outcome == MadOutcome::kAccepted && !parsed.message.response) {
      open.push_back(parsed.message);
      // The host sends requests to a peer that restarted.
      known.questions_allowed += attempts_;
    }
    const PeerKnowledge before = known.record == nullptr ? PeerKnowledge{} : known.record->read();
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool().get());
    require(mbuf != nullptr, "no buffer is lost");
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(frame.size())), frame.data(), frame.size());
    const FrameView view = parse_frame(rte_pktmbuf_mtod(mbuf, const uint8_t*), mbuf->data_len, mbuf->pkt_len);
    management_->handle(view, mbuf, now_);
    rte_pktmbuf_free(mbuf);
    require(!before.confirmed || parsed.outcome != MadOutcome::kAccepted || parsed.message.response ||
                known.record->read() == before,
            "a request changes no agreement in use");
    if (!management_->has_waiting()) open.clear();  // answered at once or never
  }

  void poll() {
    neighbors_->poll(now_);
    for (int rounds = 0; management_->poll(now_); ++rounds)
      require(rounds < 100, "the work of one instant ends");
    require(management_->next_deadline() > now_ || management_->has_waiting(), "a poll does all that is due");
    if (!management_->has_waiting()) open_questions_.clear();
  }
  // A deadline in the past belongs to a component without a buffer.
  void pass(Nanos span) {
    for (const Nanos end = now_ + span; now_ < end; poll()) {
      const Nanos next = std::min(management_->next_deadline(), neighbors_->next_deadline());
      now_ = std::min(end, next > now_ ? next : now_ + 5ms);
    }
  }

  // Capabilities that an agreement on this offer can contain: keys of the network include AUTH.
  static uint32_t agreeable(const CapabilityOffer& offer) {
    return offer.capabilities | (offers_network_key(offer) ? bit_of(ExtensionType::kAuth) : 0U);
  }

  void check() {
    require(peers_->size() <= Peers::kMax && peers_->size() <= known_.size(), "the table is bounded");
    for (const auto& [address, known] : known_) {
      if (known.record == nullptr) continue;
      const PeerKnowledge knowledge = known.record->read();
      if (!knowledge.confirmed) continue;
      require(knowledge.status == PeerStatus::kAgreed && known.right.contains(knowledge.incarnation),
              "nobody is confirmed without the right answer");
      require(known.asked && (knowledge.agreement.capabilities & ~agreeable(known.asked->offer)) == 0,
              "nothing is agreed on that was not offered");
    }
  }

  Input& input_;
  Nanos now_{1'000'000'000};
  const Nanos begin_ = now_;
  IdSource ids_{1};
  Counters counters_;
  std::unique_ptr<Neighbors> neighbors_;
  std::unique_ptr<Management> management_;
  std::unique_ptr<Peers> peers_;
  std::map<IpAddress, Known> known_;
  std::map<IpAddress, std::vector<CapabilityMessage>> open_questions_;  // requests that may still be answered
  uint64_t answers_ = 0;
  uint32_t attempts_ = Peers::kAttempts;  // requests in a row
  bool no_buffers_ = false;
};

}  // namespace
}  // namespace roci::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roci::test::Input input(data, size);
  roci::test::Session(input).run();
  return 0;
}
