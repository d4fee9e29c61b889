// Fixture: a host whose peer is the test, which sends and receives the management datagrams of the capability exchange
// and signs feedback.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/two_hosts.hpp"
#include "wire/extensions/extension_auth.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci::test {

inline bool is_mad(const Packet& packet) { return packet.bth.destination_qp == kManagementQp; }

inline const ExtensionSession* session(const Side& side) {
  TwoHosts::wake(side);
  return TwoHosts::core(side).session.get();
}
inline bool is_confirmed(const Side& side) {
  return session(side) != nullptr && session(side)->terms.may_send;
}

class CapabilityPeer : public testing::Test {
 protected:
  static LoneHostOptions options(bool authenticate = false) {
    LoneHostOptions o;
    o.extensions = {.mode = ExtensionMode::kAuto, .selective_repeat = true, .authenticate = authenticate};
    return o;
  }
  explicit CapabilityPeer(const LoneHostOptions& o = options()) : host(o) {
    if (o.extensions.network_key) network = derive_network_keys(*o.extensions.network_key);
  }

  static IpAddress host_address() { return IpAddress::from_v4(0x0a000001); }
  static IpAddress peer_address() { return IpAddress::from_v4(0x0a000002); }

  // A datagram of the peer; signed if `signing` is set.
  static Packet mad(const CapabilityMessage& message, const std::optional<NetworkKeys>& signing = {}) {
    Packet packet = make_packet(Opcode::kUdSendOnly);
    packet.between(MacAddress::local(2), peer_address(), MacAddress::local(1), host_address());
    packet.to(kManagementQp, Psn{0});
    packet.deth = DethValues{kManagementQKey, 0, kManagementQp};
    CapabilityMad bytes = build_capability_mad(message);
    if (signing) sign_capability_mad(signing->datagrams, peer_address(), host_address(), bytes);
    packet.with_payload({reinterpret_cast<const uint8_t*>(&bytes), sizeof bytes});
    return packet;
  }
  static CapabilityOffer offer(uint64_t incarnation = 7) {
    CapabilityOffer o;
    o.capabilities = bit_of(ExtensionType::kCeEcho) | bit_of(ExtensionType::kLsn) |
                     bit_of(ExtensionType::kSack) | static_cast<uint32_t>(Capability::kSelectiveRepeat);
    o.window = 64;
    o.incarnation = incarnation;
    return o;
  }
  // The same with AUTH; the key material differs per incarnation.
  static CapabilityOffer signing_offer(uint64_t incarnation = 7) {
    CapabilityOffer o = offer(incarnation);
    o.capabilities |= bit_of(ExtensionType::kAuth);
    o.auth.fill(static_cast<uint8_t>(incarnation));
    return o;
  }
  // The same with AUTH that needs the network key.
  static CapabilityOffer network_offer(uint64_t incarnation = 7) {
    CapabilityOffer o = offer(incarnation);
    o.version = kSignedCapabilityVersion;
    o.capabilities |= static_cast<uint32_t>(Capability::kNetworkAuth);
    o.network_auth.fill(static_cast<uint8_t>(incarnation));
    return o;
  }
  static CapabilityMessage request(uint64_t incarnation = 7) { return request_with(offer(incarnation)); }
  static CapabilityMessage request_with(const CapabilityOffer& with) {
    CapabilityMessage m;
    m.transaction = 99;
    m.offer = with;
    return m;
  }
  static CapabilityMessage response_to(const CapabilityMessage& asked, const CapabilityOffer& with) {
    CapabilityMessage response;
    response.response = true;
    response.transaction = asked.transaction;
    response.peer_incarnation = asked.offer.incarnation;
    response.offer = with;
    return response;
  }
  // Sends the packet and returns the management datagrams that the host sends in response.
  std::vector<CapabilityMessage> tell(Packet packet) {
    host.port().put(encode_packet(packet.finish()));
    return datagrams();
  }
  std::vector<CapabilityMessage> datagrams() {
    std::vector<CapabilityMessage> out;
    for (const Packet& sent : host.work_for_packets()) {
      if (!is_mad(sent)) continue;
      const ParsedMad parsed = parse_capability_mad(sent.payload);
      EXPECT_EQ(parsed.outcome, MadOutcome::kAccepted);
      EXPECT_EQ(sent.deth->qkey, kManagementQKey);
      EXPECT_EQ(sent.deth->source_qp, kManagementQp);
      out.push_back(parsed.message);
    }
    return out;
  }
  // Returns the host's own request, which the host repeats until it is answered.
  CapabilityMessage its_request() {
    host.port().sent.clear();
    host.now += 200ms;
    const auto asked = datagrams();
    EXPECT_EQ(asked.size(), 1U);
    EXPECT_FALSE(asked.at(0).response);
    return asked.at(0);
  }
  void answer_its_request(const CapabilityOffer& with = offer(),
                          const std::optional<NetworkKeys>& signing = {}) {
    tell(mad(response_to(its_request(), with), signing));
  }
  uint64_t counter(const std::string& name) { return host.side.counter(name); }

  // An acknowledgment of the peer for the host's request `ahead`. Signed with the key that the host expects.
  ByteVector signed_ack(int ahead, uint64_t sequence) {
    return signed_ack(ahead, sequence, session(host.side)->terms.receive_key);
  }
  ByteVector signed_ack(int ahead, uint64_t sequence, const SipKey& key) {
    Packet packet = host.response(Opcode::kRcAcknowledge, ahead);
    ExtensionBlock block;
    block.lsn = Lsn{0};
    block.auth.emplace();
    packet.with_extensions(block);
    ByteVector frame = encode_packet(packet.finish());
    const FrameView view =
        parse_frame(frame.data(), static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(frame.size()));
    sign(key, view, split_payload(view, view.frame_length, known_extensions()).block, sequence);
    store_icrc(frame.data() + view.icrc_offset, compute_icrc(view));
    return frame;
  }
  // Posts a SEND; the host sends it at once.
  void post_send(uint64_t wr_id) {
    ASSERT_EQ(host.post(IBV_WR_SEND, wr_id, 8), 0);
    host.work();
  }

  LoneHost host;
  std::optional<NetworkKeys> network;  // of the host
};

}  // namespace roci::test
