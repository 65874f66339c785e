#include "base/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

namespace hearth {
namespace {

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> read_number(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<int64_t> read_number_file(const std::string& path) {
  auto line = read_line(path);
  return line ? read_number(*line) : std::nullopt;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) {  // more CPUs than cpu_set_t holds
    for (int cpu = 0; cpu < static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

// The paths of this process in the cgroup trees: of v2 and of the v1 controller `cpu`.
struct CgroupPaths {
  std::string unified, cpu;
};

CgroupPaths read_cgroup_paths(const std::string& root) {
  CgroupPaths paths;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) paths.unified = path;
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "cpu") paths.cpu = path;
    }
  }
  return paths;
}

// Calls f(directory) for the group's directory and all above it: a limit of any of them counts. Inside a container the
// path may name the host's tree, which is not visible; the mount's root is then the group itself.
template <class F>
void each_level(const std::string& mount, std::string path, F&& f) {
  while (path.size() > 1) {
    f(mount + path);
    path.resize(path.rfind('/'));
  }
  f(mount);
}

int64_t whole_cpus(int64_t quota, int64_t period) { return std::max<int64_t>(1, quota / period); }

int64_t read_cpu_quota(const std::string& root, const CgroupPaths& paths) {
  int64_t best = 0;
  auto limit = [&](int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) return;
    int64_t cpus = whole_cpus(quota, period);
    best = best == 0 ? cpus : std::min(best, cpus);
  };
  each_level(root + "/sys/fs/cgroup", paths.unified, [&](const std::string& directory) {
    auto line = read_line(directory + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!line || line->starts_with("max")) return;
    size_t space = line->find(' ');
    auto quota = read_number(*line);
    auto period = space == std::string::npos ? std::nullopt : read_number(line->substr(space + 1));
    if (quota && period) limit(*quota, *period);
  });
  for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
    each_level(root + mount, paths.cpu, [&](const std::string& directory) {
      auto quota = read_number_file(directory + "/cpu.cfs_quota_us");  // -1: none
      auto period = read_number_file(directory + "/cpu.cfs_period_us");
      if (quota && period) limit(*quota, *period);
    });
  }
  return best;
}

}  // namespace

int64_t CpuTopology::workers() const {
  auto count = static_cast<int64_t>(cores.size());
  return std::max<int64_t>(1, cpu_quota > 0 ? std::min(count, cpu_quota) : count);
}

CpuTopology read_cpu_topology(const std::string& root) {
  CpuTopology topology;
  std::set<std::string> seen;  // "0,32": the hardware threads of one core
  for (int cpu : allowed_cpus()) {
    auto siblings =
        read_line(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (!siblings || seen.insert(*siblings).second) topology.cores.push_back(cpu);
  }
  topology.cpu_quota = read_cpu_quota(root, read_cgroup_paths(root));
  return topology;
}

}  // namespace hearth
