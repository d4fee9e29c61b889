#include "net/stats_file.hpp"

#include "net_fixture.hpp"
#include "support/hosts/two_hosts.hpp"

namespace roci {
namespace {

class StatsFile : public test::NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    path_ = (root_ / "stats").string();
  }
  std::string path_;
};

DeviceStats sample(pid_t pid) {
  DeviceStats stats{
      .pid = pid, .program = "prog", .device = "roci0", .counters = {{"rx_packets", 3}}, .queue_pairs = {}};
  QueuePairStats qp;
  qp.qp_num = 18;
  qp.type = "RC";
  qp.peer = "10.77.0.2";
  qp.peer_qp_num = 21;
  qp.acked_bytes = 1ULL << 40;
  qp.profile = "dcqcn";
  qp.state = "increase";
  qp.rate = 1.5e9;
  qp.numbers = {{"sent_packets", 64}};
  qp.reasons = {{"cnp", 2}};
  stats.queue_pairs.push_back(qp);
  return stats;
}

TEST_F(StatsFile, written_reports_are_read_back) {
  ASSERT_TRUE(append_stats(path_, sample(5)));
  ASSERT_TRUE(append_stats(path_, sample(6)));
  const auto read = read_stats(path_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, (std::vector<DeviceStats>{sample(5), sample(6)}));
}

TEST_F(StatsFile, lines_of_one_process_are_merged) {
  ASSERT_TRUE(append_stats(path_, sample(5)));
  DeviceStats later = sample(5);
  later.counters = {{"rx_packets", 9}, {"tx_packets", 4}};
  later.queue_pairs[0].qp_num = 19;
  ASSERT_TRUE(append_stats(path_, later));
  const auto read = read_stats(path_);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().counters, later.counters);
  ASSERT_EQ(read->front().queue_pairs.size(), 2U);
  EXPECT_EQ(read->front().queue_pairs[1].qp_num, 19U);
}

TEST_F(StatsFile, incomplete_last_line_is_skipped_and_invalid_line_is_an_error) {
  ASSERT_TRUE(append_stats(path_, sample(5)));
  std::ofstream{path_, std::ios::app} << R"({"pid":7,"prog)";
  ASSERT_TRUE(read_stats(path_));
  EXPECT_EQ(read_stats(path_)->size(), 1U);
  std::ofstream{path_, std::ios::app} << "\n";
  const auto broken = read_stats(path_);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("stats:2: not a device report"), std::string::npos);
}

TEST_F(StatsFile, device_report_contains_counters_and_queue_pairs) {
  test::TwoHosts hosts;
  hosts.connect();
  ASSERT_TRUE(write_stats(path_, *hosts.a.device));
  ASSERT_TRUE(write_stats(path_, *hosts.b.device, hosts.b.qp->qp_num()));
  const auto read = read_stats(path_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_TRUE((*read)[1].counters.empty()) << "a queue pair alone";
  ASSERT_EQ((*read)[1].queue_pairs.size(), 1U);
  EXPECT_EQ((*read)[1].queue_pairs[0].qp_num, hosts.b.qp->qp_num());
  const DeviceStats& a = read->front();
  EXPECT_EQ(a.pid, getpid());
  EXPECT_FALSE(a.program.empty());
  EXPECT_EQ(a.device, hosts.a.device->name());
  EXPECT_EQ(a.counters.size(), hosts.a.device->counters().size());
  ASSERT_FALSE(a.queue_pairs.empty());
  EXPECT_EQ(a.queue_pairs[0].qp_num, hosts.a.qp->qp_num());
  EXPECT_EQ(a.queue_pairs[0].type, "RC");
  EXPECT_EQ(a.queue_pairs[0].profile, "window");
  EXPECT_EQ(a.queue_pairs[0].peer_qp_num, hosts.b.qp->qp_num());
}

TEST_F(StatsFile, unwritable_or_missing_file_is_an_error) {
  EXPECT_FALSE(append_stats((root_ / "no" / "stats").string(), sample(1)));
  EXPECT_FALSE(read_stats(path_));
}

}  // namespace
}  // namespace roci
