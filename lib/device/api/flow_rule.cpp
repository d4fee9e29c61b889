// Flow rules of the C++ API: conversion of ibv_flow_attr to rules of the steering table.
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "device/host/host.hpp"
#include "roci/device.hpp"

namespace roci {
namespace {

// Sets masked bits of `field`, in the value and in the mask of a rule.
template <class Field, class Filter>
void compare(SteeringRule& rule, Field SteeringKey::*field, const Filter& value, const Filter& mask) {
  Field& to = rule.value.*field;
  Field& bits = rule.mask.*field;
  static_assert(sizeof to >= sizeof value);
  std::memcpy(&to, &value, sizeof value);
  std::memcpy(&bits, &mask, sizeof mask);
  auto* const v = reinterpret_cast<uint8_t*>(&to);
  const auto* const m = reinterpret_cast<const uint8_t*>(&bits);
  for (size_t i = 0; i < sizeof to; ++i) v[i] &= m[i];
}

void require(SteeringRule& rule, uint8_t SteeringKey::*field, uint8_t value) {
  rule.value.*field = value;
  rule.mask.*field = 0xff;
}

void read_ethernet(SteeringRule& rule, const ibv_flow_spec_eth& spec) {
  compare(rule, &SteeringKey::destination_mac, spec.val.dst_mac, spec.mask.dst_mac);
  compare(rule, &SteeringKey::source_mac, spec.val.src_mac, spec.mask.src_mac);
  compare(rule, &SteeringKey::ether_type, spec.val.ether_type, spec.mask.ether_type);
  compare(rule, &SteeringKey::vlan_tag, spec.val.vlan_tag, spec.mask.vlan_tag);
}

// `spec`: of IPv4, with or without further fields, or of IPv6.
template <class Spec>
void read_addresses(SteeringRule& rule, uint8_t ip_version, const Spec& spec) {
  require(rule, &SteeringKey::ip_version, ip_version);
  compare(rule, &SteeringKey::source_ip, spec.val.src_ip, spec.mask.src_ip);
  compare(rule, &SteeringKey::destination_ip, spec.val.dst_ip, spec.mask.dst_ip);
}

void read_ipv4(SteeringRule& rule, const ibv_flow_spec_ipv4_ext& spec) {
  read_addresses(rule, 4, spec);
  compare(rule, &SteeringKey::protocol, spec.val.proto, spec.mask.proto);
  compare(rule, &SteeringKey::traffic_class, spec.val.tos, spec.mask.tos);
  compare(rule, &SteeringKey::hop_limit, spec.val.ttl, spec.mask.ttl);
  compare(rule, &SteeringKey::ip_flags, spec.val.flags, spec.mask.flags);
}

void read_ipv6(SteeringRule& rule, const ibv_flow_spec_ipv6& spec) {
  read_addresses(rule, 6, spec);
  compare(rule, &SteeringKey::flow_label, spec.val.flow_label, spec.mask.flow_label);
  compare(rule, &SteeringKey::protocol, spec.val.next_hdr, spec.mask.next_hdr);
  compare(rule, &SteeringKey::traffic_class, spec.val.traffic_class, spec.mask.traffic_class);
  compare(rule, &SteeringKey::hop_limit, spec.val.hop_limit, spec.mask.hop_limit);
}

void read_ports(SteeringRule& rule, const ibv_flow_spec_tcp_udp& spec, uint8_t protocol) {
  require(rule, &SteeringKey::ports_of, protocol);
  compare(rule, &SteeringKey::source_port, spec.val.src_port, spec.mask.src_port);
  compare(rule, &SteeringKey::destination_port, spec.val.dst_port, spec.mask.dst_port);
}

// Size of a specification of this type; no value if the type is not supported.
std::optional<size_t> size_of(ibv_flow_spec_type type) {
  switch (type) {
    case IBV_FLOW_SPEC_ETH:
      return sizeof(ibv_flow_spec_eth);
    case IBV_FLOW_SPEC_IPV4:
      return sizeof(ibv_flow_spec_ipv4);
    case IBV_FLOW_SPEC_IPV4_EXT:
      return sizeof(ibv_flow_spec_ipv4_ext);
    case IBV_FLOW_SPEC_IPV6:
      return sizeof(ibv_flow_spec_ipv6);
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
      return sizeof(ibv_flow_spec_tcp_udp);
    case IBV_FLOW_SPEC_ACTION_DROP:
      return sizeof(ibv_flow_spec_action_drop);
    default:
      return std::nullopt;
  }
}

// The specification at `bytes`, whose size has been checked.
template <class Spec>
Spec spec_at(const uint8_t* bytes) {
  Spec spec;
  std::memcpy(&spec, bytes, sizeof spec);
  return spec;
}

void read_spec(SteeringRule& rule, ibv_flow_spec_type type, const uint8_t* bytes) {
  switch (type) {
    case IBV_FLOW_SPEC_ETH:
      return read_ethernet(rule, spec_at<ibv_flow_spec_eth>(bytes));
    case IBV_FLOW_SPEC_IPV4:
      return read_addresses(rule, 4, spec_at<ibv_flow_spec_ipv4>(bytes));
    case IBV_FLOW_SPEC_IPV4_EXT:
      return read_ipv4(rule, spec_at<ibv_flow_spec_ipv4_ext>(bytes));
    case IBV_FLOW_SPEC_IPV6:
      return read_ipv6(rule, spec_at<ibv_flow_spec_ipv6>(bytes));
    case IBV_FLOW_SPEC_TCP:
      return read_ports(rule, spec_at<ibv_flow_spec_tcp_udp>(bytes), kProtocolTcp);
    case IBV_FLOW_SPEC_UDP:
      return read_ports(rule, spec_at<ibv_flow_spec_tcp_udp>(bytes), kProtocolUdp);
    default:
      rule.drops = true;
  }
}

Result<SteeringRule::Kind> read_kind(ibv_flow_attr_type type) {
  switch (type) {
    case IBV_FLOW_ATTR_NORMAL:
      return SteeringRule::Kind::kNormal;
    case IBV_FLOW_ATTR_ALL_DEFAULT:
      return SteeringRule::Kind::kAllDefault;
    case IBV_FLOW_ATTR_MC_DEFAULT:
      return SteeringRule::Kind::kMulticastDefault;
    case IBV_FLOW_ATTR_SNIFFER:
      return SteeringRule::Kind::kSniffer;
    default:
      return fail("flow rule: type " + std::to_string(type) + " is unknown; 0 to 3 are allowed");
  }
}

Result<SteeringRule> read_rule(const ibv_flow_attr& attr) {
  constexpr uint32_t kFlags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
  if (attr.comp_mask != 0) return fail("flow rule: comp_mask must be 0");
  if (attr.port != 1)
    return fail("flow rule: port " + std::to_string(attr.port) + " does not exist; the only port is 1");
  if ((attr.flags & ~kFlags) != 0)
    return fail("flow rule: flags " + std::to_string(attr.flags & ~kFlags) + " are not supported",
                EOPNOTSUPP);
  auto kind = read_kind(attr.type);
  if (!kind) return fail(kind.error());
  if (*kind != SteeringRule::Kind::kNormal && attr.num_of_specs != 0)
    return fail("flow rule: only rules of type IBV_FLOW_ATTR_NORMAL have specifications");
  SteeringRule rule;
  rule.kind = *kind;
  rule.priority = attr.priority;
  rule.continues = (attr.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) != 0;
  const auto* spec = reinterpret_cast<const uint8_t*>(&attr + 1);
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    const auto header = spec_at<ibv_flow_spec_action_drop>(spec);  // starts as all others
    const std::optional<size_t> size = size_of(header.type);
    const std::string which = "flow rule: specification " + std::to_string(i);
    if (!size) {
      return fail(which + " has type " + std::to_string(header.type) +
                      "; supported are ETH, IPV4, IPV4_EXT, IPV6, TCP, UDP and ACTION_DROP",
                  EOPNOTSUPP);
    }
    if (header.size != *size)
      return fail(which + " has " + std::to_string(header.size) + " bytes instead of " +
                  std::to_string(*size));
    read_spec(rule, header.type, spec);
    spec += *size;
  }
  return rule;
}

Status check_rss(const RssTable& rss) {
  if (rss.queues.size() > RssTable::kMaxQueues || !std::has_single_bit(rss.queues.size())) {
    return fail("flow rule: " + std::to_string(rss.queues.size()) +
                " queues of receive side scaling; a power of two, at most " +
                std::to_string(RssTable::kMaxQueues) + ", is allowed");
  }
  if ((rss.fields & ~RssTable::kFields) != 0)
    return fail("flow rule: only addresses, and ports of TCP and UDP, can be hashed", EOPNOTSUPP);
  return {};
}

}  // namespace

Result<std::unique_ptr<FlowRule>> QueuePair::create_flow(const ibv_flow_attr& attr, const RssTable* rss) {
  if (attached_->core.config.type != IBV_QPT_RAW_PACKET)
    return fail("flow rule: only raw packet queue pairs have flow rules", EOPNOTSUPP);
  auto rule = read_rule(attr);
  if (!rule) return fail(rule.error());
  if (rule->kind == SteeringRule::Kind::kSniffer && host_->workers() > 1)
    return fail("flow rule: a sniffer requires a device with one worker", EOPNOTSUPP);
  rule->qp = attached_.get();
  if (rss != nullptr) {
    ROCI_TRY(check_rss(*rss));
    if (rule->kind == SteeringRule::Kind::kSniffer)
      return fail("flow rule: a sniffer cannot use receive side scaling", EOPNOTSUPP);
    auto queues = std::make_shared<RssQueues>();
    queues->key = rss->key;
    queues->fields = rss->fields;
    for (const QueuePair* queue : rss->queues) {
      if (queue->host_ != host_ || queue->attached_->core.config.type != IBV_QPT_RAW_PACKET)
        return fail("flow rule: the queues must be raw packet queue pairs of the same device");
      queues->queues.push_back(queue->attached_.get());
    }
    rule->rss = std::move(queues);
  }
  const std::scoped_lock guard(host_->all_workers());
  auto id = host_->steering().add(*rule);
  if (!id) return fail(id.error());
  return std::unique_ptr<FlowRule>(new FlowRule(host_, *id));
}

FlowRule::FlowRule(std::shared_ptr<Host> host, uint32_t id) : host_(std::move(host)), id_(id) {}

FlowRule::~FlowRule() {
  const std::scoped_lock guard(host_->all_workers());
  host_->steering().remove(id_);
}

}  // namespace roci
