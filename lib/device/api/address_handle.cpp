#include <mutex>
#include <utility>

#include "device/host/address.hpp"
#include "device/host/host.hpp"
#include "roci/device.hpp"

namespace roci {

Result<std::unique_ptr<AddressHandle>> ProtectionDomain::create_address_handle(const ibv_ah_attr& attr) {
  if (attr.port_num != 1) {
    return fail("address handle: port " + std::to_string(attr.port_num) +
                " does not exist; the only port is 1");
  }
  auto path = read_path(*host_, attr, "address handle", Destinations::kHostsAndGroups);
  if (!path) return fail(path.error());
  const uint32_t most = host_->largest_path_mtu(!path->destination_ip.is_v4());
  auto attached = std::make_unique<AttachedAddress>(*path, PdNumber{number_}, most, host_->workers());
  attached->may_tag = is_notified(host_->config().congestion, *path);
  if (const Status counted = host_->take(LimitedObject::kAddressHandle); !counted)
    return fail(counted.error());
  return std::unique_ptr<AddressHandle>(new AddressHandle(host_, std::move(attached)));
}

AddressHandle::AddressHandle(std::shared_ptr<Host> host, std::unique_ptr<AttachedAddress> attached)
    : host_(std::move(host)), attached_(std::move(attached)) {}

AddressHandle::~AddressHandle() {
  const std::scoped_lock guard(host_->all_workers());
  host_->retired_addresses().add(std::move(attached_));
  host_->release(LimitedObject::kAddressHandle);
}

ibv_ah* AddressHandle::handle() const { return attached_.get(); }

}  // namespace roci
