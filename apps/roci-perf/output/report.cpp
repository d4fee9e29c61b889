#include "roci-perf/output/report.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/os/standard_output.hpp"

namespace roci::perf {
namespace {

constexpr int kWidth = 98;
constexpr size_t kListedQueuePairs = 8;      // on a terminal
constexpr size_t kWrittenQueuePairs = 1024;  // in JSON
constexpr int kHistogramWidth = 50;

void rule() { std::printf("%s\n", std::string(kWidth, '-').c_str()); }

std::string title(const Parameters& p) {
  const char* verb = p.operation == Operation::kWrite  ? "RDMA_Write"
                     : p.operation == Operation::kRead ? "RDMA_Read"
                                                       : "Send";
  return std::string(verb) + (p.mode == Mode::kBandwidth ? " BW" : " Latency") + " Test";
}

void pair_of_facts(const char* name, const std::string& value, const char* other_name,
                   const std::string& other_value) {
  std::printf(" %-14s: %-30s %-14s: %s\n", name, value.c_str(), other_name, other_value.c_str());
}

void print_addresses(const char* whose, const std::vector<QueuePairAddress>& list) {
  for (size_t i = 0; i < std::min(list.size(), kListedQueuePairs); ++i) {
    const QueuePairAddress& a = list[i];
    std::printf(" %s address: QPN 0x%06x PSN 0x%06x RKey 0x%08x VAddr 0x%012llx\n", whose, a.qpn, a.psn,
                a.rkey, static_cast<unsigned long long>(a.address));
  }
  if (list.size() > kListedQueuePairs)
    std::printf(" ... and %zu more queue pairs\n", list.size() - kListedQueuePairs);
  if (!list.empty())
    std::printf(" GID: %s (%s)\n", gid_in_decimal(list[0].gid).c_str(), list[0].gid.to_string().c_str());
}

Json addresses_json(const std::vector<QueuePairAddress>& list) {
  Json json = Json::array();
  for (const QueuePairAddress& a : std::span(list).first(std::min(list.size(), kWrittenQueuePairs))) {
    json.push_back(
        {{"gid", a.gid.to_string()}, {"qpn", a.qpn}, {"psn", a.psn}, {"rkey", a.rkey}, {"va", a.address}});
  }
  return json;
}

double shown_rate(double bits_per_second, bool gbits) {
  return gbits ? bits_per_second * 1e-9 : bits_per_second / 8 / (1 << 20);
}

std::string plural(uint64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

Json to_json(const Row& row) {
  Json json{{"bytes", row.size}};
  if (row.bandwidth) {
    const BandwidthResult& b = *row.bandwidth;
    json.update({{"iterations", b.messages},
                 {"seconds", b.seconds},
                 {"peak_gbps", b.peak * 1e-9},
                 {"average_gbps", b.average * 1e-9},
                 {"message_rate_mpps", b.message_rate * 1e-6}});
  }
  if (row.latency) {
    const LatencySummary& l = *row.latency;
    json.update({{"iterations", l.samples},
                 {"min_us", l.min},
                 {"max_us", l.max},
                 {"typical_us", l.typical},
                 {"average_us", l.average},
                 {"stdev_us", l.deviation},
                 {"p50_us", l.typical},
                 {"p90_us", l.p90},
                 {"p99_us", l.p99},
                 {"p99.9_us", l.p999},
                 {"p99.99_us", l.p9999}});
  }
  return json;
}

Result<Row> row_from_json(const Json& json, Mode mode) {
  Row row;
  try {
    json.at("bytes").get_to(row.size);
    if (mode == Mode::kBandwidth && json.contains("average_gbps")) {
      BandwidthResult b;
      b.size = row.size;
      json.at("iterations").get_to(b.messages);
      json.at("seconds").get_to(b.seconds);
      b.peak = json.at("peak_gbps").get<double>() * 1e9;
      b.average = json.at("average_gbps").get<double>() * 1e9;
      b.message_rate = json.at("message_rate_mpps").get<double>() * 1e6;
      row.bandwidth = b;
    } else if (mode == Mode::kLatency && json.contains("typical_us")) {
      LatencySummary l;
      json.at("iterations").get_to(l.samples);
      json.at("min_us").get_to(l.min);
      json.at("max_us").get_to(l.max);
      json.at("typical_us").get_to(l.typical);
      json.at("average_us").get_to(l.average);
      json.at("stdev_us").get_to(l.deviation);
      json.at("p90_us").get_to(l.p90);
      json.at("p99_us").get_to(l.p99);
      json.at("p99.9_us").get_to(l.p999);
      json.at("p99.99_us").get_to(l.p9999);
      row.latency = l;
    } else {
      return fail("the peer's result has no values", EPROTO);
    }
  } catch (const Json::exception& e) {
    return fail(std::string("invalid result of the peer: ") + e.what(), EPROTO);
  }
  return row;
}

std::string cpu_list() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return "unknown";
  std::string text;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    size_t last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpu) + (last > cpu ? "-" + std::to_string(last) : "");
    cpu = last;
  }
  return text;
}

void Report::heading(const Heading& h) {
  heading_ = h;
  if (options_.json) return;
  const Parameters& p = h.test;
  const bool bandwidth = p.mode == Mode::kBandwidth;
  rule();
  const std::string name = title(p);
  std::printf("%*s%s\n", (kWidth - static_cast<int>(name.size())) / 2, "", name.c_str());
  pair_of_facts("Device", h.device, "Role", h.role);
  pair_of_facts("Path", h.path, "Transport", "RC over RoCEv2");
  pair_of_facts("Path MTU", std::to_string(h.mtu) + "[B]", "GID index", std::to_string(h.gid_index));
  pair_of_facts("Number of qps", std::to_string(p.queue_pairs), bandwidth ? "TX depth" : "Warm-up",
                bandwidth ? std::to_string(p.tx_depth) : plural(p.warm_up, "message"));
  pair_of_facts("Inline up to", std::to_string(options_.inline_size) + "[B]", "CPUs", cpu_list());
  if (p.verify) pair_of_facts("Verify", "every byte (time included)", "Seed", std::to_string(p.seed));
  rule();
  print_addresses("local", h.local);
  print_addresses("remote", h.remote);
  rule();
  if (bandwidth) {
    const char* unit = options_.report_gbits ? "Gb/sec" : "MB/sec";
    std::printf(" #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", unit, unit);
  } else {
    std::printf(" %-7s %-11s %-11s %-11s %-15s %-11s %-8s %-8s %s\n", "#bytes", "#iterations", "t_min[usec]",
                "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev", "99%", "99.9%");
  }
  flush_standard_output();
}

void Report::row(const Row& row) {
  rows_.push_back(row);
  if (options_.json) return;
  const auto size = static_cast<unsigned long long>(row.size);
  if (row.bandwidth) {
    const BandwidthResult& b = *row.bandwidth;
    std::printf(" %-10llu %-14llu %-18.2f %-20.2f %.6f\n", size, static_cast<unsigned long long>(b.messages),
                shown_rate(b.peak, options_.report_gbits), shown_rate(b.average, options_.report_gbits),
                b.message_rate * 1e-6);
  } else if (row.latency) {
    const LatencySummary& l = *row.latency;
    std::printf(" %-7llu %-11llu %-11.2f %-11.2f %-15.2f %-11.2f %-8.2f %-8.2f %.2f\n", size,
                static_cast<unsigned long long>(l.samples), l.min, l.max, l.typical, l.average, l.deviation,
                l.p99, l.p999);
  }
  flush_standard_output();
}

void Report::samples(uint64_t size, const LatencySamples& samples) {
  if (options_.json) {
    if (options_.report_unsorted) samples_[std::to_string(size)]["samples_ns"] = samples.kept();
    if (options_.report_histogram) {
      for (const HistogramBin& bin : histogram(samples.kept())) {
        samples_[std::to_string(size)]["histogram"].push_back(
            {{"from_us", bin.from}, {"to_us", bin.to}, {"count", bin.count}});
      }
    }
    return;
  }
  if (options_.report_histogram) {
    const std::vector<HistogramBin> bins = histogram(samples.kept());
    uint64_t most = 1;
    for (const HistogramBin& bin : bins) most = std::max(most, bin.count);
    std::printf("\n      from [usec]        to   samples\n");
    bool gap = false;
    for (const HistogramBin& bin : bins) {
      if (bin.count == 0) {  // one line for consecutive empty bins
        if (!gap) std::printf("              ...\n");
        gap = true;
        continue;
      }
      gap = false;
      const uint64_t length = (bin.count * kHistogramWidth + most - 1) / most;
      std::printf("      %11.2f %9.2f %9llu  %s\n", bin.from, bin.to,
                  static_cast<unsigned long long>(bin.count), std::string(length, '#').c_str());
    }
    std::printf("\n");
  }
  if (options_.report_unsorted) {
    std::printf("\n#, usec%s\n", samples.stride() > 1 ? " (subset of the samples)" : "");
    uint64_t n = 0;
    for (const uint32_t nanos : samples.kept()) {
      std::printf("%llu, %.3f\n", static_cast<unsigned long long>(n), nanos / 1000.0);
      n += samples.stride();
    }
  }
}

void Report::print_percentiles() const {
  std::printf(" #bytes   p50[usec]    p90[usec]    p99[usec]    p99.9[usec]  p99.99[usec]\n");
  for (const Row& row : rows_) {
    const LatencySummary& l = *row.latency;
    std::printf(" %-8llu %-12.2f %-12.2f %-12.2f %-12.2f %.2f\n", static_cast<unsigned long long>(row.size),
                l.typical, l.p90, l.p99, l.p999, l.p9999);
  }
}

void Report::finish(const Verified& verified, const std::vector<std::pair<std::string, uint64_t>>& counters) {
  if (!heading_) return;
  const Heading& h = *heading_;
  finished_ = true;
  if (options_.json) {
    Json json{{"roci_perf", kExchangeVersion},
              {"test", to_json(h.test)},
              {"role", h.role},
              {"path", h.path},
              {"device", h.device},
              {"mtu", h.mtu},
              {"cpus", cpu_list()},
              {"local", addresses_json(h.local)},
              {"remote", addresses_json(h.remote)},
              {"results", results_json()}};
    // A server does not know whether the client's seed was given.
    if (!options_.given.contains("seed") && !options_.is_server()) json["test"]["seed"] = nullptr;
    if (h.test.verify) json["verified"] = {{"messages", verified.messages}, {"bytes", verified.bytes}};
    if (options_.congestion.report) json["congestion_control"] = congestion_json(flows_);
    json["counters"] = Json::object();
    for (const auto& [name, value] : counters) json["counters"][name] = value;
    std::printf("%s\n", json.dump().c_str());
    flush_standard_output();
    return;
  }
  if (!rows_.empty() && rows_[0].latency) {
    rule();
    print_percentiles();
  }
  rule();
  if (options_.congestion.report) {
    print_congestion(flows_);
    rule();
  }
  if (h.test.verify) {
    std::printf(" verified: %s, %s, no errors\n", plural(verified.messages, "message").c_str(),
                plural(verified.bytes, "byte").c_str());
  }
  flush_standard_output();
}

void Report::note_congestion() {
  if (!options_.congestion.report) return;
  flows_.clear();
  for (Device* device : watched_) flows_.push_back({device->name(), device->congestion_report()});
}

Status Report::open_trace() {
  const std::string& file = options_.congestion.trace_file;
  if (file.empty()) return {};
  errno = 0;
  trace_.open(file);
  if (trace_) return {};
  return fail("--cc-trace: " + file + " cannot be written: " + std::strerror(errno), errno);
}

void Report::save_trace() {
  if (!trace_.is_open()) return;
  const std::string& file = options_.congestion.trace_file;
  const size_t events = write_trace(watched_, file.ends_with(".csv"), trace_);
  errno = 0;
  trace_.close();
  if (!trace_) {
    const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
    trace_saved_ = fail("--cc-trace: " + file + " could not be written completely" + reason, EIO);
    return;
  }
  // Written to standard error, to keep it apart from a table or JSON.
  std::fprintf(stderr, "%zu congestion control events written to %s\n", events, file.c_str());
}

Json Report::results_json() const {
  Json results = Json::array();
  for (const Row& row : rows_) {
    Json result = to_json(row);
    const std::string key = std::to_string(row.size);
    if (samples_.contains(key)) result.update(samples_[key]);
    results.push_back(std::move(result));
  }
  return results;
}

void Report::note(const std::string& text) {
  std::fprintf(options_.json ? stderr : stdout, "%s\n", text.c_str());
  if (!options_.json) flush_standard_output();
}

void Report::failure(const Error& error) {
  if (!options_.json || finished_) return;
  const Json json{{"roci_perf", kExchangeVersion}, {"error", error.message}, {"results", results_json()}};
  std::printf("%s\n", json.dump().c_str());
  flush_standard_output();
}

}  // namespace roci::perf
