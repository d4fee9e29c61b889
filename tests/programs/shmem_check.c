// OpenSHMEM job that verifies every byte: puts to the next processing element, gets from the previous one, atomic
// additions and a compare-and-swap. Exit status 1, after a sentence, on any error.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBytes = 65536, kRounds = 50 };

static unsigned char byte_of(int element, int round, int i) {
  return (unsigned char)(i * 7 + element + round);
}

static void must(int good, const char* what, int element) {
  if (good) return;
  fprintf(stderr, "element %d: %s\n", element, what);
  shmem_global_exit(1);
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), elements = shmem_n_pes();
  const int next = (me + 1) % elements, previous = (me + elements - 1) % elements;
  unsigned char *in = shmem_malloc(kBytes), *out = shmem_malloc(kBytes), *got = malloc(kBytes);
  long *sum = shmem_malloc(sizeof(long)), *turns = shmem_malloc(sizeof(long));
  must(in != NULL && out != NULL && got != NULL && sum != NULL && turns != NULL, "out of memory", me);
  *sum = *turns = 0;
  shmem_barrier_all();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBytes; ++i) out[i] = byte_of(me, round, i);
    shmem_putmem(in, out, kBytes, next);
    shmem_barrier_all();
    shmem_getmem(got, out, kBytes, previous);
    for (int i = 0; i < kBytes; ++i) {
      must(in[i] == byte_of(previous, round, i), "a put has written other data", me);
      must(got[i] == byte_of(previous, round, i), "a get has read other data", me);
    }
    for (int element = 0; element < elements; ++element) shmem_long_atomic_fetch_add(sum, me + 1, element);
    if (me == round % elements) shmem_long_atomic_compare_swap(turns, round, round + 1, 0);
    shmem_barrier_all();
  }
  must(*sum == (long)kRounds * elements * (elements + 1) / 2, "the sum is wrong", me);
  must(me != 0 || *turns == kRounds, "a compare-and-swap is lost", me);
  shmem_barrier_all();
  if (me == 0) printf("%d elements: all data correct\n", elements);
  shmem_finalize();
  return 0;
}
