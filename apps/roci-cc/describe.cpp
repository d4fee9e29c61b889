#include "roci-cc/describe.hpp"

#include <array>
#include <cstdio>

#include "base/units.hpp"
#include "congestion/algorithms.hpp"
#include "roci-cc/text_table.hpp"

namespace roci::cc_tool {
namespace {

std::string decides_text(uint32_t capabilities) {
  struct Use {
    uint32_t bit;
    std::string_view text;
  };
  constexpr std::array kUses{Use{ROCI_CC_USES_WINDOW, "window"}, Use{ROCI_CC_USES_RATE, "rate"},
                             Use{ROCI_CC_USES_GAP, "gap"}, Use{ROCI_CC_USES_ECN, "ECN"}};
  std::string text;
  for (const Use& use : kUses) {
    if ((capabilities & use.bit) != 0) text.append(text.empty() ? "" : ", ").append(use.text);
  }
  return text.empty() ? "nothing" : text;
}

std::string needs_or_nothing(const roci_cc_plugin& plugin) {
  const std::string needs = needs_text(plugin.capabilities);
  return needs.empty() ? "nothing" : needs;
}

std::string bytes_text(const roci_cc_plugin& plugin) {
  const std::string sender = std::to_string(plugin.state_bytes);
  return plugin.receive == nullptr ? sender : sender + " + " + std::to_string(plugin.receiver_state_bytes);
}

std::string code(std::string_view text, const Look& look) {
  return look.markdown ? "`" + std::string(text) + "`" : std::string(text);
}

TextTable parameters_of(const roci_cc_plugin& plugin, const Look& look) {
  TextTable table{look.markdown ? std::vector<std::string>{"Parameter", "Unit", "Default", "Range", "Meaning"}
                                : std::vector<std::string>{"NAME", "UNIT", "DEFAULT", "RANGE", "MEANING"},
                  {}};
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin.parameters[i];
    const std::string_view unit = p.unit;
    table.rows.push_back({code(p.name, look), unit == "1" ? "" : p.unit, number_text(p.default_value),
                          number_text(p.min) + " to " + number_text(p.max), p.description});
  }
  return table;
}

// `of`: the profiles of this algorithm; empty: all.
TextTable profiles_of(std::string_view of, const Look& look) {
  TextTable table{look.markdown ? std::vector<std::string>{"Profile", "Algorithm", "Source of the values"}
                                : std::vector<std::string>{"PROFILE", "ALGORITHM", "SOURCE OF THE VALUES"},
                  {}};
  for (const BuiltInProfile& profile : built_in_profiles()) {
    if (of.empty() || of == profile.algorithm)
      table.rows.push_back(
          {code(profile.name, look), std::string(profile.algorithm), std::string(profile.source)});
  }
  return table;
}

TextTable labels(const char* heading, const roci_cc_label* labels, uint32_t count, const Look& look) {
  TextTable table;
  if (look.markdown) table.headings = {heading, "Meaning"};
  for (uint32_t i = 0; i < count; ++i)
    table.rows.push_back({code(labels[i].name, look), labels[i].description});
  return table;
}

std::string section(const char* title, const TextTable& table, const Look& look) {
  constexpr size_t kIndent = 2;
  return "\n" + (look.markdown ? table.markdown() : title + ("\n" + table.text(look.width, kIndent)));
}

}  // namespace

std::string describe_all(const std::vector<const roci_cc_plugin*>& plugins, const Look& look) {
  TextTable table;
  if (look.markdown) {
    table.headings = {"Algorithm", "Description", "Requires", "Decides", "Bytes per flow"};
  } else {
    table.headings = {"NAME", "DECIDES", "BYTES", "DESCRIPTION AND REQUIREMENTS"};
  }
  for (const roci_cc_plugin* plugin : plugins) {
    if (look.markdown) {
      table.rows.push_back({code(plugin->name, look), plugin->summary, needs_or_nothing(*plugin),
                            decides_text(plugin->capabilities), bytes_text(*plugin)});
    } else {
      const std::string needs = needs_or_nothing(*plugin);
      table.rows.push_back({plugin->name, decides_text(plugin->capabilities), bytes_text(*plugin),
                            plugin->summary + ("\nrequires " + needs)});
    }
  }
  return (look.markdown ? table.markdown() : table.text(look.width)) +
         section("built-in profiles", profiles_of("", look), look);
}

std::string describe(const roci_cc_plugin& plugin, std::string_view origin, const Look& look) {
  std::string out;
  if (look.markdown) {
    out = "`" + std::string(plugin.name) + "`: " + plugin.summary + ".\nSource: " + plugin.source +
          ".\nRequires " + needs_or_nothing(plugin) + "; decides " + decides_text(plugin.capabilities) +
          "; state of a flow: " + bytes_text(plugin) + " bytes.\n";
  } else {
    out = std::string(plugin.name) + ": " + plugin.summary + "\n\n";
    std::string bytes = std::to_string(plugin.state_bytes) + " bytes at the sender";
    if (plugin.receive != nullptr)
      bytes += ", " + std::to_string(plugin.receiver_state_bytes) + " at the receiver";
    out += TextTable{{},
                     {{"source", plugin.source},
                      {"code", origin.empty() ? "built in" : std::string(origin)},
                      {"requires", needs_or_nothing(plugin)},
                      {"decides", decides_text(plugin.capabilities)},
                      {"flow state", bytes}}}
               .text(look.width);
  }
  if (plugin.parameter_count > 0) out += section("parameters", parameters_of(plugin, look), look);
  if (const TextTable profiles = profiles_of(plugin.name, look); !profiles.rows.empty())
    out += section("built-in profiles", profiles, look);
  out += section("states", labels("State", plugin.states, plugin.state_count, look), look);
  return out +
         section("reasons of changes", labels("Reason", plugin.reasons, plugin.reason_count, look), look);
}

std::string describe(const BuiltInProfile& profile, const roci_cc_plugin& plugin, const Look& look) {
  std::string out =
      code(profile.name, look) + ": built-in profile of " + code(profile.algorithm, look) + "\n";
  out += (look.markdown ? "Source: " : "source: ") + std::string(profile.source) + "\n";
  TextTable table{look.markdown ? std::vector<std::string>{"Parameter", "Unit", "Value", "Default", "Meaning"}
                                : std::vector<std::string>{"NAME", "UNIT", "VALUE", "DEFAULT", "MEANING"},
                  {}};
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin.parameters[i];
    const auto at = profile.parameters.find(p.name);
    const bool differs = at != profile.parameters.end();
    table.rows.push_back({code(p.name, look), std::string_view(p.unit) == "1" ? "" : p.unit,
                          number_text(differs ? at->second : p.default_value),
                          differs ? number_text(p.default_value) : "", p.description});
  }
  return out + section("parameters", table, look);
}

}  // namespace roci::cc_tool
