// _dl_find_object (glibc 2.35), for the unwinder of libgcc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// The object that contains an address, and its table of frames.
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
