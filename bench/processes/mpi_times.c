// Times of MPI operations. `pingpong BYTES ROUNDS` prints half of the round trip between ranks 0 and 1, `allreduce
// BYTES ROUNDS` the time of a sum over all ranks. Both are medians in microseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static void exchange(int rank, int peer, char* bytes, int length) {
  if (rank == 0) {
    MPI_Send(bytes, length, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(bytes, length, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(bytes, length, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(bytes, length, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int length = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
  const int rounds = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;
  const int pingpong = argc == 4 && strcmp(argv[1], "pingpong") == 0;
  if (length <= 0 || rounds <= 0 || (!pingpong && strcmp(argv[1], "allreduce") != 0) || ranks < 2) {
    if (rank == 0)
      fprintf(stderr, "usage: mpi-times pingpong|allreduce BYTES ROUNDS, with two ranks or more\n");
    MPI_Finalize();
    return 2;
  }
  char* const bytes = calloc((size_t)length, 1);
  char* const sum = calloc((size_t)length, 1);
  double* const times = calloc((size_t)rounds, sizeof(double));
  for (int round = -rounds / 10; round < rounds; ++round) {  // negative rounds: warm-up
    const double begin = MPI_Wtime();
    if (!pingpong) {
      MPI_Allreduce(bytes, sum, length / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank < 2) {
      exchange(rank, 1 - rank, bytes, length);
    }
    if (round >= 0) times[round] = (MPI_Wtime() - begin) * 1e6 / (pingpong ? 2 : 1);
  }
  qsort(times, (size_t)rounds, sizeof(double), compare);
  if (rank == 0) printf("median_us %.3f\n", times[rounds / 2]);
  free(bytes);
  free(sum);
  free(times);
  MPI_Finalize();
  return 0;
}
