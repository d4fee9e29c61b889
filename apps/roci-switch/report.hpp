// Port statistics of a switch as a text table.
#pragma once

#include <cstdio>
#include <vector>

#include "base/types.hpp"
#include "port/sim/faulty_port.hpp"
#include "switch/switch.hpp"

namespace roci {

class SwitchReport {
 public:
  // `faulty`: the ports of the switch if they inject faults, otherwise empty.
  explicit SwitchReport(const Switch& sw, const std::vector<FaultyPort*>& faulty = {});

  // Prints counts since the start, and rates since the last call, or since construction. The caller flushes the output.
  void print(std::FILE* out, Nanos now);
  // Prints counts and average rates since the start.
  void print_total(std::FILE* out, Nanos now);
  void start(Nanos now);

 private:
  struct Sample {
    uint64_t rx_bytes = 0, tx_bytes = 0;
  };
  void print_classes(std::FILE* out, int width);
  void print_shapers(std::FILE* out);
  void print_injected(std::FILE* out);
  void print_since(std::FILE* out, const std::vector<Sample>& from, Nanos span);
  [[nodiscard]] std::vector<Sample> sample() const;

  const Switch& switch_;
  std::vector<FaultyPort*> faulty_;
  std::vector<Sample> last_;
  Nanos started_{0}, last_time_{0};
};

}  // namespace roci
