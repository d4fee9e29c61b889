#include "cm/manager.hpp"

#include <algorithm>
#include <cerrno>

namespace roci::cm {
namespace {

constexpr Nanos kCheckInterval{1'000'000};  // interval of checks for an address resolution

// Nearest time code.
uint8_t code_of(Nanos time) {
  uint8_t code = 0;
  while (code < kMaxTimeCode && 2 * time > 3 * duration_of(code)) ++code;
  return code;
}

// EUI-64 with 62 random bits, locally administered and not of a group (the two low bits of the first byte).
uint64_t random_guid(IdSource& ids) {
  const uint64_t bits = uint64_t{ids.next32()} << 32 | ids.next32();
  return (bits & ~(uint64_t{1} << 56)) | uint64_t{2} << 56;
}

}  // namespace

Manager::Manager(Host& host, const ConnectionManagerConfig& config, const Limits& limits)
    : host_(host),
      timeouts_{.response_timeout = code_of(config.response_timeout), .retries = config.retries},
      agent_(*this, host.ids(), random_guid(host.ids()), limits) {
  Worker& first = host_.worker(0);
  const std::scoped_lock guard(first.token());
  first.management().set_class(kCmClass, this);
}

Manager::~Manager() {
  Worker& first = host_.worker(0);
  const std::scoped_lock guard(first.token());
  first.management().set_class(kCmClass, nullptr);
}

bool Manager::poll(Nanos now) {
  const bool worked = agent_.poll(now);
  return query_timers_.advance(
             now, [&](Timer& timer) { check_resolution(static_cast<AddressQuery&>(timer), now); }) > 0 ||
         worked;
}

Nanos Manager::next_deadline() const {
  return std::min(agent_.next_deadline(), query_timers_.next_deadline());
}

// An unreachable peer is handled like one that does not respond, so only kLater is a failure.
bool Manager::send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) {
  return host_.worker(0).management().send(route, mad, now) != MadSent::kLater;
}

uint32_t Manager::store(uint32_t kept, const Route& route, std::span<const uint8_t, kMadBytes> mad) {
  static_assert(kMaxMadFrame <= CrashNoticeSlot::kMaxBytes && kNotStored == CrashNoticeFile::kNone);
  std::array<uint8_t, kMaxMadFrame> frame;
  const uint32_t length = host_.worker(0).management().write(route, mad, frame, host_.time_of_call());
  return crash_notice_->store(kept, std::span(frame).first(length));
}

void Manager::remove(uint32_t kept) {
  if (crash_notice_ != nullptr) crash_notice_->remove(kept);
}

void Manager::store_crash_notices_in(std::unique_ptr<CrashNoticeFile> file) {
  with([&](Agent&, Nanos) { crash_notice_ = std::move(file); });
}

void Manager::check_resolution(AddressQuery& query, Nanos now) {
  switch (host_.worker(0).neighbors().resolve(query.address_, now).result) {
    case Resolution::kResolved:
      return query.on_resolved({});
    case Resolution::kFailed:
      return query.on_resolved(fail(query.address_.to_string() + " does not answer", EHOSTUNREACH));
    case Resolution::kPending:
      break;
  }
  if (now >= query.give_up_)
    return query.on_resolved(fail(query.address_.to_string() + " did not answer in time", ETIMEDOUT));
  query_timers_.schedule(query, std::min(now + kCheckInterval, query.give_up_));
}

void Manager::resolve(AddressQuery& query, const IpAddress& address, Nanos timeout) {
  with([&](Agent&, Nanos now) {
    query.address_ = address;
    query.give_up_ = now + timeout;
    query_timers_.schedule(query, now);
  });
}

void Manager::give_up(AddressQuery& query) {
  with([&](Agent&, Nanos) { query_timers_.cancel(query); });
}

void Manager::leave() {
  with([](Agent& agent, Nanos now) { agent.leave(now); });
}

bool Manager::is_disconnecting() {
  return with([&](Agent& agent, Nanos) { return !stores() && agent.is_disconnecting(); });
}

Status Manager::listen(Listener& listener) {
  return with([&](Agent& agent, Nanos) { return agent.listen(listener); });
}

void Manager::ignore(Listener& listener) {
  with([&](Agent& agent, Nanos) { agent.ignore(listener); });
}

Status Manager::connect(const Route& route, const CmRequest& request, uint32_t options, EventHandler& handler,
                        Connection*& made) {
  return with([&](Agent& agent, Nanos now) -> Status {
    const auto started = agent.connect(route, request, options, handler, now);
    if (!started) return fail(started.error());
    made = *started;
    return {};
  });
}

Status Manager::accept(Connection& connection, const CmReply& reply, uint32_t options) {
  return with([&](Agent& agent, Nanos now) { return agent.accept(connection, reply, options, now); });
}

Status Manager::ready(Connection& connection, const CmReady& message) {
  return with([&](Agent& agent, Nanos now) { return agent.ready(connection, message, now); });
}

Status Manager::reject(Connection& connection, const CmRejected& message) {
  return with([&](Agent& agent, Nanos now) { return agent.reject(connection, message, now); });
}

Status Manager::established(Connection& connection) {
  return with([&](Agent& agent, Nanos now) { return agent.established(connection, now); });
}

Status Manager::disconnect(Connection& connection, const CmDisconnect& message) {
  return with([&](Agent& agent, Nanos now) { return agent.disconnect(connection, message, now); });
}

Status Manager::reply_disconnect(Connection& connection, const CmDisconnected& message) {
  return with([&](Agent& agent, Nanos now) { return agent.reply_disconnect(connection, message, now); });
}

Status Manager::request_service(const Route& route, const CmServiceRequest& request, EventHandler& handler,
                                Connection*& made) {
  return with([&](Agent& agent, Nanos now) -> Status {
    const auto requested = agent.request_service(route, request, kPacketLifetime, timeouts_.response_timeout,
                                                 timeouts_.retries, handler, now);
    if (!requested) return fail(requested.error());
    made = *requested;
    return {};
  });
}

Status Manager::reply_service(Connection& connection, const CmServiceReply& reply, uint32_t options) {
  return with([&](Agent& agent, Nanos now) { return agent.reply_service(connection, reply, options, now); });
}

void Manager::destroy(Connection& connection) {
  with([&](Agent& agent, Nanos now) { agent.destroy(connection, now); });
}

}  // namespace roci::cm
