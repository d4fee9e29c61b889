// Flow rules of a host (ibv_create_flow): which raw packet queue pairs receive a frame.
//
// Rules apply to frames that are not for the host itself: RoCEv2 packets, ARP, ND, ICMP, PFC frames and the configured
// telemetry and CNMs are processed as without rules. Rules of sniffers get a copy of each received frame.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "engine/management/rss_hash.hpp"
#include "wire/net/steering_key.hpp"

namespace roci {

struct AttachedQueuePair;

// Queues of receive side scaling: the hash of a frame selects one of them.
struct RssQueues {
  std::vector<AttachedQueuePair*> queues;  // a power of two
  RssKey key{};
  uint64_t fields = 0;  // ibv_rx_hash_fields

  [[nodiscard]] AttachedQueuePair& select(const SteeringKey& frame) const {
    return *queues[rss_hash(frame, fields, key) & (queues.size() - 1)];
  }
};

struct SteeringRule {
  // In the order in which rules are compared.
  enum class Kind : uint8_t {
    kNormal,
    kAllDefault,        // frames without another rule
    kMulticastDefault,  // the same, with a multicast destination that is not the broadcast address
    kSniffer,
  };
  Kind kind = Kind::kNormal;
  uint16_t priority = 0;                 // lower ones are compared first
  bool drops = false;                    // IBV_FLOW_SPEC_ACTION_DROP
  bool continues = false;                // IBV_FLOW_ATTR_FLAGS_DONT_TRAP: the next rules are compared too
  SteeringKey value, mask;               // kNormal
  AttachedQueuePair* qp = nullptr;       // the owner of the rule
  std::shared_ptr<const RssQueues> rss;  // receive the frames instead of the owner; null: none
  uint32_t id = 0;                       // set by the table
};

// Modified while all tokens are held, read with any token.
class SteeringTable {
 public:
  static constexpr size_t kMaxRules = 256;

  // Returns the rule's id. ENOMEM if the table is full. The rule must be removed before its queue pairs are destroyed.
  Result<uint32_t> add(SteeringRule rule);
  void remove(uint32_t id);
  // Those that the queue pair owns, and those that can select it.
  void remove_all(const AttachedQueuePair& qp);

  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] bool has_sniffers() const { return sniffers_ > 0; }

  // Calls deliver(AttachedQueuePair&) for each queue pair that receives the frame: that of the first matching rule, and
  // those of rules with the same priority and the same fields. Returns whether a rule matches; its frame may be dropped.
  template <class F>
  bool steer(const SteeringKey& key, F&& deliver) const {
    const SteeringRule* first = nullptr;
    bool any = false;
    for (const SteeringRule& rule : rules_) {
      if (rule.kind == SteeringRule::Kind::kSniffer) break;
      if (first != nullptr && !is_same_match(*first, rule)) break;
      if (!is_match(rule, key)) continue;
      any = true;
      if (!rule.continues) first = &rule;
      if (!rule.drops) deliver(rule.rss == nullptr ? *rule.qp : rule.rss->select(key));
    }
    return any;
  }
  // Calls deliver(AttachedQueuePair&) for each sniffer.
  template <class F>
  void sniff(F&& deliver) const {
    for (size_t i = rules_.size() - sniffers_; i < rules_.size(); ++i) deliver(*rules_[i].qp);
  }

 private:
  static bool is_match(const SteeringRule& rule, const SteeringKey& key);
  static bool is_same_match(const SteeringRule& a, const SteeringRule& b) {
    return a.kind == b.kind && a.priority == b.priority && a.value == b.value && a.mask == b.mask;
  }

  // In the order of comparison; equal ones next to each other; sniffers last.
  std::vector<SteeringRule> rules_;
  size_t sniffers_ = 0;
  uint32_t next_id_ = 1;
};

}  // namespace roci
