// Properties of every built-in algorithm.
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "cc/driver.hpp"
#include "cc/random_feedback.hpp"

namespace roci::test {
namespace {

class AlgorithmPlugin : public testing::TestWithParam<const roci_cc_plugin*> {
 protected:
  void expect_valid(const Driver& driver) const {
    const roci_cc_decision& d = driver.decision;
    if ((plugin_.capabilities & ROCI_CC_USES_RATE) != 0) {
      EXPECT_GT(d.rate, 0U);
    }
    if ((plugin_.capabilities & ROCI_CC_USES_WINDOW) != 0) {
      EXPECT_GT(d.window, 0U);
    }
    if ((plugin_.capabilities & ROCI_CC_USES_GAP) != 0) {
      EXPECT_LE(d.gap_ns, 1'000'000'000U);
    }
    for (const uint64_t timer : d.timer_ns) EXPECT_TRUE(timer == 0 || timer > driver.event.now_ns);
    EXPECT_LT(d.state, plugin_.state_count);
    EXPECT_LT(d.reason, plugin_.reason_count);
  }

  const roci_cc_plugin& plugin_ = *GetParam();
};

bool is_name(const char* name) {
  return name != nullptr && *name != 0 &&
         std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == std::strlen(name);
}

TEST_P(AlgorithmPlugin, has_valid_description) {
  EXPECT_EQ(plugin_.abi, ROCI_CC_ABI);
  EXPECT_EQ(plugin_.size, sizeof(roci_cc_plugin));
  EXPECT_TRUE(is_name(plugin_.name));
  EXPECT_NE(*plugin_.summary, 0);
  EXPECT_NE(*plugin_.source, 0);
  EXPECT_LE(plugin_.state_bytes, ROCI_CC_MAX_STATE);
  EXPECT_LE(plugin_.receiver_state_bytes, ROCI_CC_MAX_STATE);
  EXPECT_EQ(plugin_.receive != nullptr, plugin_.receiver_state_bytes > 0);
  EXPECT_LE(plugin_.parameter_count, ROCI_CC_MAX_PARAMETERS);
  EXPECT_GE(plugin_.state_count, 1U);
  EXPECT_LE(plugin_.state_count, ROCI_CC_MAX_LABELS);
  EXPECT_LE(plugin_.reason_count, ROCI_CC_MAX_LABELS);
  EXPECT_STREQ(plugin_.reasons[0].name, "nothing");
  std::set<std::string> names;
  for (uint32_t i = 0; i < plugin_.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin_.parameters[i];
    EXPECT_TRUE(is_name(p.name)) << i;
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_LE(p.min, p.default_value) << p.name;
    EXPECT_LE(p.default_value, p.max) << p.name;
    EXPECT_NE(*p.unit, 0) << p.name;
    EXPECT_NE(*p.description, 0) << p.name;
  }
  for (uint32_t i = 0; i < plugin_.state_count; ++i) EXPECT_TRUE(is_name(plugin_.states[i].name)) << i;
  for (uint32_t i = 0; i < plugin_.reason_count; ++i) EXPECT_TRUE(is_name(plugin_.reasons[i].name)) << i;
  if (plugin_.check != nullptr) {
    EXPECT_EQ(plugin_.check(nullptr, Driver(plugin_).parameters.data()), nullptr);
  }
}

// Default values in the first runs, then any values that the plugin accepts.
TEST_P(AlgorithmPlugin, makes_valid_decisions_for_any_event) {
  unsigned accepted = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 rng(seed);
    roci_cc_flow flow = Driver::usual_flow();
    flow.seed = seed;
    Driver::Values values;
    if (seed > 50) {
      flow = any_flow(rng, plugin_);
      values = any_values(rng, plugin_);
      std::vector<double> in_order;
      for (uint32_t i = 0; i < plugin_.parameter_count; ++i)
        in_order.push_back(values[plugin_.parameters[i].name]);
      if (plugin_.check != nullptr && plugin_.check(&flow, in_order.data()) != nullptr) continue;
    }
    ++accepted;
    Driver driver(plugin_, values, flow, rng() >> 1);
    expect_valid(driver);
    roci_cc_path path{};
    for (int i = 0; i < 400; ++i) {
      const roci_cc_event before = driver.event;
      if (rng() % 4 == 0) {
        const unsigned fired = driver.wait(rng() % 100'000);
        ASSERT_LT(fired, 5000U) << "timers that fire without end";
      }
      const uint64_t now = driver.event.now_ns;
      driver.event = anything(rng, before, path);
      driver.event.now_ns += now - before.now_ns;
      driver.call(driver.event.kinds);
      expect_valid(driver);
      if (HasFailure()) {
        for (const auto& [name, value] : values) ADD_FAILURE() << name << ": " << value;
        FAIL() << "event " << i << ", base_rtt " << flow.base_rtt_ns << ", line rate " << flow.line_rate;
      }
    }
  }
  EXPECT_GE(accepted, 150U);
}

// The same events lead to the same decisions: no state is kept elsewhere, and all of the state is initialized.
TEST_P(AlgorithmPlugin, decisions_are_deterministic) {
  std::mt19937_64 rng(1), again(1);
  Driver x(plugin_), y(plugin_), other(plugin_);
  roci_cc_path path{}, path_again{};
  for (int i = 0; i < 2000; ++i) {
    x.event = anything(rng, x.event, path);
    x.call(x.event.kinds);
    if (i % 3 == 0) other.ack(2, 1);
    y.event = anything(again, y.event, path_again);
    y.call(y.event.kinds);
    ASSERT_EQ(std::memcmp(&x.decision, &y.decision, sizeof x.decision), 0) << i;
    ASSERT_EQ(std::memcmp(x.state(), y.state(), plugin_.state_bytes), 0) << i;
  }
}

// The bytes after the state belong to another owner.
TEST_P(AlgorithmPlugin, writes_only_within_its_state) {
  std::mt19937_64 rng(7);
  Driver driver(plugin_);
  auto* bytes = static_cast<uint8_t*>(driver.state());
  roci_cc_path path{};
  for (int i = 0; i < 2000; ++i) {
    driver.event = anything(rng, driver.event, path);
    driver.call(driver.event.kinds);
  }
  for (size_t i = plugin_.state_bytes; i < ROCI_CC_MAX_STATE; ++i) ASSERT_EQ(bytes[i], 0) << i;
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, AlgorithmPlugin, testing::ValuesIn(every_plugin()),
                         [](const auto& p) { return std::string(p.param->name); });

TEST(StaticLimits, default_to_line_rate_and_bdp) {
  EXPECT_EQ(Driver(plugin("static_rate")).decision.rate, 100'000'000'000U);
  EXPECT_EQ(Driver(plugin("static_rate"), {{"rate", 3e9}}).decision.rate, 3'000'000'000U);
  EXPECT_EQ(Driver(plugin("static_window")).decision.window, 52'500U);  // 100 Gb/s for 4.2 us
  EXPECT_EQ(Driver(plugin("static_window"), {{"window", 4096}}).decision.window, 4096U);
}

TEST(StaticLimits, derived_window_requires_base_rtt) {
  roci_cc_flow flow = Driver::usual_flow();
  flow.base_rtt_ns = 0;
  const roci_cc_plugin& window = plugin("static_window");
  const double none[] = {0}, some[] = {9000};
  EXPECT_STREQ(window.check(&flow, none), "window: 0 requires base_rtt");
  EXPECT_EQ(window.check(&flow, some), nullptr);
}

}  // namespace
}  // namespace roci::test
