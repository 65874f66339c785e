// How much memory this process may still use: what the machine has and what its control groups allow.
#pragma once

#include <cstddef>
#include <string>

namespace hearth {

struct HostMemory {
  size_t available_bytes = 0;  // without pushing anyone else out; the page cache counts as available
  bool limited = false;        // a control group decides, not the machine
};

// Reads /proc/meminfo and the memory controllers of /proc/self/cgroup (versions 1 and 2, every level up to the root)
// below `root`. What cannot be read counts as no limit.
HostMemory host_memory(const std::string& root = "");

}  // namespace hearth
