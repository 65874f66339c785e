// hearth doctor: what this machine has for running models, how fast it is, and what to mend.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/flags.h"
#include "hearth/doctor.h"
#include "hearth/version.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

struct DoctorFlags {
  bool json = false;
  bool quick = false;
  std::string folder;  // of models; empty: that of the model in the box
  uint16_t port = 8080;
};

// What surrounds the machine: files and the port of the server.
struct Surroundings {
  std::string box;  // path of the model in the box; empty: not installed
  std::string folder;
  std::string folder_problem;  // empty: it can be read
  int64_t models = 0;          // .gguf files in it
  double disk_read = 0;        // bytes per second from the disk itself; 0: not measured
  bool port_free = false;
};

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  operator int() const { return fd_; }

 private:
  int fd_;
};

// Bytes per second, past the page cache; 0 when the file is too small or its file system has no such reads.
double measure_disk(const fs::path& path) {
  constexpr size_t kBlock = size_t{8} << 20, kMost = size_t{512} << 20;
  constexpr double kSeconds = 0.3;
  using Clock = std::chrono::steady_clock;
  const File file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock), std::free);
  if (file < 0 || !block) return 0;
  size_t bytes = 0;
  const Clock::time_point start = Clock::now();
  double seconds = 0;
  while (bytes < kMost && seconds < kSeconds) {
    const ssize_t n = ::read(file, block.get(), kBlock);
    if (n <= 0) break;
    bytes += static_cast<size_t>(n);
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return bytes >= 2 * kBlock && seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

bool is_port_free(uint16_t port) {
  const File listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // as the server does
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(listener, 1) == 0;
}

Surroundings look_around(const DoctorFlags& flags) {
  Surroundings s{.box = path_of_the_box(), .port_free = is_port_free(flags.port)};
  s.folder = flags.folder.empty() ? fs::path(s.box).parent_path().string() : flags.folder;
  if (s.folder.empty()) return s;
  std::error_code error;
  fs::path largest;
  uintmax_t most = 0;
  for (fs::directory_iterator it(s.folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() != ".gguf" || !it->is_regular_file(ignored)) continue;
    ++s.models;
    if (const uintmax_t size = it->file_size(ignored); !ignored && size > most) most = size, largest = it->path();
  }
  if (error) s.folder_problem = error.message();
  if (!flags.quick && !largest.empty()) s.disk_read = measure_disk(largest);
  return s;
}

// Of the machine and of what surrounds it.
std::vector<Finding> all_findings(const MachineReport& report, const Surroundings& around, const DoctorFlags& flags) {
  std::vector<Finding> all = findings(report);
  using Kind = Finding::Kind;
  if (around.box.empty()) {
    all.push_back({Kind::kSlow, "the model in the box is not installed: commands without MODEL find none",
                   "give the path of a GGUF file, or install Hearth with `cmake --install`"});
  }
  if (!around.folder_problem.empty()) {
    all.push_back({Kind::kBroken, fmt::format("cannot read the folder {}: {}", around.folder, around.folder_problem),
                   "--models-dir names another"});
  }
  if (!around.port_free) {
    all.push_back({Kind::kSlow, fmt::format("port {} is in use, perhaps by a server of Hearth's", flags.port),
                   "`hearth serve --port` takes another; 0: any that is free"});
  }
  return all;
}

const char* kind_name(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kGood:
      return "good";
    case Finding::Kind::kSlow:
      return "slow";
    case Finding::Kind::kBroken:
      return "broken";
  }
  return "";
}

// Rates that were not measured are null.
nlohmann::ordered_json rate(double value) { return value > 0 ? nlohmann::ordered_json(value) : nullptr; }

nlohmann::ordered_json json_of(const MachineReport& report, const Surroundings& around, const std::vector<Finding>& all,
                               const DoctorFlags& flags) {
  using Json = nlohmann::ordered_json;
  const CpuReport& cpu = report.cpu;
  Json gpus = Json::array(), found = Json::array();
  for (const GpuReport& gpu : report.cuda.gpus) {
    gpus.push_back({{"device", gpu.device},
                    {"name", gpu.name},
                    {"compute_capability", fmt::format("{}.{}", gpu.capability / 10, gpu.capability % 10)},
                    {"total_bytes", gpu.total_bytes},
                    {"free_bytes", gpu.free_bytes},
                    {"machine_code", gpu.machine_code},
                    {"problem", gpu.problem},
                    {"read_bandwidth", rate(gpu.read_bandwidth)},
                    {"host_to_device", rate(gpu.to_device)},
                    {"device_to_host", rate(gpu.from_device)},
                    {"host_read_beside_bus", rate(gpu.host_read_beside_bus)},
                    {"host_to_device_beside_host_read", rate(gpu.to_device_beside_host)}});
  }
  for (const Finding& finding : all) {
    found.push_back({{"kind", kind_name(finding.kind)}, {"text", finding.text}, {"remedy", finding.remedy}});
  }
  return {{"version", HEARTH_VERSION},
          {"cpu",
           {{"name", cpu.name},
            {"hardware_threads", cpu.cpus},
            {"cores", cpu.cores},
            {"quota_cpus", cpu.quota_cpus > 0 ? Json(cpu.quota_cpus) : Json(nullptr)},
            {"workers", cpu.workers},
            {"features", cpu.features},
            {"kernels", cpu.kernels},
            {"problem", cpu.problem},
            {"read_bandwidth", rate(cpu.read_bandwidth)}}},
          {"memory",
           {{"total_bytes", report.memory.total_bytes},
            {"available_bytes", report.memory.available_bytes},
            {"limited_by_control_group", report.memory.limited}}},
          {"cuda",
           {{"built", report.cuda.built},
            {"built_with", report.cuda.built_with},
            {"card", report.cuda.has_card},
            {"driver_version", report.cuda.driver_version},
            {"driver_cuda", report.cuda.driver_cuda},
            {"problem", report.cuda.problem},
            {"gpus", std::move(gpus)}}},
          {"vulkan", {{"loader", report.vulkan.loader}, {"drivers", report.vulkan.drivers}}},
          {"models",
           {{"box", around.box},
            {"folder", around.folder},
            {"files", around.models},
            {"disk_read", rate(around.disk_read)}}},
          {"port", {{"number", flags.port}, {"free", around.port_free}}},
          {"findings", std::move(found)}};
}

// "; name 12.3 GB/s" when it was measured.
std::string rate_text(std::string_view name, double value) {
  return value > 0 ? fmt::format("; {} {:.1f} GB/s", name, value / 1e9) : "";
}

std::string size_text(size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

void line(std::string_view name, const std::string& text) { print("{:<8} {}\n", name, text); }

void print_report(const MachineReport& report, const Surroundings& around, const std::vector<Finding>& all,
                  const DoctorFlags& flags) {
  const CpuReport& cpu = report.cpu;
  line("CPU", fmt::format("{}; {}", cpu.name.empty() ? "unknown" : cpu.name, counted(cpu.cpus, "hardware thread")));
  line("", fmt::format("{} for this process{}; {}{}", counted(cpu.cores, "core"),
                       cpu.quota_cpus > 0 ? fmt::format(", a control group grants {}", cpu.quota_cpus) : "",
                       counted(cpu.workers, "worker"), rate_text("they read memory at", cpu.read_bandwidth)));
  line("", fmt::format("{}{}", cpu.features, cpu.kernels.empty() ? "" : "; kernels: " + cpu.kernels));
  line("Memory",
       fmt::format("{}, {} available{}", size_text(report.memory.total_bytes), size_text(report.memory.available_bytes),
                   report.memory.limited ? " (the limit of a control group)" : ""));
  const CudaReport& cuda = report.cuda;
  if (!cuda.problem.empty()) line("GPU", cuda.problem);
  for (const GpuReport& gpu : cuda.gpus) {
    line(gpu.device, fmt::format("{}, compute capability {}.{}, {} of {} free", gpu.name, gpu.capability / 10,
                                 gpu.capability % 10, size_text(gpu.free_bytes), size_text(gpu.total_bytes)));
    line("", fmt::format("driver {} (CUDA {}.{}); {}", cuda.driver_version.empty() ? "unknown" : cuda.driver_version,
                         cuda.driver_cuda / 1000, cuda.driver_cuda % 1000 / 10,
                         gpu.machine_code ? "this build has machine code for it" : "no machine code for it here"));
    if (gpu.read_bandwidth > 0) {
      line("", fmt::format("reads its memory at {:.0f} GB/s{}{}", gpu.read_bandwidth / 1e9,
                           rate_text("bus to it", gpu.to_device), rate_text("from it", gpu.from_device)));
    }
    if (gpu.host_read_beside_bus > 0) {
      line("", fmt::format("together: the CPU reads {:.1f} GB/s while the bus copies {:.1f} GB/s to it",
                           gpu.host_read_beside_bus / 1e9, gpu.to_device_beside_host / 1e9));
    }
  }
  const VulkanReport& vulkan = report.vulkan;
  line("Vulkan", !vulkan.loader           ? "no loader (libvulkan.so.1)"
                 : vulkan.drivers.empty() ? "a loader, but no driver"
                                          : fmt::format("drivers: {}", fmt::join(vulkan.drivers, ", ")));
  line("", "this build has no Vulkan backend yet");
  if (!around.folder.empty()) {
    line("Models", fmt::format("{}: {}{}", around.folder, counted(around.models, "file"),
                               rate_text("its disk reads", around.disk_read)));
  }
  line("", around.box.empty() ? "the model in the box is not installed" : "the model in the box: " + around.box);
  line("Port", fmt::format("{} is {}", flags.port, around.port_free ? "free" : "in use"));
  print("\n");
  for (const Finding& finding : all) {
    print("{:<8} {}\n", kind_name(finding.kind), finding.text);
    if (!finding.remedy.empty()) print("{:<8} -> {}\n", "", finding.remedy);
  }
  if (flags.quick) print("\nNothing was measured (--quick).\n");
}

Result<void> doctor(const DoctorFlags& flags) {
  const MachineReport report = examine_machine({.measure = !flags.quick});
  const Surroundings around = look_around(flags);
  const std::vector<Finding> all = all_findings(report, around, flags);
  if (flags.json) {
    // Names come from files of the system and may be of any bytes.
    print("{}\n", json_of(report, around, all, flags).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print_report(report, around, all, flags);
  }
  if (std::ranges::find(all, Finding::Kind::kBroken, &Finding::kind) != all.end()) {
    return fail(ErrorCode::kUnsupported, "not everything works here; the findings that are broken say what");
  }
  return {};
}

}  // namespace

void add_doctor(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = add_command(app, "doctor", "Examine this machine: what will run fast, and what to mend", chosen,
                                  [flags] { return doctor(*flags); });
  command->add_flag("--json", flags->json, "Print one JSON object; rates are bytes per second");
  command->add_flag("--quick", flags->quick, "Measure nothing");
  command->add_option("--models-dir", flags->folder, "Folder of models to look at; else that of the model in the box");
  command->add_option("--port", flags->port, "Port that a server would listen on")
      ->transform(whole_number<uint16_t>(1));
}

}  // namespace hearth::cli
