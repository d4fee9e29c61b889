#include "roci-lab/means.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "lab/results/estimate.hpp"
#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

using Object = nlohmann::ordered_json;

// "20.1 KB ± 1.3 KB"; "-" if a summary lacks the value.
std::string text_of(const std::vector<std::optional<double>>& values, const std::string& unit) {
  std::vector<double> all;
  for (const auto& value : values)
    if (value) all.push_back(*value);
  if (all.size() != values.size()) return "-";
  const Estimate mean = estimate(all);
  return with_unit(mean.mean, unit) + " ± " + with_unit(mean.interval, unit);
}

std::optional<double> number(const Object* object, const char* key) {
  if (object == nullptr || !object->contains(key) || !(*object)[key].is_number()) return std::nullopt;
  return (*object)[key].get<double>();
}

// Pads to a number of characters; "±" has two bytes.
std::string padded(const std::string& text, size_t width) {
  const auto characters = static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  return text + std::string(width > characters ? width - characters : 1, ' ');
}

std::string row(const std::array<std::string, 6>& cells) {
  constexpr std::array<size_t, 6> kWidths = {25, 15, 26, 18, 22, 22};
  std::string out;
  for (size_t i = 0; i < cells.size(); ++i) out += padded(cells[i], kWidths[i]);
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

}  // namespace

std::string means_table(const std::vector<const Job*>& jobs, const std::vector<StoredRun>& results) {
  std::vector<std::string> runs;
  for (const Job* job : jobs)
    if (std::ranges::find(runs, job->run.called()) == runs.end()) runs.push_back(job->run.called());
  std::string out = row({"mean, 95 % confidence", "traffic", "goodput", "Jain", "queue p50", "p99"});
  for (const std::string& run : runs) {
    std::vector<const Object*> of_run;
    for (size_t i = 0; i < jobs.size(); ++i)
      if (jobs[i]->run.called() == run) of_run.push_back(&results[i].summary);
    const auto values = [&](const auto& value_of) {
      std::vector<std::optional<double>> all;
      for (const Object* summary : of_run) all.push_back(value_of(*summary));
      return all;
    };
    const auto queue = [&](const char* percentile) {
      return text_of(values([&](const Object& of) { return number(longest_queue(of), percentile); }), "B");
    };
    bool first = true;
    const Object all_traffic = of_run.front()->value("traffic", Object::object());
    for (const auto& item : all_traffic.items()) {
      const std::string& traffic = item.key();
      const auto of_traffic = [&](const char* key) {
        return values([&](const Object& of) -> std::optional<double> {
          const auto all = of.find("traffic");
          if (all == of.end() || !all->contains(traffic)) return std::nullopt;
          return number(&(*all)[traffic], key);
        });
      };
      out += row({first ? run : "", traffic, text_of(of_traffic("goodput_bps"), "bit/s"),
                  text_of(of_traffic("jain"), ""), first ? queue("p50") : "", first ? queue("p99") : ""});
      first = false;
    }
  }
  return out;
}

}  // namespace roci::lab
