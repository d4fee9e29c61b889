#include "roci-top/readers/telemetry_client.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace roci::top {
namespace {

constexpr size_t kMaxBytes = 1U << 16;  // DPDK sends at most 16 KiB

Error system_error(const std::string& what) {
  const int code = errno;
  return {what + ": " + std::generic_category().message(code), code};
}

}  // namespace

TelemetryClient::TelemetryClient(TelemetryClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), pid_(other.pid_) {}

TelemetryClient& TelemetryClient::operator=(TelemetryClient&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(pid_, other.pid_);
  return *this;
}

TelemetryClient::~TelemetryClient() {
  if (fd_ >= 0) close(fd_);
}

Result<TelemetryClient> TelemetryClient::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(path + " is too long for a UNIX socket");
  path.copy(address.sun_path, path.size());
  TelemetryClient made{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (made.fd_ < 0) return fail(system_error("a socket cannot be created"));
  const timeval timeout{0, kTimeoutMillis * 1000};
  setsockopt(made.fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(made.fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);  // also limits connect()
  if (::connect(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(system_error(path));
  const auto greeting = made.receive();
  if (!greeting) return fail(greeting.error().within(path));
  const auto pid = greeting->find("pid");
  if (pid == greeting->end() || !pid->is_number_integer())
    return fail(path + " is not a DPDK telemetry socket");
  made.pid_ = pid->get<int>();
  return made;
}

Result<nlohmann::json> TelemetryClient::request(const std::string& command) {
  if (send(fd_, command.data(), command.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(command.size()))
    return fail(system_error("the request cannot be sent"));
  auto answer = receive();
  if (!answer) return answer;
  if (answer->size() != 1) return fail("the response to " + command + " is invalid");
  return std::move(*answer->begin());
}

Result<nlohmann::json> TelemetryClient::receive() {
  std::string text(kMaxBytes, '\0');
  const ssize_t bytes = recv(fd_, text.data(), text.size(), 0);
  if (bytes < 0) return fail(system_error("the process does not respond"));
  if (bytes == 0) return fail("the process closed the connection", ECONNRESET);
  text.resize(static_cast<size_t>(bytes));
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return fail("the response is not a JSON object");
  return json;
}

}  // namespace roci::top
