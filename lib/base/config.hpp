// Strict reader of YAML configuration. Every key must be known and every value of its kind. An error is one sentence
// with file, line, key, value and what is allowed.
//
//   struct Config { std::string name; BitsPerSec rate{0}; IdlePolicy idle = IdlePolicy::kSpin; ... };
//   return read_config(file, [&](ConfigNode& root) -> Status {
//     return root.section("switch", Need::kRequired, [&](ConfigNode& node) -> Status {
//       ROCI_TRY(node.required("name", config.name));
// keeps its default if absent
//       ROCI_TRY(node.optional("idle", config.idle, one_of<IdlePolicy>({{"spin", IdlePolicy::kSpin}, ...})));
//       return node.each("ports", Need::kOptional, [&](ConfigNode& port) -> Status { ... });
//     });
//   });
//
// A key is known once it was requested. Keys that remain when the function of a section returns are unknown keys.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "base/units.hpp"

namespace roci {

enum class Need : uint8_t { kOptional, kRequired };

// Conversion of a value's text to T. Types with a static parse(std::string_view) -> Result<T> have their own.
template <class T>
Result<T> parse_value(std::string_view text) {
  if constexpr (std::same_as<T, std::string>) {
    return std::string{text};
  } else if constexpr (std::same_as<T, bool>) {
    return parse_bool(text);
  } else if constexpr (std::integral<T>) {
    constexpr auto kLow = static_cast<int64_t>(std::numeric_limits<T>::min());
    constexpr auto kHigh = sizeof(T) < 8 ? static_cast<int64_t>(std::numeric_limits<T>::max()) : INT64_MAX;
    return parse_integer(text, kLow, kHigh).map([](int64_t v) { return static_cast<T>(v); });
  } else if constexpr (std::same_as<T, Bytes>) {
    return parse_bytes(text);
  } else if constexpr (std::same_as<T, BitsPerSec>) {
    return parse_rate(text);
  } else if constexpr (std::same_as<T, Nanos>) {
    return parse_duration(text);
  } else {
    return T::parse(text);
  }
}

// Parsers with limits, for the last argument of required() and optional().
template <std::integral T>
auto integer_in(T low, T high) {
  return [low, high](std::string_view text) {
    return parse_integer(text, static_cast<int64_t>(low), static_cast<int64_t>(high)).map([](int64_t v) {
      return static_cast<T>(v);
    });
  };
}
inline auto number_in(double low, double high) {
  return [low, high](std::string_view text) { return parse_number(text, low, high); };
}
// "'x' is not one of spin, yield, sleep".
std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed);
template <class T>
auto one_of(std::vector<std::pair<std::string_view, T>> choices) {
  return [choices = std::move(choices)](std::string_view text) -> Result<T> {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
      names.push_back(name);
    }
    return fail(not_one_of(text, names));
  };
}

// Value that replaces a part of the document, for example from the command line.
struct ConfigChange {
  std::string path;    // "traffic[0].load"; missing maps on the path are created
  std::string yaml;    // new value
  std::string origin;  // prefix of errors: "--set traffic[0].load"
};

// Map in the document: a section, or one item of a list. Valid only within the function to which it is passed.
class ConfigNode {
 public:
  using Reader = std::function<Status(ConfigNode&)>;

  // Reads the value of a key. optional() does not change `out` if the key is absent.
  template <class T, class Parser>
  Status required(std::string_view key, T& out, Parser&& parse) {
    return read(key, Need::kRequired, out, parse);
  }
  template <class T>
  Status required(std::string_view key, T& out) {
    return read(key, Need::kRequired, out, parse_value<T>);
  }
  template <class T, class Parser>
  Status optional(std::string_view key, T& out, Parser&& parse) {
    return read(key, Need::kOptional, out, parse);
  }
  template <class T>
  Status optional(std::string_view key, T& out) {
    return read(key, Need::kOptional, out, parse_value<T>);
  }
  // Reads a list of plain values; replaces `out` if the key is present.
  template <class T>
  Status optional_list(std::string_view key, std::vector<T>& out) {
    return optional_list(key, out, parse_value<T>);
  }
  template <class T, class Parser>
  Status optional_list(std::string_view key, std::vector<T>& out, Parser&& parse) {
    return read_list(key, Need::kOptional, ListForm::kList, out, parse);
  }
  // The same for a required key; a single value counts as a list of one.
  template <class T>
  Status required_values(std::string_view key, std::vector<T>& out) {
    return read_list(key, Need::kRequired, ListForm::kListOrValue, out, parse_value<T>);
  }

  // Reads the map at `key`; an empty value is an empty map. Fails on keys that `read` has not requested.
  Status section(std::string_view key, Need need, const Reader& read);
  // Reads each item of the list at `key`; the items must be maps.
  Status each(std::string_view key, Need need, const Reader& read);

  [[nodiscard]] bool has(std::string_view key) const;
  // Key under which this map has a renamed setting, as argument of the functions above: `name`, or `old_name` if the
  // map has only that one. The first use of the old name is logged as a warning; version 0.3 will reject it.
  [[nodiscard]] std::string_view renamed(std::string_view name, std::string_view old_name) const;
  // Folder of the document's file; empty if the name of the document has none.
  [[nodiscard]] std::filesystem::path folder() const;
  // All keys of this map, for maps with keys chosen by the user.
  [[nodiscard]] std::vector<std::string> keys() const;
  // YAML text and position of a key's value ("s.yaml:7: variants[0].set"), for documents that change other documents.
  struct Piece {
    std::string yaml;
    std::string where;
  };
  std::optional<Piece> piece(std::string_view key);
  // Error about this map or one of its values, prefixed with file, line and path.
  [[nodiscard]] tl::unexpected<Error> error(const std::string& message) const;
  [[nodiscard]] tl::unexpected<Error> error(std::string_view key, const std::string& message) const;

  // Fails if the map has a key that was not requested, or a duplicate key. Called by section(), each() and
  // read_config().
  [[nodiscard]] Status finish() const;

 private:
  friend Status parse_config(const std::string& text, const std::string& name, const Reader& read,
                             const std::vector<ConfigChange>& changes);
  struct Yaml;
  struct Scalar {
    std::string text;
    std::string where;  // "s.yaml:7: switch.ports[2].rate"
  };

  ConfigNode(std::shared_ptr<const Yaml> yaml, std::string path);
  Result<std::optional<Scalar>> scalar(std::string_view key, Need need);
  enum class ListForm : uint8_t { kList, kListOrValue };
  Result<std::optional<std::vector<Scalar>>> scalars(std::string_view key, Need need, ListForm form);
  Result<std::shared_ptr<const Yaml>> find(std::string_view key, Need need);
  [[nodiscard]] std::string path_of(std::string_view key) const;

  template <class T, class Parser>
  Status read(std::string_view key, Need need, T& out, Parser& parse) {
    auto text = scalar(key, need);
    if (!text) return fail(std::move(text).error());
    if (!*text) return {};
    auto value = parse(std::string_view{(*text)->text});
    if (!value) return fail(value.error().within((*text)->where));
    out = std::move(*value);
    return {};
  }
  template <class T, class Parser>
  Status read_list(std::string_view key, Need need, ListForm form, std::vector<T>& out, Parser& parse) {
    auto texts = scalars(key, need, form);
    if (!texts) return fail(std::move(texts).error());
    if (!*texts) return {};
    out.clear();
    for (const Scalar& item : **texts) {
      auto value = parse(std::string_view{item.text});
      if (!value) return fail(value.error().within(item.where));
      out.push_back(std::move(*value));
    }
    return {};
  }

  std::shared_ptr<const Yaml> yaml_;
  std::string path_;
  std::vector<std::string> known_;
};

// Read a file, or text with `name` as its file name. The document must be one map.
Status read_config(const std::string& file, const ConfigNode::Reader& read,
                   const std::vector<ConfigChange>& changes = {});
Status parse_config(const std::string& text, const std::string& name, const ConfigNode::Reader& read,
                    const std::vector<ConfigChange>& changes = {});

}  // namespace roci
