// The processes that mpirun has started, which share the runs of one file. Rank 0 has the job list and the results; the
// other ranks request jobs from it and return outcomes. A program started without a launcher is rank 0 of 1.
// Called from one thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace roci::lab {

class Ranks {
 public:
  using Bytes = std::vector<uint8_t>;

  // Fails if a launcher has started a program that was built without MPI.
  static Result<Ranks> join();
  Ranks(Ranks&& other) noexcept;
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Ranks& operator=(Ranks&&) = delete;

  [[nodiscard]] bool is_first() const { return number_ == 0; }
  [[nodiscard]] int count() const { return count_; }

  // On ranks other than 0: sends a request to rank 0 and waits for the answer.
  Bytes request_job(const Bytes& request);
  // On rank 0: waits for a request from any other rank. Each request requires one answer().
  struct Request {
    int rank = 0;
    Bytes bytes;
  };
  Request next_request();
  void answer(int rank, const Bytes& bytes);

 private:
  Ranks(int number, int count) : number_(number), count_(count) {}

  int number_;
  int count_;
  bool joined_ = false;  // the destructor calls MPI_Finalize()
};

}  // namespace roci::lab
