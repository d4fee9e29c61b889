#include "engine/management/management.hpp"

#include <rte_mbuf.h>

#include <algorithm>

namespace roci {

void Management::set_class(uint8_t management_class, ManagementClass* user) {
  const auto free_or_its = std::find_if(classes_.begin(), classes_.end(), [&](const Class& one) {
    return one.user == nullptr || one.number == management_class;
  });
  *free_or_its = {management_class, user};
  wake();
}

ManagementClass* Management::user_of(uint8_t number) const {
  for (const Class& one : classes_) {
    if (one.number == number) return one.user;
  }
  return nullptr;
}

bool Management::admits(const FrameView& view, const rte_mbuf* frame, Nanos now) {
  bool from_unknown_peer = true;
  if (view.payload_offset + sizeof(MadHeader) <= rte_pktmbuf_data_len(frame)) {
    const auto& mad = view.at<MadHeader>(view.payload_offset);
    const ManagementClass* user = user_of(mad.management_class);
    from_unknown_peer = user == nullptr || user->is_from_unknown_peer(mad);
  }
  if ((from_unknown_peer ? from_unknown_peers_ : others_).allow(now)) return true;
  counters_.add(Counter::kMadsDropped);
  return false;
}

void Management::handle(const FrameView& view, const rte_mbuf* frame, Nanos now) {
  counters_.add(Counter::kMadsReceived);
  const bool is_one =
      view.opcode->operation == Operation::kSend && view.opcode->transport == TransportClass::kUd &&
      !view.opcode->has(Header::kImmDt) && view.deth().qkey.get() == kManagementQKey.value() &&
      view.deth().source_qp.get() == kManagementQp.value() && neighbors_.is_own(view.destination_ip()) &&
      !view.source_ip().is_multicast() && view.payload_length == kMadBytes;
  std::array<uint8_t, kMadBytes> mad;
  ManagementClass* user = nullptr;
  if (is_one && copy_datagram(view, frame, mad) == kMadBytes)
    user = user_of(reinterpret_cast<const MadHeader*>(mad.data())->management_class);
  if (user == nullptr) {
    counters_.add(Counter::kMadsRefused);
    return;
  }
  user->on_mad(
      {.local = view.destination_ip(), .remote = view.source_ip(), .next_hop = view.ethernet().source}, mad,
      now);
  wake();  // the MAD may require work before the last deadline
}

Resolution Management::find_path(const MadRoute& route, RocePath& path, Nanos now) {
  path.source_mac = mac_;
  path.destination_mac = route.next_hop;
  path.source_ip = route.local;
  path.destination_ip = route.remote;
  path.vlan_id = vlan_id_;
  path.traffic_class = route.traffic_class;
  path.hop_limit = route.hop_limit;
  if (!route.next_hop.is_zero()) {
    // An answer. The source MAC address of the request is used only for an unknown neighbor: otherwise a host of the link
    // could obtain the answers to requests that it sends with the IP address of another one.
    if (const auto known = neighbors_.known_mac(route.remote, now)) path.destination_mac = *known;
    return Resolution::kResolved;
  }
  const Lookup next_hop = neighbors_.resolve(route.remote, now);
  if (next_hop.result == Resolution::kResolved) path.destination_mac = next_hop.entry->mac;
  return next_hop.result;
}

MadSent Management::send(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) {
  RocePath path;
  const Resolution found = find_path(route, path, now);
  if (found == Resolution::kPending) return MadSent::kLater;
  if (found == Resolution::kFailed) return MadSent::kUnreachable;
  SendOutcome outcome = SendOutcome::kBackpressure;
  if (waiting_.empty()) outcome = send_now(path, mad);
  if (outcome == SendOutcome::kSent) return MadSent::kYes;
  if (outcome == SendOutcome::kAborted) return MadSent::kUnreachable;  // longer than the port's MTU
  if (waiting_.size() == kMaxWaiting) return MadSent::kLater;
  Waiting& last = waiting_.emplace_back();
  last.path = path;
  std::copy(mad.begin(), mad.end(), last.mad.begin());
  wake();
  return MadSent::kYes;
}

uint32_t Management::write(const MadRoute& route, std::span<const uint8_t, kMadBytes> mad,
                           std::span<uint8_t, kMaxMadFrame> frame, Nanos now) {
  RocePath path;
  if (find_path(route, path, now) != Resolution::kResolved) return 0;
  RoceWriter writer(path);
  write_datagram(frame.data(), writer, fields(), kMadBytes, fill_with(mad));
  return writer.frame_bytes(opcode_info(fields().opcode()), kMadBytes);
}

DatagramFields Management::fields() const {
  return {.destination_qp = kManagementQp,
          .source_qp = kManagementQp,
          .qkey = kManagementQKey,
          .psn = psn_,
          .ack_request = true,
          .udp_source_port = datagram_udp_source_port(kManagementQp)};
}

SendOutcome Management::send_now(const RocePath& path, std::span<const uint8_t, kMadBytes> mad) {
  RoceWriter writer(path);
  const SendOutcome outcome = send_datagram(sink_, writer, fields(), mad);
  if (outcome == SendOutcome::kSent) {
    psn_ = psn_ + 1;
    counters_.add(Counter::kMadsSent);
  }
  return outcome;
}

bool Management::send_waiting() {
  bool any = false;
  while (!waiting_.empty() &&
         send_now(waiting_.front().path, waiting_.front().mad) != SendOutcome::kBackpressure) {
    waiting_.pop_front();
    any = true;
  }
  return any;
}

bool Management::poll_classes(Nanos now) {
  bool worked = send_waiting();
  for (const Class& one : classes_) {
    if (one.user != nullptr) worked |= one.user->poll(now);
  }
  due_ = kNever;
  for (const Class& one : classes_) {
    if (one.user != nullptr) due_ = std::min(due_, one.user->next_deadline());
  }
  if (has_waiting()) wake();
  return worked;
}

}  // namespace roci
