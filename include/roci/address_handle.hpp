// Address handle: destination of UD datagrams. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace roci {

class Host;
struct AttachedAddress;

// Destination of UD datagrams, as ibv_ah. Created by ProtectionDomain::create_address_handle(). It may be destroyed
// while posted requests use it; they are still sent.
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
