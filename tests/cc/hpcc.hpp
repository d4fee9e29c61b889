// An HPCC++ flow, and telemetry for it.
#pragma once

#include <utility>

#include "cc/telemetry_flow.hpp"

namespace roci::test {

class Hpcc : public TelemetryFlow {
 public:
  // W_ai is 80, as in the vectors.
  explicit Hpcc(Values values = {}, const char* name = "hpcc", const roci_cc_flow& on = flow_of_vectors())
      : TelemetryFlow(name, with_step(std::move(values)), on) {}

  [[nodiscard]] double load() { return member(0); }
  [[nodiscard]] double window() { return member(1); }
  [[nodiscard]] double committed() { return member(2); }

 private:
  static Values with_step(Values values) {
    values.try_emplace("w_ai", 80);
    return values;
  }
};

}  // namespace roci::test
