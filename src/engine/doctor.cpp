#include "hearth/doctor.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "backends/probe.h"
#include "base/cpu_topology.h"
#include "base/result.h"
#include "memory/host_memory.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Of all measurements together, beside what writing the buffers takes.
constexpr double kHostSeconds = 0.3, kGpuSeconds = 1.2;
// Buffers of all threads; the caches of large machines hold hundreds of MiB.
constexpr size_t kMostReadBytes = size_t{4} << 30, kMostThreadBytes = size_t{256} << 20;
constexpr size_t kLeastThreadBytes = size_t{16} << 20;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What follows "key : " in a file of such lines; "" when there is no such line.
std::string field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t:", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

// Hardware threads of "0-15,32".
int64_t count_cpus(const std::string& list) {
  int64_t count = 0;
  for (size_t at = 0; at < list.size();) {
    char* end = nullptr;
    const long first = std::strtol(list.c_str() + at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    count += std::max<int64_t>(0, last - first + 1);
    at = static_cast<size_t>(end - list.c_str()) + 1;
  }
  return count;
}

CpuReport examine_cpu(const std::string& root) {
  const CpuTopology topology = read_cpu_topology(root);
  CpuReport cpu{.name = field(root + "/proc/cpuinfo", "model name"),
                .cpus = count_cpus(first_line(root + "/sys/devices/system/cpu/online")),
                .cores = std::ssize(topology.cores),
                .quota_cpus = topology.cpu_quota,
                .workers = topology.workers()};
  if (cpu.cpus == 0) cpu.cpus = std::max<int64_t>(1, std::thread::hardware_concurrency());
  probe_cpu(cpu);
  return cpu;
}

MemoryReport examine_memory(const std::string& root) {
  const HostMemory memory = host_memory(root);
  MemoryReport report{.available_bytes = memory.available_bytes, .limited = memory.limited};
  report.total_bytes = std::strtoull(field(root + "/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * 1024;
  if (report.total_bytes > 0) report.available_bytes = std::min(report.available_bytes, report.total_bytes);
  return report;
}

// Graphics and compute cards of NVIDIA have this vendor and class 03xxxx.
bool has_nvidia_card(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator it(root + "/sys/bus/pci/devices", error), end; !error && it != end; it.increment(error)) {
    if (first_line(it->path() / "vendor") == "0x10de" && first_line(it->path() / "class").starts_with("0x03")) {
      return true;
    }
  }
  return false;
}

VulkanReport examine_vulkan(const std::string& root) {
  VulkanReport report;
  if (void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)) {
    report.loader = true;
    dlclose(loader);
  }
  std::set<std::string> names;
  for (const char* folder : {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"}) {
    std::error_code error;
    for (fs::directory_iterator it(root + folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".json") names.insert(it->path().filename());
    }
  }
  report.drivers.assign(names.begin(), names.end());
  return report;
}

// "13.0"
std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

class Findings {
 public:
  void good(std::string text) { list_.push_back({Finding::Kind::kGood, std::move(text), ""}); }
  void slow(std::string text, std::string remedy) {
    list_.push_back({Finding::Kind::kSlow, std::move(text), std::move(remedy)});
  }
  void broken(std::string text, std::string remedy) {
    list_.push_back({Finding::Kind::kBroken, std::move(text), std::move(remedy)});
  }

  void look_at(const CpuReport& cpu) {
    if (!cpu.problem.empty()) {
      broken("the CPU cannot run models: " + cpu.problem, "");
    } else if (cpu.kernels.starts_with("portable") || cpu.kernels.ends_with("without dot products")) {
      slow(fmt::format("the CPU runs models with {} alone", cpu.kernels),
           "a processor with AVX2 (or, on AArch64, dot products) is several times as fast");
    } else {
      good(fmt::format("the CPU runs models with {}", cpu.kernels));
    }
    const bool quota = cpu.quota_cpus > 0 && cpu.quota_cpus < cpu.cores;
    if (quota) {
      slow(fmt::format("a control group grants {} of {} cores", cpu.quota_cpus, cpu.cores),
           "give the container or service more (docker run --cpus, CPUQuota= of systemd)");
    } else if (cpu.cores == 1 && cpu.cpus > 2) {
      slow(fmt::format("affinity leaves one core of a machine with {} hardware threads", cpu.cpus),
           "start it without taskset, or on more CPUs");
    }
  }

  void look_at(const MemoryReport& memory) {
    constexpr size_t kSmall = size_t{2} << 30;
    if (memory.available_bytes >= kSmall) return;
    slow(fmt::format("{} MiB of memory are available{}", memory.available_bytes >> 20,
                     memory.limited ? " (the limit of a control group)" : ""),
         memory.limited ? "give the container or service more (docker run --memory, MemoryMax= of systemd)"
                        : "end other programs, or take models below a billion parameters");
  }

  void look_at(const CudaReport& cuda) {
    if (!cuda.built) {
      if (cuda.has_card) {
        broken("there is an NVIDIA GPU, but this build has no CUDA backend",
               "build Hearth on a machine with CUDA's compiler (12.8 or newer); running it needs only the driver");
      }
      return;
    }
    if (!cuda.problem.empty()) {
      if (cuda.has_card && cuda.driver_version.empty()) {
        broken("there is an NVIDIA GPU, but no driver for it",
               "install NVIDIA's driver; in a container, start it with --gpus all");
      } else if (cuda.has_card) {
        broken("the NVIDIA GPU cannot be used: " + cuda.problem, driver_remedy(cuda));
      }
      return;
    }
    for (const GpuReport& gpu : cuda.gpus) look_at(gpu, cuda);
  }

  std::vector<Finding> take() { return std::move(list_); }

 private:
  static std::string driver_remedy(const CudaReport& cuda) {
    // Within a major version drivers run what newer compilers made.
    if (cuda.driver_cuda > 0 && cuda.driver_cuda / 1000 < cuda.built_with / 1000) {
      return fmt::format(
          "the driver is too old: it knows CUDA {}, and this build was made with {}; a newer driver works",
          cuda_text(cuda.driver_cuda), cuda_text(cuda.built_with));
    }
    return "";
  }

  void look_at(const GpuReport& gpu, const CudaReport& cuda) {
    const std::string name = fmt::format("{} ({})", gpu.device, gpu.name);
    if (!gpu.problem.empty()) {
      broken(fmt::format("{} cannot run models: {}", name, gpu.problem), driver_remedy(cuda));
      return;
    }
    if (gpu.machine_code) {
      good(fmt::format("{} runs models that fit into {:.1f} GiB", name, static_cast<double>(gpu.free_bytes) / 0x1p30));
    } else {
      slow(fmt::format("{} has compute capability {}, for which this build has no machine code: the driver compiles it "
                       "at the first start, and kernels made for newer GPUs are not used",
                       name, capability_text(gpu.capability)),
           fmt::format("build with -D HEARTH_CUDA_ARCHITECTURES={}", gpu.capability));
    }
    if (gpu.total_bytes > 0 && gpu.free_bytes < gpu.total_bytes / 2) {
      slow(fmt::format("others use {:.1f} of {:.1f} GiB of {}",
                       static_cast<double>(gpu.total_bytes - gpu.free_bytes) / 0x1p30,
                       static_cast<double>(gpu.total_bytes) / 0x1p30, name),
           "nvidia-smi lists who");
    }
    constexpr double kSlowBus = 6e9;  // less than four lanes of PCIe 4
    if (gpu.to_device > 0 && gpu.to_device < kSlowBus) {
      slow(fmt::format("the bus copies {:.1f} GB/s to {}: models load slowly", gpu.to_device / 1e9, name),
           "a slot with more lanes; some cards sleep until they are used");
    }
  }

  std::vector<Finding> list_;
};

}  // namespace

MachineReport examine_machine(const DoctorOptions& options) {
  MachineReport report{
      .cpu = examine_cpu(options.root), .memory = examine_memory(options.root), .vulkan = examine_vulkan(options.root)};
  std::unique_ptr<ReadMeter> host;
  if (options.measure) {
    // A quarter of what is available at most: measuring must not push anyone out.
    const auto threads = static_cast<size_t>(report.cpu.workers);
    const size_t most =
        std::min({kMostThreadBytes, kMostReadBytes / threads, report.memory.available_bytes / 4 / threads});
    const size_t bytes = most / kLeastThreadBytes * kLeastThreadBytes;
    if (bytes > 0) {
      host = std::make_unique<ReadMeter>(report.cpu.workers, bytes);
      report.cpu.read_bandwidth = host->measure(kHostSeconds);
    }
  }
  report.cuda.has_card = has_nvidia_card(options.root);
  report.cuda.driver_version = first_line(options.root + "/sys/module/nvidia/version");
  probe_cuda(report.cuda, options.measure ? kGpuSeconds : 0, host.get());
  return report;
}

std::vector<Finding> findings(const MachineReport& report) {
  Findings all;
  all.look_at(report.cpu);
  all.look_at(report.memory);
  all.look_at(report.cuda);
  return all.take();
}

}  // namespace hearth
