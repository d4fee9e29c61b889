// The handles that exist, by type. A handle that was destroyed already is refused instead of used, and import calls find
// objects by their number.
#pragma once

#include <mutex>
#include <unordered_set>

#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {

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
    objects_.insert(object);
  }
  void remove(Object* object) {
    const std::scoped_lock guard(mutex_);
    objects_.erase(object);
  }
  [[nodiscard]] bool contains(const void* handle) const {
    const std::scoped_lock guard(mutex_);
    return objects_.contains(const_cast<Object*>(static_cast<const Object*>(handle)));
  }
  // The first object that fulfills the condition; null if there is none.
  template <class Condition>
  [[nodiscard]] Object* find(Condition&& condition) const {
    const std::scoped_lock guard(mutex_);
    for (Object* object : objects_) {
      if (condition(*object)) return object;
    }
    return nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<Object*> objects_;
};

// For calls that destroy a handle: 0, EINVAL for a handle that does not exist (any more), or EIO in a forked child.
template <class Object, class Handle>
int check_handle(const Handle* handle) {
  if (const int code = refuse_child(); code != 0) return code;
  return LiveHandles<Object>::table().contains(handle) ? 0 : refuse_with(EINVAL);
}

// Destroys an object that `check_handle` has accepted.
template <class Object>
void destroy_handle(Object& object) {
  LiveHandles<Object>::table().remove(&object);
  delete &object;
}

// Makes an object known and returns it.
template <class Object>
Object* live(Object* object) {
  LiveHandles<Object>::table().add(object);
  return object;
}

}  // namespace roci::verbs
