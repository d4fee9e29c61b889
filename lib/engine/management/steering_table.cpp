#include "engine/management/steering_table.hpp"

#include <algorithm>

#include "engine/worker/attached_queue_pair.hpp"

namespace roci {
namespace {

constexpr std::array<uint8_t, 6> kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

bool precedes(const SteeringRule& a, const SteeringRule& b) {
  return a.kind != b.kind ? a.kind < b.kind : a.priority < b.priority;
}

}  // namespace

bool SteeringTable::is_match(const SteeringRule& rule, const SteeringKey& key) {
  switch (rule.kind) {
    case SteeringRule::Kind::kAllDefault:
      return true;
    case SteeringRule::Kind::kMulticastDefault:
      return (key.destination_mac[0] & 1) != 0 && key.destination_mac != kBroadcast;
    default:
      return matches(key, rule.value, rule.mask);
  }
}

Result<uint32_t> SteeringTable::add(SteeringRule rule) {
  if (rules_.size() == kMaxRules) {
    return fail(
        "flow rule: the device has " + std::to_string(kMaxRules) + " rules, the maximum; destroy one first",
        ENOMEM);
  }
  do {
    rule.id = next_id_++;
  } while (rule.id == 0 ||
           std::ranges::any_of(rules_, [&](const SteeringRule& other) { return other.id == rule.id; }));
  auto place =
      std::ranges::find_if(rules_, [&](const SteeringRule& other) { return is_same_match(other, rule); });
  if (place == rules_.end()) place = std::upper_bound(rules_.begin(), rules_.end(), rule, precedes);
  rules_.insert(place, rule);
  sniffers_ += rule.kind == SteeringRule::Kind::kSniffer ? 1 : 0;
  return rule.id;
}

void SteeringTable::remove(uint32_t id) {
  const auto found = std::ranges::find(rules_, id, &SteeringRule::id);
  if (found == rules_.end()) return;
  sniffers_ -= found->kind == SteeringRule::Kind::kSniffer ? 1 : 0;
  rules_.erase(found);
}

void SteeringTable::remove_all(const AttachedQueuePair& qp) {
  std::erase_if(rules_, [&](const SteeringRule& rule) {
    return rule.qp == &qp || (rule.rss != nullptr && std::ranges::count(rule.rss->queues, &qp) > 0);
  });
  sniffers_ =
      static_cast<size_t>(std::ranges::count(rules_, SteeringRule::Kind::kSniffer, &SteeringRule::kind));
}

}  // namespace roci
