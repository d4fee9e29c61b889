// The functions of libnuma that DPDK's EAL calls, over Linux's system calls. Debian's libnuma.a cannot be linked into a shared
// library, because its thread-local variables are not position-independent.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kNodes = 1024, kWordBits = 8 * sizeof(unsigned long), kWords = kNodes / kWordBits };

// As in <numa.h>.
struct bitmask {
  unsigned long size;  // bits
  unsigned long* maskp;
};

long get_mempolicy(int* mode, unsigned long* nodes, unsigned long bits, void* address, unsigned flags);
long get_mempolicy(int* mode, unsigned long* nodes, unsigned long bits, void* address, unsigned flags) {
  return syscall(SYS_get_mempolicy, mode, nodes, bits, address, flags);
}

long set_mempolicy(int mode, const unsigned long* nodes, unsigned long bits);
long set_mempolicy(int mode, const unsigned long* nodes, unsigned long bits) {
  return syscall(SYS_set_mempolicy, mode, nodes, bits);
}

int numa_available(void);
int numa_available(void) { return get_mempolicy(NULL, NULL, 0, NULL, 0) == 0 ? 0 : -1; }

void numa_set_localalloc(void);
void numa_set_localalloc(void) { set_mempolicy(MPOL_LOCAL, NULL, 0); }

void numa_set_preferred(int node);
void numa_set_preferred(int node) {
  if (node < 0 || node >= kNodes) {
    numa_set_localalloc();
    return;
  }
  unsigned long nodes[kWords] = {0};
  nodes[(size_t)node / kWordBits] = 1UL << ((size_t)node % kWordBits);
  set_mempolicy(MPOL_PREFERRED, nodes, kNodes + 1);
}

struct bitmask* numa_allocate_nodemask(void);
struct bitmask* numa_allocate_nodemask(void) {
  struct bitmask* mask = calloc(1, sizeof *mask + kWords * sizeof(unsigned long));
  if (mask == NULL) return NULL;
  mask->size = kNodes;
  mask->maskp = (unsigned long*)(mask + 1);
  return mask;
}

void numa_bitmask_free(struct bitmask* mask);
void numa_bitmask_free(struct bitmask* mask) { free(mask); }
