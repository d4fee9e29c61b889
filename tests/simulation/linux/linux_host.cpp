#include "simulation/linux/linux_host.hpp"

#include <algorithm>
#include <cstring>

#include "simulation/linux/linux_queue_pair.hpp"
#include "support/ports/frames.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/nd.hpp"

namespace roci::test {

LinuxHost::LinuxHost(Port& port, std::shared_ptr<MbufPool> pool, const LinuxHostConfig& config,
                     std::function<void(const std::string&)> complain)
    : port_(port),
      pool_(std::move(pool)),
      config_(config),
      complain_(std::move(complain)),
      rng_(config.seed) {}

LinuxHost::~LinuxHost() {
  for (const Outgoing& outgoing : transmit_queue_) rte_pktmbuf_free(outgoing.frame);
}

MemoryKeys LinuxHost::register_memory(void* address, size_t length, int access) {
  const uint32_t key = next_region_++ << 8 | static_cast<uint32_t>(rng_.below(256));
  regions_[key] = {static_cast<uint8_t*>(address), length, access};
  return {key, key};
}

uint8_t* LinuxHost::remote_memory(MemoryKey key, uint64_t address, uint64_t length, int access) const {
  const auto found = regions_.find(key.value());
  if (found == regions_.end() || (found->second.access & access) != access) return nullptr;
  const auto begin = reinterpret_cast<uint64_t>(found->second.begin);
  if (address < begin || length > found->second.length || address - begin > found->second.length - length)
    return nullptr;
  return found->second.begin + (address - begin);
}

uint32_t LinuxHost::attach(LinuxQueuePair& qp) {
  queue_pairs_[next_number_] = &qp;
  return next_number_++;
}

void LinuxHost::detach(uint32_t number) { queue_pairs_.erase(number); }

bool LinuxHost::poll(Nanos now) {
  now_ = now;
  bool worked = pull(now);
  while (!backlog_.empty() && busy_until_ <= now) {
    const ByteVector frame = std::move(backlog_.front());
    backlog_.pop_front();
    busy_until_ = now + config_.packet_time;
    receive(frame);
    worked = true;
  }
  for (const auto& [number, qp] : queue_pairs_) {
    if (qp->next_deadline() <= now) worked |= qp->run();
  }
  return push(now) || worked;
}

Nanos LinuxHost::next_deadline() const {
  Nanos next = port_.next_arrival();
  if (!backlog_.empty()) next = std::min(next, busy_until_);
  // A full port wakes its sender (sim_link.hpp).
  if (!transmit_queue_.empty()) next = std::min(next, now_);
  for (const auto& [number, qp] : queue_pairs_) next = std::min(next, qp->next_deadline());
  return next;
}

bool LinuxHost::pull(Nanos now) {
  bool worked = false;
  rte_mbuf* frames[32];
  while (const uint16_t count = port_.rx_burst(frames, now)) {
    worked = true;
    for (uint16_t i = 0; i < count; ++i) {
      if (backlog_.size() < config_.backlog) {
        backlog_.push_back(bytes_of(frames[i]));
      } else {
        ++counters_["backlog_dropped"];
      }
      rte_pktmbuf_free(frames[i]);
    }
  }
  return worked;
}

bool LinuxHost::push(Nanos now) {
  bool worked = false;
  while (!transmit_queue_.empty()) {
    const Outgoing outgoing = transmit_queue_.front();
    rte_mbuf* frame = outgoing.frame;
    if (port_.tx_burst({&frame, 1}, now) == 0) break;
    transmit_queue_.pop_front();
    const auto owner = queue_pairs_.find(outgoing.owner);
    if (owner != queue_pairs_.end()) owner->second->sent_frame();
    worked = true;
  }
  if (!worked) return false;
  for (const auto& [number, qp] : queue_pairs_) qp->queue_has_room();
  return true;
}

void LinuxHost::receive(const ByteVector& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length);
  if (view.kind == FrameKind::kArp || view.kind == FrameKind::kIpv6) {
    answer_address_resolution(frame, view);
    return;
  }
  if (view.kind != FrameKind::kRoce || view.destination_ip() != config_.address ||
      view.vlan_id() != config_.vlan || (view.bth().pkey.get() & 0x7fff) != 0x7fff) {
    ++counters_["dropped"];
    return;
  }
  if (stored_icrc(view) != compute_icrc(view)) {
    ++counters_["bad_icrc"];
    return;
  }
  if (view.bth().has_extensions()) complain_("a standard peer received a packet with an extension block");
  const auto found = queue_pairs_.find(view.destination_qp().value());
  const auto packet = decode_packet(frame);
  if (found == queue_pairs_.end() || view.opcode->transport != TransportClass::kRc || !packet) {
    ++counters_["dropped"];  // also datagrams to queue pair 1 of an unknown management class, and CNPs
    return;
  }
  found->second->receive(*packet, *view.opcode);
}

void LinuxHost::answer_address_resolution(const ByteVector& frame, const FrameView& view) {
  ByteVector answer(128);
  const std::span<const uint8_t> bytes(frame);
  if (view.kind == FrameKind::kArp) {
    const auto arp = parse_arp(bytes.subspan(view.l3_offset));
    if (!arp || arp->operation != ArpOperation::kRequest || arp->target_ip != config_.address) return;
    answer.resize(build_arp(
        {arp->sender_mac, port_.mac(), config_.vlan},
        {ArpOperation::kReply, port_.mac(), config_.address, arp->sender_mac, arp->sender_ip}, answer));
  } else {
    const size_t offset = view.l3_offset + sizeof(Ipv6Header);
    if (frame.size() < offset + view.ip6().payload_length.get()) return;
    const auto nd = parse_nd(view, bytes.subspan(offset, view.ip6().payload_length.get()));
    if (!nd || nd->advertisement || nd->target != config_.address || !nd->link_layer) return;
    answer.resize(build_nd({*nd->link_layer, port_.mac(), config_.vlan},
                           {.advertisement = true,
                            .source = config_.address,
                            .destination = nd->source,
                            .target = config_.address,
                            .link_layer = port_.mac(),
                            .solicited = true,
                            .override_cache = true},
                           answer));
  }
  queue_frame(answer, 0);
}

void LinuxHost::transmit(Packet packet, const IpAddress& to, uint32_t owner) {
  packet.between(port_.mac(), config_.address, neighbors_.at(to), to);
  if (config_.vlan != 0) packet.with_vlan(config_.vlan);
  if (!packet.ipv6()) packet.v4().id = ip_id_++;
  queue_frame(encode_packet(packet.finish()), owner);
}

void LinuxHost::queue_frame(const ByteVector& frame, uint32_t owner) {
  rte_mbuf* mbuf = transmit_queue_.size() < kTransmitQueue ? to_mbuf(*pool_, frame) : nullptr;
  const auto found = queue_pairs_.find(owner);
  if (mbuf == nullptr) {
    ++counters_["transmit_dropped"];
    return;
  }
  if (found != queue_pairs_.end()) found->second->queued_frame();
  transmit_queue_.push_back({mbuf, owner});
}

}  // namespace roci::test
