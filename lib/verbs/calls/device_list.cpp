// ibv_get_device_list, queries of a device that is not open, and opening and closing of devices.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/os/memory_file.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/objects.hpp"
#include "verbs/process/fork_guard.hpp"
#include "verbs/process/process_device.hpp"

#undef ibv_get_device_list

namespace roci::verbs {
namespace {

// The descriptor `cmd_fd` of contexts, by which ibv_import_device() recognizes the device. It has no other use. -1 if the
// process cannot have another descriptor; the device works without.
int device_descriptor() {
  static const int descriptor = create_memory_file("roci-device", MFD_CLOEXEC);
  return descriptor;
}

bool is_device_descriptor(int descriptor) {
  struct stat own = {};
  struct stat other = {};
  return fstat(device_descriptor(), &own) == 0 && fstat(descriptor, &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// `descriptor` belongs to the context then; -1: the context gets one.
ibv_context* open_context(ibv_device* device, int descriptor) {
  auto opened = open_listed_device();
  if (!opened) {
    log().error("{}", opened.error().message);  // programs do not print the reason
    return refuse(opened.error().code);
  }
  auto* context = new Context;
  context->device = std::move(*opened);
  fill_calls(*context);
  ibv_context* handle = context->handle();
  handle->device = device;
  handle->cmd_fd = descriptor >= 0 ? descriptor : fcntl(device_descriptor(), F_DUPFD_CLOEXEC, 0);
  handle->async_fd = context->device->async_fd();
  handle->num_comp_vectors = 1;
  handle->abi_compat = __VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&handle->mutex, nullptr);
  note_context(*handle);
  return handle;
}

}  // namespace
}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  ibv_device* device = listed_device();
  if (count != nullptr) *count = device == nullptr ? 0 : 1;
  auto** list = new (std::nothrow) ibv_device* [2] { device, nullptr };
  if (list == nullptr) return refuse(ENOMEM);
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

// In network byte order.
__be64 ibv_get_device_guid(ibv_device*) { return listed_guid(); }

int ibv_get_device_index(ibv_device*) { return 0; }

ibv_context* ibv_open_device(ibv_device* device) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  return open_context(device, -1);
}

int ibv_close_device(ibv_context* handle) {
  if (is_forked_child()) return 0;  // nothing to close; programs call it at exit
  if (!remove_context(*handle)) return refuse_with(EINVAL);
  Context& context = Context::of(handle);
  send_pending(*context.device, nullptr);
  destroy_addresses(*handle);
  if (handle->cmd_fd >= 0) close(handle->cmd_fd);
  pthread_mutex_destroy(&handle->mutex);
  delete &context;
  return 0;
}

// Another context of the device of this process, which closes the descriptor with the context. An open device cannot be
// used by another process.
ibv_context* ibv_import_device(int descriptor) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if (fcntl(descriptor, F_GETFD) < 0) return refuse(EBADF);
  if (!is_device_descriptor(descriptor)) return refuse(EOPNOTSUPP);
  return open_context(listed_device(), descriptor);
}

}  // extern "C"
