// MPI job that verifies every byte: exchanges of 1 B to 4 MiB between neighbor ranks, sums of all ranks, and
// one-sided writes, reads and additions. Exit status 1, after a sentence, on any error.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMax = 4 << 20, kRounds = 3 };

static unsigned char byte_of(int rank, int length, int i) {
  return (unsigned char)(rank * 131 + length * 7 + i * 13);
}

static void fail(const char* what, int rank, int length, int at) {
  fprintf(stderr, "rank %d: %s is wrong at length %d, byte or element %d\n", rank, what, length, at);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_exchange(int rank, int ranks, unsigned char* out, unsigned char* in) {
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  for (int length = 1; length <= kMax; length *= 4) {
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < length; ++i) out[i] = byte_of(rank + round, length, i);
      MPI_Sendrecv(out, length, MPI_BYTE, next, round, in, length, MPI_BYTE, previous, round, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      for (int i = 0; i < length; ++i) {
        if (in[i] != byte_of(previous + round, length, i)) fail("MPI_Sendrecv", rank, length, i);
      }
    }
  }
}

static void check_sum(int rank, int ranks) {
  enum { kElements = 10000 };
  static long mine[kElements];
  static long sum[kElements];
  for (int i = 0; i < kElements; ++i) mine[i] = (long)rank * i;
  MPI_Allreduce(mine, sum, kElements, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kElements; ++i) {
    if (sum[i] != (long)ranks * (ranks - 1) / 2 * i) fail("MPI_Allreduce", rank, kElements, i);
  }
}

static void check_one_sided(int rank, int ranks) {
  enum { kElements = 1000, kAdds = 50 };
  long* base = NULL;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)((kElements * ranks + 1) * (int)sizeof(long)), sizeof(long), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &base, &window);
  for (int i = 0; i <= kElements * ranks; ++i) base[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  long mine[kElements];
  for (int i = 0; i < kElements; ++i) mine[i] = rank * 1000003L + i;
  MPI_Win_lock_all(0, window);
  for (int to = 0; to < ranks; ++to) {
    MPI_Put(mine, kElements, MPI_LONG, to, (MPI_Aint)rank * kElements, kElements, MPI_LONG, window);
  }
  for (int i = 0; i < kAdds; ++i) {
    const long one = 1;
    long before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, (MPI_Aint)kElements * ranks, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_flush_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  long theirs[kElements];
  const int from = (rank + 1) % ranks;
  MPI_Get(theirs, kElements, MPI_LONG, from, (MPI_Aint)rank * kElements, kElements, MPI_LONG, window);
  long count = 0;
  MPI_Get(&count, 1, MPI_LONG, 0, (MPI_Aint)kElements * ranks, 1, MPI_LONG, window);
  MPI_Win_flush_all(window);
  for (int i = 0; i < kElements; ++i) {
    if (theirs[i] != mine[i]) fail("MPI_Put or MPI_Get", rank, kElements, i);
  }
  if (count != (long)kAdds * ranks) fail("MPI_Fetch_and_op", rank, 1, (int)count);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char* out = malloc(kMax);
  unsigned char* in = malloc(kMax);
  if (out == NULL || in == NULL) fail("memory", rank, kMax, 0);
  check_exchange(rank, ranks, out, in);
  check_sum(rank, ranks);
  check_one_sided(rank, ranks);
  if (rank == 0) printf("%d ranks: all bytes as they should be\n", ranks);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
