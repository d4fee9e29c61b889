#include "roci-top/tables/queue_pair_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "roci-top/tables/text.hpp"

namespace roci::top {
namespace {

struct QueuePairRow {
  const QueuePairSample* qp;
  const Counted* before;  // null if there is no earlier sample

  [[nodiscard]] double rate(const std::string& counter) const {
    return per_second(qp->counted, before, counter);
  }
  [[nodiscard]] uint64_t number(const std::string& name) const { return qp->counted.number(name); }
  [[nodiscard]] std::string text(const std::string& name) const { return qp->counted.text(name); }
  [[nodiscard]] bool is_reliable() const { return text("type") == "RC" || text("type").starts_with("XRC"); }
  [[nodiscard]] bool is_controlled() const { return !text("algorithm").empty(); }
};

// UC counts sent bytes only under congestion control, and including headers.
std::string transmit(const QueuePairRow& r) {
  if (r.is_reliable()) return gigabits(r.rate("acked_bytes"));
  return r.is_controlled() ? gigabits(r.rate("sent_bytes")) : "-";
}

// A transport without retransmission or congestion control: sent packets are counted by their PSNs.
double sent_packets(const QueuePairRow& r) {
  if (r.is_reliable() || r.is_controlled()) return r.rate("sent_packets");
  return psns_per_second(r.qp->counted, r.before, "send_psn");
}

double losses(const QueuePairRow& r) { return r.rate("losses") + r.rate("timeouts"); }

std::string rounded(double value, const char* form) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string percent_marked(const QueuePairRow& r) {
  const double acked = r.rate("acked_packets");
  return acked > 0 ? rounded(std::min(100 * r.rate("marked_packets") / acked, 100.0), "%.1f") : "-";
}

std::string round_trip(const QueuePairRow& r) {
  const double micros = static_cast<double>(r.number("rtt_ns")) * 1e-3;
  return micros <= 0 ? "-" : micros < 9999.95 ? rounded(micros, "%.1f") : thousands(micros);
}

std::string window(const QueuePairRow& r) {
  const uint64_t bytes = r.number("window");
  return bytes == 0 ? "-" : short_number(static_cast<double>(bytes), true);
}

std::string rate_limit(const QueuePairRow& r) {
  const uint64_t bits = r.number("rate");
  return bits == 0 ? "-" : decimal(static_cast<double>(bits) * 1e-9);
}

std::string peer(const QueuePairRow& r) {
  const std::string address = r.text("peer");
  return address.empty() ? "-" : address + " " + std::to_string(r.number("peer_qpn"));
}

std::string text_or_none(const std::string& text) { return text.empty() ? "-" : text; }

struct QueuePairColumn {
  const char* heading;
  size_t width;       // including a leading space
  size_t from_width;  // minimum width of the terminal
  bool is_text;       // left-aligned and truncated
  std::string (*value)(const QueuePairRow& row);
};

// In narrow terminals the least important columns are omitted.
const std::array kQueuePairColumns = {
    QueuePairColumn{"type", 5, 100, true, [](const QueuePairRow& r) { return r.text("type"); }},
    QueuePairColumn{"state", 6, 70, true, [](const QueuePairRow& r) { return r.text("state"); }},
    QueuePairColumn{"peer", 25, 130, true, peer},
    QueuePairColumn{"rx Gb/s", 8, 0, false,
                    [](const QueuePairRow& r) {
                      return !r.is_reliable() || r.qp->responses ? "-" : gigabits(r.rate("received_bytes"));
                    }},
    QueuePairColumn{"tx Gb/s", 8, 0, false, transmit},
    QueuePairColumn{"tx Mpps", 8, 140, false,
                    [](const QueuePairRow& r) { return millions(sent_packets(r)); }},
    QueuePairColumn{"algorithm", 10, 0, true,
                    [](const QueuePairRow& r) { return text_or_none(r.text("algorithm")); }},
    QueuePairColumn{"cc state", 10, 80, true,
                    [](const QueuePairRow& r) { return text_or_none(r.text("cc_state")); }},
    QueuePairColumn{"cc Gb/s", 8, 0, false, rate_limit},
    QueuePairColumn{"window", 7, 0, false, window},
    QueuePairColumn{"flight", 7, 100, false,
                    [](const QueuePairRow& r) {
                      return r.is_controlled()
                                 ? short_number(static_cast<double>(r.number("in_flight")), true)
                                 : "-";
                    }},
    QueuePairColumn{"RTT us", 8, 0, false, round_trip},
    QueuePairColumn{"CE %", 6, 64, false, percent_marked},
    QueuePairColumn{
        "CNP/s", 6, 120, false,
        [](const QueuePairRow& r) { return r.is_controlled() ? thousands(r.rate("rp_cnp_handled")) : "-"; }},
    QueuePairColumn{"lost/s", 7, 120, false,
                    [](const QueuePairRow& r) { return r.is_controlled() ? thousands(losses(r)) : "-"; }},
};

// In terminals of at least kWide columns, all text columns wider than kShortText are extended by kMore.
constexpr size_t kWide = 153, kMore = 5;
constexpr size_t kShortText = 6;
constexpr size_t kName = 9;  // eight digits and a letter

std::string name_of(const QueuePairSample& qp) {
  return std::to_string(qp.number) + (qp.responses ? "r" : "");
}

template <class Text>
Line line_of(const std::string& name, const Look& look, Line::Style style, Text text) {
  std::string line = fitted(name, kName);
  for (const QueuePairColumn& column : kQueuePairColumns) {
    if (column.from_width > look.width) continue;
    const size_t more = look.width >= kWide && column.width > kShortText ? kMore : 0;
    line += column.is_text ? " " + fitted(text(column), column.width - 1 + more)
                           : right_aligned(text(column), column.width);
  }
  return {fitted(line, look.width), style};
}

// "queue pairs of client in roci-perf 7: 64 of 10,000, the busiest"
std::string title(const ProcessSample& process, const HostSample& host, bool responses) {
  const uint64_t all = host.info.number("queue_pairs");
  std::string text = "queue pairs of " + host.name + " in " + process.program + " " +
                     std::to_string(process.pid) + ": " + grouped(host.chosen);
  if (host.chosen < all) {
    text += " of " + grouped(all) + ", the busiest";
    if (host.looked_at < all) text += " of the first " + grouped(host.looked_at);
  }
  return text + (responses ? "; r: READ responses" : "");
}

std::vector<QueuePairRow> rows_of(const HostSample& host, const HostSample* before, Sort sort) {
  std::vector<QueuePairRow> rows;
  for (const QueuePairSample& qp : host.queue_pairs) {
    const QueuePairSample* old = find_queue_pair(before, qp);
    if (qp.shown) rows.push_back({&qp, old == nullptr ? nullptr : &old->counted});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, [sort](const QueuePairRow& row) {
    switch (sort) {
      case Sort::kTransmit:
        return row.is_reliable() ? row.rate("acked_bytes") : row.rate("sent_bytes");
      case Sort::kQueue:
        return static_cast<double>(row.number("in_flight"));
      case Sort::kDrops:
        return losses(row);
      case Sort::kName:
        break;
    }
    return 0.0;
  });
  return rows;
}

}  // namespace

void add_queue_pairs(std::vector<Line>& lines, const ProcessSample& process, const HostSample& host,
                     const HostSample* before, const Look& look) {
  const std::vector<QueuePairRow> rows = rows_of(host, before, look.sort);
  if (rows.empty()) return;
  const bool responses = std::ranges::any_of(rows, [](const QueuePairRow& row) { return row.qp->responses; });
  if (!lines.empty()) lines.emplace_back();
  lines.push_back({fitted(title(process, host, responses), look.width), Line::Style::kTitle});
  lines.push_back(line_of("QP", look, Line::Style::kHeading,
                          [](const QueuePairColumn& column) { return std::string{column.heading}; }));
  for (const QueuePairRow& row : rows)
    lines.push_back(line_of(name_of(*row.qp), look, Line::Style::kPlain,
                            [&row](const QueuePairColumn& column) { return column.value(row); }));
}

}  // namespace roci::top
