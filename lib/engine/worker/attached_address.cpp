#include "engine/worker/attached_address.hpp"

namespace roci {

PathSource::Answer AddressResolver::find(AttachedAddress& to, Nanos now) {
  AddressView& view = to.views[worker_];
  auto result = Resolution::kFailed;
  if (view.neighbor) {
    result = neighbors_.use(*view.neighbor, now);
  } else {
    const Lookup lookup = neighbors_.resolve(to.path.destination_ip, now);
    if (lookup.entry != nullptr) view.neighbor = neighbors_.hold(*lookup.entry);
    result = lookup.result;
  }
  if (result == Resolution::kPending) {
    pending_ = true;
    return {PathState::kPending};
  }
  if (result == Resolution::kFailed) return {PathState::kUnreachable};
  if (!view.laid_out || view.neighbor_version != view.neighbor->version) {
    RocePath path = to.path;
    path.destination_mac = view.neighbor->mac;
    view.writer = RoceWriter(path, contents_);
    view.neighbor_version = view.neighbor->version;
    view.laid_out = true;
  }
  return {PathState::kReady, &view.writer};
}

void RetiredAddresses::add(std::unique_ptr<AttachedAddress> address) {
  addresses_.push_back(std::move(address));
  std::erase_if(addresses_, [](const auto& a) { return a->uses.load(std::memory_order_acquire) == 0; });
}

}  // namespace roci
