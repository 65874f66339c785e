#include "base/cpu_topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hearth {
namespace {

// A /proc and /sys of its own in the temporary folder.
class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("hearth_topology_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((path_ / path).parent_path());
    std::ofstream(path_ / path) << text;
  }
  CpuTopology read() const { return read_cpu_topology(path_.string()); }

 private:
  std::filesystem::path path_;
};

TEST(CpuTopology, ThisMachine) {
  CpuTopology t = read_cpu_topology();
  EXPECT_GE(t.cores.size(), 1u);
  EXPECT_GE(t.workers(), 1);
  EXPECT_LE(t.workers(), static_cast<int64_t>(t.cores.size()));
}

TEST(CpuTopology, AffinityToOneCpuIsOneCore) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CpuTopology t = read_cpu_topology();
    EXPECT_EQ(t.cores, std::vector<int>{cpu});
    EXPECT_EQ(t.workers(), 1);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(CpuTopology, SiblingsAreOneCore) {
  FakeRoot root;
  for (int cpu : root.read().cores) {  // of CPUs that nothing is known about each counts as a core
    root.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", "0-1023\n");
  }
  EXPECT_EQ(root.read().cores.size(), 1u);
}

TEST(CpuTopology, QuotaOfTheGroupOrOfOneAboveIt) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/user/inner\n");
  root.write("sys/fs/cgroup/user/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(root.read().cpu_quota, 0);
  root.write("sys/fs/cgroup/user/cpu.max", "350000 100000\n");
  EXPECT_EQ(root.read().cpu_quota, 3);
  root.write("sys/fs/cgroup/user/inner/cpu.max", "50000 100000\n");  // half a CPU is one worker
  EXPECT_EQ(root.read().cpu_quota, 1);
  EXPECT_EQ(root.read().workers(), 1);
}

TEST(CpuTopology, QuotaOfVersionOne) {
  FakeRoot root;
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.read().cpu_quota, 0);
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");  // the container's own group is mounted as the root
  EXPECT_EQ(root.read().cpu_quota, 2);
}

}  // namespace
}  // namespace hearth
