#include "memory/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

std::optional<size_t> parse_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number in the first line of a file; "max" and everything that is no number: none.
std::optional<size_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return parse_number(line);
}

// The number after `key` and a separator (space or colon) in a file of lines "key value".
std::optional<size_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::string_view rest = line;
    if (!rest.starts_with(key)) continue;
    rest.remove_prefix(key.size());
    if (rest.empty() || (rest.front() != ' ' && rest.front() != ':')) continue;
    return parse_number(rest.substr(1));
  }
  return std::nullopt;
}

struct ControlGroupFiles {
  std::string mount;
  std::string limit;
  std::string usage;
  std::string inactive;  // names of the fields of memory.stat that count file pages
  std::string active;
};

// Applies the limit of one control group folder.
void apply_limit(const ControlGroupFiles& files, const std::string& folder, HostMemory& memory) {
  const auto limit = read_number(folder + files.limit);
  // Version 1 writes "no limit" as a huge number.
  if (!limit || *limit >= kNoLimit / 4) return;
  const size_t usage = read_number(folder + files.usage).value_or(0);
  // File pages are charged to the group but given back on demand.
  const size_t cache = read_field(folder + "/memory.stat", files.inactive).value_or(0) +
                       read_field(folder + "/memory.stat", files.active).value_or(0);
  const size_t held = usage - std::min(usage, cache);
  const size_t available = *limit - std::min(*limit, held);
  if (available < memory.available_bytes) {
    memory.available_bytes = available;
    memory.limited = true;
  }
}

// Applies the limits of a group and all its ancestors. In a container the path may lie outside of what is mounted;
// then the mount itself is the container's group.
void apply_groups(const ControlGroupFiles& files, std::string path, HostMemory& memory) {
  while (true) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    apply_limit(files, files.mount + path, memory);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  HostMemory memory{.available_bytes = kNoLimit};
  if (auto kib = read_field(root + "/proc/meminfo", "MemAvailable")) memory.available_bytes = *kib * 1024;

  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // hierarchy:controllers:path; version 2 has no controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      apply_groups({root + "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file", "active_file"}, path,
                   memory);
    } else if (controllers.find(",memory,") != std::string::npos) {
      apply_groups({root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                    "total_inactive_file", "total_active_file"},
                   path, memory);
    }
  }
  return memory;
}

}  // namespace hearth
