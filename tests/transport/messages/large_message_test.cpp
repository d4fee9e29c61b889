// Messages of the maximum length, 2^31 bytes (IBTA 9.3.3.1.2). The same 2 MiB of memory are mapped repeatedly, so the
// tests need little memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kMax = uint64_t{1} << 31;
constexpr uint64_t kRepeat = 2 << 20;  // bytes of physical memory

// Address range of `length` bytes that maps the same kRepeat bytes repeatedly.
class Mirrored {
 public:
  explicit Mirrored(uint64_t length) : length_(length) {
    const int file = memfd_create("mirrored", 0);
    void* const place = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || place == MAP_FAILED || ftruncate(file, kRepeat) != 0)
      throw std::runtime_error("no addresses");
    bytes_ = static_cast<uint8_t*>(place);
    for (uint64_t at = 0; at < length; at += kRepeat) {
      const uint64_t here = std::min(kRepeat, length - at);
      if (mmap(bytes_ + at, here, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        throw std::runtime_error("no mapping");
    }
    close(file);
  }
  ~Mirrored() { munmap(bytes_, length_); }
  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;
  [[nodiscard]] uint8_t* bytes() const { return bytes_; }
  [[nodiscard]] uint64_t length() const { return length_; }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_); }

 private:
  uint64_t length_;
  uint8_t* bytes_ = nullptr;
};

// The queue pairs are not connected before go(), so that the test does not record the packets.
class LargeMessage : public testing::Test {
 protected:
  LargeMessage()
      : hosts_({.path_mtu = IBV_MTU_4096,
                .cap = {.max_send_wr = 16,
                        .max_recv_wr = 16,
                        .max_send_sge = 32,
                        .max_recv_sge = 32,
                        .max_inline_data = 0}}) {
    hosts_.to_rts(hosts_.a, hosts_.b, 0x2000, 0x1000);
    hosts_.to_rts(hosts_.b, hosts_.a, 0x1000, 0x2000);
    hosts_.run(10ms);
  }
  std::unique_ptr<MemoryRegion> register_all(Side& side, const Mirrored& memory) {
    return must(
        side.pd->register_memory(memory.bytes(), memory.length(),
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
  }
  TwoHosts hosts_;
};

TEST_F(LargeMessage, two_gib_message_and_the_next_write_complete) {
  const Mirrored ours(kMax);
  const Mirrored theirs(kMax);
  auto local = register_all(hosts_.a, ours);
  auto remote = register_all(hosts_.b, theirs);
  fill(hosts_.a, 0, 8, 5);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
    SCOPED_TRACE(opcode);
    const Mirrored& from = opcode == IBV_WR_RDMA_READ ? theirs : ours;
    for (uint64_t i = 0; i < kRepeat; ++i)
      from.bytes()[i] = static_cast<uint8_t>(i * 31 + (i >> 12) + opcode);
    // One segment; a SEND uses 32 segments at both ends.
    std::vector<ibv_sge> pieces{{ours.address(), static_cast<uint32_t>(kMax), local->lkey()}};
    if (opcode == IBV_WR_SEND) {
      pieces.assign(32, {ours.address(), 1U << 26, local->lkey()});
      std::vector<ibv_sge> into(32, {theirs.address(), 1U << 26, remote->lkey()});
      ibv_recv_wr wr{};
      wr.sg_list = into.data();
      wr.num_sge = 32;
      ASSERT_EQ(hosts_.b.qp->post_recv(&wr, nullptr), 0);
    }
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.sg_list = pieces.data();
    wr.num_sge = static_cast<int>(pieces.size());
    wr.opcode = opcode;
    wr.wr.rdma = {theirs.address(), remote->rkey()};
    ASSERT_EQ(hosts_.a.qp->post_send(&wr, nullptr), 0);
    ASSERT_EQ(
        hosts_.a.post(IBV_WR_RDMA_WRITE, 2, 0, 8, hosts_.b.address(opcode * 8), hosts_.b.region->rkey()), 0);
    hosts_.run(2s);
    const auto all = hosts_.a.completions();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(all[0].byte_len, kMax);
    EXPECT_EQ(all[1].status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(ours.bytes(), theirs.bytes(), kRepeat), 0);
    EXPECT_TRUE(holds(hosts_.b, opcode * size_t{8}, 8, 5));
  }
  const auto received = hosts_.b.completions();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].byte_len, kMax);
  EXPECT_EQ(hosts_.a.counter("packets_retransmitted"), 0U);
}

// The length is checked at the post, before the first packet. It is not truncated to 31 or 32 bits.
TEST_F(LargeMessage, post_rejects_a_message_longer_than_two_gib) {
  const Mirrored from(kMax + kRepeat);
  auto source = register_all(hosts_.a, from);
  std::vector<ibv_sge> pieces(32, ibv_sge{from.address(), 1 << 26, source->lkey()});  // 2^31 bytes
  ibv_send_wr wr{};
  wr.sg_list = pieces.data();
  wr.num_sge = 32;
  for (const ibv_wr_opcode opcode :
       {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ}) {
    wr.opcode = opcode;
    pieces[7].length = (1 << 26) + 1;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(hosts_.a.qp->post_send(&wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
    std::vector<ibv_sge> wide(32, ibv_sge{from.address(), 0xffffffff, source->lkey()});  // 2^37 bytes
    wr.sg_list = wide.data();
    EXPECT_EQ(hosts_.a.qp->post_send(&wr, &bad), EINVAL);
    wr.sg_list = pieces.data();
    pieces[7].length = 1 << 26;
    EXPECT_EQ(hosts_.a.qp->post_send(&wr, nullptr), 0);
  }
  EXPECT_EQ(hosts_.a.device->query_port().max_msg_sz, kMax);
}

}  // namespace
}  // namespace roci::test
