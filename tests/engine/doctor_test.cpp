// What `hearth doctor` finds on machines that tests describe.
#include "hearth/doctor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace hearth {
namespace {

using Kind = Finding::Kind;

// A machine on which all is well.
MachineReport good_machine() {
  constexpr size_t kGiB = size_t{1} << 30;
  MachineReport report;
  report.cpu = {.name = "A processor", .cpus = 16, .cores = 8, .workers = 8, .features = "AVX2", .kernels = "AVX2"};
  report.memory = {.total_bytes = 64 * kGiB, .available_bytes = 60 * kGiB};
  report.cuda = {.built = true,
                 .built_with = 13000,
                 .has_card = true,
                 .driver_version = "580.65.06",
                 .driver_cuda = 13000,
                 .gpus = {{.device = "cuda:0",
                           .name = "A card",
                           .capability = 90,
                           .total_bytes = 24 * kGiB,
                           .free_bytes = 23 * kGiB,
                           .machine_code = true,
                           .to_device = 50e9}}};
  return report;
}

// The only finding that is not good; fails the test when there is none or more.
Finding complaint(const MachineReport& report) {
  std::vector<Finding> all = findings(report);
  std::erase_if(all, [](const Finding& finding) { return finding.kind == Kind::kGood; });
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? Finding{} : all[0];
}

TEST(Doctor, NothingIsWrongWithAGoodMachine) {
  const std::vector<Finding> all = findings(good_machine());
  EXPECT_EQ(all.size(), 2u);
  for (const Finding& finding : all) EXPECT_EQ(finding.kind, Kind::kGood) << finding.text;
}

TEST(Doctor, AMachineWithoutAGpuIsNoComplaint) {
  for (const bool built : {true, false}) {
    MachineReport report = good_machine();
    report.cuda = {.built = built, .problem = "this machine has no driver for one"};
    for (const Finding& finding : findings(report)) EXPECT_EQ(finding.kind, Kind::kGood) << finding.text;
  }
}

struct Case {
  const char* what;
  void (*change)(MachineReport&);
  Kind kind;
  const char* text;
  const char* remedy;
};

TEST(Doctor, SaysWhatIsWrongAndHowToMendIt) {
  const Case cases[] = {
      {"kernels", [](MachineReport& r) { r.cpu.kernels = "portable C++"; }, Kind::kSlow, "portable C++ alone", "AVX2"},
      {"cpu", [](MachineReport& r) { r.cpu.problem = "needs AVX2"; }, Kind::kBroken, "needs AVX2", ""},
      {"quota", [](MachineReport& r) { r.cpu.quota_cpus = 1, r.cpu.workers = 1; }, Kind::kSlow, "grants 1 of 8 cores",
       "--cpus"},
      {"affinity", [](MachineReport& r) { r.cpu.cores = r.cpu.workers = 1; }, Kind::kSlow, "one core", "taskset"},
      {"memory", [](MachineReport& r) { r.memory.available_bytes = size_t{512} << 20, r.memory.limited = true; },
       Kind::kSlow, "512 MiB of memory are available (the limit of a control group)", "--memory"},
      {"build", [](MachineReport& r) { r.cuda = {.has_card = true, .problem = "this build has no CUDA backend"}; },
       Kind::kBroken, "no CUDA backend", "CUDA's compiler"},
      {"driver", [](MachineReport& r) { r.cuda = {.built = true, .has_card = true, .problem = "no libcuda.so.1"}; },
       Kind::kBroken, "no driver", "--gpus all"},
      {"old driver",
       [](MachineReport& r) {
         r.cuda.driver_cuda = 12040;
         r.cuda.gpus[0].problem = "unsupported toolchain";
       },
       Kind::kBroken, "unsupported toolchain", "too old: it knows CUDA 12.4, and this build was made with 13.0"},
      {"sick driver",
       [](MachineReport& r) { r.cuda.problem = "the driver says \"unknown error\"", r.cuda.gpus.clear(); },
       Kind::kBroken, "unknown error", ""},
      {"machine code",
       [](MachineReport& r) {
         r.cuda.gpus[0].capability = 89;
         r.cuda.gpus[0].machine_code = false;
       },
       Kind::kSlow, "compute capability 8.9", "HEARTH_CUDA_ARCHITECTURES=89"},
      {"others", [](MachineReport& r) { r.cuda.gpus[0].free_bytes = size_t{4} << 30; }, Kind::kSlow,
       "others use 20.0 of 24.0 GiB of cuda:0", "nvidia-smi"},
      {"bus", [](MachineReport& r) { r.cuda.gpus[0].to_device = 0.8e9; }, Kind::kSlow, "0.8 GB/s", "lanes"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    MachineReport report = good_machine();
    c.change(report);
    const Finding finding = complaint(report);
    EXPECT_EQ(finding.kind, c.kind);
    EXPECT_NE(finding.text.find(c.text), std::string::npos) << finding.text;
    EXPECT_NE(finding.remedy.find(c.remedy), std::string::npos) << finding.remedy;
  }
}

TEST(Doctor, ReadsWhatTheSystemSays) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("hearth_doctor_" + std::to_string(getpid()));
  auto write = [&](const char* path, const char* text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n");
  write("proc/meminfo", "MemTotal:       2097152 kB\nMemAvailable:   1048576 kB\n");
  write("proc/self/cgroup", "0::/\n");
  write("sys/devices/system/cpu/online", "0-15,32\n");
  write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  write("sys/module/nvidia/version", "580.65.06\n");
  write("etc/vulkan/icd.d/nvidia_icd.json", "{}");
  write("usr/share/vulkan/icd.d/radeon_icd.x86_64.json", "{}");
  const MachineReport report = examine_machine({.measure = false, .root = root.string()});
  fs::remove_all(root);
  EXPECT_EQ(report.cpu.name, "Some CPU @ 3 GHz");
  EXPECT_EQ(report.cpu.cpus, 17);
  EXPECT_EQ(report.cpu.quota_cpus, 1);
  EXPECT_EQ(report.cpu.workers, 1);
  EXPECT_EQ(report.cpu.read_bandwidth, 0);
  EXPECT_EQ(report.memory.total_bytes, size_t{2} << 30);
  EXPECT_EQ(report.memory.available_bytes, size_t{1} << 30);
  EXPECT_TRUE(report.cuda.has_card);
  EXPECT_EQ(report.cuda.driver_version, "580.65.06");
  EXPECT_EQ(report.vulkan.drivers, (std::vector<std::string>{"nvidia_icd.json", "radeon_icd.x86_64.json"}));
}

TEST(Doctor, AKernelThatIsForcedAndUnknownIsAProblem) {
  ASSERT_EQ(setenv("HEARTH_CPU_KERNEL", "linear:fast", 1), 0);
  const MachineReport report = examine_machine({.measure = false});
  ASSERT_EQ(unsetenv("HEARTH_CPU_KERNEL"), 0);
  const std::vector<Finding> all = findings(report);
  const auto broken = std::ranges::find(all, Kind::kBroken, &Finding::kind);
  ASSERT_NE(broken, all.end());
  EXPECT_NE(broken->text.find("HEARTH_CPU_KERNEL"), std::string::npos) << broken->text;
}

TEST(Doctor, NothingOfTheSystemIsNeeded) {
  const MachineReport report = examine_machine({.measure = false, .root = "/nowhere/at/all"});
  EXPECT_GE(report.cpu.workers, 1);
  EXPECT_GE(report.cpu.cpus, 1);
  EXPECT_FALSE(report.cuda.has_card);
  EXPECT_TRUE(report.vulkan.drivers.empty());
}

}  // namespace
}  // namespace hearth
