// Test of the copies between kernel structs and verbs structs by both libraries: all bytes are equal, including those
// not written.
#include <gtest/gtest.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cstring>
#include <vector>

#include "base/rng.hpp"
#include "verbs_abi/library.hpp"

namespace roci {
namespace {

// Returns the result of `call` for `from`, in memory that was filled with `before`.
template <class To, class From>
std::vector<uint8_t> copied(const Library& library, const char* call, std::vector<uint8_t> from,
                            uint8_t before) {
  std::vector<uint8_t> to(sizeof(To), before);
  library.get<void(To*, From*)>(call)(reinterpret_cast<To*>(to.data()), reinterpret_cast<From*>(from.data()));
  return to;
}

template <class To, class From>
void expect_same_copies(const char* call) {
  Rng rng(20240517);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint8_t> from(sizeof(From));
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(rng.below(256));
    for (const uint8_t before : {uint8_t{0}, uint8_t{0xa5}}) {
      const auto theirs = copied<To, From>(installed(), call, from, before);
      ASSERT_EQ((copied<To, From>(ours(), call, from, before)), theirs) << call << " over " << int{before};
      ASSERT_NE(theirs, std::vector<uint8_t>(sizeof(To), before));
    }
  }
}

TEST(CopyFunctions, match_installed_library) {
  expect_same_copies<ibv_ah_attr, ib_uverbs_ah_attr>("ibv_copy_ah_attr_from_kern");
  expect_same_copies<ibv_qp_attr, ib_uverbs_qp_attr>("ibv_copy_qp_attr_from_kern");
  expect_same_copies<ibv_sa_path_rec, ib_user_path_rec>("ibv_copy_path_rec_from_kern");
  expect_same_copies<ib_user_path_rec, ibv_sa_path_rec>("ibv_copy_path_rec_to_kern");
}

}  // namespace
}  // namespace roci
