// Flood of well-formed connection requests (REQ) for one service, with random source addresses, communication IDs and
// queue pair numbers of hosts that do not exist.
#pragma once

#include <array>

#include "base/rng.hpp"
#include "wire/mad/cm_messages.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

class RequestFlood {
 public:
  struct Config {
    uint64_t seed = 1;
    MacAddress from_mac, to_mac;
    IpAddress to;  // IPv4
    uint64_t service = 0;
  };
  explicit RequestFlood(const Config& config) : config_(config), rng_(config.seed) {}

  // A complete frame with a correct ICRC.
  ByteVector next() {
    CmRequest request{.local_id = number(32), .service_id = config_.service, .queue_pair = Qpn{number(24)}};
    // The longest timeouts: 15 retries and hours for each.
    request.max_cm_retries = 15;
    request.local_response_timeout = request.remote_response_timeout = 31;
    request.primary.ack_timeout = 31;
    request.starting_psn = Psn{number(24)};
    const IpAddress from = IpAddress::from_v4(0x0b000000 | number(24));
    write_cm_ip_header({.v6 = false,
                        .source_port = static_cast<uint16_t>(number(16)),
                        .source = from,
                        .destination = config_.to},
                       request.private_data);
    const auto mad = build_cm_mad({rng_.next(), 0, request});
    Packet packet = make_packet(Opcode::kUdSendOnly);
    packet.to(kManagementQp, Psn{number(24)});
    packet.between(config_.from_mac, from, config_.to_mac, config_.to);
    packet.deth = DethValues{.qkey = kManagementQKey, .source_qp = kManagementQp};
    packet.with_payload(mad);
    return encode_packet(packet.finish());
  }

 private:
  uint32_t number(unsigned bits) { return static_cast<uint32_t>(rng_.next() >> (64 - bits)); }

  Config config_;
  Rng rng_;
};

}  // namespace roci::test
