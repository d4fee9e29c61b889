#include "roci-lab/ranks.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#ifdef ROCI_MPI
#include <mpi.h>
#endif

namespace roci::lab {
namespace {

// Environment variables by which Open MPI and the launchers of the PMI family mark a process as one of several.
bool started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (secure_getenv(name) != nullptr) return true;
  return false;
}

}  // namespace

Ranks::Ranks(Ranks&& other) noexcept
    : number_(other.number_), count_(other.count_), joined_(std::exchange(other.joined_, false)) {}

#ifdef ROCI_MPI

namespace {

constexpr int kRequest = 1, kAnswer = 2;  // MPI tags

Ranks::Bytes receive(const MPI_Status& status) {
  int length = 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  Ranks::Bytes bytes(static_cast<size_t>(length));
  MPI_Recv(bytes.data(), length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return bytes;
}
void send(const Ranks::Bytes& bytes, int rank, int tag) {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

}  // namespace

Result<Ranks> Ranks::join() {
  Ranks ranks(0, 1);
  if (!started_by_launcher()) return ranks;
  // Later MPI failures abort all ranks: MPI's default error handler prints the error.
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_FUNNELED)
    return fail("MPI does not support threads (MPI_THREAD_FUNNELED)");
  ranks.joined_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.number_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.count_);
  return ranks;
}

Ranks::~Ranks() {
  if (joined_) MPI_Finalize();
}

Ranks::Bytes Ranks::request_job(const Bytes& request) {
  send(request, 0, kRequest);
  MPI_Status status;
  MPI_Probe(0, kAnswer, MPI_COMM_WORLD, &status);
  return receive(status);
}

Ranks::Request Ranks::next_request() {
  // MPI_Recv and MPI_Probe would poll and so use a CPU that the runs need.
  constexpr auto kPollInterval = std::chrono::milliseconds(1);
  MPI_Status status;
  for (int there = 0; there == 0;) {
    MPI_Iprobe(MPI_ANY_SOURCE, kRequest, MPI_COMM_WORLD, &there, &status);
    if (there == 0) std::this_thread::sleep_for(kPollInterval);
  }
  return {status.MPI_SOURCE, receive(status)};
}

void Ranks::answer(int rank, const Bytes& bytes) { send(bytes, rank, kAnswer); }

#else

Result<Ranks> Ranks::join() {
  if (started_by_launcher())
    return fail("this roci-lab was built without MPI; an MPI launcher is not supported");
  return Ranks(0, 1);
}

Ranks::~Ranks() = default;
Ranks::Bytes Ranks::request_job(const Bytes& /*request*/) { return {}; }
Ranks::Request Ranks::next_request() { return {}; }
void Ranks::answer(int /*rank*/, const Bytes& /*bytes*/) {}

#endif

}  // namespace roci::lab
