// Machine code of the kernels, carried in this program, and what is needed to start them.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device.h"

namespace hearth::cuda {

// A file of kernels/ (without its ending) as the compiler made it for all architectures of this build.
struct KernelFile {
  std::string_view name;
  std::span<const std::byte> image;
};
std::span<const KernelFile> kernel_files();
// The compute capabilities (90: 9.0) that have machine code in it, ascending; for newer ones the driver compiles that
// of the first.
std::span<const int> kernel_architectures();

struct Kernel {
  CUfunction function = nullptr;
  std::string name;
  // The compute capability that its code is for, 90 for 9.0: less than the device's when the driver has compiled code
  // for an older GPU.
  int compiled_for = 0;
  // Its code waits for the kernel before it (grid_wait in device.cuh).
  bool waits() const { return compiled_for >= 90; }
};

// The kernels of one device; a file is loaded when its first kernel is asked for.
class Kernels {
 public:
  explicit Kernels(const Device& device) : device_(device) {}
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // `shared_bytes`: most dynamic shared memory that it will be started with. Fails when the file has no such kernel (a
  // bug), or no code for this device.
  Result<Kernel> get(std::string_view file, const std::string& name, size_t shared_bytes);
  // Kernel::compiled_for of all kernels.
  Result<int> compiled_for();
  // How many blocks of it run on a multiprocessor at a time.
  Result<int> blocks_per_processor(const Kernel& kernel, int threads, size_t shared_bytes) const;

 private:
  const Device& device_;
  std::map<std::string_view, CUmodule> modules_;
  std::optional<int> compiled_for_;
  std::map<CUfunction, size_t> shared_bytes_;  // that a kernel may be started with, where that is more than 48 KiB
};

// A kernel with all that it is started with; takes one structure.
struct Launch {
  Kernel kernel;
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 0;
  size_t shared_bytes = 0;
  // Starts while the kernel before it drains; it waits itself (grid_wait in device.cuh) before it reads what others
  // wrote. False: starts when the one before is complete.
  bool dependent = true;
  std::vector<std::byte> params;

  template <class P>
  void set_params(const P& p) {
    params.resize(sizeof p);
    std::memcpy(params.data(), &p, sizeof p);
  }
  Result<void> enqueue(const Device& device) const;
};

}  // namespace hearth::cuda
