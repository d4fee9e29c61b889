#include "base/config.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>

#include "base/log.hpp"

namespace roci {
namespace {

// Edit distance of two words (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

template <class Names>
std::string joined(const Names& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

// ", did you mean 'rate'? (allowed: name, rate)", with the nearest of the known names if it is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t d = distance(word, name);
    if (d < best) {
      best = d;
      nearest = &name;
    }
  }
  std::string out = nearest == nullptr ? "" : ", did you mean '" + *nearest + "'?";
  return out + (known.empty() ? " (no key is allowed here)" : " (allowed: " + joined(known) + ")");
}

std::string_view kind_name(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    default:
      return "empty";
  }
}

std::string at_line(const std::string& file, const YAML::Mark& mark) {
  return mark.line < 0 ? file : file + ":" + std::to_string(mark.line + 1);
}

// Step of a path such as "traffic[0].load": a key, or the index of an item.
struct Step {
  std::string key;
  std::optional<size_t> item;
};
Result<std::vector<Step>> steps_of(const std::string& path) {
  std::vector<Step> steps;
  std::istringstream words{path};
  for (std::string word; std::getline(words, word, '.');) {
    const size_t bracket = word.find('[');
    if (bracket == 0 || word.empty())
      return fail("'" + path + "' is not a valid path; example: traffic[0].load");
    steps.push_back({word.substr(0, bracket), {}});
    for (size_t open = bracket; open != std::string::npos;) {
      if (word[open] != '[') return fail("'" + path + "' is not a valid path; example: traffic[0].load");
      const size_t close = word.find(']', open);
      auto number = parse_integer(
          std::string_view{word}.substr(open + 1, close == std::string::npos ? 0 : close - open - 1), 0,
          1 << 20);
      if (!number) return fail("'" + path + "' is not a valid path; example: traffic[0].load");
      steps.push_back({"", static_cast<size_t>(*number)});
      open = close + 1 < word.size() ? close + 1 : std::string::npos;
    }
  }
  if (steps.empty()) return fail("the path is missing; example: traffic[0].load");
  return steps;
}

// Replaces the value at the path.
Status put(YAML::Node at, const std::vector<Step>& steps, const YAML::Node& value) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool last = i + 1 == steps.size();
    if (step.item) {
      if (!at.IsSequence() || *step.item >= at.size())
        return fail("item " + std::to_string(*step.item) + " does not exist");
      if (last) {
        at[*step.item] = value;
      } else {
        at.reset(at[*step.item]);
      }
      continue;
    }
    if (at.IsSequence() || (at.IsScalar() && !at.Scalar().empty()))
      return fail("found " + std::string(kind_name(at)) + " where a map with the key '" + step.key +
                  "' is required");
    if (last) {
      at[step.key] = value;
    } else if (const YAML::Node next = at[step.key]; next.IsDefined()) {
      at.reset(next);
    } else {
      YAML::Node made{steps[i + 1].item ? YAML::NodeType::Sequence : YAML::NodeType::Map};
      at[step.key] = made;
      at.reset(made);
    }
  }
  return {};
}

// Whether the warning was not logged before. A section may be read several times, for example for each port of a
// switch.
bool is_first(const std::string& warning) {
  static std::mutex mutex;
  static std::set<std::string> logged;
  const std::lock_guard lock{mutex};
  return logged.insert(warning).second;
}

}  // namespace

std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed) {
  return "'" + std::string{text} + "' is not one of " + joined(allowed);
}

struct ConfigNode::Yaml {
  struct Changed {
    YAML::Node node;
    std::string origin;
  };
  std::string file;  // or the origin of a change
  YAML::Node node;
  bool has_lines = true;
  std::shared_ptr<const std::vector<Changed>> changed = nullptr;

  [[nodiscard]] std::string where(const std::string& path) const {
    return (has_lines ? at_line(file, node.Mark()) : file) + (path.empty() ? "" : ": " + path);
  }
  // For a child of this node.
  [[nodiscard]] Yaml below(const YAML::Node& child) const {
    if (changed != nullptr) {
      for (const Changed& one : *changed)
        if (one.node.is(child)) return {one.origin, child, false, changed};
    }
    return {file, child, has_lines, changed};
  }
};

ConfigNode::ConfigNode(std::shared_ptr<const Yaml> yaml, std::string path)
    : yaml_(std::move(yaml)), path_(std::move(path)) {}

std::string ConfigNode::path_of(std::string_view key) const {
  return path_.empty() ? std::string{key} : path_ + "." + std::string{key};
}

// Null if the key is absent and optional.
Result<std::shared_ptr<const ConfigNode::Yaml>> ConfigNode::find(std::string_view key, Need need) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  for (const auto& entry : yaml_->node) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) {
      return std::make_shared<const Yaml>(yaml_->below(entry.second));
    }
  }
  if (need == Need::kRequired) return error("the required key '" + std::string{key} + "' is missing");
  return std::shared_ptr<const Yaml>{};
}

Result<std::optional<ConfigNode::Scalar>> ConfigNode::scalar(std::string_view key, Need need) {
  auto found = find(key, need);
  if (!found) return fail(std::move(found).error());
  if (*found == nullptr) return std::optional<Scalar>{};
  const std::string where = (*found)->where(path_of(key));
  const YAML::Node& node = (*found)->node;
  if (!node.IsScalar()) return fail(where + " must be a single value but is " + std::string{kind_name(node)});
  return std::optional<Scalar>{Scalar{node.Scalar(), where}};
}

Result<std::optional<std::vector<ConfigNode::Scalar>>> ConfigNode::scalars(std::string_view key, Need need,
                                                                           ListForm form) {
  auto found = find(key, need);
  if (!found) return fail(std::move(found).error());
  if (*found == nullptr) return std::optional<std::vector<Scalar>>{};
  const YAML::Node& node = (*found)->node;
  if (form == ListForm::kListOrValue && node.IsScalar())
    return std::optional{std::vector{Scalar{node.Scalar(), (*found)->where(path_of(key))}}};
  if (!node.IsSequence()) {
    const char* wanted =
        form == ListForm::kList ? " must be a list but is " : " must be a value or a list but is ";
    return fail((*found)->where(path_of(key)) + wanted + std::string{kind_name(node)});
  }
  std::vector<Scalar> out;
  for (const auto& item : node) {
    const std::string path = path_of(key) + "[" + std::to_string(out.size()) + "]";
    const std::string where = (*found)->below(item).where(path);
    if (!item.IsScalar())
      return fail(where + " must be a single value but is " + std::string{kind_name(item)});
    out.push_back({item.Scalar(), where});
  }
  return std::optional{std::move(out)};
}

Status ConfigNode::section(std::string_view key, Need need, const Reader& read) {
  auto found = find(key, need);
  if (!found) return fail(std::move(found).error());
  if (*found == nullptr) return {};
  const YAML::Node& node = (*found)->node;
  if (!node.IsMap() && !node.IsNull()) {
    return fail((*found)->where(path_of(key)) + " must be a map but is " + std::string{kind_name(node)});
  }
  ConfigNode child{*found, path_of(key)};
  ROCI_TRY(read(child));
  return child.finish();
}

Status ConfigNode::each(std::string_view key, Need need, const Reader& read) {
  auto found = find(key, need);
  if (!found) return fail(std::move(found).error());
  if (*found == nullptr) return {};
  const YAML::Node& list = (*found)->node;
  if (!list.IsSequence()) {
    return fail((*found)->where(path_of(key)) + " must be a list but is " + std::string{kind_name(list)});
  }
  size_t index = 0;
  for (const auto& item : list) {
    const std::string path = path_of(key) + "[" + std::to_string(index++) + "]";
    auto yaml = std::make_shared<const Yaml>((*found)->below(item));
    if (!item.IsMap())
      return fail(yaml->where(path) + " must be a map but is " + std::string{kind_name(item)});
    ConfigNode child{std::move(yaml), path};
    ROCI_TRY(read(child));
    ROCI_TRY(child.finish());
  }
  return {};
}

bool ConfigNode::has(std::string_view key) const {
  return std::any_of(yaml_->node.begin(), yaml_->node.end(), [&](const auto& entry) {
    return entry.first.IsScalar() && entry.first.Scalar() == key;
  });
}

std::string_view ConfigNode::renamed(std::string_view name, std::string_view old_name) const {
  if (has(name) || !has(old_name)) return name;
  const tl::unexpected<Error> warning =
      error(old_name, "the key is named " + std::string{name} + "; version 0.3 will reject the old name");
  if (is_first(warning.value().message)) log().warn("{}", warning.value().message);
  return old_name;
}

std::vector<std::string> ConfigNode::keys() const {
  std::vector<std::string> all;
  for (const auto& entry : yaml_->node)
    if (entry.first.IsScalar()) all.push_back(entry.first.Scalar());
  return all;
}

std::optional<ConfigNode::Piece> ConfigNode::piece(std::string_view key) {
  auto found = find(key, Need::kOptional);
  if (!found || *found == nullptr) return {};
  return Piece{YAML::Dump((*found)->node), (*found)->where(path_of(key))};
}

std::filesystem::path ConfigNode::folder() const { return std::filesystem::path{yaml_->file}.parent_path(); }

tl::unexpected<Error> ConfigNode::error(const std::string& message) const {
  return fail(Error{message}.within(yaml_->where(path_)));
}

tl::unexpected<Error> ConfigNode::error(std::string_view key, const std::string& message) const {
  for (const auto& entry : yaml_->node) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) {
      return fail(Error{message}.within(yaml_->below(entry.second).where(path_of(key))));
    }
  }
  return error(message);
}

Status ConfigNode::finish() const {
  std::vector<std::string> seen;
  for (const auto& entry : yaml_->node) {
    const Yaml key = yaml_->below(entry.first.Mark().line < 0 ? entry.second : entry.first);
    if (!entry.first.IsScalar()) return fail(key.where(path_) + ": a key must be a single word");
    const std::string& name = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      return fail(key.where(path_of(name)) + " is an unknown key" + suggestion(name, known_));
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return fail(key.where(path_of(name)) + " occurs more than once; a key may occur once");
    }
    seen.push_back(name);
  }
  return {};
}

Status parse_config(const std::string& text, const std::string& name, const ConfigNode::Reader& read,
                    const std::vector<ConfigChange>& changes) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& e) {
    return fail(at_line(name, e.mark) + ": not valid YAML: " + e.msg);
  }
  if (documents.size() > 1)
    return fail(name + " has " + std::to_string(documents.size()) + " documents; only one is allowed");
  const YAML::Node root = documents.empty() ? YAML::Node{} : documents[0];
  if (!root.IsMap() && !root.IsNull())
    return fail(name + " must be a map but is " + std::string{kind_name(root)});
  auto changed = std::make_shared<std::vector<ConfigNode::Yaml::Changed>>();
  for (const ConfigChange& change : changes) {
    auto steps = steps_of(change.path);
    if (!steps) return fail(steps.error().within(change.origin));
    try {
      const YAML::Node value = YAML::Load(change.yaml);
      if (Status s = put(root, *steps, value); !s) return fail(s.error().within(change.origin));
      changed->push_back({value, change.origin});
    } catch (const YAML::Exception& e) {
      return fail(change.origin + ": not valid YAML: " + e.msg);
    }
  }
  ConfigNode node{
      std::make_shared<const ConfigNode::Yaml>(ConfigNode::Yaml{name, root, true, std::move(changed)}), ""};
  ROCI_TRY(read(node));
  return node.finish();
}

Status read_config(const std::string& file, const ConfigNode::Reader& read,
                   const std::vector<ConfigChange>& changes) {
  errno = 0;
  std::ifstream in{file};
  std::ostringstream text;
  // A directory can be opened but not read; an empty file returns nothing without an error.
  if (in && in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (errno != 0 || !in.is_open() || in.bad()) {
    return fail("the configuration file '" + file + "' cannot be read: " + std::strerror(errno), errno);
  }
  return parse_config(text.str(), file, read, changes);
}

}  // namespace roci
