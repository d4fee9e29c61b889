// UD queue pairs, one per host. They send datagrams to each other and, with multicast, to a group; some have the
// wrong Q_Key. Oracle: every request completes successfully and in order. A received datagram was sent to this queue
// pair by the address in its network header, has the right bytes, and arrives once unless the network duplicates
// frames.
#pragma once

#include <map>
#include <vector>

#include "simulation/scenario/network.hpp"
#include "simulation/traffic/receives.hpp"
#include "support/hosts/connect.hpp"

namespace roci::test {

class Datagrams final : public Actor {
 public:
  Datagrams(Network& network, const Scenario& scenario, Rng rng, Verifier& verifier);

  void act(Nanos now) override;
  void reap() override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::string state() const override;
  void check() override;

 private:
  static constexpr size_t kGrh = 40;
  static constexpr size_t kToGroup = SIZE_MAX;

  struct Message {
    size_t from = 0, to = 0;  // host indices, or kToGroup
    size_t source = 0;
    uint32_t length = 0;
    bool wrong_key = false;
    std::vector<uint32_t> arrived;  // number of arrivals per host
  };
  struct Member {
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionQueue> cq;
    std::unique_ptr<QueuePair> qp;
    std::vector<std::unique_ptr<AddressHandle>> to;  // per host
    std::unique_ptr<AddressHandle> to_group;
    bool in_group = false;
    Arena source;
    Receives receives;
    std::deque<size_t> posted;  // indices into messages_
    uint32_t to_post = 0;
  };

  void post_random(size_t host);
  void on_receive_done(size_t host, const ibv_wc& wc);
  [[nodiscard]] bool header_is_right(const uint8_t* header, const Message& message, size_t host) const;

  Network& network_;
  const Scenario& scenario_;
  Rng rng_;
  Verifier& verifier_;
  ibv_gid group_{};
  std::vector<Member> members_;
  std::vector<Message> messages_;  // the index is the immediate value
};

}  // namespace roci::test
