// The handles that exist, by type. A handle that was destroyed already, or whose number was overwritten, is refused
// instead of used: with the kernel's verbs, the number identifies the object. Import calls find objects by their number.
#pragma once

#include <mutex>
#include <unordered_map>

#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {

// The number in the struct that programs hold; 0 for types without numbers.
template <class Object>
uint32_t number_of(const Object& object) {
  if constexpr (requires { object.verbs.handle; }) return object.verbs.handle;
  if constexpr (requires { object.verbs.qp_base.handle; }) return object.verbs.qp_base.handle;
  return 0;
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
    objects_.emplace(object, number_of(*object));
  }
  void remove(Object* object) {
    const std::scoped_lock guard(mutex_);
    objects_.erase(object);
  }
  [[nodiscard]] bool contains(const void* handle) const {
    const std::scoped_lock guard(mutex_);
    const auto found = objects_.find(const_cast<Object*>(static_cast<const Object*>(handle)));
    return found != objects_.end() && found->second == number_of(*found->first);
  }
  // The first object that fulfills the condition; null if there is none.
  template <class Condition>
  [[nodiscard]] Object* find(Condition&& condition) const {
    const std::scoped_lock guard(mutex_);
    for (const auto& [object, number] : objects_) {
      if (condition(*object)) return object;
    }
    return nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Object*, uint32_t> objects_;
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
