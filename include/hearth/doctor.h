// What this machine has for running models, how fast it is, and what to mend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

struct DoctorOptions {
  // Bandwidths too, which takes about two seconds and a moment of memory; not while anything else shall be fast.
  bool measure = true;
  std::string root;  // put before /proc, /sys, /etc and /usr, so that tests can bring their own
};

// Bandwidths are bytes per second; 0: not measured.
struct CpuReport {
  std::string name;           // as the system calls it
  int64_t cpus = 0;           // hardware threads of the machine
  int64_t cores = 0;          // physical cores that affinity leaves to this process
  int64_t quota_cpus = 0;     // that the control group grants; 0: no limit
  int64_t workers = 0;        // that Hearth starts
  std::string features;       // "AVX2, FMA, F16C, AVX-512 F/BW/DQ/VL"
  std::string kernels;        // that will run: "AVX-512 VNNI"
  std::string problem;        // why the CPU cannot run models; empty: it can
  double read_bandwidth = 0;  // of memory, by all workers
};

struct MemoryReport {
  size_t total_bytes = 0;  // of the machine
  size_t available_bytes = 0;
  bool limited = false;  // a control group decides what is available
};

struct GpuReport {
  std::string device;  // as --device names it: "cuda:0"
  std::string name;    // "NVIDIA H200"
  int capability = 0;  // 90: compute capability 9.0
  size_t total_bytes = 0;
  size_t free_bytes = 0;
  bool machine_code = false;  // this build carries machine code for it; else the driver compiles it when it starts
  std::string problem;        // why it cannot run models; empty: it can
  double read_bandwidth = 0;  // of its memory
  double to_device = 0;       // over the bus, from pinned memory
  double from_device = 0;
  // Both at the same time: the host's memory is read by all workers while the bus copies to the device.
  double host_read_beside_bus = 0;
  double to_device_beside_host = 0;
};

struct CudaReport {
  bool built = false;          // this build has the backend
  int built_with = 0;          // 13000: CUDA 13.0
  bool has_card = false;       // the PCI bus has an NVIDIA GPU, with or without a driver
  std::string driver_version;  // "580.65.06"; empty: none
  int driver_cuda = 0;         // 13000: the newest CUDA that the driver knows
  std::string problem;         // why no GPU can be used; empty: those below can
  std::vector<GpuReport> gpus;
};

struct VulkanReport {
  bool loader = false;               // libvulkan.so.1
  std::vector<std::string> drivers;  // names of their files (ICDs): "nvidia_icd.json"
};

struct MachineReport {
  CpuReport cpu;
  MemoryReport memory;
  CudaReport cuda;
  VulkanReport vulkan;
};

// Never fails: what cannot be found out is empty, 0 or a problem.
MachineReport examine_machine(const DoctorOptions& options = {});

struct Finding {
  enum class Kind { kGood, kSlow, kBroken };  // runs fast; runs, but slowly or less than it could; does not run
  Kind kind = Kind::kGood;
  std::string text;    // "a control group grants 1 of 8 cores"
  std::string remedy;  // how to mend it; empty: nothing to mend
};

// What will run fast or not, and what to do about it. Follows from the report alone.
std::vector<Finding> findings(const MachineReport& report);

}  // namespace hearth
