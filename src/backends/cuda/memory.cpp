#include "backends/cuda/memory.h"

#include <algorithm>
#include <utility>

#include "base/checked_math.h"

namespace hearth::cuda {

Result<DeviceBuffer> DeviceBuffer::allocate(const Device& device, size_t size_bytes, std::string_view what) {
  DeviceBuffer buffer;
  if (size_bytes == 0) return buffer;
  device.use();
  const Driver& driver = device.driver();
  const std::string attempt = fmt::format("allocate {} MiB of GPU memory for {}", size_bytes >> 20, what);
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device.properties().index};
  size_t granularity = 0;
  HEARTH_TRY(driver.check(driver.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                          attempt));
  buffer.device_ = &device;
  buffer.size_ = size_bytes;
  const size_t reserved = round_up(size_bytes, granularity);
  HEARTH_TRY(driver.check(driver.cuMemAddressReserve(&buffer.address_, reserved, 0, 0, 0), attempt));
  buffer.reserved_ = reserved;
  for (size_t mapped = 0; mapped < reserved;) {
    Extent extent{.handle = 0, .bytes = std::min(round_up(kExtentBytes, granularity), reserved - mapped)};
    CUresult result = driver.cuMemCreate(&extent.handle, extent.bytes, &prop, 0);
    if (result == CUDA_SUCCESS) {
      result = driver.cuMemMap(buffer.address_ + mapped, extent.bytes, 0, extent.handle, 0);
      if (result != CUDA_SUCCESS) driver.cuMemRelease(extent.handle);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      return fail(ErrorCode::kOutOfMemory, "{}: {} MiB of it and {} MiB more are free on {}", attempt, mapped >> 20,
                  device.free_bytes() >> 20, device.properties().name);
    }
    HEARTH_TRY(driver.check(result, attempt));
    buffer.extents_.push_back(extent);
    mapped += extent.bytes;
  }
  CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  HEARTH_TRY(driver.check(driver.cuMemSetAccess(buffer.address_, reserved, &access, 1), attempt));
  return buffer;
}

Result<void> DeviceBuffer::clear(const Device& device) const {
  if (size_ == 0) return {};
  return device.driver().check(device.driver().cuMemsetD8Async(address_, 0, size_, device.stream()),
                               "clear GPU memory");
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(reserved_, other.reserved_);
  std::swap(size_, other.size_);
  std::swap(extents_, other.extents_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  device_->use();
  const Driver& driver = device_->driver();
  driver.cuStreamSynchronize(device_->stream());  // nothing may lose its memory while it runs
  CUdeviceptr at = address_;
  for (const Extent& extent : extents_) {
    driver.cuMemUnmap(at, extent.bytes);
    driver.cuMemRelease(extent.handle);
    at += extent.bytes;
  }
  driver.cuMemAddressFree(address_, reserved_);
}

Result<HostBuffer> HostBuffer::allocate(const Device& device, size_t size_bytes, std::string_view what) {
  HostBuffer buffer;
  if (size_bytes == 0) return buffer;
  device.use();
  void* data = nullptr;
  HEARTH_TRY(device.driver().check(device.driver().cuMemHostAlloc(&data, size_bytes, CU_MEMHOSTALLOC_PORTABLE),
                                   fmt::format("pin {} KiB of memory for {}", size_bytes >> 10, what)));
  buffer.device_ = &device;
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = size_bytes;
  return buffer;
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept { *this = std::move(other); }

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (data_ == nullptr) return;
  device_->use();
  device_->driver().cuStreamSynchronize(device_->stream());
  device_->driver().cuMemFreeHost(data_);
}

}  // namespace hearth::cuda
