// Memory of the GPU in mapped extents, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/device.h"

namespace hearth::cuda {

inline constexpr size_t kExtentBytes = size_t{32} << 20;

// A range of the GPU's addresses backed by extents of at most kExtentBytes. Not initialized.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Fails with kOutOfMemory, names `what`, need and have; nothing stays allocated. 0 bytes are no memory.
  static Result<DeviceBuffer> allocate(const Device& device, size_t size_bytes, std::string_view what);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  // Writes zeros, on the device's stream.
  Result<void> clear(const Device& device) const;

  CUdeviceptr address() const { return address_; }
  template <class T>
  T* at(size_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(address_ + offset_bytes);
  }
  size_t size_bytes() const { return size_; }

 private:
  struct Extent {
    CUmemGenericAllocationHandle handle;
    size_t bytes;
  };
  const Device* device_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t reserved_ = 0;
  size_t size_ = 0;
  std::vector<Extent> extents_;  // mapped one after the other
};

// Pinned host memory, which the GPU copies from and to by itself; kernels too can use it, at the same address.
class HostBuffer {
 public:
  HostBuffer() = default;
  static Result<HostBuffer> allocate(const Device& device, size_t size_bytes, std::string_view what);
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  template <class T>
  T* at(size_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(data_ + offset_bytes);
  }
  size_t size_bytes() const { return size_; }

 private:
  const Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Lays out pieces of a buffer, each aligned to 256 bytes.
class Pieces {
 public:
  size_t take(size_t bytes) {
    size_t offset = used_;
    used_ += (bytes + 255) / 256 * 256;
    return offset;
  }
  size_t used_bytes() const { return used_; }

 private:
  size_t used_ = 0;
};

}  // namespace hearth::cuda
