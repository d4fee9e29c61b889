#include "roci-top/tables/switch_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "roci-top/tables/text.hpp"

namespace roci::top {
namespace {

constexpr size_t kMinPortName = 8, kMaxPortName = 20;
constexpr size_t kMinBar = 7, kMaxBar = 42;  // including brackets
constexpr size_t kRateColumn = 8;            // width of a rate column, including a leading space
constexpr size_t kBytes = 6;                 // width of the queue length, and of its peak

// A row of the table: a port, or a class of a port.
struct PortRow {
  std::string name;
  const Counted* now = nullptr;
  const Counted* before = nullptr;  // null if there is no earlier sample
  uint64_t queue_limit = 0;
  bool is_port = false;

  [[nodiscard]] double rate(const std::string& counter) const { return per_second(*now, before, counter); }
};

// The fraction of time for which the class was paused.
std::string percent_paused(const PortRow& row) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "%.0f%%", std::min(row.rate("paused_nanos") * 1e-7, 100.0));
  return text.data();
}

struct PortColumn {
  const char* heading;
  size_t from_width;  // minimum width of the terminal
  bool of_ports, of_classes;
  std::string (*value)(const PortRow& row);
};

// Columns to the left and to the right of the queue. In narrow terminals the least important ones are omitted.
constexpr size_t kPortPacketsFrom = 74, kPortPausesFrom = 112;
const std::array kLeft = {
    PortColumn{"rx Gb/s", 0, true, false, [](const PortRow& r) { return gigabits(r.rate("rx_bytes")); }},
    PortColumn{"tx Gb/s", 0, true, true, [](const PortRow& r) { return gigabits(r.rate("tx_bytes")); }},
    PortColumn{"rx Mpps", kPortPacketsFrom, true, false,
               [](const PortRow& r) { return millions(r.rate("rx_packets")); }},
    PortColumn{"tx Mpps", kPortPacketsFrom, true, true,
               [](const PortRow& r) { return millions(r.rate("tx_packets")); }},
};
const std::array kRight = {
    PortColumn{"marks/s", 0, false, true, [](const PortRow& r) { return thousands(r.rate("marked")); }},
    PortColumn{"drops/s", 0, true, false, [](const PortRow& r) { return thousands(r.rate("dropped")); }},
    PortColumn{"PFC in", kPortPausesFrom, false, true,
               [](const PortRow& r) { return thousands(r.rate("pauses_received")); }},
    PortColumn{"PFC out", kPortPausesFrom, false, true,
               [](const PortRow& r) { return thousands(r.rate("pauses_sent")); }},
    PortColumn{"paused", kPortPausesFrom, false, true, percent_paused},
};

// Column widths for the width of the terminal.
struct Layout {
  size_t width = 80, name = kMinPortName, bar = kMinBar;

  Layout(const Look& look, size_t longest_name) : width(look.width) {
    const auto shown = [this](const PortColumn& column) { return column.from_width <= width; };
    const auto columns =
        static_cast<size_t>(std::ranges::count_if(kLeft, shown) + std::ranges::count_if(kRight, shown));
    const size_t rest = columns * kRateColumn + 2 * kBytes + 1;  // and the space before the bar
    name = std::clamp(longest_name, kMinPortName, kMaxPortName);
    while (name > kMinPortName && rest + name + kMinBar > width) --name;
    bar = rest + name + kMinBar > width ? 0 : std::min(width - rest - name, kMaxBar);
  }
};

template <class Columns, class Text>
void add_columns(std::string& line, const Columns& columns, const Layout& layout, Text text) {
  for (const PortColumn& column : columns) {
    if (column.from_width <= layout.width) line += right_aligned(text(column), kRateColumn);
  }
}

Line heading(const Layout& layout) {
  const auto head = [](const PortColumn& column) { return std::string{column.heading}; };
  std::string line = fitted("port", layout.name);
  add_columns(line, kLeft, layout, head);
  if (layout.bar > 0) line += " " + fitted("queue", layout.bar);
  line += right_aligned("now", kBytes) + right_aligned("peak", kBytes);
  add_columns(line, kRight, layout, head);
  return {fitted(line, layout.width), Line::Style::kHeading};
}

Line row_line(const PortRow& row, const Layout& layout) {
  const auto value = [&row](const PortColumn& column) {
    return (row.is_port ? column.of_ports : column.of_classes) ? column.value(row) : std::string{};
  };
  const uint64_t now = row.now->number("queue_bytes"), peak = row.now->number("queue_peak_bytes");
  std::string line = fitted(row.name, layout.name);
  add_columns(line, kLeft, layout, value);
  if (layout.bar > 0) line += " " + bar(now, peak, row.queue_limit, layout.bar);
  line += right_aligned(short_number(static_cast<double>(now), true), kBytes);
  line += right_aligned(short_number(static_cast<double>(peak), true), kBytes);
  add_columns(line, kRight, layout, value);
  return {fitted(line, layout.width)};
}

// Counters below `folder` that have increased, per second: "queue_full 12, runt 1".
std::string grown(const PortRow& row, const std::string& folder) {
  std::string out;
  for (const auto& [name, value] : row.now->numbers) {
    if (!name.starts_with(folder)) continue;
    const double rate = row.rate(name);
    if (rate > 0) out += (out.empty() ? "" : ", ") + name.substr(folder.size()) + " " + thousands(rate);
  }
  return out;
}

void add_detail(std::vector<Line>& lines, const Layout& layout, const std::string& what,
                const std::string& text, Line::Style style) {
  if (!text.empty()) lines.push_back({fitted("  " + what + text, layout.width), style});
}

void add_port_details(std::vector<Line>& lines, const PortRow& row, const Layout& layout) {
  if (row.now->number("link_up") == 0)
    lines.push_back({fitted("  link down", layout.width), Line::Style::kAlert});
  add_detail(lines, layout, "drops/s: ", grown(row, "drops/"), Line::Style::kAlert);
  if (const std::string faults = row.now->text("faults"); !faults.empty() && faults != "none") {
    const std::string injected = grown(row, "injected/");
    add_detail(lines, layout, "faults: ", faults + (injected.empty() ? "" : "; injected/s: " + injected),
               Line::Style::kAlert);
  }
}

void add_class_details(std::vector<Line>& lines, const PortRow& row, const Layout& layout) {
  if (layout.width >= kPortPausesFrom) return;
  std::string text;
  if (row.rate("pauses_received") > 0 || row.rate("paused_nanos") > 0)
    text = "in " + thousands(row.rate("pauses_received")) + ", paused " + percent_paused(row);
  if (row.rate("pauses_sent") > 0)
    text += (text.empty() ? "out " : ", out ") + thousands(row.rate("pauses_sent"));
  add_detail(lines, layout, "  pauses/s: ", text, Line::Style::kPlain);
}

// Port indices in the requested order.
std::vector<size_t> order_of(const SwitchSample& sw, const SwitchSample* before, Sort sort) {
  std::vector<std::pair<double, size_t>> keys;
  for (size_t i = 0; i < sw.ports.size(); ++i) {
    const PortSample* old = find_port(before, sw.ports[i].name, i);
    const Counted* from = old == nullptr ? nullptr : &old->counted;
    const Counted& now = sw.ports[i].counted;
    double key = 0;
    if (sort == Sort::kTransmit) key = per_second(now, from, "tx_bytes");
    if (sort == Sort::kQueue) key = static_cast<double>(now.number("queue_bytes"));
    if (sort == Sort::kDrops) key = per_second(now, from, "dropped");
    keys.emplace_back(-key, i);
  }
  std::ranges::stable_sort(keys, {}, &std::pair<double, size_t>::first);
  std::vector<size_t> order;
  for (const auto& [key, i] : keys) order.push_back(i);
  return order;
}

// Whether class rows contain more than traffic of class 0.
bool worth_showing(const PortSample& port) {
  if (port.classes.size() > 1) return true;
  return std::ranges::any_of(port.classes, [](const auto& entry) {
    const Counted& c = entry.second;
    return entry.first != 0 || c.number("marked") + c.number("pauses_received") + c.number("pauses_sent") > 0;
  });
}

void add_ports(std::vector<Line>& lines, const SwitchSample& sw, const SwitchSample* before,
               const Look& look) {
  size_t longest = 0;
  for (const PortSample& port : sw.ports) longest = std::max(longest, port.name.size());
  const Layout layout{look, longest};
  lines.push_back(heading(layout));
  for (const size_t i : order_of(sw, before, look.sort)) {
    const PortSample& port = sw.ports[i];
    const PortSample* old = find_port(before, port.name, i);
    const uint64_t limit = port.counted.number("queue_limit");
    const PortRow row{port.name, &port.counted, old == nullptr ? nullptr : &old->counted, limit, true};
    lines.push_back(row_line(row, layout));
    add_port_details(lines, row, layout);
    if (!look.classes || !worth_showing(port)) continue;
    for (const auto& [number, counted] : port.classes) {
      const Counted* from = old == nullptr ? nullptr : find(old->classes, number);
      const PortRow class_row{" class " + std::to_string(number), &counted, from, limit, false};
      lines.push_back(row_line(class_row, layout));
      add_class_details(lines, class_row, layout);
    }
  }
}

void add_switch_details(std::vector<Line>& lines, const SwitchSample& sw, const SwitchSample* before,
                        const Look& look) {
  for (const auto& [kind, events] : sw.events) {
    const PortRow row{"", &events, before == nullptr ? nullptr : find(before->events, kind), 0, false};
    if (const std::string text = grown(row, ""); !text.empty())
      lines.push_back({fitted("  " + kind + "/s: " + text, look.width)});
  }
  const PortRow info{"", &sw.info, before == nullptr ? nullptr : &before->info, 0, false};
  if (const std::string text = grown(info, ""); !text.empty())
    lines.push_back({fitted("  whole switch/s: " + text, look.width)});
}

}  // namespace

void add_switch(std::vector<Line>& lines, const ProcessSample& process, const SwitchSample& sw,
                const SwitchSample* before, const Look& look) {
  const std::string title = "switch " + sw.name + " in " + process.program + " " +
                            std::to_string(process.pid) + ", DPDK prefix " + process.prefix;
  lines.push_back({fitted(title, look.width), Line::Style::kTitle});
  add_ports(lines, sw, before, look);
  add_switch_details(lines, sw, before, look);
}

}  // namespace roci::top
