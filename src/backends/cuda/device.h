// One GPU: its properties, its context and the stream that everything runs on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/driver.h"

namespace hearth::cuda {

struct DeviceProperties {
  std::string name;         // "NVIDIA H200"
  int index = 0;            // the driver's
  int capability = 0;       // 90: compute capability 9.0
  int processors = 0;       // streaming multiprocessors
  size_t shared_bytes = 0;  // that one block may have
  size_t total_bytes = 0;   // memory
  size_t l2_bytes = 0;
};

// All GPUs of the machine, in the driver's order.
Result<std::vector<DeviceProperties>> list_devices(const Driver& driver);

// The primary context of a GPU and a stream. Objects of it must not outlive it.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const Driver& driver, const DeviceProperties& properties);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }
  CUstream stream() const { return stream_; }
  // Before a thread's first call that needs the context.
  void use() const { driver_.cuCtxSetCurrent(context_); }
  // Bytes that are free now.
  size_t free_bytes() const;
  Result<void> synchronize(std::string_view attempt) const {
    return driver_.check(driver_.cuStreamSynchronize(stream_), attempt);
  }

 private:
  Device(const Driver& driver, const DeviceProperties& properties) : driver_(driver), properties_(properties) {}
  const Driver& driver_;
  DeviceProperties properties_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace hearth::cuda
