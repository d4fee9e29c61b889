#include "roci-top/tables/host_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "roci-top/tables/text.hpp"

namespace roci::top {
namespace {

constexpr size_t kMinName = 8, kMaxName = 20;
constexpr size_t kNumber = 8;        // column width including a leading space
constexpr size_t kPacketsFrom = 88;  // minimum terminal width for packet rates

struct Row {
  const ProcessSample* process;
  const HostSample* now;
  const HostSample* before;  // null if there is no earlier sample

  [[nodiscard]] double info(const std::string& name) const {
    return per_second(now->info, before == nullptr ? nullptr : &before->info, name);
  }
  [[nodiscard]] double counter(const std::string& name) const {
    return per_second(now->counters, before == nullptr ? nullptr : &before->counters, name);
  }
};

// kDrops: counters of lost packets and messages; kPortDrops: losses of the port driver; kTrouble: counters of
// recoveries and anomalies (telemetry/counters.hpp).
constexpr std::array<const char*, 29> kDrops = {
    "rx_hand_over_full",   "rx_malformed",      "rx_unknown_opcode",   "rx_icrc_errors",     "rx_unknown_qp",
    "rx_wrong_source",     "rx_wrong_pkey",     "rx_wrong_transport",  "rx_bad_state",       "rx_wrong_qkey",
    "rx_unknown_group",    "rx_no_receive",     "rx_too_long",         "rx_refused",         "rx_no_message",
    "uc_messages_dropped", "rx_wrong_srq",      "tx_unreachable",      "loopback_lost",      "cq_overflows",
    "extensions_refused",  "feedback_unsigned", "feedback_impossible", "windows_impossible", "events_lost",
    "int_malformed",       "int_no_buffer",     "cnms_malformed",      "rx_unauthenticated"};
constexpr std::array<const char*, 2> kPortDrops = {"port/rx_dropped", "port/tx_dropped"};
constexpr std::array<const char*, 3> kRingCounters = {"port/marked", "port/wakes", "port/malformed"};
constexpr std::array<const char*, 13> kTrouble = {"timeouts",
                                                  "tail_probes",
                                                  "rnr_naks_sent",
                                                  "rnr_naks_received",
                                                  "naks_sequence_sent",
                                                  "naks_invalid_sent",
                                                  "naks_access_sent",
                                                  "naks_operational_sent",
                                                  "naks_sequence_received",
                                                  "naks_fatal_received",
                                                  "ooo_conflicts",
                                                  "pauses_received",
                                                  "pauses_sent"};

double drops_of(const Row& row) {
  double sum = 0;
  for (const char* name : kDrops) sum += row.counter(name);
  for (const char* name : kPortDrops) sum += row.info(name);
  return sum;
}

struct Column {
  const char* heading;
  size_t from_width;
  std::string (*value)(const Row& row);
};
const std::array kColumns = {
    Column{"rx Gb/s", 0, [](const Row& r) { return gigabits(r.info("port/rx_bytes")); }},
    Column{"tx Gb/s", 0, [](const Row& r) { return gigabits(r.info("port/tx_bytes")); }},
    Column{"rx Mpps", kPacketsFrom, [](const Row& r) { return millions(r.info("port/rx_packets")); }},
    Column{"tx Mpps", kPacketsFrom, [](const Row& r) { return millions(r.info("port/tx_packets")); }},
    Column{"QPs", 0,
           [](const Row& r) { return thousands(static_cast<double>(r.now->info.number("queue_pairs"))); }},
    Column{"retx/s", 0, [](const Row& r) { return thousands(r.counter("packets_retransmitted")); }},
    Column{"drops/s", 0, [](const Row& r) { return thousands(drops_of(r)); }},
    Column{"CE/s", 0, [](const Row& r) { return thousands(r.counter("np_ecn_marked_roce_packets")); }},
    Column{"CNP in", 0, [](const Row& r) { return thousands(r.counter("rp_cnp_handled")); }},
    Column{"CNP out", 0, [](const Row& r) { return thousands(r.counter("np_cnp_sent")); }},
};

size_t columns_in(size_t width) {
  return static_cast<size_t>(
      std::ranges::count_if(kColumns, [width](const Column& column) { return column.from_width <= width; }));
}

template <class Text>
Line line_of(const std::string& name, size_t name_width, const Look& look, Line::Style style, Text text) {
  std::string line = fitted(name, name_width);
  for (const Column& column : kColumns) {
    if (column.from_width <= look.width) line += right_aligned(text(column), kNumber);
  }
  return {fitted(line, look.width), style};
}

// Appends the counters that have increased, per second: "timeouts 3, tail_probes 1".
template <class Names, class Rate>
void append_grown(std::string& out, const Names& names, Rate rate) {
  for (const char* name : names) {
    if (const double grown = rate(name); grown > 0)
      out += (out.empty() ? "" : ", ") + std::string{name} + " " + thousands(grown);
  }
}

// "RTS 9,998, ERR 2"; empty if all queue pairs have the same state.
std::string states_of(const HostSample& host) {
  constexpr std::string_view kFolder = "states/";
  std::string out;
  size_t kinds = 0;
  for (const auto& [name, count] : host.info.numbers) {
    if (!name.starts_with(kFolder)) continue;
    out += (out.empty() ? "" : ", ") + name.substr(kFolder.size()) + " " + grouped(count);
    ++kinds;
  }
  return kinds > 1 ? out : "";
}

void add_details(std::vector<Line>& lines, const Row& row, const Look& look) {
  const HostSample& host = *row.now;
  std::string details = host.info.text("addresses");
  details += (details.empty() ? "" : "; ") + row.process->program + " " + std::to_string(row.process->pid) +
             ", prefix " + row.process->prefix;
  if (const uint64_t workers = host.info.number("workers"); workers > 1)
    details += ", " + std::to_string(workers) + " workers";
  lines.push_back({fitted("  " + details, look.width)});
  if (host.info.number("link_up") == 0)
    lines.push_back({fitted("  link down", look.width), Line::Style::kAlert});
  if (const uint64_t size = host.info.number("port/ring_size"); size != 0) {
    const auto bytes = [&host](const char* name) {
      return short_number(static_cast<double>(host.info.number(name)), true) + "B";
    };
    std::string ring = "  fullest ring: " + bytes("port/ring_bytes") + ", peak " +
                       bytes("port/ring_peak_bytes") + " of " + bytes("port/ring_size");
    std::string grown;
    append_grown(grown, kRingCounters, [&row](const char* name) { return row.info(name); });
    if (!grown.empty()) ring += "; per second: " + grown;
    lines.push_back({fitted(ring, look.width)});
  }
  const auto counter = [&row](const char* name) { return row.counter(name); };
  const auto info = [&row](const char* name) { return row.info(name); };
  std::string drops, trouble;
  append_grown(drops, kDrops, counter);
  append_grown(drops, kPortDrops, info);
  append_grown(trouble, kTrouble, counter);
  if (!drops.empty()) lines.push_back({fitted("  drops/s: " + drops, look.width), Line::Style::kAlert});
  if (!trouble.empty()) lines.push_back({fitted("  events/s: " + trouble, look.width)});
  if (const std::string states = states_of(host); !states.empty())
    lines.push_back({fitted("  queue pairs: " + states, look.width)});
}

std::vector<Row> rows_of(const Snapshot& now, const Snapshot& before, Sort sort) {
  std::vector<Row> rows;
  for (const ProcessSample& process : now.processes) {
    for (const HostSample& host : process.hosts)
      rows.push_back({&process, &host, now.at == before.at ? nullptr : before.find(process, host)});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, [sort](const Row& row) {
    return sort == Sort::kTransmit ? row.info("port/tx_bytes") : sort == Sort::kDrops ? drops_of(row) : 0.0;
  });
  return rows;
}

}  // namespace

void add_hosts(std::vector<Line>& lines, const Snapshot& now, const Snapshot& before, const Look& look) {
  const std::vector<Row> rows = rows_of(now, before, look.sort);
  if (rows.empty()) return;
  size_t longest = 0;
  for (const Row& row : rows) longest = std::max(longest, row.now->name.size());
  size_t name = std::clamp(longest, kMinName, kMaxName);
  const size_t rest = columns_in(look.width) * kNumber;
  while (name > kMinName && rest + name > look.width) --name;
  lines.push_back(line_of("host", name, look, Line::Style::kHeading,
                          [](const Column& column) { return std::string{column.heading}; }));
  for (const Row& row : rows) {
    lines.push_back(line_of(row.now->name, name, look, Line::Style::kPlain,
                            [&row](const Column& column) { return column.value(row); }));
    add_details(lines, row, look);
  }
}

}  // namespace roci::top
