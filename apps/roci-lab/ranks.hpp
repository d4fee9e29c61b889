// The processes that mpirun has started, which share the runs of one file: the first keeps the list and the results, the
// others ask it for work and hand in what has become of it. A program that was started alone is the first of one.
// From one thread alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace roci::lab {

class Ranks {
 public:
  using Bytes = std::vector<uint8_t>;

  // Fails where mpirun has started a program that was built without MPI.
  static Result<Ranks> join();
  Ranks(Ranks&& other) noexcept;
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Ranks& operator=(Ranks&&) = delete;

  [[nodiscard]] bool is_first() const { return number_ == 0; }
  [[nodiscard]] int count() const { return count_; }

  // Of the others: hands something in and waits for the answer.
  Bytes ask(const Bytes& request);
  // Of the first: waits for what one of the others hands in. Each wants one answer.
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
  bool joined_ = false;  // MPI is to be left at the end
};

}  // namespace roci::lab
