#include "congestion/algorithms.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <set>

namespace roci {
namespace {

// Names of NIC drivers and perftest for built-in algorithms, and names of algorithms that are not available.
struct Alias {
  std::string_view name;
  std::string_view builtin_name;  // empty: not available
  std::string_view why;
};
constexpr std::array kAliases{
    Alias{"hpcc++", "hpcc", ""},
    Alias{"l3qcn", "qcn", ""},
    Alias{"hc3", "", "HC3 is a proprietary algorithm of HiSilicon hardware without a public description"},
    Alias{"dip", "", "DIP is a proprietary algorithm of HiSilicon hardware without a public description"},
    Alias{"ztr", "", "ZTR is a proprietary algorithm of NVIDIA firmware without a public description"},
};

constexpr uint32_t kCapabilities =
    ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_CE_COUNT | ROCI_CC_NEEDS_CNP | ROCI_CC_NEEDS_CNM | ROCI_CC_NEEDS_RTT |
    ROCI_CC_NEEDS_HOST_DELAY | ROCI_CC_NEEDS_PROBE | ROCI_CC_NEEDS_INT | ROCI_CC_NEEDS_BASE_RTT |
    ROCI_CC_NEEDS_WINDOWS | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE | ROCI_CC_USES_GAP | ROCI_CC_USES_ECN;

bool is_name(const char* name) {
  if (name == nullptr || *name == 0) return false;
  const std::string_view text(name);
  return text.size() <= 40 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

Status check_labels(const roci_cc_label* labels, uint32_t count, const std::string& what) {
  if (labels == nullptr || count < 1 || count > ROCI_CC_MAX_LABELS) {
    return fail("has " + std::to_string(labels == nullptr ? 0 : count) + " " + what + "; 1 to " +
                std::to_string(ROCI_CC_MAX_LABELS) + " are allowed");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_name(labels[i].name))
      return fail("item " + std::to_string(i) + " of the " + what + " has no valid name");
    if (labels[i].description == nullptr)
      return fail("item " + std::to_string(i) + " of the " + what + " has no description");
  }
  return {};
}

Status check_parameters(const roci_cc_plugin& plugin) {
  if (plugin.parameter_count > ROCI_CC_MAX_PARAMETERS ||
      (plugin.parameter_count > 0 && plugin.parameters == nullptr)) {
    return fail("has " + std::to_string(plugin.parameter_count) + " parameters; at most " +
                std::to_string(ROCI_CC_MAX_PARAMETERS) + " are allowed");
  }
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin.parameters[i];
    if (!is_name(p.name)) return fail("parameter " + std::to_string(i) + " has no valid name");
    if (!names.insert(p.name).second) return fail("duplicate parameter '" + std::string(p.name) + "'");
    if (p.unit == nullptr || p.description == nullptr)
      return fail("parameter '" + std::string(p.name) + "' has no unit or description");
    if (!std::isfinite(p.min) || !std::isfinite(p.max) ||
        !(p.min <= p.default_value && p.default_value <= p.max))
      return fail("the default value of parameter '" + std::string(p.name) + "' is out of range");
  }
  return {};
}

}  // namespace

std::string plain_name(std::string_view name) {
  std::string plain(name);
  std::ranges::transform(plain, plain.begin(),
                         [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  return plain;
}

Status check_plugin(const roci_cc_plugin& plugin) {
  if (plugin.abi != ROCI_CC_ABI) {
    return fail("built for version " + std::to_string(plugin.abi) +
                " of the plugin interface; required is version " + std::to_string(ROCI_CC_ABI));
  }
  if (plugin.size != sizeof plugin)
    return fail("the descriptor does not have the size of interface version 1");
  if (!is_name(plugin.name))
    return fail("the name is invalid; allowed are lower-case letters, digits and '_'");
  if (plugin.summary == nullptr || plugin.source == nullptr) return fail("summary or source is missing");
  if (plugin.state_bytes > ROCI_CC_MAX_STATE || plugin.receiver_state_bytes > ROCI_CC_MAX_STATE) {
    return fail("the state of a flow has " +
                std::to_string(std::max(plugin.state_bytes, plugin.receiver_state_bytes)) +
                " bytes; at most " + std::to_string(ROCI_CC_MAX_STATE) + " are allowed");
  }
  if (plugin.start == nullptr || plugin.event == nullptr) return fail("start() or event() is missing");
  if (const uint32_t unknown = plugin.capabilities & ~kCapabilities; unknown != 0) {
    return fail("capability bit " + std::to_string(std::countr_zero(unknown)) +
                " is not defined by this version of the plugin interface");
  }
  if ((plugin.capabilities & ROCI_CC_NEEDS_WINDOWS) != 0 && plugin.receive == nullptr)
    return fail("requires windows from the receiver, which runs the same plugin, but has no receive()");
  ROCI_TRY(check_parameters(plugin));
  ROCI_TRY(check_labels(plugin.states, plugin.state_count, "states"));
  ROCI_TRY(check_labels(plugin.reasons, plugin.reason_count, "reasons"));
  if (std::string_view(plugin.reasons[0].name) != "nothing")
    return fail("the first reason is '" + std::string(plugin.reasons[0].name) + "'; it must be 'nothing'");
  return {};
}

Algorithms::Algorithms() {
  // An invalid built-in plugin is a bug that the tests detect. The registry is then empty.
  if (Status built_in = add(roci_cc_plugins(), ""); !built_in) known_.clear();
}

Algorithms::~Algorithms() {
  for (void* object : loaded_) dlclose(object);
}

Status Algorithms::add(const roci_cc_plugin* const* list, const std::string& origin) {
  if (list == nullptr || *list == nullptr) return fail("exports no plugin");
  std::vector<const roci_cc_plugin*> sound;
  for (; *list != nullptr; ++list) {
    const roci_cc_plugin& plugin = **list;
    const bool named = plugin.abi == ROCI_CC_ABI && is_name(plugin.name);
    if (Status s = check_plugin(plugin); !s)
      return fail((named ? "plugin '" + std::string(plugin.name) + "': " : "plugin: ") + s.error().message);
    const auto same = [&](const roci_cc_plugin* other) {
      return std::string_view(other->name) == plugin.name;
    };
    if (known_.contains(plugin.name) || std::ranges::any_of(sound, same))
      return fail("the plugin name '" + std::string(plugin.name) + "' is already in use");
    sound.push_back(&plugin);
  }
  for (const roci_cc_plugin* plugin : sound) known_.emplace(plugin->name, Known{plugin, origin});
  return {};
}

Status Algorithms::load(const std::string& path) {
  // A name without a directory is a file in the current directory; dlopen() would search the system's libraries.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return fail("congestion control plugin " + path + ": " + dlerror());
  auto* const entry = reinterpret_cast<decltype(&roci_cc_plugins)>(dlsym(object, ROCI_CC_ENTRY));
  Status added = entry != nullptr ? add((*entry)(), path) : fail("does not export " ROCI_CC_ENTRY "()");
  if (!added) {
    dlclose(object);
    return fail(added.error().within("congestion control plugin " + path));
  }
  loaded_.push_back(object);
  return {};
}

Result<const roci_cc_plugin*> Algorithms::find(std::string_view name) const {
  std::string wanted = plain_name(name);
  for (const Alias& alias : kAliases) {
    if (alias.name != wanted) continue;
    if (alias.builtin_name.empty()) {
      return fail(
          "congestion control '" + std::string(name) + "' is not available: " + std::string(alias.why),
          EOPNOTSUPP);
    }
    wanted = alias.builtin_name;
  }
  if (const auto at = known_.find(wanted); at != known_.end()) return at->second.plugin;
  std::string names;
  for (const auto& [known, plugin] : known_) names += (names.empty() ? "" : ", ") + known;
  return fail("unknown congestion control algorithm '" + std::string(name) + "'; available are " + names);
}

std::vector<const roci_cc_plugin*> Algorithms::all() const {
  std::vector<const roci_cc_plugin*> plugins;
  for (const auto& [name, known] : known_) plugins.push_back(known.plugin);
  return plugins;
}

std::string_view Algorithms::origin(const roci_cc_plugin& plugin) const {
  const auto at = known_.find(plugin.name);
  return at == known_.end() ? std::string_view() : at->second.origin;
}

std::string needs_text(uint32_t needs) {
  struct Need {
    uint32_t bit;
    std::string_view text;
  };
  constexpr std::array kNeeds{
      Need{ROCI_CC_NEEDS_ACK, "acknowledgments"},
      Need{ROCI_CC_NEEDS_CE_COUNT, "CE mark counts"},
      Need{ROCI_CC_NEEDS_CNP, "CNPs of the peer"},
      Need{ROCI_CC_NEEDS_CNM, "congestion notification messages (congestion_notification)"},
      Need{ROCI_CC_NEEDS_RTT, "round-trip time samples"},
      Need{ROCI_CC_NEEDS_HOST_DELAY, "the delay in the peer's host (extensions: timestamps)"},
      Need{ROCI_CC_NEEDS_PROBE, "round-trip probes"},
      Need{ROCI_CC_NEEDS_INT, "in-band telemetry (telemetry)"},
      Need{ROCI_CC_NEEDS_BASE_RTT, "the base round-trip time (base_rtt)"},
      Need{ROCI_CC_NEEDS_WINDOWS, "windows from the receiver"},
  };
  std::string text;
  for (const Need& need : kNeeds) {
    if ((needs & need.bit) != 0) text.append(text.empty() ? "" : ", ").append(need.text);
  }
  if (const auto last = text.rfind(", "); last != std::string::npos) text.replace(last, 2, " and ");
  return text;
}

}  // namespace roci
