#pragma once

// The two libraries to compare, loaded into one process: the drop-in library and the installed one. They have the
// same SONAME. Loaded by path and with RTLD_LOCAL, they do not share symbols.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace roci {

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) give_up();
  }

  bool has(const char* name) const { return dlsym(handle_, name) != nullptr; }

  // Returns a function by its name; `Call` is its type.
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

  void* handle_;  // Never closed, as in applications.
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
