// Memory ranges that can be registered. Both methods to query the kernel must agree.
#include "memory/mapped_range.hpp"

#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"
#include "support/process/mapping.hpp"

namespace roci::test {
namespace {

// Returns 0 or the errno; -1 if the methods differ.
int asked(uint64_t begin, uint64_t end, bool writable) {
  const auto code = [](const Status& status) { return status ? 0 : status.error().code; };
  const int listed = code(mapped_range::read_list(begin, end, writable));
  const int told = code(mapped_range::query_kernel(begin, end, writable));
  return told == listed || told == ENOTSUP ? listed : -1;  // old kernels do not support the query
}

TEST(MappedRange, is_valid_if_all_its_pages_are_mapped_with_the_required_rights) {
  Mapping pages(6);
  mprotect(pages.data() + 2 * kPage, kPage, PROT_READ);
  mprotect(pages.data() + 3 * kPage, kPage, PROT_NONE);
  pages.unmap(5);
  const auto of = [&](size_t begin, size_t end, bool writable) {
    return asked(pages.address(begin), pages.address(end), writable);
  };
  EXPECT_EQ(of(0, 2 * kPage, true), 0);
  EXPECT_EQ(of(100, 200, true), 0);
  EXPECT_EQ(of(0, 2 * kPage + 1, true), EFAULT);
  EXPECT_EQ(of(0, 3 * kPage, false), 0);
  EXPECT_EQ(of(0, 3 * kPage + 1, false), EFAULT);
  EXPECT_EQ(of(4 * kPage, 5 * kPage, true), 0);
  EXPECT_EQ(of(4 * kPage, 5 * kPage + 1, true), EFAULT);
  EXPECT_EQ(of(5 * kPage, 5 * kPage + 1, false), EFAULT);
  EXPECT_EQ(asked(0x10, 0x20, false), EFAULT);
  EXPECT_EQ(asked(~uint64_t{0} - 100, ~uint64_t{0} - 10, false), EFAULT);
}

TEST(Registration, unmapped_or_unwritable_memory_is_rejected) {
  LoneHost host;
  Mapping pages(4);
  pages.unmap(3);
  mprotect(pages.data() + 2 * kPage, kPage, PROT_READ);
  const auto code = [&](size_t offset, size_t length, int access) {
    const auto region = host.side.pd->register_memory(pages.data() + offset, length, access);
    return region ? 0 : region.error().code;
  };
  EXPECT_EQ(code(0, 2 * kPage, IBV_ACCESS_LOCAL_WRITE), 0);
  EXPECT_EQ(code(0, 3 * kPage, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(code(0, 3 * kPage, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(code(0, 3 * kPage, IBV_ACCESS_MW_BIND), EFAULT);
  EXPECT_EQ(code(0, 3 * kPage + 1, 0), EFAULT);
  EXPECT_EQ(code(3 * kPage, 0, 0), 0);  // an empty range is always valid
  EXPECT_EQ(code(0, SIZE_MAX, 0), EINVAL);
  const auto region = host.side.pd->register_memory(pages.data(), 3 * kPage, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_FALSE(region);
  EXPECT_NE(region.error().message.find("is not writable"), std::string::npos) << region.error().message;
}

TEST(Registration, reregistration_checks_memory_like_registration) {
  LoneHost host;
  Mapping pages(2);
  pages.protect(1, PROT_READ);
  const auto region = must(host.side.pd->register_memory(pages.data(), 2 * kPage, IBV_ACCESS_REMOTE_READ));
  const auto code = [](const Status& status) { return status ? 0 : status.error().code; };
  EXPECT_EQ(code(region->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE)),
            EFAULT);
  EXPECT_EQ(code(region->reregister(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                    pages.data(), kPage, IBV_ACCESS_LOCAL_WRITE)),
            0);
  EXPECT_EQ(code(region->reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, pages.data() + kPage, 8, 0)),
            EFAULT);
  EXPECT_EQ(region->length(), kPage);
}

TEST(Registration, on_demand_accepts_the_whole_address_space_and_later_mappings) {
  LoneHost host;
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND;
  const auto all = must(host.side.pd->register_memory(nullptr, SIZE_MAX, access));
  const auto write = [&](int ahead, uint64_t at) {
    Packet packet = host.write(Opcode::kRcWriteOnly, ahead, 0, 8, 8);
    packet.with_reth(at, MemoryKey{all->rkey()}, 8);
    return host.receive(packet);
  };
  Mapping pages(2);
  EXPECT_EQ(write(0, pages.address()), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(pages.data()[0], 1);
  EXPECT_EQ(write(1, uint64_t{1} << 63), Lines{"RC_ACK 1 62"});  // not a valid address
  EXPECT_EQ(host.side.counter("memory_faults"), 1U);
}

}  // namespace
}  // namespace roci::test
