// Objects of the API own their resources, so none can be copied: a copy would release them twice.
#include <gtest/gtest.h>

#include <type_traits>

#include "roci/device.hpp"

namespace roci {
namespace {

template <class T>
constexpr bool kIsOwner = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(kIsOwner<Device>);
static_assert(kIsOwner<ProtectionDomain>);
static_assert(kIsOwner<QueuePair>);
static_assert(kIsOwner<CompletionQueue>);
static_assert(kIsOwner<CompletionChannel>);
static_assert(kIsOwner<SharedReceiveQueue>);
static_assert(kIsOwner<AddressHandle>);
static_assert(kIsOwner<MemoryRegion>);
static_assert(kIsOwner<MemoryWindow>);
static_assert(kIsOwner<XrcDomain>);

}  // namespace
}  // namespace roci
