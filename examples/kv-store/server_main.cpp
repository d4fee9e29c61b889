// kv-server --config FILE: provides the table until SIGINT or SIGTERM.
#include <csignal>
#include <cstdio>
#include <string_view>

#include "arguments.hpp"
#include "connection.hpp"
#include "roci/open.hpp"
#include "server.hpp"

namespace {

std::atomic<bool> stop{false};
constexpr const char* kUsage =
    "usage: kv-server --config FILE [--bind ADDRESS] [--port P] [--buckets N] [--clients N] [--timeout T]";
static_assert(std::atomic<bool>::is_always_lock_free);  // required for stores in a signal handler

roci::Status run(int count, char** words) {
  auto arguments = kv::Arguments::parse(count, words,
                                        {{"--config", ""},
                                         {"--bind", "127.0.0.1"},
                                         {"--port", "7471"},
                                         {"--buckets", "4096"},
                                         {"--clients", "64"},
                                         {"--timeout", std::to_string(kv::kDefaultTimeout)}});
  if (!arguments) return roci::fail(arguments.error());
  if (arguments->text("--config").empty() || !arguments->word().empty()) return roci::fail(kUsage);
  const auto buckets = arguments->number("--buckets", 1U << 20),
             clients = arguments->number("--clients", 1024), timeout = arguments->number("--timeout", 31);
  for (const auto* one : {&buckets, &clients, &timeout}) {
    if (!*one) return roci::fail(one->error());
  }
  kv::ServerConfig config;
  config.address = arguments->text("--bind");
  config.port = arguments->text("--port");
  config.buckets = *buckets;
  config.clients = static_cast<uint32_t>(*clients);
  config.timeout = static_cast<uint8_t>(*timeout);

  auto device = roci::open_device(arguments->text("--config"));
  if (!device) return roci::fail(device.error());
  auto server = kv::Server::open(**device, config);
  if (!server) return roci::fail(server.error());
  std::printf("serving on %s port %s\n", config.address.c_str(), config.port.c_str());
  std::fflush(stdout);
  return (*server)->run(stop);
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string_view(words[1]) == "--help") return std::puts(kUsage) < 0 ? 1 : 0;
  std::signal(SIGINT, [](int) { stop = true; });
  std::signal(SIGTERM, [](int) { stop = true; });
  const roci::Status status = run(count, words);
  if (status) return 0;
  std::fprintf(stderr, "kv-server: %s\n", status.error().message.c_str());
  return 1;
}
