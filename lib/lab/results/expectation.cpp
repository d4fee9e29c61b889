#include "lab/results/expectation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/units.hpp"

namespace roci::lab {
namespace {

using Factor = Expectation::Factor;
using Product = Expectation::Product;
using Relation = Expectation::Relation;

constexpr std::array<std::pair<std::string_view, Relation>, 4> kRelations = {
    {{"<", Relation::kLess}, {"<=", Relation::kAtMost}, {">", Relation::kMore}, {">=", Relation::kAtLeast}}};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// Splits at spaces, except between single quotes.
Result<std::vector<std::string_view>> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    bool inside = false;
    for (; at < text.size() && (inside || !is_space(text[at])); ++at)
      if (text[at] == '\'') inside = !inside;
    if (inside) return fail("missing closing quote in " + std::string(text.substr(begin)));
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

// Splits at dots, except between single quotes.
Result<std::vector<std::string>> parts_of(std::string_view word) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : word) {
    if (c == '\'')
      inside = !inside;
    else if (c == '.' && !inside)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() < 2 || std::ranges::any_of(parts, &std::string::empty))
    return fail(in_quotes(word) + " is neither a number nor a path such as hpcc.traffic.web.goodput_bps");
  return parts;
}

// Number in bytes, ns or bit/s, or without a unit.
std::optional<double> number_of(std::string_view word) {
  if (auto plain = parse_number(word, -1e18, 1e18)) return *plain;
  if (std::isdigit(static_cast<unsigned char>(word.front())) == 0) return std::nullopt;
  if (auto rate = parse_rate(word)) return static_cast<double>(rate->value());
  if (auto time = parse_duration(word)) return static_cast<double>(time->count());
  if (auto bytes = parse_bytes(word)) return static_cast<double>(bytes->value());
  return std::nullopt;
}

Result<Product> product_of(const std::vector<std::string_view>& words, std::string_view text) {
  Product product;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i % 2 == 1) {
      if (words[i] != "*")
        return fail(in_quotes(words[i]) + " found where * or a comparison operator is required");
      continue;
    }
    if (const auto number = number_of(words[i])) {
      product.push_back({*number, {}});
      continue;
    }
    auto path = parts_of(words[i]);
    if (!path) return fail(path.error());
    product.push_back({1, std::move(*path)});
  }
  if (words.size() % 2 == 0) return fail("a number or a path is missing in " + in_quotes(text));
  return product;
}

std::string joined(const std::vector<std::string>& path) {
  std::string out;
  for (const std::string& part : path) {
    const bool plain = part.find_first_of(". ") == std::string::npos;
    out += (out.empty() ? "" : ".") + (plain ? part : in_quotes(part));
  }
  return out;
}

Result<double> value_of(const Factor& factor, const Summaries& summaries) {
  if (factor.path.empty()) return factor.number;
  const auto run = summaries.find(factor.path.front());
  if (run == summaries.end()) return fail("unknown run " + in_quotes(factor.path.front()));
  const nlohmann::ordered_json* at = &run->second;
  for (size_t i = 1; i < factor.path.size(); ++i) {
    if (!at->is_object() || !at->contains(factor.path[i])) {
      return fail("the summary has no '" +
                  joined({factor.path.begin(), factor.path.begin() + static_cast<std::ptrdiff_t>(i) + 1}) +
                  "'");
    }
    at = &(*at)[factor.path[i]];
  }
  if (!at->is_number()) return fail(in_quotes(joined(factor.path)) + " is not a number");
  return at->get<double>();
}

Result<double> value_of(const Product& product, const Summaries& summaries) {
  double out = 1;
  for (const Factor& factor : product) {
    auto value = value_of(factor, summaries);
    if (!value) return fail(value.error());
    out *= *value;
  }
  return out;
}

// Unit of the compared values, from the suffixes of their names.
std::string unit_of(const Expectation& expectation) {
  for (const Product* product : {&expectation.left, &expectation.right}) {
    for (const Factor& factor : *product) {
      for (const std::string& part : factor.path) {
        if (part.ends_with("_bytes")) return "B";
        if (part.ends_with("_bps")) return "bit/s";
        if (part.ends_with("_ns")) return "ns";
      }
    }
  }
  return "";
}

bool holds(double left, Relation relation, double right) {
  switch (relation) {
    case Relation::kLess:
      return left < right;
    case Relation::kAtMost:
      return left <= right;
    case Relation::kMore:
      return left > right;
    case Relation::kAtLeast:
      break;
  }
  return left >= right;
}

}  // namespace

std::vector<std::string> Expectation::runs() const {
  std::vector<std::string> names;
  for (const Product* product : {&left, &right}) {
    for (const Factor& factor : *product)
      if (!factor.path.empty() && std::ranges::find(names, factor.path.front()) == names.end())
        names.push_back(factor.path.front());
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> Expectation::timed_traffics() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Product* product : {&left, &right}) {
    for (const auto& [number, path] : *product) {
      if (path.size() < 4 || path[1] != "traffic" || (path[3] != "completion_ns" && path[3] != "slowdown"))
        continue;
      if (std::ranges::find(out, std::pair{path[0], path[2]}) == out.end())
        out.emplace_back(path[0], path[2]);
    }
  }
  return out;
}

Result<Expectation> parse_expectation(std::string_view text) {
  auto words = words_of(text);
  if (!words) return fail(words.error());
  const auto is_relation = [](std::string_view word) {
    return std::ranges::any_of(kRelations, [&](const auto& one) { return one.first == word; });
  };
  const auto middle = std::ranges::find_if(*words, is_relation);
  if (middle == words->end() || std::find_if(middle + 1, words->end(), is_relation) != words->end())
    return fail("one of <, <=, >, >=, surrounded by spaces, is required in " + in_quotes(text));
  auto left = product_of({words->begin(), middle}, text);
  if (!left) return fail(left.error());
  auto right = product_of({middle + 1, words->end()}, text);
  if (!right) return fail(right.error());
  Expectation out;
  out.that = text;
  out.left = std::move(*left);
  out.right = std::move(*right);
  out.relation = std::ranges::find(kRelations, *middle, [](const auto& one) { return one.first; })->second;
  if (out.runs().empty()) return fail("no path to a run's result in " + in_quotes(text));
  return out;
}

Result<Verdict> evaluate(const Expectation& expectation, const Summaries& summaries) {
  auto left = value_of(expectation.left, summaries);
  if (!left) return fail(left.error());
  auto right = value_of(expectation.right, summaries);
  if (!right) return fail(right.error());
  return Verdict{.holds = holds(*left, expectation.relation, *right),
                 .left = *left,
                 .right = *right,
                 .unit = unit_of(expectation)};
}

Result<Verdict> evaluate(const Expectation& expectation, const std::vector<Summaries>& of_seeds) {
  if (of_seeds.size() == 1) return evaluate(expectation, of_seeds.front());
  std::vector<double> left, right, difference;
  for (const Summaries& summaries : of_seeds) {
    auto of_seed = evaluate(expectation, summaries);
    if (!of_seed) return of_seed;
    left.push_back(of_seed->left);
    right.push_back(of_seed->right);
    difference.push_back(of_seed->left - of_seed->right);
  }
  const double confidence = expectation.confidence > 0 ? expectation.confidence : kConfidence;
  const Estimate of_left = estimate(left, confidence);
  const Estimate of_right = estimate(right, confidence);
  const Estimate of_difference = estimate(difference, confidence);
  const auto holds_at = [&](double value) { return holds(value, expectation.relation, 0); };
  Verdict out{.holds = holds_at(of_difference.mean),
              .left = of_left.mean,
              .right = of_right.mean,
              .unit = unit_of(expectation),
              .left_interval = of_left.interval,
              .right_interval = of_right.interval,
              .significant = holds_at(of_difference.mean - of_difference.interval) ==
                             holds_at(of_difference.mean + of_difference.interval)};
  if (expectation.confidence > 0) out.holds = out.holds && out.significant;
  return out;
}

}  // namespace roci::lab
