#include "congestion/profile.hpp"
#include "congestion/built_in_profiles.hpp"

#include <gtest/gtest.h>

namespace roci {
namespace {

CongestionControlConfig with(const std::string& name, CongestionProfile profile) {
  CongestionControlConfig config;
  config.profiles[name] = std::move(profile);
  config.profile = name;
  return config;
}

std::string error_of(const CongestionControlConfig& config) {
  auto made = Profiles::create(config);
  return made ? "" : made.error().message;
}

TEST(ProfilesTest, algorithm_name_is_a_profile_with_standard_values) {
  CongestionControlConfig config;
  config.profile = "static_rate";
  config.base_rtt = 5us;
  const auto made = Profiles::create(config);
  ASSERT_TRUE(made) << made.error().message;
  const Profile& profile = *(*made)->standard();
  EXPECT_STREQ(profile.plugin->name, "static_rate");
  EXPECT_EQ(profile.values, std::vector<double>{0});
  EXPECT_EQ(profile.base_rtt, 5us);
  EXPECT_FALSE(profile.falls_back);
}

TEST(ProfilesTest, empty_configuration_has_no_algorithm) {
  EXPECT_EQ((*Profiles::create({}))->standard(), nullptr);
  CongestionControlConfig config;
  config.profile = "";
  EXPECT_EQ((*Profiles::create(config))->standard(), nullptr);
}

TEST(ProfilesTest, profile_values_replace_standard_values) {
  const auto made = Profiles::create(with("slow", {"STATIC-RATE", {{"rate", 1e9}}, 9us, "none"}));
  ASSERT_TRUE(made) << made.error().message;
  const Profile& profile = *(*made)->standard();
  EXPECT_EQ(profile.name, "slow");
  EXPECT_EQ(profile.values, std::vector<double>{1e9});
  EXPECT_EQ(profile.base_rtt, 9us);
  EXPECT_TRUE(profile.falls_back);
  EXPECT_EQ(profile.fallback, nullptr);
}

double value_of(const Profile& profile, std::string_view name) {
  for (uint32_t i = 0; i < profile.plugin->parameter_count; ++i)
    if (name == profile.plugin->parameters[i].name) return profile.values[i];
  ADD_FAILURE() << profile.plugin->name << " has no parameter " << name;
  return 0;
}

TEST(ProfilesTest, built_in_profiles_are_valid_and_have_their_values) {
  CongestionControlConfig config;
  config.base_rtt = 5us;
  for (const BuiltInProfile& built_in : built_in_profiles()) {
    config.profile = std::string(built_in.name);
    const auto made = Profiles::create(config);
    ASSERT_TRUE(made) << made.error().message;
    const Profile& profile = *(*made)->standard();
    EXPECT_EQ(profile.plugin->name, built_in.algorithm);
    EXPECT_EQ(built_in.name.find(built_in.algorithm), 0U) << built_in.name;
    for (const auto& [name, value] : built_in.parameters) EXPECT_EQ(value_of(profile, name), value) << name;
  }
  EXPECT_GE(built_in_profiles().size(), 5U);
}

TEST(ProfilesTest, names_of_built_in_profiles_are_not_case_sensitive) {
  const auto made = Profiles::create(with("here", {"DCQCN-Paper", {}, 0ns, ""}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(value_of(*(*made)->standard(), "rpg_byte_reset"), 10e6);
  const auto found = (*made)->find("DCQCN_PAPER");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->name, "dcqcn_paper");
  EXPECT_FALSE((*made)->find("Here")) << "of the configuration";
}

TEST(ProfilesTest, profile_based_on_a_built_in_one_replaces_single_values) {
  const auto made = Profiles::create(with("here", {"dcqcn_paper", {{"rpg_ai_rate", 100e6}}, 0ns, ""}));
  ASSERT_TRUE(made) << made.error().message;
  const Profile& profile = *(*made)->standard();
  EXPECT_STREQ(profile.plugin->name, "dcqcn");
  EXPECT_EQ(value_of(profile, "rpg_ai_rate"), 100e6);
  EXPECT_EQ(value_of(profile, "rpg_byte_reset"), 10e6);
  EXPECT_EQ(value_of(profile, "rpg_min_rate"), 1e6) << "default of dcqcn";
}

TEST(ProfilesTest, errors_name_the_invalid_value_and_the_allowed_ones) {
  EXPECT_EQ(error_of(with("p", {"static_rate", {{"speed", 1}}, 0ns, ""})),
            "profiles: p: static_rate has no parameter 'speed'; available are rate");
  EXPECT_EQ(error_of(with("p", {"static_rate", {{"rate", -1}}, 0ns, ""})),
            "profiles: p: parameter rate is -1; 0 to 1e+13 bit/s is allowed");
  EXPECT_EQ(error_of(with("none", {"static_rate", {}, 0ns, ""})), "profiles: invalid profile name 'none'");
  EXPECT_EQ(error_of(with("p", {"static_rate", {}, -1ns, ""})), "profiles: p: base_rtt must be 0 to 10 s");
  CongestionControlConfig config;
  config.profile = "reno";
  EXPECT_TRUE(
      error_of(config).starts_with("profile: unknown congestion control algorithm 'reno'; available are "));
  EXPECT_NE(error_of(config).find("static_rate, static_window"), std::string::npos);
}

TEST(ProfilesTest, driver_names_are_accepted_or_rejected_with_a_reason) {
  const Algorithms algorithms;
  const auto refused = algorithms.find("HC3");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EOPNOTSUPP);
  EXPECT_EQ(refused.error().message,
            "congestion control 'HC3' is not available: HC3 is a proprietary algorithm of HiSilicon hardware "
            "without a public description");
  EXPECT_FALSE(algorithms.find("DIP"));
  EXPECT_TRUE(algorithms.find("Static_Rate"));
}

// Tools print the labels and rely on the first reason.
TEST(AlgorithmsTest, invalid_plugin_descriptions_are_rejected) {
  const Algorithms algorithms;
  const roci_cc_plugin good = **algorithms.find("static_rate");
  ASSERT_TRUE(check_plugin(good));
  const auto error = [&](const auto& change) {
    roci_cc_plugin plugin = good;
    std::vector<roci_cc_label> reasons(good.reasons, good.reasons + good.reason_count);
    plugin.reasons = reasons.data();
    change(plugin, reasons[0]);
    const Status s = check_plugin(plugin);
    return s ? std::string() : s.error().message;
  };
  EXPECT_EQ(error([](roci_cc_plugin&, roci_cc_label& reason) { reason.description = nullptr; }),
            "item 0 of the reasons has no description");
  EXPECT_EQ(error([](roci_cc_plugin&, roci_cc_label& reason) { reason.name = "none"; }),
            "the first reason is 'none'; it must be 'nothing'");
  EXPECT_EQ(error([](roci_cc_plugin& plugin, roci_cc_label&) { plugin.capabilities |= 1U << 10; }),
            "capability bit 10 is not defined by this version of the plugin interface");
  EXPECT_EQ(
      error([](roci_cc_plugin& plugin, roci_cc_label&) { plugin.capabilities |= ROCI_CC_NEEDS_WINDOWS; }),
      "requires windows from the receiver, which runs the same plugin, but has no receive()");
}

// Reported when the profile is created, not when the first flow starts.
TEST(ProfilesTest, missing_base_rtt_is_reported_at_creation) {
  CongestionControlConfig config;
  config.profile = "ldcp";
  EXPECT_EQ(error_of(config), "profile: ldcp: initial_window: 0 requires base_rtt");
  config.profile = "hpcc";
  EXPECT_EQ(error_of(config), "profile: hpcc: t: 0 requires base_rtt");
  config.profiles["hpcc"] = {"hpcc", {}, 5us, ""};
  EXPECT_EQ(error_of(config), "");
  config.profiles["hpcc"] = {"hpcc", {}, 0ns, "none"};
  EXPECT_EQ(error_of(config), "") << "it falls back";
  config.base_rtt = 5us;
  config.profile = "ldcp";
  EXPECT_EQ(error_of(config), "");
}

TEST(ProfilesTest, fallback_must_exist_and_form_no_cycle) {
  CongestionControlConfig config = with("a", {"static_window", {{"window", 9000}}, 0ns, "b"});
  config.profiles["b"] = {"static_rate", {}, 0ns, ""};
  EXPECT_EQ(error_of(config), "");
  config.profiles["b"].fallback = "a";
  EXPECT_EQ(error_of(config), "profiles: b: fallback 'a' forms a cycle with this profile");
  config.profiles["b"].fallback = "c";
  EXPECT_TRUE(error_of(config).starts_with(
      "profiles: b: fallback: unknown congestion control algorithm 'c'; available are "));
}

}  // namespace
}  // namespace roci
