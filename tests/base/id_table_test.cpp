#include "base/containers/id_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.hpp"

namespace roci {
namespace {

TEST(IdTable, agrees_with_map_under_random_inserts_and_erases) {
  Rng rng{7};
  std::vector<int> objects(4096);
  IdTable<int> table;
  std::map<uint32_t, int*> model;
  for (int step = 0; step < 200'000; ++step) {
    // Few distinct, close ids, so that clusters form and erasing must close gaps.
    const auto id = static_cast<uint32_t>(rng.below(3000));
    int* object = &objects[rng.below(objects.size())];
    if (rng.chance(0.5)) {
      EXPECT_EQ(table.insert(id, object), model.emplace(id, object).second);
    } else {
      const auto it = model.find(id);
      EXPECT_EQ(table.erase(id), it == model.end() ? nullptr : it->second);
      if (it != model.end()) model.erase(it);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (uint32_t id = 0; id < 3000; ++id) {
    const auto it = model.find(id);
    EXPECT_EQ(table.find(id), it == model.end() ? nullptr : it->second);
  }
  size_t visited = 0;
  table.for_each([&](uint32_t id, int& object) {
    ++visited;
    EXPECT_EQ(model.at(id), &object);
  });
  EXPECT_EQ(visited, model.size());
}

// Other ids are inserted and erased between the parts of the walk. The table is as full as it gets, so erasing moves
// entries.
TEST(IdTable, partial_walks_visit_each_remaining_entry_once) {
  Rng rng{11};
  int object = 0;
  for (int round = 0; round < 200; ++round) {
    IdTable<int> table;
    std::map<uint32_t, int> stay;  // id and number of visits
    std::vector<uint32_t> others;
    const auto add = [&](bool stays) {
      const auto id = static_cast<uint32_t>(rng.below(1U << 24));
      if (!table.insert(id, &object)) return;
      if (stays) {
        stay[id] = 0;
      } else {
        others.push_back(id);
      }
    };
    while (table.size() < 1024) add(rng.chance(0.5));  // one more would enlarge the table
    IdTable<int>::Walk walk;
    const size_t piece = 1 + rng.below(20);
    EXPECT_FALSE(walk.started());
    for (bool more = true; more;) {
      more = table.walk(walk, piece, [&](uint32_t id, int&) {
        if (const auto it = stay.find(id); it != stay.end()) ++it->second;
      });
      EXPECT_TRUE(walk.started());
      for (int i = 0; i < 50; ++i) {
        std::swap(others[rng.below(others.size())], others.back());
        EXPECT_EQ(table.erase(others.back()), &object);
        others.pop_back();
      }
      while (table.size() < 1024) add(false);
    }
    for (const auto& [id, visits] : stay) ASSERT_EQ(visits, 1) << id << " in round " << round;
  }
}

TEST(IdTable, walk_restarts_after_table_growth) {
  int object = 0;
  IdTable<int> table;
  for (uint32_t id = 0; id < 30; ++id) table.insert(id, &object);
  IdTable<int>::Walk walk;
  std::set<uint32_t> seen;
  const auto visit = [&seen](uint32_t id, int&) { seen.insert(id); };
  ASSERT_TRUE(table.walk(walk, 10, visit));
  for (uint32_t id = 100; id < 500; ++id) table.insert(id, &object);
  while (table.walk(walk, 10, visit)) {
  }
  EXPECT_EQ(seen.size(), 430U);
}

}  // namespace
}  // namespace roci
