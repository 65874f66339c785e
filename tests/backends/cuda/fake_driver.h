// A CUDA driver without a GPU: memory is the host's, kernels do nothing, and any call can be told to fail. It counts
// what was not given back and notes what a true driver would punish.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/driver.h"

namespace hearth::testing {

struct FakeGpu {
  int capability = 90;
  size_t total_bytes = size_t{8} << 30;
  size_t used_bytes = 0;  // by this program
};

using Gpus = std::vector<FakeGpu>;

// One at a time: the functions of a driver have no state of their own.
class FakeDriver {
 public:
  explicit FakeDriver(Gpus gpus = Gpus(1));
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const cuda::Driver& driver() const { return driver_; }
  FakeGpu& gpu(size_t index = 0) { return gpus_[index]; }

  // The call number `n` from now on (0: the next) returns `error`, once. Calls that give something back never do.
  void fail_call(int64_t n, CUresult error);
  // The function that failed so, "" when none did yet.
  const std::string& failed() const { return failed_; }

  // Contexts, streams, events, modules, graphs, ranges and memory that live now.
  int64_t live() const { return live_; }
  // Bytes of the GPUs and of pinned memory that are allocated now.
  size_t used_bytes() const;
  // The architecture that all kernels were compiled for.
  int compiled_for = 90;
  // Launches that may start before the kernel before them is complete.
  int64_t dependent_launches() const { return dependent_launches_; }
  // Kernels that were started, also by graphs.
  int64_t kernels_run() const { return kernels_run_; }
  // Copies outside of memory, memory that was given back while work ran, and the like.
  const std::vector<std::string>& misuses() const { return misuses_; }

 private:
  friend struct FakeCalls;
  cuda::Driver driver_;
  Gpus gpus_;
  int64_t until_failure_ = -1;
  CUresult error_ = CUDA_SUCCESS;
  std::string failed_;
  int64_t live_ = 0;
  int64_t kernels_run_ = 0;
  int64_t dependent_launches_ = 0;
  std::vector<std::string> misuses_;
};

}  // namespace hearth::testing
