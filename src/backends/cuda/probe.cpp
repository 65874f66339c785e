#include "backends/cuda/probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "backends/cuda/kernels/probe.h"
#include "backends/cuda/memory.h"

namespace hearth::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr size_t kLeastReadBytes = size_t{64} << 20, kMostReadBytes = size_t{1} << 30;
constexpr size_t kBusBytes = size_t{32} << 20;

// Copies over and over; returns bytes per second.
template <class F>
Result<double> copy_until(const Device& device, F&& enough, bool to_device, const DeviceBuffer& there,
                          const HostBuffer& here) {
  const Driver& driver = device.driver();
  device.use();
  double bytes = 0;
  const Clock::time_point start = Clock::now();
  do {
    constexpr std::string_view kAttempt = "copy over the bus";
    for (int i = 0; i < 2; ++i) {
      HEARTH_TRY(driver.check(
          to_device ? driver.cuMemcpyHtoDAsync(there.address(), here.at<std::byte>(), kBusBytes, device.stream())
                    : driver.cuMemcpyDtoHAsync(here.at<std::byte>(), there.address(), kBusBytes, device.stream()),
          kAttempt));
      bytes += static_cast<double>(kBusBytes);
    }
    HEARTH_TRY(device.synchronize(kAttempt));
  } while (!enough());
  return bytes / seconds_since(start);
}

Result<void> measure(const Device& device, Kernels& kernels, GpuReport& gpu, double seconds, ReadMeter* host) {
  const double part = seconds / 4;
  HEARTH_ASSIGN(gpu.read_bandwidth, measure_reads(device, kernels, part));
  HEARTH_ASSIGN(const DeviceBuffer there, DeviceBuffer::allocate(device, kBusBytes, "measuring"));
  HEARTH_ASSIGN(const HostBuffer here, HostBuffer::allocate(device, kBusBytes, "measuring"));
  HEARTH_TRY(there.clear(device));
  for (const bool to_device : {true, false}) {
    const Clock::time_point start = Clock::now();
    const auto enough = [&] { return seconds_since(start) >= part; };
    HEARTH_ASSIGN((to_device ? gpu.to_device : gpu.from_device), copy_until(device, enough, to_device, there, here));
  }
  if (host == nullptr) return {};
  std::atomic<bool> done = false;
  Result<double> rate = 0.0;
  std::thread bus([&] {
    rate = copy_until(
        device, [&] { return done.load(); }, true, there, here);
  });
  gpu.host_read_beside_bus = host->measure(part);
  done = true;
  bus.join();
  HEARTH_ASSIGN(gpu.to_device_beside_host, std::move(rate));
  return {};
}

Result<void> probe_device(const Driver& driver, const DeviceProperties& properties, GpuReport& gpu, double seconds,
                          ReadMeter* host) {
  HEARTH_ASSIGN(const auto device, Device::open(driver, properties));
  gpu.free_bytes = device->free_bytes();
  const std::span<const int> built = kernel_architectures();
  if (properties.capability < built.front()) {
    return fail(ErrorCode::kUnsupported,
                "its compute capability is {}.{}, and this build has kernels for {}.{} and newer",
                properties.capability / 10, properties.capability % 10, built.front() / 10, built.front() % 10);
  }
  // Machine code runs on newer devices of the same generation.
  gpu.machine_code = std::ranges::any_of(built, [&](int architecture) {
    return architecture / 10 == properties.capability / 10 && architecture <= properties.capability;
  });
  Kernels kernels(*device);
  HEARTH_TRY(kernels.get("probe", "probe_read", 0));  // the driver takes what this build has
  return seconds > 0 ? measure(*device, kernels, gpu, seconds, host) : Result<void>();
}

}  // namespace

Result<double> measure_reads(const Device& device, Kernels& kernels, double seconds) {
  // Far larger than the cache, but half of what is free at most.
  const size_t bytes = std::min(kMostReadBytes, device.free_bytes() / 2) / kLeastReadBytes * kLeastReadBytes;
  if (bytes == 0) {
    return fail(ErrorCode::kOutOfMemory, "measure the GPU's memory: {} MiB of it are free, and {} would be needed",
                device.free_bytes() >> 20, 2 * kLeastReadBytes >> 20);
  }
  HEARTH_ASSIGN(const DeviceBuffer data, DeviceBuffer::allocate(device, bytes + 256, "measuring"));
  HEARTH_TRY(data.clear(device));
  Launch launch;
  HEARTH_ASSIGN(launch.kernel, kernels.get("probe", "probe_read", 0));
  HEARTH_ASSIGN(const int resident, kernels.blocks_per_processor(launch.kernel, kProbeThreads, 0));
  launch.grid[0] = static_cast<unsigned>(resident * device.properties().processors);
  launch.threads = kProbeThreads;
  launch.dependent = false;
  launch.set_params(
      ProbeParams{.data = data.at<const uint8_t>(), .count = bytes / 16, .out = data.at<uint32_t>(bytes)});
  HEARTH_TRY(launch.enqueue(device));
  HEARTH_TRY(device.synchronize("measure the GPU's memory"));
  double best = 0;
  constexpr int kPasses = 4;  // in a row, so that starting one is hidden by the one before
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kPasses; ++i) HEARTH_TRY(launch.enqueue(device));
    HEARTH_TRY(device.synchronize("measure the GPU's memory"));
    best = std::max(best, kPasses * static_cast<double>(bytes) / seconds_since(begin));
  } while (seconds_since(start) < seconds);
  return best;
}

void probe_devices(const Driver& driver, CudaReport& report, double seconds, ReadMeter* host) {
  driver.cuDriverGetVersion(&report.driver_cuda);
  Result<std::vector<DeviceProperties>> devices = list_devices(driver);
  if (!devices) {
    report.problem = devices.error().message;
    return;
  }
  if (devices->empty()) report.problem = "the driver finds no GPU";
  for (const DeviceProperties& properties : *devices) {
    GpuReport& gpu = report.gpus.emplace_back(GpuReport{.device = fmt::format("cuda:{}", properties.index),
                                                        .name = properties.name,
                                                        .capability = properties.capability,
                                                        .total_bytes = properties.total_bytes});
    const Result<void> probed =
        probe_device(driver, properties, gpu, seconds / static_cast<double>(devices->size()), host);
    if (!probed) gpu.problem = probed.error().message;
  }
}

}  // namespace hearth::cuda

namespace hearth {

void probe_cuda(CudaReport& report, double seconds, ReadMeter* host) {
  report.built = true;
  report.built_with = CUDA_VERSION;
  const Result<const cuda::Driver*> driver = cuda::find_driver();
  if (driver) {
    cuda::probe_devices(**driver, report, seconds, host);
  } else {
    report.problem = without_advice(driver.error().message);
  }
}

}  // namespace hearth
