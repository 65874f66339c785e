// The cores that this process may use, with affinity, SMT and cgroup limits (v1 and v2) counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

struct CpuTopology {
  std::vector<int> cores;  // one CPU number for each physical core that affinity allows, ascending
  int64_t cpu_quota = 0;   // whole CPUs that the cgroup grants, at least 1; 0: no limit

  // Workers a pool should have: min(cores, quota), at least 1.
  int64_t workers() const;
};

// Reads the system. `root` is put before /proc and /sys, so that tests can bring their own; affinity is always real.
CpuTopology read_cpu_topology(const std::string& root = "");

}  // namespace hearth
