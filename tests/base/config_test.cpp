#include "base/config.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace roci {
namespace {

enum class Idle { kSpin, kYield };

// A type with its own parser, like addresses.
struct Even {
  int value = 0;
  static Result<Even> parse(std::string_view text) {
    auto n = parse_integer(text, 0, 100);
    if (!n || *n % 2 != 0) return fail("'" + std::string{text} + "' is not an even number");
    return Even{static_cast<int>(*n)};
  }
};

struct PortConfig {
  std::string name;
  BitsPerSec rate{0};
  Bytes queue = 1_MiB;
  uint16_t mtu = 1500;
};
struct Config {
  std::string name = "default";
  Idle idle = Idle::kSpin;
  Nanos ageing = 300s;
  bool verbose = false;
  double loss = 0;
  Even even;
  std::vector<PortConfig> ports;
  std::vector<std::string> args;
};

Result<Config> read(const std::string& text) {
  Config c;
  const Status status = parse_config(text, "s.yaml", [&](ConfigNode& root) -> Status {
    ROCI_TRY(root.optional_list("args", c.args));
    return root.section("switch", Need::kRequired, [&](ConfigNode& node) -> Status {
      ROCI_TRY(node.optional("name", c.name));
      ROCI_TRY(node.optional("idle", c.idle, one_of<Idle>({{"spin", Idle::kSpin}, {"yield", Idle::kYield}})));
      ROCI_TRY(node.optional("ageing", c.ageing));
      ROCI_TRY(node.optional("verbose", c.verbose));
      ROCI_TRY(node.optional("loss", c.loss, number_in(0, 1)));
      ROCI_TRY(node.optional("even", c.even));
      return node.each("ports", Need::kOptional, [&](ConfigNode& item) -> Status {
        PortConfig& p = c.ports.emplace_back();
        ROCI_TRY(item.required("name", p.name));
        ROCI_TRY(item.optional("rate", p.rate));
        ROCI_TRY(item.optional("queue", p.queue));
        ROCI_TRY(item.optional("mtu", p.mtu, integer_in<uint16_t>(576, 9600)));
        return {};
      });
    });
  });
  if (!status) return fail(status.error());
  return c;
}

std::string error_of(const std::string& text) {
  const auto result = read(text);
  return result ? "no error" : result.error().message;
}

TEST(Config, parses_values_with_units) {
  const auto c = read(R"(
args: [--log-level, "8"]
switch:
  name: s1
  idle: yield
  ageing: 5min
  verbose: yes
  loss: 0.25
  even: 42
  ports:
    - {name: p1, rate: 10Gbps, queue: 64KB, mtu: 4200}
    - name: p2
      rate: 25 Gb/s
)");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->args, (std::vector<std::string>{"--log-level", "8"}));
  EXPECT_EQ(c->name, "s1");
  EXPECT_EQ(c->idle, Idle::kYield);
  EXPECT_EQ(c->ageing, 300s);
  EXPECT_TRUE(c->verbose);
  EXPECT_EQ(c->loss, 0.25);
  EXPECT_EQ(c->even.value, 42);
  ASSERT_EQ(c->ports.size(), 2U);
  EXPECT_EQ(c->ports[0].rate, 10_Gbps);
  EXPECT_EQ(c->ports[0].queue, Bytes{64'000});
  EXPECT_EQ(c->ports[0].mtu, 4200);
  EXPECT_EQ(c->ports[1].rate, 25_Gbps);
  EXPECT_EQ(c->ports[1].queue, 1_MiB) << "the default";
}

TEST(Config, keeps_defaults_for_absent_keys_and_empty_sections) {
  const auto c = read("switch:\n");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->name, "default");
  EXPECT_TRUE(c->ports.empty());
}

TEST(Config, old_name_of_a_renamed_key_is_read_with_a_warning) {
  const auto read_slots = [](const std::string& text) -> Result<uint32_t> {
    uint32_t slots = 0;
    const Status status = parse_config(text, "s.yaml", [&](ConfigNode& root) -> Status {
      return root.optional(root.renamed("slots", "places"), slots);
    });
    if (!status) return fail(status.error());
    return slots;
  };
  ::testing::internal::CaptureStderr();
  const auto by_old_name = read_slots("places: 3");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                "s.yaml:1: places: the key is named slots; version 0.3 will reject the old name"),
            std::string::npos);
  ASSERT_TRUE(by_old_name) << by_old_name.error().message;
  EXPECT_EQ(*by_old_name, 3U);
  ::testing::internal::CaptureStderr();
  const auto by_new_name = read_slots("slots: 4");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(by_new_name) << by_new_name.error().message;
  EXPECT_EQ(*by_new_name, 4U);
  const auto wrong = read_slots("places: x");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("s.yaml:1: places: ")) << wrong.error().message;
  const auto both = read_slots("places: 3\nslots: 4");
  ASSERT_FALSE(both);
  EXPECT_TRUE(both.error().message.starts_with("s.yaml:1: places is an unknown key")) << both.error().message;
}

TEST(Config, accepts_single_value_as_list_of_one) {
  std::vector<uint16_t> values;
  const auto read_values = [&](const std::string& text) {
    const Status status =
        parse_config(text, "s.yaml", [&](ConfigNode& root) { return root.required_values("via", values); });
    return status ? std::string{} : status.error().message;
  };
  EXPECT_EQ(read_values("via: 7"), "");
  EXPECT_EQ(values, (std::vector<uint16_t>{7}));
  EXPECT_EQ(read_values("via: [8, 9]"), "");
  EXPECT_EQ(values, (std::vector<uint16_t>{8, 9}));
  EXPECT_EQ(read_values("via: []"), "");
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(read_values("via: {a: 1}"), "s.yaml:1: via must be a value or a list but is a map");
  EXPECT_EQ(read_values("via: [1, [2]]"), "s.yaml:1: via[1] must be a single value but is a list");
  EXPECT_EQ(read_values("via: [1, x]"), "s.yaml:1: via[1]: 'x' is not a whole number from 0 to 65535");
  EXPECT_EQ(read_values("{}"), "s.yaml:1: the required key 'via' is missing");
}

struct BadRow {
  const char* text;
  const char* message;
};

TEST(Config, error_names_file_line_key_value_and_allowed_values) {
  const BadRow rows[] = {
      {"", "s.yaml: the required key 'switch' is missing"},
      {"[1, 2]", "s.yaml must be a map but is a list"},
      {"switch: 5", "s.yaml:1: switch must be a map but is a single value"},
      {"switch:\n  ports: {name: x}", "s.yaml:2: switch.ports must be a list but is a map"},
      {"switch:\n  ports:\n    - p1", "s.yaml:3: switch.ports[0] must be a map but is a single value"},
      {"switch:\n  ports:\n    - {name: a}\n    - {rate: 1Gbps}",
       "s.yaml:4: switch.ports[1]: the required key 'name' is missing"},
      {"switch:\n  name: [a]", "s.yaml:2: switch.name must be a single value but is a list"},
      {"switch:\n  name:", "s.yaml:2: switch.name must be a single value but is empty"},
      {"switch:\n  ports:\n    - name: a\n      rate: 10GB",
       "s.yaml:4: switch.ports[0].rate: '10GB' is not a rate like 10Gbps, 25 Gb/s, 800Mbit/s or 0 (no "
       "limit)"},
      {"switch:\n  ports:\n    - name: a\n      queue: 1 MiBs",
       "s.yaml:4: switch.ports[0].queue: '1 MiBs' is not a size like 1500, 64KB (1000) or 1MiB (1024)"},
      {"switch:\n  ageing: 300",
       "s.yaml:2: switch.ageing: '300' is not a time like 500ns, 10us, 1.5ms, 300s, 5min or never"},
      {"switch:\n  ports: [{name: a, mtu: 100}]",
       "s.yaml:2: switch.ports[0].mtu: '100' is not a whole number from 576 to 9600"},
      {"switch:\n  idle: spinn", "s.yaml:2: switch.idle: 'spinn' is not one of spin, yield"},
      {"switch:\n  verbose: maybe",
       "s.yaml:2: switch.verbose: 'maybe' is not a Boolean; allowed are true and false"},
      {"switch:\n  loss: 1.5", "s.yaml:2: switch.loss: '1.5' is not a number from 0 to 1"},
      {"switch:\n  even: 3", "s.yaml:2: switch.even: '3' is not an even number"},
      {"args: x\nswitch:", "s.yaml:1: args must be a list but is a single value"},
      {"args: [x, [y]]\nswitch:", "s.yaml:1: args[1] must be a single value but is a list"},
      {"switch:\n  ports:\n    - name: a\n      rte: 1Gbps",
       "s.yaml:4: switch.ports[0].rte is an unknown key, did you mean 'rate'? (allowed: name, rate, queue, "
       "mtu)"},
      {"switch:\nswich:",
       "s.yaml:2: swich is an unknown key, did you mean 'switch'? (allowed: args, switch)"},
      {"switch:\nfrobnicate: 1", "s.yaml:2: frobnicate is an unknown key (allowed: args, switch)"},
      {"switch:\n  name: a\n  name: b", "s.yaml:3: switch.name occurs more than once; a key may occur once"},
      {"switch:\n  [a, b]: 1", "s.yaml:2: switch: a key must be a single word"},
      {"switch:\n---\nswitch:\n", "s.yaml has 2 documents; only one is allowed"},
  };
  for (const BadRow& row : rows) EXPECT_EQ(error_of(row.text), row.message) << row.text;
}

TEST(Config, returns_error_for_invalid_yaml_without_exception) {
  for (const char* text : {"switch: {", "a: b: c", "\tx: 1", "switch: [1,", "'", "*unknown", "a: &x\n  b: *y",
                           "%", "? [", "!!binary |\n x", "- a\nb: 1"}) {
    const std::string message = error_of(text);
    EXPECT_EQ(message.rfind("s.yaml", 0), 0U) << text << " -> " << message;
  }
  EXPECT_EQ(error_of("switch:\n  name: [a\n").rfind("s.yaml:", 0), 0U);
}

TEST(Config, reports_unreadable_file) {
  const auto nothing = [](ConfigNode&) -> Status { return {}; };
  EXPECT_EQ(read_config("/nonexistent/x.yaml", nothing).error().message,
            "the configuration file '/nonexistent/x.yaml' cannot be read: No such file or directory");
  EXPECT_EQ(read_config("/", nothing).error().message,
            "the configuration file '/' cannot be read: Is a directory");
}

TEST(Config, reads_file_and_names_it_in_errors) {
  const std::string path = testing::TempDir() + "roci_config_test.yaml";
  std::ofstream{path} << "a: 1\nb: 2\n";
  int a = 0;
  const Status status = read_config(path, [&](ConfigNode& root) { return root.required("a", a); });
  EXPECT_EQ(a, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, path + ":2: b is an unknown key, did you mean 'a'? (allowed: a)");
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(read_config(path, [](ConfigNode&) -> Status { return {}; })) << "an empty file is an empty map";
  std::remove(path.c_str());
}

TEST(Config, semantic_error_names_line_and_value) {
  const Status status = parse_config("x:\n  name: p1", "s.yaml", [](ConfigNode& root) {
    return root.section("x", Need::kRequired, [](ConfigNode& node) -> Status {
      EXPECT_TRUE(node.has("name"));
      EXPECT_FALSE(node.has("rate"));
      return node.error("name", "'p1' is used twice");
    });
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "s.yaml:2: x.name: 'p1' is used twice");
}

TEST(Units, parses_sizes) {
  EXPECT_EQ(*parse_bytes("0"), Bytes{0});
  EXPECT_EQ(*parse_bytes("1500"), Bytes{1500});
  EXPECT_EQ(*parse_bytes("1500B"), Bytes{1500});
  EXPECT_EQ(*parse_bytes("1.5KiB"), Bytes{1536});
  EXPECT_EQ(*parse_bytes("2 GiB"), 2_GiB);
  EXPECT_EQ(*parse_bytes("16777215TiB"), Bytes{16777215ULL << 40});
  for (const char* bad : {"", "B", "1K", "1k", "-1", "+1", "1.", ".5", "0.5", "1e3", "1 KB x", "16777216TiB",
                          "1..5KB", "9999999999999999999", "1kib", " 1"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Units, parses_rates) {
  EXPECT_EQ(*parse_rate("0"), BitsPerSec{0});
  EXPECT_EQ(*parse_rate("10Gbps"), 10_Gbps);
  EXPECT_EQ(*parse_rate("2.5 Gb/s"), 2500_Mbps);
  EXPECT_EQ(*parse_rate("800Mbit/s"), 800_Mbps);
  EXPECT_EQ(*parse_rate("9600bps"), BitsPerSec{9600});
  for (const char* bad : {"10", "10G", "10GBps", "10gbps", "1.5bps", "-1bps", "99999999Tbps", "bps"}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
}

TEST(Units, parses_durations) {
  EXPECT_EQ(*parse_duration("0"), 0ns);
  EXPECT_EQ(*parse_duration("500ns"), 500ns);
  EXPECT_EQ(*parse_duration("1.5us"), 1500ns);
  EXPECT_EQ(*parse_duration("10\xc2\xb5s"), 10us);
  EXPECT_EQ(*parse_duration("2 h"), 2h);
  EXPECT_EQ(*parse_duration("never"), kNever);
  for (const char* bad : {"10", "0.5ns", "1m", "-1s", "99999999999h", "s"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, parses_integers) {
  EXPECT_EQ(*parse_integer("0x1f", 0, 100), 31);
  EXPECT_EQ(*parse_integer("-5", -5, 5), -5);
  EXPECT_EQ(*parse_value<uint8_t>("255"), 255);
  EXPECT_EQ(*parse_value<uint64_t>("9223372036854775807"), uint64_t{INT64_MAX});
  for (const char* bad : {"", "0x", "0x-1", "1.0", "1 ", " 1", "6", "abc", "99999999999999999999"}) {
    EXPECT_FALSE(parse_integer(bad, 0, 5)) << bad;
  }
  EXPECT_FALSE(parse_value<uint8_t>("256"));
}

std::string changed(const std::string& text, const std::vector<ConfigChange>& changes) {
  std::string name, out;
  std::vector<int> sizes;
  const Status status = parse_config(
      text, "s.yaml",
      [&](ConfigNode& root) -> Status {
        ROCI_TRY(root.section("a", Need::kOptional, [&](ConfigNode& a) { return a.optional("name", name); }));
        return root.each("list", Need::kOptional, [&](ConfigNode& item) -> Status {
          ROCI_TRY(item.required("size", sizes.emplace_back(), integer_in(0, 99)));
          return {};
        });
      },
      changes);
  if (!status) return status.error().message;
  out = name;
  for (const int size : sizes) out += " " + std::to_string(size);
  return out;
}

TEST(ConfigChange, overrides_values_of_the_file) {
  const std::string text = "a: {name: x}\nlist:\n  - {size: 1}\n  - {size: 2}\n";
  EXPECT_EQ(changed(text, {}), "x 1 2");
  EXPECT_EQ(changed(text, {{"a.name", "y", "--set"}, {"list[1].size", "7", "--set"}}), "y 1 7");
  EXPECT_EQ(changed(text, {{"list", "[{size: 3}]", "--set"}}), "x 3");
  EXPECT_EQ(changed("list: []", {{"a.name", "made", "--set"}}), "made") << "a map that was not there";
}

TEST(ConfigChange, error_names_origin_of_the_change) {
  const std::string text = "a: {name: x}\nlist:\n  - {size: 1}\n  - {size: 222}\n";
  EXPECT_EQ(changed(text, {{"list[1].size", "100", "--set list[1].size"}}),
            "--set list[1].size: list[1].size: '100' is not a whole number from 0 to 99");
  EXPECT_EQ(changed(text, {{"list[0].size", "2", "--set"}}),
            "s.yaml:4: list[1].size: '222' is not a whole number from 0 to 99");
  EXPECT_EQ(changed(text, {{"list[5].size", "1", "--set"}}), "--set: item 5 does not exist");
  for (const std::string path : {"list[0]junk.size", "list[0]]", "list[0", "list[x]"})
    EXPECT_EQ(changed(text, {{path, "1", "--set"}}),
              "--set: '" + path + "' is not a valid path; example: traffic[0].load");
  EXPECT_EQ(changed(text, {{"a.name.more", "1", "--set"}}),
            "--set: found a single value where a map with the key 'more' is required");
  EXPECT_EQ(changed(text, {{"a.nmae", "1", "--set a.nmae"}}),
            "--set a.nmae: a.nmae is an unknown key, did you mean 'name'? (allowed: name)");
  EXPECT_EQ(changed(text, {{"list[", "1", "--set"}}),
            "--set: 'list[' is not a valid path; example: traffic[0].load");
  EXPECT_EQ(changed(text, {{"a", "{", "--set"}}).substr(0, 22), "--set: not valid YAML:");
}

}  // namespace
}  // namespace roci
