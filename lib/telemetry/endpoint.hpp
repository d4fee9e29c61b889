// Telemetry endpoint: a command that other processes of the same user can send on DPDK's telemetry socket, with
// dpdk-telemetry.py or roci-top:
//
//   auto ports = Endpoint::open("/roci/switch/ports", "Ports of a switch. Parameters: switch",
//                               [&](std::string_view parameters) {
//     return Result<TelemetryAnswer>{TelemetryList{"p1", "p2"}};
//   });
//
// DPDK cannot unregister a command. Endpoints are therefore in a table of this module, and data that a handler uses may
// be destroyed after its endpoint. The socket exists if the EAL was started with telemetry (EalConfig).
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

// Names and values, in this order. DPDK accepts up to 256 names of letters, digits, '_' and '/', and texts of up to 127
// bytes; longer texts are truncated.
using TelemetryValue = std::variant<uint64_t, std::string>;
using TelemetryMap = std::vector<std::pair<std::string, TelemetryValue>>;
using TelemetryList = std::vector<std::string>;

// Table of rows with the same names, and a few single values. It is sent by column, so that no name is repeated:
// {"next":7,"qpn":[3,5],"state":["RTS","ERR"]}.
class TelemetryTable {
 public:
  TelemetryMap facts;  // single values

  // Adds rows, all or none. Their names and kinds of values must be those of the first row. Returns false if they
  // exceed the size of an answer.
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

// The part of a list from `first` on that fits into an answer. The client repeats the command after it until the part
// is empty.
TelemetryList telemetry_page(const TelemetryList& all, size_t first);

// Command registered on the telemetry socket, with its handler.
class Endpoint {
 public:
  // Handler of a command. `parameters` is the text after the first comma, or empty. DPDK's threads call it, one at a
  // time over all endpoints, so it may only read data that any thread may read, and must not open or destroy endpoints.
  // An error is sent as a text instead of a map or a list.
  using Handler = std::function<Result<TelemetryAnswer>(std::string_view parameters)>;

  // Fails if DPDK rejects the command's name, or if the command has an endpoint already.
  static Result<std::unique_ptr<Endpoint>> open(std::string command, const std::string& help,
                                                Handler handler);
  // After it returns, the handler is not running and is not called again.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  explicit Endpoint(std::string command) : command_(std::move(command)) {}
  std::string command_;
};

}  // namespace roci
