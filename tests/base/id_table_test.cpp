#include "base/id_table.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.hpp"

namespace roci {
namespace {

TEST(IdTable, agrees_with_a_map_under_random_inserts_and_erases) {
  Rng rng{7};
  std::vector<int> objects(4096);
  IdTable<int> table;
  std::map<uint32_t, int*> model;
  for (int step = 0; step < 200'000; ++step) {
    // Few distinct ids with close values, so that clusters form and erasing has gaps to close.
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

}  // namespace
}  // namespace roci
