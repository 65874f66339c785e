#include "backends/cuda/device.h"

namespace hearth::cuda {

Result<std::vector<DeviceProperties>> list_devices(const Driver& driver) {
  int count = 0;
  HEARTH_TRY(driver.check(driver.cuDeviceGetCount(&count), "count the GPUs"));
  std::vector<DeviceProperties> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice device;
    HEARTH_TRY(driver.check(driver.cuDeviceGet(&device, i), "look at a GPU"));
    char name[256] = {};
    CUresult result = driver.cuDeviceGetName(name, sizeof name - 1, device);
    auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      if (result == CUDA_SUCCESS) result = driver.cuDeviceGetAttribute(&value, which, device);
      return value;
    };
    DeviceProperties& p = devices.emplace_back();
    p.name = name;
    p.index = i;
    p.capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                   attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p.processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p.shared_bytes = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    p.l2_bytes = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    if (result == CUDA_SUCCESS) result = driver.cuDeviceTotalMem(&p.total_bytes, device);
    HEARTH_TRY(driver.check(result, fmt::format("look at GPU {}", i)));
  }
  return devices;
}

Result<std::unique_ptr<Device>> Device::open(const Driver& driver, const DeviceProperties& properties) {
  std::unique_ptr<Device> self(new Device(driver, properties));
  HEARTH_TRY(driver.check(driver.cuDeviceGet(&self->device_, properties.index), "open " + properties.name));
  HEARTH_TRY(driver.check(driver.cuDevicePrimaryCtxRetain(&self->context_, self->device_), "open " + properties.name));
  self->use();
  HEARTH_TRY(driver.check(driver.cuStreamCreate(&self->stream_, CU_STREAM_NON_BLOCKING), "make a stream"));
  return self;
}

Device::~Device() {
  if (context_ == nullptr) return;
  use();
  if (stream_ != nullptr) driver_.cuStreamDestroy(stream_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

size_t Device::free_bytes() const {
  use();
  size_t free = 0, total = 0;
  driver_.cuMemGetInfo(&free, &total);
  return free;
}

}  // namespace hearth::cuda
