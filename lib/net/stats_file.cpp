#include "net/stats_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device/monitoring/queue_pair_report.hpp"

namespace roci {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<std::pair<std::string, uint64_t>>;

// Limit of one report, since a host may have very many queue pairs.
constexpr size_t kMaxListed = 4096;

Json json_of(const Numbers& numbers) {
  Json out = Json::object();
  for (const auto& [name, value] : numbers) out[name] = value;
  return out;
}

Numbers numbers_in(const Json& object) {
  Numbers out;
  for (const auto& [name, value] : object.items()) out.emplace_back(name, value.get<uint64_t>());
  return out;
}

Json json_of(const QueuePairStats& qp) {
  return {{"qp_num", qp.qp_num},
          {"type", qp.type},
          {"peer", qp.peer},
          {"peer_qp_num", qp.peer_qp_num},
          {"acked_bytes", qp.acked_bytes},
          {"received_bytes", qp.received_bytes},
          {"responses", qp.responses},
          {"profile", qp.profile},
          {"state", qp.state},
          {"rate", qp.rate},
          {"window", qp.window},
          {"numbers", json_of(qp.numbers)},
          {"reasons", json_of(qp.reasons)}};
}

QueuePairStats queue_pair_in(const Json& object) {
  QueuePairStats qp;
  object.at("qp_num").get_to(qp.qp_num);
  object.at("type").get_to(qp.type);
  object.at("peer").get_to(qp.peer);
  object.at("peer_qp_num").get_to(qp.peer_qp_num);
  object.at("acked_bytes").get_to(qp.acked_bytes);
  object.at("received_bytes").get_to(qp.received_bytes);
  object.at("responses").get_to(qp.responses);
  object.at("profile").get_to(qp.profile);
  object.at("state").get_to(qp.state);
  object.at("rate").get_to(qp.rate);
  object.at("window").get_to(qp.window);
  qp.numbers = numbers_in(object.at("numbers"));
  qp.reasons = numbers_in(object.at("reasons"));
  return qp;
}

DeviceStats stats_in(const Json& object) {
  DeviceStats stats;
  object.at("pid").get_to(stats.pid);
  object.at("program").get_to(stats.program);
  object.at("device").get_to(stats.device);
  stats.counters = numbers_in(object.at("counters"));
  for (const Json& one : object.at("queue_pairs")) stats.queue_pairs.push_back(queue_pair_in(one));
  return stats;
}

DeviceStats about_this_process(const Device& device) {
  DeviceStats stats;
  stats.pid = getpid();
  std::ifstream{"/proc/self/comm"} >> stats.program;
  stats.device = device.name();
  return stats;
}

std::vector<QueuePairStats> queue_pairs_of(Device& device, const std::vector<uint32_t>& numbers) {
  std::vector<QueuePairStats> out;
  for (const QueuePairReport& report : report_queue_pairs(device.host(), numbers)) {
    const CongestionFlowReport& flow = report.flow;
    out.push_back({.qp_num = flow.qp_num,
                   .type = qp_type_name(report.type),
                   .peer = report.peer,
                   .peer_qp_num = report.peer_qp_num,
                   .acked_bytes = report.acked_bytes,
                   .received_bytes = report.received_bytes,
                   .responses = flow.responses,
                   .profile = flow.profile.empty() ? "none" : flow.profile,
                   .state = flow.state,
                   .rate = flow.rate,
                   .window = flow.window,
                   .numbers = numbers_of(flow),
                   .reasons = flow.reasons});
  }
  return out;
}

// Merges `more` into `known`: counters are replaced, queue pairs are appended.
void merge(DeviceStats& known, DeviceStats&& more) {
  for (auto& [name, value] : more.counters) {
    const auto same = std::find_if(known.counters.begin(), known.counters.end(),
                                   [&called = name](const auto& one) { return one.first == called; });
    if (same == known.counters.end()) {
      known.counters.emplace_back(name, value);
    } else {
      same->second = value;
    }
  }
  known.queue_pairs.insert(known.queue_pairs.end(), more.queue_pairs.begin(), more.queue_pairs.end());
}

}  // namespace

Status write_stats(const std::string& path, Device& device) {
  DeviceStats stats = about_this_process(device);
  stats.counters = device.counters();
  stats.queue_pairs = queue_pairs_of(device, queue_pair_numbers(device.host(), 0, kMaxListed));
  return append_stats(path, stats);
}

Status write_stats(const std::string& path, Device& device, uint32_t qp_num) {
  DeviceStats stats = about_this_process(device);
  stats.queue_pairs = queue_pairs_of(device, {qp_num});
  return append_stats(path, stats);
}

Status append_stats(const std::string& path, const DeviceStats& stats) {
  Json object{{"pid", stats.pid}, {"program", stats.program}, {"device", stats.device}};
  object["counters"] = json_of(stats.counters);
  object["queue_pairs"] = Json::array();
  for (const QueuePairStats& qp : stats.queue_pairs) object["queue_pairs"].push_back(json_of(qp));
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail("'" + path + "' cannot be opened: " + std::strerror(errno), errno);
  // In one write(), so that lines of several processes do not mix.
  const ssize_t written = write(fd, line.data(), line.size());
  const int code = errno;
  close(fd);
  if (written == static_cast<ssize_t>(line.size())) return {};
  return fail("'" + path + "' cannot be written: " + (written < 0 ? std::strerror(code) : "no space"),
              written < 0 ? code : ENOSPC);
}

Result<std::vector<DeviceStats>> read_stats(const std::string& path) {
  std::ifstream in{path};
  if (!in) return fail("'" + path + "' cannot be read: " + std::strerror(errno), errno);
  std::vector<DeviceStats> all;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) break;  // incomplete line: the process ended while writing
    try {
      DeviceStats stats = stats_in(Json::parse(line));
      const auto known = std::find_if(all.begin(), all.end(), [&stats](const DeviceStats& one) {
        return one.pid == stats.pid && one.device == stats.device;
      });
      if (known == all.end()) {
        all.push_back(std::move(stats));
      } else {
        merge(*known, std::move(stats));
      }
    } catch (const nlohmann::json::exception& e) {
      return fail(path + ":" + std::to_string(number) + ": not a device report: " + e.what());
    }
  }
  return all;
}

}  // namespace roci
