// Where the datagrams of UD queue pairs go. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace roci {

class Host;
struct AttachedAddress;

// As ibv_ah. Made by ProtectionDomain::create_address_handle(). May be destroyed while posted requests name it: they
// are sent all the same.
class AddressHandle {
 public:
  ~AddressHandle();
  AddressHandle(const AddressHandle&) = delete;
  AddressHandle& operator=(const AddressHandle&) = delete;
  // For ibv_send_wr::wr.ud.ah.
  [[nodiscard]] ibv_ah* handle() const;

 private:
  friend class ProtectionDomain;
  AddressHandle(std::shared_ptr<Host> host, std::unique_ptr<AttachedAddress> attached);
  std::shared_ptr<Host> host_;
  std::unique_ptr<AttachedAddress> attached_;
};

}  // namespace roci
