#include "roci-perf/measurement/session.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "roci-perf/connection/control.hpp"

namespace roci::perf {
namespace {

Json round_message(uint64_t size, const Endpoint& endpoint) {
  Json pairs = Json::array();
  for (const QueuePairAddress& address : endpoint.addresses()) pairs.push_back(address.to_string());
  return {{"round", size}, {"queue_pairs", pairs}};
}

Result<std::vector<QueuePairAddress>> addresses_of(const Json& message, uint64_t size) {
  std::vector<QueuePairAddress> list;
  try {
    if (message.at("round").get<uint64_t>() != size)
      return fail("the peer uses another message size", EPROTO);
    for (const auto& text : message.at("queue_pairs").get<std::vector<std::string>>()) {
      auto address = QueuePairAddress::parse(text);
      if (!address) return fail(address.error().within("the peer's queue pair"));
      list.push_back(*address);
    }
  } catch (const Json::exception& e) {
    return fail(std::string("invalid queue pairs of the peer: ") + e.what(), EPROTO);
  }
  return list;
}

Status resolve(Device& device, const Gid& peer, const Options& options) {
  ibv_gid gid{};
  std::memcpy(gid.raw, peer.bytes.data(), sizeof gid.raw);
  return device.resolve(gid, from_seconds(options.host_timeout));
}

Heading make_heading(const Device& device, const Options& options, const Parameters& p,
                     const Endpoint& endpoint, std::vector<QueuePairAddress> remote, uint32_t mtu,
                     const char* role, const std::string& path) {
  return {p,
          role,
          path,
          device.name(),
          mtu,
          chosen_gid_index(device, options),
          endpoint.addresses(),
          std::move(remote)};
}

Traffic make_traffic(Endpoint& endpoint, const Parameters& p, const Options& options) {
  return p.mode == Mode::kBandwidth ? bandwidth_traffic(endpoint, p, options) : latency_traffic(endpoint, p);
}

Status prepare(Endpoint& endpoint, const Parameters& p, Traffic& traffic) {
  return p.mode == Mode::kBandwidth ? prepare_to_serve_bandwidth(endpoint, p, traffic)
                                    : prepare_for_latency(endpoint, p, traffic);
}

// Measures one message size and adds the result to the report.
Result<Row> measure(Control& control, Endpoint& endpoint, const Parameters& p, const Options& options,
                    Report& report, Traffic& traffic) {
  ProgressLine progress(true);
  Row row;
  row.size = endpoint.layout().size;
  if (p.mode == Mode::kBandwidth) {
    auto result = run_bandwidth(control, endpoint, p, options, progress, traffic);
    if (!result) return fail(result.error());
    row.bandwidth = *result;
    report.row(row);
  } else {
    auto samples = run_latency(control, endpoint, p, progress, traffic);
    if (!samples) return fail(samples.error());
    row.latency = samples->summary();
    report.row(row);
    report.samples(row.size, *samples);
  }
  return row;
}

class Client {
 public:
  Client(Control& control, Device& device, const Options& options, const std::string& path, Report& report)
      : control_(control),
        device_(device),
        options_(options),
        path_(path),
        report_(report),
        p_(options.test) {}

  Status run() {
    auto largest = usable_mtu(device_, p_.mtu);
    if (!largest) return fail(largest.error());
    ROCI_TRY(control_.send_message(
        {{"roci-perf", kExchangeVersion}, {"test", to_json(p_)}, {"largest_mtu", *largest}}));
    auto welcome = control_.expect("welcome");
    if (!welcome) return fail(welcome.error());
    mtu_ = welcome->value("mtu", *largest);
    if (mtu_ > *largest || mtu_ < 256)
      return fail("the server selected an invalid path MTU of " + std::to_string(mtu_), EPROTO);
    for (const uint64_t size : p_.sizes) ROCI_TRY(round(size));
    report_.finish(verified_, device_.counters());
    return {};
  }

 private:
  Status round(uint64_t size) {
    auto endpoint = Endpoint::create(device_, options_, p_, size);
    if (!endpoint) return fail(endpoint.error());
    Endpoint& e = **endpoint;
    ROCI_TRY(control_.send_message(round_message(size, e)));
    auto answer = control_.expect("round");
    if (!answer) return fail(answer.error());
    auto peers = addresses_of(*answer, size);
    if (!peers) return fail(peers.error());
    ROCI_TRY(e.connect(*peers, mtu_));
    ROCI_TRY(resolve(device_, peers->front().gid, options_));
    if (size == p_.sizes.front()) {
      report_.heading(make_heading(device_, options_, p_, e, *peers, mtu_,
                                   options_.loopback ? "both sides" : "client", path_));
    }
    Traffic traffic = make_traffic(e, p_, options_);
    if (p_.mode == Mode::kLatency && p_.operation == Operation::kSend)
      ROCI_TRY(prepare_for_latency(e, p_, traffic));
    auto row = measure(control_, e, p_, options_, report_, traffic);
    if (!row) return fail(row.error());
    report_.note_congestion();
    Json counts = Json::array();
    for (uint32_t i = 0; i < e.count(); ++i) counts.push_back(traffic.posted(i));
    ROCI_TRY(control_.send_message({{"done", true}, {"messages", counts}, {"result", to_json(*row)}}));
    auto done = control_.expect("done");
    if (!done) return fail(done.error());
    verified_.messages += traffic.verified().messages + done->value("verified_messages", uint64_t{0});
    verified_.bytes += traffic.verified().bytes + done->value("verified_bytes", uint64_t{0});
    return {};
  }

  Control& control_;
  Device& device_;
  const Options& options_;
  const std::string& path_;
  Report& report_;
  const Parameters& p_;
  uint32_t mtu_ = 0;
  Verified verified_;
};

class Server {
 public:
  Server(Control& control, Device& device, const Options& options, const std::string& path, Report* report)
      : control_(control), device_(device), options_(options), path_(path), report_(report) {}

  Status run() {
    auto hello = control_.expect("roci-perf");
    if (!hello) return fail(hello.error());
    ROCI_TRY(greet(*hello));
    for (const uint64_t size : p_.sizes) ROCI_TRY(round(size));
    if (report_ != nullptr) report_->finish(verified_, device_.counters());
    return {};
  }

 private:
  Status greet(const Json& hello) {
    if (hello["roci-perf"] != kExchangeVersion) {
      return fail("client and server have different versions: the client uses protocol version " +
                      hello["roci-perf"].dump() + ", the server " + std::to_string(kExchangeVersion) +
                      "; install the same version on both",
                  EPROTO);
    }
    auto of_client = parameters_from_json(hello.value("test", Json::object()));
    if (!of_client) return fail(of_client.error());
    auto agreed = agree(options_.test, options_.given, *of_client);
    if (!agreed) return fail(agreed.error());
    p_ = *agreed;
    auto mtu = usable_mtu(device_, p_.mtu);
    if (!mtu) return fail(mtu.error());
    const Json& largest = hello.contains("largest_mtu") ? hello["largest_mtu"] : Json{};
    if (largest.is_number_unsigned()) mtu_ = std::min(*mtu, std::max(256U, largest.get<uint32_t>()));
    return control_.send_message({{"welcome", kExchangeVersion}, {"mtu", mtu_}});
  }

  Status round(uint64_t size) {
    auto message = control_.expect("round");
    if (!message) return fail(message.error());
    auto peers = addresses_of(*message, size);
    if (!peers) return fail(peers.error());
    auto endpoint = Endpoint::create(device_, options_, p_, size);
    if (!endpoint) return fail(endpoint.error());
    Endpoint& e = **endpoint;
    ROCI_TRY(e.connect(*peers, mtu_));
    Traffic traffic = make_traffic(e, p_, options_);
    ROCI_TRY(prepare(e, p_, traffic));
    ROCI_TRY(control_.send_message(round_message(size, e)));
    if (report_ != nullptr && size == p_.sizes.front()) {
      report_->heading(make_heading(device_, options_, p_, e, *peers, mtu_, "server", path_));
    }
    auto last = p_.mode == Mode::kBandwidth ? serve_bandwidth(control_, e, p_, traffic)
                                            : serve_latency(control_, e, p_, traffic);
    if (!last) return fail(last.error());
    ROCI_TRY(control_.send_message({{"done", true},
                                    {"verified_messages", traffic.verified().messages},
                                    {"verified_bytes", traffic.verified().bytes}}));
    verified_.messages += traffic.verified().messages;
    verified_.bytes += traffic.verified().bytes;
    if (report_ == nullptr) return {};
    auto row = row_from_json(last->value("result", Json::object()), p_.mode);
    if (!row) return fail(row.error());
    report_->row(*row);
    report_->note_congestion();
    return {};
  }

  Control& control_;
  Device& device_;
  const Options& options_;
  const std::string& path_;
  Report* report_;
  Parameters p_;
  uint32_t mtu_ = 256;
  Verified verified_;
};

// Sends the error to the peer, unless the peer reported it or the connection is closed.
Status send_error(Control& control, Status status) {
  if (!status && status.error().code != EREMOTEIO) {
    [[maybe_unused]] Status sent = control.send_message({{"error", status.error().message}});
  }
  return status;
}

// Waits for Enter or for the file. Polls the device, so that it answers the peer.
Status wait_for_start(Control& control, const Options& options, Report& report) {
  const bool file = !options.wait_file.empty();
  report.note(file ? "waiting for the file " + options.wait_file : "press Enter when the peer is ready");
  Nanos next_look{0};
  for (;;) {
    if (const Nanos time = now(); time >= next_look) {
      next_look = time + 10ms;
      if (file) {
        struct stat status {};
        if (stat(options.wait_file.c_str(), &status) == 0) return {};
      } else {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (::poll(&input, 1, 0) > 0) {
          char line[256];
          if (read(STDIN_FILENO, line, sizeof line) >= 0) return {};  // end of input also starts the test
        }
      }
    }
    ROCI_TRY(control.serve(false));
  }
}

}  // namespace

Status run_client(Control& control, Device& device, const Options& options, const std::string& path,
                  Report& report) {
  return send_error(control, Client(control, device, options, path, report).run());
}

Status run_server(Control& control, Device& device, const Options& options, const std::string& path,
                  Report* report) {
  return send_error(control, Server(control, device, options, path, report).run());
}

namespace {

// Continues to poll the device, since the peer may not have received the acknowledgment of its last message and may
// retransmit it. The time is three time-outs, assuming that the peer has the same time-out, and at most 1 s.
Status linger(Control& control, unsigned qp_timeout) {
  constexpr Nanos kMax = 1s;
  const Nanos end = now() + std::min(kMax, 3 * Nanos{int64_t{4096} << qp_timeout});
  while (now() < end) ROCI_TRY(control.serve(false));
  return {};
}

}  // namespace

Status run_with_peers(Control& control, Device& device, const Options& options, const std::string& path,
                      Report& report) {
  const Parameters& p = options.test;
  auto mtu = usable_mtu(device, p.mtu);
  if (!mtu) return fail(mtu.error());
  auto endpoint = Endpoint::create(device, options, p, p.sizes.front());
  if (!endpoint) return fail(endpoint.error());
  Endpoint& e = **endpoint;
  for (const QueuePairAddress& address : e.addresses())
    report.note("local queue pair: " + address.to_string());
  report.note("path MTU " + std::to_string(*mtu) + ", messages of " + std::to_string(p.sizes.front()) +
              " bytes");
  ROCI_TRY(e.connect(options.peers, *mtu));
  Traffic traffic = make_traffic(e, p, options);
  if (options.passive || p.mode == Mode::kLatency) ROCI_TRY(prepare(e, p, traffic));
  ROCI_TRY(wait_for_start(control, options, report));
  ROCI_TRY(resolve(device, options.peers.front().gid, options));
  report.heading(
      make_heading(device, options, p, e, options.peers, *mtu, options.passive ? "passive" : "active", path));
  if (!options.passive) {
    auto row = measure(control, e, p, options, report, traffic);
    if (!row) return fail(row.error());
    if (p.mode == Mode::kLatency) ROCI_TRY(linger(control, options.qp_timeout));
  } else if (p.mode == Mode::kBandwidth) {
    ROCI_TRY(serve_one_sided(control, e, p, traffic));
  } else if (auto served = serve_latency(control, e, p, traffic); !served) {
    return fail(served.error());
  }
  report.note_congestion();
  report.finish({}, device.counters());
  return {};
}

}  // namespace roci::perf
