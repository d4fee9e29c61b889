// Memory regions and windows of the C++ API.
#include <cstdint>
#include <mutex>
#include <utility>

#include "device/host/host.hpp"
#include "memory/mapped_range.hpp"
#include "roci/device.hpp"

namespace roci {
namespace {

// Checks that memory is mapped with the required access, as the Linux kernel does when it pins memory: access that can
// modify it requires it to be writable. Not checked for on-demand regions, which may be mapped later, and on devices
// without payload, which do not access memory.
Status check_memory(const Host& host, const void* address, size_t length, int access) {
  constexpr int kChanges =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0 || host.config().header_only) return {};
  return check_mapped(address, length, (access & kChanges) != 0);
}

uint64_t own_iova(const void* address, int access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : reinterpret_cast<uint64_t>(address);
}

}  // namespace

Result<std::unique_ptr<MemoryRegion>> ProtectionDomain::register_memory(void* address, size_t length,
                                                                        int access) {
  return register_memory(address, length, own_iova(address, access), access);
}

Result<std::unique_ptr<MemoryRegion>> ProtectionDomain::register_memory(void* address, size_t length,
                                                                        uint64_t iova, int access) {
  ROCI_TRY(MemoryTable::check_region(address, iova, length, access));
  ROCI_TRY(check_memory(*host_, address, length, access));  // before the tokens: the workers continue
  const std::scoped_lock guard(host_->all_workers());
  auto key = host_->memory().add(PdNumber{number_}, address, length, iova, access);
  if (!key) return fail(key.error());
  return std::unique_ptr<MemoryRegion>(
      new MemoryRegion(host_, number_, address, length, iova, access, key->value()));
}

Result<std::unique_ptr<MemoryRegion>> ProtectionDomain::allocate_null_region() {
  const std::scoped_lock guard(host_->all_workers());
  auto key = host_->memory().add_null(PdNumber{number_});
  if (!key) return fail(key.error());
  std::unique_ptr<MemoryRegion> region(
      new MemoryRegion(host_, number_, nullptr, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE, key->value()));
  region->verbs_.rkey = 0;
  return region;
}

Result<std::unique_ptr<MemoryWindow>> ProtectionDomain::allocate_window(ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    return fail("memory window: type " + std::to_string(static_cast<int>(type)) +
                " does not exist; 1 and 2 are allowed");
  }
  const std::scoped_lock guard(host_->all_workers());
  auto key = host_->memory().add_window(PdNumber{number_}, type == IBV_MW_TYPE_1 ? 1 : 2);
  if (!key) return fail(key.error());
  return std::unique_ptr<MemoryWindow>(new MemoryWindow(host_, type, key->value()));
}

MemoryRegion::MemoryRegion(std::shared_ptr<Host> host, uint32_t pd, void* address, size_t length,
                           uint64_t iova, int access, uint32_t key)
    : host_(std::move(host)), pd_(pd), iova_(iova), access_(access) {
  verbs_.addr = address;
  verbs_.length = length;
  verbs_.lkey = verbs_.rkey = key;
}

MemoryRegion::~MemoryRegion() {
  const std::scoped_lock guard(host_->all_workers());
  if (!registered_) return;
  host_->memory().remove(MemoryKey{lkey()});
  host_->withdraw_grants();
}

Status MemoryRegion::deregister() {
  const std::scoped_lock guard(host_->all_workers());
  if (!registered_) return fail("memory region: already deregistered");
  ROCI_TRY(host_->memory().check_removable(MemoryKey{lkey()}));
  host_->memory().remove(MemoryKey{lkey()});
  host_->withdraw_grants();
  registered_ = false;
  return {};
}

Status MemoryRegion::reregister(int flags, const ProtectionDomain* pd, void* address, size_t length,
                                int access) {
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
    return fail("memory region: re-registration flags " + std::to_string(flags) +
                " are 0 or unknown; translation (1), domain (2) and access (4) are allowed");
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == nullptr || pd->host_ != host_))
    return fail("memory region: the new protection domain must belong to the same device");
  const std::scoped_lock guard(host_->all_workers());
  if (!registered_) return fail("memory region: already deregistered");
  if (rkey() == 0) return fail("memory region: a null region cannot be re-registered");
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const int next_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? access : access_;
  const uint32_t next_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd->number_ : pd_;
  void* const next_address = moves ? address : verbs_.addr;
  const size_t next_length = moves ? length : verbs_.length;
  const bool base_changes = ((next_access ^ access_) & IBV_ACCESS_ZERO_BASED) != 0;
  const uint64_t next_iova = moves || base_changes ? own_iova(next_address, next_access) : iova_;
  if (moves || next_access != access_) {
    ROCI_TRY(MemoryTable::check_region(next_address, next_iova, next_length, next_access));
    ROCI_TRY(check_memory(*host_, next_address, next_length, next_access));
  }
  ROCI_TRY(host_->memory().replace(MemoryKey{lkey()}, PdNumber{next_pd}, next_address, next_length, next_iova,
                                   next_access));
  host_->withdraw_grants();
  verbs_.addr = next_address;
  verbs_.length = next_length;
  iova_ = next_iova;
  access_ = next_access;
  pd_ = next_pd;
  return {};
}

MemoryWindow::MemoryWindow(std::shared_ptr<Host> host, ibv_mw_type type, uint32_t key)
    : host_(std::move(host)) {
  verbs_.type = type;
  verbs_.rkey = key;
}

MemoryWindow::~MemoryWindow() {
  const std::scoped_lock guard(host_->all_workers());
  host_->memory().remove(MemoryKey{rkey()});
}

}  // namespace roci
