#include "roci-switch/report.hpp"

#include <algorithm>
#include <string>

namespace roci {
namespace {

double gigabits(uint64_t bytes, Nanos span) {
  return span <= Nanos{0} ? 0.0 : static_cast<double>(bytes) * 8 / static_cast<double>(span.count());
}

// "queue_full 12, runt 1", or nothing.
std::string drops_of(const SwitchPortCounters& counters) {
  std::string out;
  for (unsigned i = 1; i < kDropReasonCount; ++i) {
    const uint64_t count = counters.drops[i];
    if (count == 0) continue;
    if (!out.empty()) out += ", ";
    out += std::string{drop_reason_name(static_cast<DropReason>(i))} + " " + std::to_string(count);
  }
  return out;
}

// "sent 12, spaced 3" of an array of counters and the names of its places; nothing when all are 0.
template <class Counters, class Name>
std::string events_of(const Counters& counters, Name name) {
  std::string out;
  for (size_t i = 0; i < counters.events.size(); ++i) {
    const uint64_t count = counters.events[i];
    if (count == 0) continue;
    out += out.empty() ? "" : ", ";
    out += std::string{name(i)} + " " + std::to_string(count);
  }
  return out;
}

}  // namespace

SwitchReport::SwitchReport(const Switch& sw) : switch_(sw), last_(sample()) {}

void SwitchReport::start(Nanos now) { started_ = last_time_ = now; }

void SwitchReport::print(std::FILE* out, Nanos now) {
  print_since(out, last_, now - last_time_);
  last_ = sample();
  last_time_ = now;
}

void SwitchReport::print_total(std::FILE* out, Nanos now) {
  print_since(out, std::vector<Sample>(last_.size()), now - started_);
}

std::vector<SwitchReport::Sample> SwitchReport::sample() const {
  std::vector<Sample> out;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    const SwitchPortCounters& c = switch_.counters(i);
    out.push_back({c.rx_bytes, c.tx_bytes});
  }
  return out;
}

void SwitchReport::print_since(std::FILE* out, const std::vector<Sample>& from, Nanos span) {
  int width = 4;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    width = std::max(width, static_cast<int>(switch_.port_config(i).name.size()));
  }
  std::fprintf(out, "%-*s %12s %8s %12s %8s %10s %10s %10s  %s\n", width, "port", "rx packets", "rx Gb/s",
               "tx packets", "tx Gb/s", "queue B", "peak B", "dropped", "why");
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    const SwitchPortCounters& c = switch_.counters(i);
    const auto value = [](const SwitchPortCounters::Counter& x) {
      return static_cast<unsigned long long>(x);
    };
    std::fprintf(out, "%-*s %12llu %8.3f %12llu %8.3f %10llu %10llu %10llu  %s\n", width,
                 switch_.port_config(i).name.c_str(), value(c.rx_packets),
                 gigabits(c.rx_bytes - from[i].rx_bytes, span), value(c.tx_packets),
                 gigabits(c.tx_bytes - from[i].tx_bytes, span), value(c.queue_bytes),
                 value(c.queue_peak_bytes), static_cast<unsigned long long>(c.dropped()),
                 drops_of(c).c_str());
  }
  print_classes(out, width);
  const auto line = [out](const char* what, const std::string& events) {
    if (!events.empty()) std::fprintf(out, "%s: %s\n", what, events.c_str());
  };
  line("CNMs",
       events_of(switch_.cnm_counts(), [](size_t i) { return cnm_event_name(static_cast<CnmEvent>(i)); }));
  line("CNPs",
       events_of(switch_.cnp_counts(), [](size_t i) { return cnp_event_name(static_cast<CnpEvent>(i)); }));
  line("telemetry responses", events_of(switch_.int_response_counts(), [](size_t i) {
         return int_response_event_name(static_cast<IntResponseEvent>(i));
       }));
  std::fflush(out);
}

// What the classes have done, where there is more to say than that all went through class 0.
void SwitchReport::print_classes(std::FILE* out, int width) {
  bool headed = false;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    for (unsigned number = 0; number < kTrafficClasses; ++number) {
      const SwitchClassCounters& c = switch_.counters(i).classes[number];
      const bool used = c.tx_packets > 0 || c.queue_bytes > 0 || c.pauses_received > 0 || c.pauses_sent > 0;
      if (!used || (number == 0 && c.marked == 0)) continue;
      if (!headed) {
        std::fprintf(out, "%-*s %5s %12s %10s %10s %10s %10s %10s %10s %7s\n", width, "port", "class",
                     "tx packets", "marked", "queue B", "peak B", "pauses in", "paused ms", "pauses out",
                     "storms");
        headed = true;
      }
      const auto value = [](const SwitchClassCounters::Counter& x) {
        return static_cast<unsigned long long>(x);
      };
      std::fprintf(out, "%-*s %5u %12llu %10llu %10llu %10llu %10llu %10.3f %10llu %7llu\n", width,
                   switch_.port_config(i).name.c_str(), number, value(c.tx_packets), value(c.marked),
                   value(c.queue_bytes), value(c.queue_peak_bytes), value(c.pauses_received),
                   static_cast<double>(c.paused_nanos) * 1e-6, value(c.pauses_sent), value(c.pause_storms));
    }
  }
}

}  // namespace roci
