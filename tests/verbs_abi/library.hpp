#pragma once

// The two libraries that are compared, in one process: ours and the one that is installed. They have one SONAME; loaded by
// their paths, and each for itself, they do not meet.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace roci {

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) give_up();
  }

  // A call by its name; `Call` is its type.
  template <class Call>
  Call* get(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) give_up();
    return reinterpret_cast<Call*>(found);
  }

 private:
  [[noreturn]] static void give_up() {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }

  void* handle_;  // kept until the process ends, as programs do
};

inline const Library& ours() {
  static const Library library(ROCI_LIBIBVERBS);
  return library;
}

inline const Library& installed() {
  static const Library library(INSTALLED_LIBIBVERBS);
  return library;
}

}  // namespace roci
