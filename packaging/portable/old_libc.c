// Functions that static libraries of a newer system require and that glibc 2.34 does not have. They are linked into each
// file of the portable archive and not exported.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// arc4random (glibc 2.36), for std::random_device.
uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
    if (errno != EINTR) abort();
  }
  return value;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// _dl_find_object (glibc 2.35), for the unwinder of libgcc: the object that contains an address, and its table of frames.
struct search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int visit(struct dl_phdr_info* info, size_t bytes, void* argument) {
  (void)bytes;
  const struct search* search = argument;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  void* frames = NULL;
  int contains = 0;
  for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) frames = (void*)at;
    if (header->p_type != PT_LOAD) continue;
    if (at < begin) begin = at;
    if (at + header->p_memsz > end) end = at + header->p_memsz;
    if (search->address >= at && search->address - at < header->p_memsz) contains = 1;
  }
  if (!contains) return 0;
  if (frames == NULL) return -1;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void*)begin;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_link_map = NULL;
  search->result->dlfo_eh_frame = frames;
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
#endif

// libpcap's capture from D-Bus, which requires libdbus: no devices. roci-pcap only reads files.
int dbus_findalldevs(void* devices, char* error);
int dbus_findalldevs(void* devices, char* error) {
  (void)devices;
  (void)error;
  return 0;
}
void* dbus_create(const char* device, char* error, int* is_ours);
void* dbus_create(const char* device, char* error, int* is_ours) {
  (void)device;
  (void)error;
  *is_ours = 0;
  return NULL;
}
