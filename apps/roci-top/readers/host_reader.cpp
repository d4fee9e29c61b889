#include "roci-top/readers/host_reader.hpp"

#include <algorithm>

#include "roci-top/readers/processes.hpp"
#include "roci-top/readers/telemetry_requests.hpp"

namespace roci::top {
namespace {

// Limits for the replies of other processes.
constexpr size_t kMaxPages = 512;
constexpr size_t kMaxCounters = 4096;
constexpr size_t kCommandBytes = 900;  // DPDK's limit is less than 1024
constexpr uint64_t kQpnEnd = 1U << 24;

// Converts a reply with columns: calls row(values) for each element of the column "qpn"; missing values are omitted.
template <class Row>
void for_each_row(const nlohmann::json& answer, Row&& row) {
  const auto numbers = answer.find("qpn");
  if (numbers == answer.end() || !numbers->is_array()) return;
  for (size_t i = 0; i < numbers->size(); ++i) {
    nlohmann::json values = nlohmann::json::object();
    for (const auto& [name, column] : answer.items()) {
      if (column.is_array() && i < column.size()) values[name] = column[i];
    }
    row(values);
  }
}

uint64_t number_in(const nlohmann::json& answer, const char* name) {
  if (!answer.is_object()) return 0;
  const auto found = answer.find(name);
  return found == answer.end() || !found->is_number_unsigned() ? 0 : found->get<uint64_t>();
}

// A page without new counters is the last.
Status read_counters(TelemetryClient& client, HostSample& host) {
  while (host.counters.numbers.size() < kMaxCounters) {
    const size_t before = host.counters.numbers.size();
    Counted page;
    ROCI_TRY(read_counted(client, "/roci/device/counters," + host.name + "," + std::to_string(before), page));
    host.counters.numbers.merge(page.numbers);
    if (before == 0) host.counters.at = page.at;
    if (host.counters.numbers.size() == before) break;
  }
  return {};
}

// Reads the numbers and activity of queue pairs, up to kMaxLookedAt.
Result<std::vector<ActivitySample>> read_activity(TelemetryClient& client, HostSample& host) {
  std::vector<ActivitySample> all;
  uint64_t from = 0;
  do {
    const auto answer = client.request("/roci/device/activity," + host.name + "," + std::to_string(from));
    if (!answer) return fail(answer.error());
    if (!answer->is_object()) break;
    const Nanos at = steady_now();
    for_each_row(*answer, [&](const nlohmann::json& row) {
      const uint64_t number = number_in(row, "qpn");
      if (number >= kQpnEnd || (!all.empty() && number <= all.back().number)) return;
      all.push_back({static_cast<uint32_t>(number), static_cast<uint32_t>(number_in(row, "psns")), at});
      if (const auto state = row.find("state"); state != row.end() && state->is_string())
        ++host.info.numbers["states/" + state->get<std::string>()];
    });
    const uint64_t next = number_in(*answer, "next");
    if (next <= from) break;
    from = next;
  } while (all.size() < kMaxLookedAt);
  return all;
}

// "/roci/device/queue_pair,NAME,QPN,QPN…" with as many of `numbers`, from `first`, as fit into a request. Advances
// `first` past them.
std::string queue_pair_command(const std::string& name, const std::vector<uint32_t>& numbers, size_t& first) {
  std::string command = "/roci/device/queue_pair," + name;
  while (first < numbers.size() && command.size() < kCommandBytes)
    command += "," + std::to_string(numbers[first++]);
  return command;
}

Status read_queue_pairs(TelemetryClient& client, const QueuePairChoice::Chosen& chosen, HostSample& host) {
  size_t done = 0;
  for (size_t pages = 0; done < chosen.requested.size() && pages < kMaxPages; ++pages) {
    const size_t begin = done;
    const std::string command = queue_pair_command(host.name, chosen.requested, done);
    const auto answer = client.request(command);
    if (!answer) return fail(answer.error());
    const Nanos at = steady_now();
    if (!answer->is_object()) break;
    for_each_row(*answer, [&](const nlohmann::json& row) {
      QueuePairSample& seen = host.queue_pairs.emplace_back();
      seen.number = static_cast<uint32_t>(number_in(row, "qpn"));
      seen.responses = number_in(row, "responses") != 0;
      seen.shown = std::ranges::binary_search(chosen.shown, seen.number);
      seen.counted = Counted::from(row, at);
    });
    // Repeat the numbers that did not fit into the reply.
    const uint64_t next = number_in(*answer, "next");
    if (next > 0 && begin + next < done) done = begin + static_cast<size_t>(next);
  }
  std::ranges::sort(host.queue_pairs, {}, [](const QueuePairSample& qp) {
    return std::pair{qp.number, qp.responses};
  });
  return {};
}

Status read_host(TelemetryClient& client, QueuePairChoice& choice, HostSample& host) {
  ROCI_TRY(read_counted(client, "/roci/device/info," + host.name, host.info));
  ROCI_TRY(read_counters(client, host));
  if (choice.most() == 0) return {};
  auto all = read_activity(client, host);
  if (!all) return fail(all.error());
  host.looked_at = all->size();
  const QueuePairChoice::Chosen chosen = choice.choose(host.name, std::move(*all));
  host.chosen = chosen.shown.size();
  return read_queue_pairs(client, chosen, host);
}

}  // namespace

Status read_hosts(TelemetryClient& client, QueuePairChoice& choice, ProcessSample& seen) {
  const auto names = read_names(client, "/roci/device/list", false);
  if (!names) return fail(names.error());
  for (const std::string& name : *names) {
    HostSample& host = seen.hosts.emplace_back();
    host.name = name;
    if (Status s = read_host(client, choice, host); !s) return s;
  }
  return {};
}

}  // namespace roci::top
