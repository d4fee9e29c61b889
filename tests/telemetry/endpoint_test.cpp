#include "telemetry/endpoint.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <thread>

#include "port/dpdk/eal.hpp"
#include "support/process/telemetry_socket.hpp"

namespace roci {
namespace {

using test::TelemetrySocket;

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override { test::start_with_telemetry(); }

  std::unique_ptr<Endpoint> open(const std::string& command, Endpoint::Handler handler) {
    auto made = Endpoint::open(command, "a test", std::move(handler));
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
};

TEST_F(EndpointTest, map_is_returned_with_numbers_and_strings) {
  const auto endpoint = open("/roci/test/map", [](std::string_view parameters) -> Result<TelemetryAnswer> {
    return TelemetryMap{{"all", UINT64_MAX}, {"said", std::string{parameters}}};
  });
  TelemetrySocket socket;
  EXPECT_NE(socket.greeting().find("\"pid\""), std::string::npos) << socket.greeting();
  EXPECT_EQ(socket.ask("/roci/test/map,a,b"),
            R"({"/roci/test/map":{"all":18446744073709551615,"said":"a,b"}})");
  EXPECT_EQ(socket.ask("/roci/test/map"), R"({"/roci/test/map":{"all":18446744073709551615,"said":""}})");
  EXPECT_NE(socket.ask("/").find("\"/roci/test/map\""), std::string::npos);
}

TEST_F(EndpointTest, table_is_returned_by_column_up_to_its_maximum_size) {
  TelemetryTable table;
  table.facts = {{"next", uint64_t{0}}};
  const auto row = [](uint64_t number) {
    return TelemetryMap{{"number", number}, {"text", "\"" + std::to_string(number) + "\""}};
  };
  std::mutex mutex;  // A DPDK thread calls the handler.
  const auto endpoint = open("/roci/test/table", [&](std::string_view) -> Result<TelemetryAnswer> {
    const std::scoped_lock guard(mutex);
    return table;
  });
  const auto add = [&](std::span<const TelemetryMap> rows) {
    const std::scoped_lock guard(mutex);
    return table.add(rows);
  };
  TelemetrySocket socket;
  EXPECT_EQ(socket.ask("/roci/test/table"), R"({"/roci/test/table":{"next":0}})");
  const std::array<TelemetryMap, 2> pair = {row(5), row(6)};
  ASSERT_TRUE(add(pair));
  EXPECT_EQ(socket.ask("/roci/test/table"),
            R"({"/roci/test/table":{"next":0,"number":[5,6],"text":["\"5\"","\"6\""]}})");
  uint64_t last = 6;
  for (;; ++last) {
    const TelemetryMap more = row(UINT64_MAX - last);
    if (!add({&more, 1})) break;
  }
  const size_t rows = table.rows();
  EXPECT_GT(rows, 150U);
  const std::array<TelemetryMap, 2> together = {row(1), row(UINT64_MAX)};
  while (add(together)) {
  }
  EXPECT_TRUE((table.rows() - rows) % 2 == 0) << "all or none";
  const std::string answer = socket.ask("/roci/test/table");
  EXPECT_LT(answer.size(), 16'384U);
  EXPECT_NE(answer.find("\"\\\"" + std::to_string(UINT64_MAX - last + 1) + "\\\"\""), std::string::npos)
      << answer;
}

TEST_F(EndpointTest, error_is_returned_as_its_message) {
  const auto endpoint = open("/roci/test/error", [](std::string_view) -> Result<TelemetryAnswer> {
    return fail("there is no port \"x\"");
  });
  EXPECT_EQ(TelemetrySocket{}.ask("/roci/test/error"), R"({"/roci/test/error":"there is no port \"x\""})");
}

TEST_F(EndpointTest, long_list_is_returned_completely_in_pages) {
  TelemetryList all;
  for (int i = 0; i < 2000; ++i) all.push_back("port number " + std::to_string(i) + " with \"quotes\"");
  const auto endpoint = open("/roci/test/list", [&](std::string_view parameters) -> Result<TelemetryAnswer> {
    return telemetry_page(all, std::stoul(std::string{parameters}));
  });
  TelemetrySocket socket;
  size_t seen = 0;
  for (int pages = 0; pages < 100; ++pages) {
    const std::string answer = socket.ask("/roci/test/list," + std::to_string(seen));
    size_t here = 0;
    for (; seen + here < all.size(); ++here) {
      const std::string item = "port number " + std::to_string(seen + here) + R"( with \"quotes\"")";
      if (answer.find(item) == std::string::npos) break;
    }
    if (here == 0) break;
    seen += here;
  }
  EXPECT_EQ(seen, all.size());
}

TEST_F(EndpointTest, long_string_is_truncated_at_a_character_boundary) {
  std::string text(126, 'x');
  text += "äx";  // Two bytes, of which only one fits.
  const auto endpoint = open("/roci/test/long", [&](std::string_view) -> Result<TelemetryAnswer> {
    return TelemetryMap{{"text", text}};
  });
  EXPECT_EQ(TelemetrySocket{}.ask("/roci/test/long"),
            R"({"/roci/test/long":{"text":")" + std::string(126, 'x') + R"("}})");
}

TEST_F(EndpointTest, removed_endpoint_returns_an_error_and_can_be_reopened) {
  const auto says = [this](const char* word) {
    return open("/roci/test/again", [word](std::string_view) -> Result<TelemetryAnswer> {
      return TelemetryMap{{"is", word}};
    });
  };
  TelemetrySocket socket;
  auto first = says("first");
  EXPECT_FALSE(Endpoint::open("/roci/test/again", "another", nullptr)) << "there is one already";
  EXPECT_EQ(socket.ask("/roci/test/again"), R"({"/roci/test/again":{"is":"first"}})");
  first.reset();
  EXPECT_EQ(socket.ask("/roci/test/again"), R"({"/roci/test/again":"this endpoint was removed"})");
  const auto second = says("second");
  EXPECT_EQ(socket.ask("/roci/test/again"), R"({"/roci/test/again":{"is":"second"}})");
}

// The object that a handler reads may be destroyed as soon as the endpoint is destroyed.
TEST_F(EndpointTest, no_handler_runs_after_its_endpoint_is_destroyed) {
  std::atomic<bool> stop{false};
  std::thread asker([&] {
    TelemetrySocket socket;
    while (!stop) socket.ask("/roci/test/gone");
  });
  std::atomic<uint64_t> answered{0};
  for (int i = 0; i < 200 || answered == 0; ++i) {
    auto there = std::make_unique<std::atomic<bool>>(true);
    auto endpoint =
        open("/roci/test/gone", [&, alive = there.get()](std::string_view) -> Result<TelemetryAnswer> {
          EXPECT_TRUE(*alive);
          ++answered;
          std::this_thread::yield();
          EXPECT_TRUE(*alive);
          return TelemetryMap{};
        });
    std::this_thread::yield();
    endpoint.reset();
    *there = false;
  }
  stop = true;
  asker.join();
  EXPECT_GT(answered, 0U);
}

TEST_F(EndpointTest, command_that_dpdk_rejects_is_an_error) {
  const auto made = Endpoint::open("no slash", "", nullptr);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("'no slash'"), std::string::npos);
}

TEST_F(EndpointTest, runtime_folder_equals_that_of_dpdk) {
  EXPECT_EQ(dpdk_runtime_folder(), std::filesystem::path{rte_eal_get_runtime_dir()}.parent_path());
}

}  // namespace
}  // namespace roci
