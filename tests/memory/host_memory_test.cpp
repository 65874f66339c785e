#include "memory/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hearth {
namespace {

class FakeSystem : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal:       1000000 kB\nMemFree:          10 kB\nMemAvailable:    600000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  HostMemory read() const { return host_memory(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(FakeSystem, WithoutGroupsTheMachineDecides) {
  EXPECT_EQ(read().available_bytes, 600000u * 1024);
  EXPECT_FALSE(read().limited);
}

TEST_F(FakeSystem, VersionTwoCountsEveryLevelAndGivesBackTheFileCache) {
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  write("/sys/fs/cgroup/user/job/memory.current", "1\n");
  write("/sys/fs/cgroup/user/memory.max", "100000000\n");
  write("/sys/fs/cgroup/user/memory.current", "70000000\n");
  write("/sys/fs/cgroup/user/memory.stat", "anon 20000000\ninactive_file 30000000\nactive_file 20000000\n");
  EXPECT_EQ(read().available_bytes, 80000000u);
  EXPECT_TRUE(read().limited);
}

TEST_F(FakeSystem, InAContainerThePathIsNotThereButTheMountIs) {
  write("/proc/self/cgroup", "0::/../outside/of/here\n");
  write("/sys/fs/cgroup/memory.max", "50000000\n");
  write("/sys/fs/cgroup/memory.current", "20000000\n");
  EXPECT_EQ(read().available_bytes, 30000000u);
}

TEST_F(FakeSystem, VersionOne) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "200000000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "150000000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 40000000\ntotal_active_file 10000000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().available_bytes, 100000000u);
  EXPECT_TRUE(read().limited);
}

TEST_F(FakeSystem, AFullGroupHasNothingLeft) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "50000000\n");
  write("/sys/fs/cgroup/memory.current", "60000000\n");
  EXPECT_EQ(read().available_bytes, 0u);
}

TEST(HostMemory, ThisMachineHasSome) {
  const HostMemory memory = host_memory();
  EXPECT_GT(memory.available_bytes, 1u << 20);
  EXPECT_LT(memory.available_bytes, size_t{1} << 60);  // found out, not unlimited
}

}  // namespace
}  // namespace hearth
