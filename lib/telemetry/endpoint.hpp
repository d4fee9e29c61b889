// A question that other processes of the same user may ask this one on DPDK's telemetry socket, with dpdk-telemetry.py or
// roci-top:
//
//   auto ports = Endpoint::open("/roci/switch/ports", "Ports of a switch. Parameters: switch", [&](std::string_view of) {
//     return Result<TelemetryAnswer>{TelemetryList{"p1", "p2"}};
//   });
//
// DPDK cannot forget a question once it knows it; what asks here is a table of ours, so what an answer needs may be
// destroyed after its endpoint. The socket is there when the EAL was started with telemetry (EalConfig).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace roci {

// Names and values, in this order. DPDK takes names of letters, digits, '_' and '/', 256 of them, and texts of up to 127
// bytes; what is longer is cut.
using TelemetryValue = std::variant<uint64_t, std::string>;
using TelemetryMap = std::vector<std::pair<std::string, TelemetryValue>>;
using TelemetryList = std::vector<std::string>;

// Rows that all have the same names, with a few facts beside them. It is answered column by column, so that no name comes
// twice: {"next":7,"qpn":[3,5],"state":["RTS","ERR"]}.
class TelemetryTable {
 public:
  TelemetryMap facts;  // short

  // Adds rows whose names and kinds of values are those of the first one, all or none. False when an answer has no room for
  // them any more.
  bool add(std::span<const TelemetryMap> rows);

  using Column = std::variant<std::vector<uint64_t>, std::vector<std::string>>;
  [[nodiscard]] const std::vector<std::pair<std::string, Column>>& columns() const { return columns_; }
  [[nodiscard]] size_t rows() const { return rows_; }

 private:
  void append(const TelemetryMap& row);

  std::vector<std::pair<std::string, Column>> columns_;
  size_t rows_ = 0, bytes_ = 0;
};

using TelemetryAnswer = std::variant<TelemetryMap, TelemetryList, TelemetryTable>;

// As much of a list as one answer has room for, from `first` on. Whoever asks goes on behind it until nothing comes.
TelemetryList telemetry_page(const TelemetryList& all, size_t first);

class Endpoint {
 public:
  // What is behind the first comma of the question, or nothing. Called by threads of DPDK's, one at a time over all
  // endpoints, so it reads what any thread may read, and neither opens nor destroys an endpoint. An error is answered with
  // its sentence, as a text instead of a map or a list.
  using Handler = std::function<Result<TelemetryAnswer>(std::string_view parameters)>;

  // Fails when the command is no name for DPDK or has an endpoint already.
  static Result<std::unique_ptr<Endpoint>> open(std::string command, const std::string& help,
                                                Handler handler);
  // When it returns, the handler is not running and will not be called any more.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  explicit Endpoint(std::string command) : command_(std::move(command)) {}
  std::string command_;
};

}  // namespace roci
