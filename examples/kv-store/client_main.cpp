// kv-client --config FILE HOST: executes commands from the standard input, one per line. Prints one line per result:
//
//   put KEY VALUE   ->  ok          the value is the rest of the line
//   get KEY         ->  value VALUE, or missing
//   delete KEY      ->  ok, or missing
//   repeated        ->  repeated N  number of repeated READs so far
//
// or "error: …". After a connection loss it exits with code 1.
#include <cstdio>
#include <iostream>
#include <string_view>

#include "arguments.hpp"
#include "client.hpp"
#include "connection.hpp"
#include "roci/open.hpp"

namespace {

constexpr const char* kUsage = "usage: kv-client --config FILE [--port P] [--timeout T] HOST";

std::string outcome(const roci::Status& status) {
  if (status) return "ok";
  return status.error().code == ENOENT ? "missing" : "error: " + status.error().message;
}

std::string carry_out(kv::Client& client, const std::string& line) {
  const size_t first = line.find(' ');
  const std::string command = line.substr(0, first);
  const std::string rest = first == std::string::npos ? "" : line.substr(first + 1);
  if (command == "put") {
    const size_t second = rest.find(' ');
    return outcome(
        client.put(rest.substr(0, second), second == std::string::npos ? "" : rest.substr(second + 1)));
  }
  if (command == "get") {
    const auto value = client.get(rest);
    return value ? "value " + *value : outcome(roci::fail(value.error()));
  }
  if (command == "delete") return outcome(client.remove(rest));
  if (command == "repeated") return "repeated " + std::to_string(client.repeated());
  return "error: unknown command '" + command + "'; allowed are put, get, delete, repeated";
}

roci::Status run(int count, char** words) {
  auto arguments = kv::Arguments::parse(
      count, words,
      {{"--config", ""}, {"--port", "7471"}, {"--timeout", std::to_string(kv::kDefaultTimeout)}});
  if (!arguments) return roci::fail(arguments.error());
  if (arguments->text("--config").empty() || arguments->word().empty()) return roci::fail(kUsage);
  const auto timeout = arguments->number("--timeout", 31);
  if (!timeout) return roci::fail(timeout.error());
  kv::ClientConfig config;
  config.host = arguments->word();
  config.port = arguments->text("--port");
  config.timeout = static_cast<uint8_t>(*timeout);

  auto device = roci::open_device(arguments->text("--config"));
  if (!device) return roci::fail(device.error());
  auto client = kv::Client::connect(**device, config);
  if (!client) return roci::fail(client.error());
  std::printf("connected\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", carry_out(**client, line).c_str());
    std::fflush(stdout);
    if ((*client)->lost()) return roci::fail(*(*client)->lost());
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string_view(words[1]) == "--help") return std::puts(kUsage) < 0 ? 1 : 0;
  const roci::Status status = run(count, words);
  if (status) return 0;
  std::fprintf(stderr, "kv-client: %s\n", status.error().message.c_str());
  return 1;
}
