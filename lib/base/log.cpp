#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace roci {
namespace {

constexpr std::pair<std::string_view, spdlog::level::level_enum> kLevels[] = {
    {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug}, {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},   {"error", spdlog::level::err},   {"off", spdlog::level::off},
};

std::optional<spdlog::level::level_enum> find_level(std::string_view name) {
  for (const auto& [known, level] : kLevels) {
    if (known == name) return level;
  }
  return std::nullopt;
}

spdlog::logger* make_logger() {
  // Never destroyed: DPDK's threads may log during the destruction of static objects.
  auto* logger = new spdlog::logger("roci", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%n: %l: %v");
  logger->set_level(spdlog::level::warn);
  if (const char* wanted = secure_getenv("ROCI_LOG"); wanted != nullptr) {
    if (const auto level = find_level(wanted)) {
      logger->set_level(*level);
    } else {
      logger->warn("ROCI_LOG: \"{}\" is not a log level; allowed are trace, debug, info, warn, error and off",
                   wanted);
    }
  }
  return logger;
}

}  // namespace

spdlog::logger& log() {
  static spdlog::logger* const kLogger = make_logger();
  return *kLogger;
}

}  // namespace roci
