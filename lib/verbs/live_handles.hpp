// The handles that exist, by type. A handle that was destroyed already, or whose number or context was overwritten, is
// refused instead of used: with the kernel's verbs, these identify the object. Import calls find objects by their number.
#pragma once

#include <infiniband/verbs.h>

#include <mutex>
#include <unordered_map>

#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {

// Values in the struct that programs hold, by which the kernel's verbs find the object. A type without one of them has 0.
struct HandleIdentity {
  uint32_t number = 0;
  const ibv_context* context = nullptr;
  bool operator==(const HandleIdentity&) const = default;
};

template <class Object>
HandleIdentity identity_of(const Object& object) {
  HandleIdentity identity;
  if constexpr (requires { object.verbs.handle; }) identity.number = object.verbs.handle;
  if constexpr (requires { object.verbs.qp_base.handle; }) identity.number = object.verbs.qp_base.handle;
  if constexpr (requires { object.verbs.context; }) identity.context = object.verbs.context;
  if constexpr (requires { object.verbs.qp_base.context; }) identity.context = object.verbs.qp_base.context;
  return identity;
}

// Thread-safe. `Object` starts with the struct that programs hold.
template <class Object>
class LiveHandles {
 public:
  // Never destroyed: programs destroy handles while they exit.
  static LiveHandles& table() {
    static auto* const table = new LiveHandles;
    return *table;
  }

  void add(Object* object) {
    const std::scoped_lock guard(mutex_);
    objects_.emplace(object, identity_of(*object));
  }
  void remove(Object* object) {
    const std::scoped_lock guard(mutex_);
    objects_.erase(object);
  }
  [[nodiscard]] bool contains(const void* handle) const {
    const std::scoped_lock guard(mutex_);
    const auto found = objects_.find(const_cast<Object*>(static_cast<const Object*>(handle)));
    return found != objects_.end() && found->second == identity_of(*found->first);
  }
  // The first object that fulfills the condition; null if there is none.
  template <class Condition>
  [[nodiscard]] Object* find(Condition&& condition) const {
    const std::scoped_lock guard(mutex_);
    for (const auto& [object, identity] : objects_) {
      if (condition(*object)) return object;
    }
    return nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Object*, HandleIdentity> objects_;
};

// For control calls that use a handle: 0; ENOENT, as in Linux, for a handle that does not exist (any more); EIO in a
// forked child. Both set errno.
template <class Object, class Handle>
int check_handle(const Handle* handle) {
  if (const int code = refuse_child(); code != 0) return code;
  return LiveHandles<Object>::table().contains(handle) ? 0 : refuse_with(ENOENT);
}

// Destroys an object that `check_handle` has accepted.
template <class Object>
void destroy_handle(Object& object) {
  LiveHandles<Object>::table().remove(&object);
  delete &object;
}

// Makes a complete object known and returns it.
template <class Object>
Object* live(Object* object) {
  LiveHandles<Object>::table().add(object);
  return object;
}

}  // namespace roci::verbs
