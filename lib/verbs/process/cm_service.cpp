// For librdmacm.so.1 of the same build: the connection manager of the process's device.
#include "cm/service.hpp"

#include <cerrno>

#include "verbs/process/fork_guard.hpp"
#include "verbs/process/process_device.hpp"

extern "C" roci::cm::Service* roci_cm_service(ibv_context*) {
  if (roci::verbs::refuse_child() != 0) return nullptr;
  return &roci::verbs::connection_manager();
}
