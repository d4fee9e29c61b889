// Attributes that a device and its port report, and their limits; port events.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "device/host/limits.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {
namespace {

TEST(Attributes, device_reports_its_limits_and_capabilities) {
  TwoHosts hosts;
  const ibv_device_attr attr = hosts.a.device->query_device();
  EXPECT_STREQ(attr.fw_ver, "roci");
  EXPECT_NE(attr.node_guid, 0U);
  EXPECT_EQ(attr.sys_image_guid, attr.node_guid);
  EXPECT_NE(attr.node_guid, hosts.b.device->query_device().node_guid);
  EXPECT_EQ(attr.max_mr_size, UINT64_MAX);
  EXPECT_NE(attr.page_size_cap & 4096, 0U);
  EXPECT_EQ(attr.max_qp, 1 << 23);
  EXPECT_EQ(attr.max_mr, 1 << 23);
  EXPECT_EQ(attr.max_mw, 1 << 23);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_GLOB);
  EXPECT_EQ(attr.max_pkeys, 1);
  EXPECT_EQ(attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.max_qp_rd_atom, static_cast<int>(kMaxReads));
  EXPECT_EQ(attr.max_qp_init_rd_atom, static_cast<int>(kMaxReads));
  EXPECT_GE(attr.max_res_rd_atom, attr.max_qp_rd_atom);
  // Unsupported features are reported as 0.
  EXPECT_EQ(attr.max_ee, 0);
  EXPECT_EQ(attr.max_rdd, 0);
  EXPECT_EQ(attr.max_raw_ipv6_qp, 0);
  EXPECT_EQ(attr.max_fmr, 0);
  EXPECT_EQ(attr.max_ee_rd_atom, 0);
  EXPECT_EQ(attr.max_ee_init_rd_atom, 0);
  constexpr unsigned kHas = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                            IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RC_RNR_NAK_GEN |
                            IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
                            IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_BAD_PKEY_CNTR |
                            IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_XRC | IBV_DEVICE_MANAGED_FLOW_STEERING;
  EXPECT_EQ(attr.device_cap_flags, kHas);
}

TEST(Attributes, queues_are_created_up_to_their_limits) {
  TwoHosts hosts;
  const ibv_device_attr attr = hosts.a.device->query_device();
  const auto create = [&](ibv_qp_cap cap) {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = cap;
    const auto qp = hosts.a.pd->create_qp(&init, *hosts.a.cq, *hosts.a.cq);
    return qp ? std::string() : qp.error().message;
  };
  const auto wr = static_cast<uint32_t>(attr.max_qp_wr);
  const auto sge = static_cast<uint32_t>(attr.max_sge);
  EXPECT_EQ(create({wr, wr, sge, sge, kMaxInline}), "");
  EXPECT_EQ(create({wr + 1, 1, 1, 1, 0}),
            "queue pair: max_send_wr 32769 is too large; at most 32768 is allowed");
  EXPECT_EQ(create({1, wr + 1, 1, 1, 0}),
            "queue pair: max_recv_wr 32769 is too large; at most 32768 is allowed");
  EXPECT_EQ(create({1, 1, sge + 1, 1, 0}), "queue pair: max_send_sge 33 is too large; at most 32 is allowed");
  EXPECT_EQ(create({1, 1, 1, sge + 1, 0}), "queue pair: max_recv_sge 33 is too large; at most 32 is allowed");
  EXPECT_EQ(create({1, 1, 1, 1, kMaxInline + 1}),
            "queue pair: max_inline_data 1025 is too large; at most 1024 is allowed");
  EXPECT_TRUE(hosts.a.device->create_cq(1));
  const auto too_large = hosts.a.device->create_cq(attr.max_cqe + 1);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().message, "completion queue: 4194305 entries; 1 to 4194304 are allowed");
}

TEST(Attributes, unsupported_queue_pair_types_are_rejected) {
  TwoHosts hosts;
  for (const ibv_qp_type type : {IBV_QPT_DRIVER, static_cast<ibv_qp_type>(5)}) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    const auto qp = hosts.a.pd->create_qp(&init, *hosts.a.cq, *hosts.a.cq);
    ASSERT_FALSE(qp);
    EXPECT_EQ(qp.error().code, EOPNOTSUPP);
    EXPECT_EQ(qp.error().message, "queue pair: type " + std::to_string(type) +
                                      " is not supported; supported are RC, UC, UD, XRC and raw packets");
  }
}

TEST(Attributes, unsupported_access_flags_are_rejected_and_hints_accepted) {
  TwoHosts hosts;
  std::vector<uint8_t> bytes(64);
  for (const int access : {1 << 9, 1 << 10, 1 << 30}) {
    const auto region = hosts.a.pd->register_memory(bytes.data(), bytes.size(), access);
    ASSERT_FALSE(region);
    EXPECT_EQ(region.error().code, EINVAL);
    EXPECT_EQ(region.error().message,
              "memory region: access flags " + std::to_string(access) +
                  " contain unsupported flags; local write, remote write, remote read, remote atomic, window "
                  "bind, zero based, on demand, huge pages, flush global and optional flags are allowed");
  }
  for (const int access : {int{IBV_ACCESS_RELAXED_ORDERING}, int{IBV_ACCESS_OPTIONAL_RANGE},
                           int{IBV_ACCESS_ON_DEMAND}, int{IBV_ACCESS_HUGETLB}})
    EXPECT_TRUE(hosts.a.pd->register_memory(bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE | access));
}

TEST(Attributes, port_reports_its_link_attributes) {
  TwoHosts hosts;
  const ibv_port_attr attr = hosts.a.device->query_port();
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.phys_state, 5);
  EXPECT_EQ(attr.max_mtu, IBV_MTU_4096);
  EXPECT_EQ(attr.active_mtu, IBV_MTU_4096);
  EXPECT_EQ(attr.max_msg_sz, 1U << 31);
  EXPECT_EQ(attr.gid_tbl_len, 2);
  EXPECT_EQ(attr.pkey_tbl_len, 1);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.port_cap_flags, unsigned{IBV_PORT_IP_BASED_GIDS});
  EXPECT_EQ(attr.flags, IBV_QPF_GRH_REQUIRED);
  EXPECT_EQ(attr.max_vl_num, 1);
  EXPECT_EQ(attr.active_width, 2);   // 4 lanes
  EXPECT_EQ(attr.active_speed, 32);  // of 25 Gb/s
  EXPECT_EQ(attr.lid, 0);            // Ethernet has no LID
  EXPECT_EQ(attr.sm_lid, 0);
  EXPECT_EQ(attr.lmc, 0);
  EXPECT_EQ(attr.bad_pkey_cntr, 0U);
  EXPECT_EQ(attr.qkey_viol_cntr, 0U);
}

TEST(Attributes, port_of_unknown_rate_reports_the_lowest_speed) {
  LoneHost host;  // a port without a known rate
  const ibv_port_attr attr = host.side.device->query_port();
  EXPECT_EQ(attr.active_width, 1);
  EXPECT_EQ(attr.active_speed, 1);
}

TEST(Attributes, port_counts_pkey_and_qkey_violations) {
  LoneHost host;
  Packet packet = host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16);
  packet.bth.pkey = PKey{0x8001};
  host.receive(packet);
  EXPECT_EQ(host.side.device->query_port().bad_pkey_cntr, 1U);

  TwoHosts hosts;
  hosts.connect();
  auto from = make_service(hosts.a, IBV_QPT_UD);
  auto to = make_service(hosts.b, IBV_QPT_UD);
  open_datagrams(*from);
  open_datagrams(*to);
  auto address = must(hosts.a.pd->create_address_handle(address_of(must(hosts.b.device->query_gid(1)))));
  ASSERT_EQ(send(hosts.a, *from, {.length = 8, .to = address.get(), .remote_qp = to->qp_num(), .qkey = 1}),
            0);
  hosts.run(1ms);
  EXPECT_EQ(hosts.b.device->query_port().qkey_viol_cntr, 1U);
}

TEST(Attributes, pkey_and_gid_queries_beyond_the_tables_are_rejected) {
  TwoHosts hosts;
  Device& device = *hosts.a.device;
  EXPECT_EQ(must(device.query_pkey(0)), 0xffff);
  const auto pkey = device.query_pkey(1);
  ASSERT_FALSE(pkey);
  EXPECT_EQ(pkey.error().message, "device a: no P_Key 1; only 0 exists");
  EXPECT_FALSE(device.query_pkey(-1));
  EXPECT_TRUE(device.query_gid(1));
  const auto gid = device.query_gid(2);
  ASSERT_FALSE(gid);
  EXPECT_EQ(gid.error().message, "device a: no GID 2; 0 to 1 exist");
}

// --- link state of the port

Lines port_events(const Side& side) {
  Lines lines;
  while (const auto event = side.device->get_async_event()) {
    if (event->object.source != EventSource::kPort) continue;
    EXPECT_EQ(event->object.number, 1U);
    lines.push_back(event->type == IBV_EVENT_PORT_ACTIVE ? "active" : "error");
  }
  return lines;
}

TEST(PortEvents, link_down_raises_port_error_and_link_up_raises_port_active) {
  TwoHosts hosts({.timeout = 14});  // 67 ms
  hosts.connect();
  EXPECT_EQ(port_events(hosts.a), Lines{});  // the link was up from the start
  hosts.link().set_up(false);
  fill(hosts.a, 0, 5000, 1);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 1, 0, 5000, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run(150ms);
  EXPECT_EQ(port_events(hosts.a), Lines{"error"});
  EXPECT_EQ(hosts.a.device->query_port().state, IBV_PORT_DOWN);
  EXPECT_EQ(hosts.a.device->query_port().phys_state, 3);
  EXPECT_EQ(hosts.b.device->query_port().state, IBV_PORT_DOWN);
  EXPECT_EQ(completion_lines(hosts.a), Lines{});
  // For the queue pair this was only packet loss.
  hosts.link().set_up(true);
  hosts.run(300ms);
  EXPECT_EQ(port_events(hosts.a), Lines{"active"});
  EXPECT_EQ(hosts.a.device->query_port().state, IBV_PORT_ACTIVE);
  EXPECT_EQ(completion_lines(hosts.a), Lines{"1 SUCCESS 5000"});
  EXPECT_TRUE(holds(hosts.b, 0, 5000, 1));
}

TEST(PortEvents, persistent_link_down_fails_posted_requests) {
  TwoHosts hosts({.timeout = 10, .retry_count = 2});
  hosts.connect();
  hosts.link().set_up(false);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 1, 0, 64, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run(1s);
  const auto all = hosts.a.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
}

// --- full tables

// Limits the address space to its current size.
class NoMoreAddresses {
 public:
  NoMoreAddresses() {
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit now{pages * 4096 + (rlim_t{1} << 20), before_.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  ~NoMoreAddresses() { setrlimit(RLIMIT_AS, &before_); }
  NoMoreAddresses(const NoMoreAddresses&) = delete;
  NoMoreAddresses& operator=(const NoMoreAddresses&) = delete;

 private:
  rlimit before_{};
};

TEST(Bounds, queue_pair_without_memory_for_its_queues_is_rejected) {
  TwoHosts hosts;
  std::vector<std::unique_ptr<QueuePair>> qps;
  const auto create = [&]() -> Error {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = kMaxWorkRequests,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    auto qp = hosts.a.pd->create_qp(&init, *hosts.a.cq, *hosts.a.cq);
    if (!qp) return qp.error();
    qps.push_back(std::move(*qp));
    return {};
  };
  const size_t before = hosts.a.device->host().arena().taken();
  {
    const NoMoreAddresses limit;
    Error error;
    while (qps.size() < 1000 && error.message.empty()) error = create();
    EXPECT_EQ(error.code, ENOMEM);
    EXPECT_NE(error.message.find("no memory for another queue pair and its work queues"), std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find("ulimit -v"), std::string::npos) << error.message;
    // Existing objects still work, and a freed one can be created again.
    ASSERT_FALSE(qps.empty());
    qps.pop_back();
    EXPECT_EQ(create().message, "");
  }
  EXPECT_EQ(create().message, "") << "with more addresses there is room again";
  qps.clear();
  EXPECT_EQ(hosts.a.device->host().arena().taken(), before);
}

TEST(Bounds, queues_without_memory_are_rejected) {
  if (kTerminatesWithoutMemory) GTEST_SKIP() << "the allocator terminates the program";
  TwoHosts hosts;
  const auto cq = must(hosts.a.device->create_cq(16));
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 16, .max_sge = kMaxSge, .srq_limit = 0};
  const auto srq = must(hosts.a.pd->create_srq(&init));
  const std::string no_entries = "completion queue: no memory for 4194304 entries";
  const std::string no_requests = "shared receive queue: no memory for 32768 requests";
  const auto expect = [](const auto& result, const std::string& message) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ENOMEM);
    EXPECT_EQ(result.error().message, message);
  };
  {
    const NoMoreAddresses limit;
    expect(hosts.a.device->create_cq(kMaxCqEntries), no_entries);
    expect(cq->resize(kMaxCqEntries), no_entries);
    init.attr.max_wr = kMaxWorkRequests;
    expect(hosts.a.pd->create_srq(&init), no_requests);
    expect(srq->modify({.max_wr = kMaxWorkRequests, .max_sge = 0, .srq_limit = 0}, IBV_SRQ_MAX_WR),
           no_requests);
  }
  // Nothing has changed, and with more addresses the calls succeed.
  EXPECT_EQ(cq->entries(), 16U);
  EXPECT_EQ(srq->query().max_wr, 16U);
  EXPECT_TRUE(hosts.a.pd->create_srq(&init));
  EXPECT_TRUE(cq->resize(32));
}

TEST(Bounds, queue_pairs_beyond_max_qp_are_rejected_until_one_is_destroyed) {
  TwoHosts hosts({.max_qp = 3});  // one exists already
  EXPECT_EQ(hosts.a.device->query_device().max_qp, 3);
  auto first = make_service(hosts.a, IBV_QPT_UD);
  auto second = make_service(hosts.a, IBV_QPT_RC);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  const auto refused = hosts.a.pd->create_qp(&init, *hosts.a.cq, *hosts.a.cq);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOMEM);
  EXPECT_EQ(refused.error().message,
            "device a: 3 queue pairs exist, the maximum (max_qp); destroy one first");
  first.reset();
  EXPECT_TRUE(hosts.a.pd->create_qp(&init, *hosts.a.cq, *hosts.a.cq));
}

TEST(Bounds, regions_and_windows_beyond_max_mr_are_rejected_until_one_is_freed) {
  TwoHosts hosts({.max_mr = 3});  // one region exists already
  EXPECT_EQ(hosts.a.device->query_device().max_mr, 3);
  EXPECT_EQ(hosts.a.device->query_device().max_mw, 3);
  std::vector<uint8_t> bytes(64);
  auto region = must(hosts.a.pd->register_memory(bytes.data(), bytes.size(), 0));
  auto window = must(hosts.a.pd->allocate_window(IBV_MW_TYPE_2));
  const std::string sentence = "memory: 3 regions and windows exist, the device's maximum; free one first";
  const auto one_more = hosts.a.pd->register_memory(bytes.data(), bytes.size(), 0);
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, ENOMEM);
  EXPECT_EQ(one_more.error().message, sentence);
  const auto one_window = hosts.a.pd->allocate_window(IBV_MW_TYPE_1);
  ASSERT_FALSE(one_window);
  EXPECT_EQ(one_window.error().message, sentence);
  window.reset();
  EXPECT_TRUE(hosts.a.pd->register_memory(bytes.data(), bytes.size(), 0));
}

TEST(Bounds, protection_domains_beyond_max_pd_are_rejected_until_one_is_destroyed) {
  TwoHosts hosts({.max_pd = 2});  // one exists
  EXPECT_EQ(hosts.a.device->query_device().max_pd, 2);
  auto second = must(hosts.a.device->allocate_pd());
  const auto refused = hosts.a.device->allocate_pd();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOMEM);
  EXPECT_EQ(refused.error().message,
            "device a: protection domains: the maximum of 2 (max_pd) is reached; destroy one first");
  second.reset();
  EXPECT_TRUE(hosts.a.device->allocate_pd());
}

TEST(Bounds, completion_queues_beyond_max_cq_are_rejected_until_one_is_destroyed) {
  TwoHosts hosts({.max_cq = 2});  // one exists
  EXPECT_EQ(hosts.a.device->query_device().max_cq, 2);
  auto second = must(hosts.a.device->create_cq(1));
  const auto refused = hosts.a.device->create_cq(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOMEM);
  EXPECT_EQ(refused.error().message,
            "device a: completion queues: the maximum of 2 (max_cq) is reached; destroy one first");
  second.reset();
  EXPECT_TRUE(hosts.a.device->create_cq(1));
}

TEST(Bounds, srqs_beyond_max_srq_are_rejected_until_one_is_destroyed) {
  TwoHosts hosts({.max_srq = 1});
  EXPECT_EQ(hosts.a.device->query_device().max_srq, 1);
  ibv_srq_init_attr init{.srq_context = nullptr, .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
  auto first = must(hosts.a.pd->create_srq(&init));
  const auto refused = hosts.a.pd->create_srq(&init);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOMEM);
  EXPECT_EQ(refused.error().message,
            "device a: shared receive queues: the maximum of 1 (max_srq) is reached; destroy one first");
  first.reset();
  EXPECT_TRUE(hosts.a.pd->create_srq(&init));
}

TEST(Bounds, address_handles_beyond_max_ah_are_rejected_until_one_is_destroyed) {
  TwoHosts hosts({.max_ah = 1});
  EXPECT_EQ(hosts.a.device->query_device().max_ah, 1);
  const ibv_ah_attr peer = address_of(gid_of("10.0.0.2"));
  auto first = must(hosts.a.pd->create_address_handle(peer));
  const auto refused = hosts.a.pd->create_address_handle(peer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOMEM);
  EXPECT_EQ(refused.error().message,
            "device a: address handles: the maximum of 1 (max_ah) is reached; destroy one first");
  first.reset();
  EXPECT_TRUE(hosts.a.pd->create_address_handle(peer));
}

// --- unpredictable numbers (seed 0)

// Expects that each bit is 1 in half of the numbers: for n numbers 6 standard deviations are 3 sqrt(n).
void expect_fair(const std::vector<uint32_t>& numbers, unsigned low_bit, unsigned bits) {
  const double n = static_cast<double>(numbers.size());
  for (unsigned bit = low_bit; bit < low_bit + bits; ++bit) {
    double ones = 0;
    for (const uint32_t number : numbers) ones += number >> bit & 1;
    EXPECT_NEAR(ones, n / 2, 3 * std::sqrt(n)) << "bit " << bit;
  }
  // Consecutive numbers are independent in each bit.
  for (unsigned bit = low_bit; bit < low_bit + bits; ++bit) {
    double same = 0;
    for (size_t i = 1; i < numbers.size(); ++i)
      same += (numbers[i] >> bit & 1) == (numbers[i - 1] >> bit & 1);
    EXPECT_NEAR(same, n / 2, 3 * std::sqrt(n)) << "bit " << bit;
  }
}

TEST(RandomIdentifiers, queue_pair_numbers_have_24_uniform_bits_and_rarely_repeat) {
  std::vector<uint32_t> numbers;
  for (int run = 0; run < 4; ++run) {  // the same configuration again must yield other numbers
    TwoHosts hosts({.seeded = false});
    std::vector<std::unique_ptr<QueuePair>> alive;
    for (int i = 0; i < 256; ++i) {
      alive.push_back(make_service(hosts.a, IBV_QPT_RC));
      numbers.push_back(alive.back()->qp_num());
      EXPECT_GT(numbers.back(), 1U);
      EXPECT_LT(numbers.back(), 0xffffffU);
    }
  }
  expect_fair(numbers, 0, 24);
  std::sort(numbers.begin(), numbers.end());
  // Among 1024 numbers of 2^24 a repetition has probability 0.03, three repetitions 10^-5.
  EXPECT_LE(numbers.end() - std::unique(numbers.begin(), numbers.end()), 2);
}

TEST(RandomIdentifiers, keys_have_32_uniform_bits_and_do_not_repeat) {
  TwoHosts hosts({.seeded = false});
  uint8_t byte = 0;
  std::vector<std::unique_ptr<MemoryRegion>> alive;
  std::vector<std::unique_ptr<MemoryWindow>> windows;
  std::vector<uint32_t> keys;
  for (int i = 0; i < 512; ++i) {
    alive.push_back(must(hosts.a.pd->register_memory(&byte, 1, 0)));
    keys.push_back(alive.back()->rkey());
    windows.push_back(must(hosts.a.pd->allocate_window(IBV_MW_TYPE_2)));
    keys.push_back(windows.back()->rkey());
  }
  expect_fair(keys, 0, 32);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(RandomIdentifiers, freed_keys_do_not_repeat_within_1024_registrations) {
  TwoHosts hosts({.seeded = false});
  uint8_t byte = 0;
  std::vector<uint32_t> keys;
  for (int i = 0; i < 1024; ++i) keys.push_back(must(hosts.a.pd->register_memory(&byte, 1, 0))->rkey());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace
}  // namespace roci::test
