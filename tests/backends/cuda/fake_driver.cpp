#include "fake_driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "base/check.h"

namespace hearth::testing {

// What the functions act on.
struct FakeCalls {
  struct Handle {
    std::string kind;
    size_t bytes = 0;
    int device = 0;
    int64_t kernels = 0;  // of graphs
  };
  struct Range {
    size_t bytes = 0;
    bool accessible = false;
  };

  FakeDriver& fake;
  std::map<uint64_t, Handle> handles;
  uint64_t next_handle = 1000;
  std::map<CUdeviceptr, size_t> reserved;
  std::map<CUdeviceptr, Range> mapped;
  std::map<char*, size_t> pinned;
  std::vector<int> contexts;      // times that each device's is held
  bool work = false;              // something may run on a stream
  CUgraphExec running = nullptr;  // what was launched last and not waited for
  bool capturing = false;
  int64_t captured = 0;
  static thread_local int current;  // device of this thread's context

  explicit FakeCalls(FakeDriver& f) : fake(f), contexts(f.gpus_.size()) {}

  static FakeCalls*& instance() {
    static FakeCalls* calls = nullptr;
    return calls;
  }

  void misuse(std::string what) { fake.misuses_.push_back(std::move(what)); }

  // Counts the call; true: it is the one that fails.
  bool fails(const char* name) {
    if (fake.until_failure_ < 0 || fake.until_failure_-- > 0) return false;
    fake.failed_ = name;
    return true;
  }

  template <class H>
  CUresult make(H* handle, Handle what) {
    const uint64_t id = next_handle++;
    handles.emplace(id, std::move(what));
    ++fake.live_;
    std::memcpy(handle, &id, sizeof id);
    return CUDA_SUCCESS;
  }
  template <class H>
  Handle* find(H handle, const char* kind) {
    uint64_t id;
    static_assert(sizeof handle == sizeof id);
    std::memcpy(&id, &handle, sizeof id);
    const auto found = handles.find(id);
    if (found != handles.end() && found->second.kind == kind) return &found->second;
    misuse(std::string("there is no such ") + kind);
    return nullptr;
  }
  template <class H>
  CUresult destroy(H handle, const char* kind) {
    if (find(handle, kind) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    uint64_t id;
    std::memcpy(&id, &handle, sizeof id);
    handles.erase(id);
    --fake.live_;
    return CUDA_SUCCESS;
  }

  bool accessible(CUdeviceptr at, size_t bytes) const {
    for (const auto& [begin, range] : mapped) {
      if (!range.accessible || at < begin || at >= begin + range.bytes) continue;
      const size_t here = std::min<size_t>(bytes, begin + range.bytes - at);
      at += here, bytes -= here;
      if (bytes == 0) return true;
    }
    return bytes == 0;
  }
  bool is_pinned(const void* data, size_t bytes) const {
    const auto* at = static_cast<const char*>(data);
    return std::ranges::any_of(
        pinned, [&](const auto& range) { return at >= range.first && at + bytes <= range.first + range.second; });
  }

  CUresult copy(CUdeviceptr device, const void* host, size_t bytes, bool to_device) {
    if (!accessible(device, bytes)) {
      misuse("a copy of memory that is not mapped");
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_pinned(host, bytes)) work = true;  // else the driver waits
    auto* there = reinterpret_cast<void*>(device);
    to_device ? std::memcpy(there, host, bytes) : std::memcpy(const_cast<void*>(host), there, bytes);
    return CUDA_SUCCESS;
  }
};

thread_local int FakeCalls::current = 0;

namespace {

constexpr size_t kGranularity = size_t{2} << 20;

FakeCalls& calls() {
  HEARTH_CHECK(FakeCalls::instance() != nullptr, "a call of a fake driver that is gone");
  return *FakeCalls::instance();
}

// Shared memory that a block may have.
int block_bytes(int capability) {
  const int major = capability / 10;
  return (major == 9 || major == 10 ? 227 : capability == 80 || capability == 87 ? 163 : 99) << 10;
}

CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device) + 1); }

}  // namespace

FakeDriver::FakeDriver(Gpus gpus) : gpus_(std::move(gpus)) {
  HEARTH_CHECK(FakeCalls::instance() == nullptr, "there is a fake driver already");
  FakeCalls::instance() = new FakeCalls(*this);
  cuda::Driver& d = driver_;

// A function that may be told to fail.
#define HEARTH_FAKE_FAILS(name) \
  if (calls().fails(#name)) return calls().fake.error_

  d.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  d.cuDriverGetVersion = [](int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  };
  d.cuGetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
  };
  d.cuGetErrorString = [](CUresult, const char** text) {
    *text = "a fake error";
    return CUDA_SUCCESS;
  };
  d.cuDeviceGetCount = [](int* count) {
    HEARTH_FAKE_FAILS(cuDeviceGetCount);
    *count = static_cast<int>(calls().fake.gpus_.size());
    return CUDA_SUCCESS;
  };
  d.cuDeviceGet = [](CUdevice* device, int index) {
    HEARTH_FAKE_FAILS(cuDeviceGet);
    *device = index;
    return CUDA_SUCCESS;
  };
  d.cuDeviceGetName = [](char* name, int size, CUdevice device) {
    HEARTH_FAKE_FAILS(cuDeviceGetName);
    std::strncpy(name, device == 0 ? "Fake 0" : "Fake 1", static_cast<size_t>(size) - 1);
    return CUDA_SUCCESS;
  };
  d.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice device) {
    HEARTH_FAKE_FAILS(cuDeviceGetAttribute);
    const int capability = calls().fake.gpus_[static_cast<size_t>(device)].capability;
    switch (which) {
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability / 10;
        break;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability % 10;
        break;
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = block_bytes(capability);
        break;
      default:
        *value = 50 << 20;
    }
    return CUDA_SUCCESS;
  };
  d.cuDeviceTotalMem = [](size_t* bytes, CUdevice device) {
    HEARTH_FAKE_FAILS(cuDeviceTotalMem);
    *bytes = calls().fake.gpus_[static_cast<size_t>(device)].total_bytes;
    return CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    HEARTH_FAKE_FAILS(cuDevicePrimaryCtxRetain);
    ++calls().contexts[static_cast<size_t>(device)];
    ++calls().fake.live_;
    *context = context_of(device);
    return CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRelease = [](CUdevice device) {
    if (calls().contexts[static_cast<size_t>(device)]-- <= 0) calls().misuse("a context is released that nobody holds");
    --calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuCtxSetCurrent = [](CUcontext context) {
    FakeCalls::current = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
    if (calls().contexts[static_cast<size_t>(FakeCalls::current)] <= 0)
      calls().misuse("a context that is gone is used");
    return CUDA_SUCCESS;
  };
  d.cuMemGetInfo = [](size_t* free, size_t* total) {
    HEARTH_FAKE_FAILS(cuMemGetInfo);
    const FakeGpu& gpu = calls().fake.gpus_[static_cast<size_t>(FakeCalls::current)];
    *total = gpu.total_bytes;
    *free = gpu.total_bytes - gpu.used_bytes;
    return CUDA_SUCCESS;
  };
  d.cuMemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
    HEARTH_FAKE_FAILS(cuMemGetAllocationGranularity);
    *bytes = kGranularity;
    return CUDA_SUCCESS;
  };
  d.cuMemAddressReserve = [](CUdeviceptr* at, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    HEARTH_FAKE_FAILS(cuMemAddressReserve);
    if (bytes == 0 || bytes % kGranularity != 0) calls().misuse("addresses that are not whole pages are reserved");
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *at = reinterpret_cast<CUdeviceptr>(memory);
    calls().reserved.emplace(*at, bytes);
    ++calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemAddressFree = [](CUdeviceptr at, size_t bytes) {
    const auto found = calls().reserved.find(at);
    if (found == calls().reserved.end() || found->second != bytes) {
      calls().misuse("addresses are freed that were not reserved so");
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& [begin, range] : calls().mapped) {
      if (begin >= at && begin < at + bytes) calls().misuse("addresses are freed while memory is mapped there");
    }
    ::munmap(reinterpret_cast<void*>(at), bytes);
    calls().reserved.erase(found);
    --calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                     unsigned long long) {
    HEARTH_FAKE_FAILS(cuMemCreate);
    FakeGpu& gpu = calls().fake.gpus_[static_cast<size_t>(prop->location.id)];
    if (gpu.used_bytes + bytes > gpu.total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    gpu.used_bytes += bytes;
    return calls().make(handle, {.kind = "memory", .bytes = bytes, .device = prop->location.id});
  };
  d.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    if (const FakeCalls::Handle* memory = calls().find(handle, "memory")) {
      calls().fake.gpus_[static_cast<size_t>(memory->device)].used_bytes -= memory->bytes;
    }
    return calls().destroy(handle, "memory");
  };
  d.cuMemMap = [](CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
    HEARTH_FAKE_FAILS(cuMemMap);
    const FakeCalls::Handle* memory = calls().find(handle, "memory");
    if (memory == nullptr || memory->bytes != bytes) calls().misuse("memory is mapped in another size");
    calls().mapped[at] = {.bytes = bytes};
    ++calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemUnmap = [](CUdeviceptr at, size_t bytes) {
    if (calls().work) calls().misuse("memory is unmapped while work runs");
    const auto found = calls().mapped.find(at);
    if (found == calls().mapped.end() || found->second.bytes != bytes) {
      calls().misuse("memory is unmapped that was not mapped so");
      return CUDA_ERROR_INVALID_VALUE;
    }
    calls().mapped.erase(found);
    --calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemSetAccess = [](CUdeviceptr at, size_t bytes, const CUmemAccessDesc*, size_t) {
    HEARTH_FAKE_FAILS(cuMemSetAccess);
    for (auto& [begin, range] : calls().mapped) {
      if (begin >= at && begin < at + bytes) range.accessible = true;
    }
    return CUDA_SUCCESS;
  };
  d.cuMemHostAlloc = [](void** data, size_t bytes, unsigned) {
    HEARTH_FAKE_FAILS(cuMemHostAlloc);
    *data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (*data == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    calls().pinned.emplace(static_cast<char*>(*data), bytes);
    ++calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemFreeHost = [](void* data) {
    if (calls().work) calls().misuse("pinned memory is freed while work runs");
    const auto found = calls().pinned.find(static_cast<char*>(data));
    if (found == calls().pinned.end()) {
      calls().misuse("memory is freed that was not pinned");
      return CUDA_ERROR_INVALID_VALUE;
    }
    ::munmap(data, found->second);
    calls().pinned.erase(found);
    --calls().fake.live_;
    return CUDA_SUCCESS;
  };
  d.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    HEARTH_FAKE_FAILS(cuMemcpyHtoDAsync);
    return calls().copy(to, from, bytes, true);
  };
  d.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t bytes, CUstream) {
    HEARTH_FAKE_FAILS(cuMemcpyDtoHAsync);
    return calls().copy(from, to, bytes, false);
  };
  d.cuMemsetD8Async = [](CUdeviceptr at, unsigned char value, size_t bytes, CUstream) {
    HEARTH_FAKE_FAILS(cuMemsetD8Async);
    if (!calls().accessible(at, bytes)) {
      calls().misuse("memory is cleared that is not mapped");
      return CUDA_ERROR_INVALID_VALUE;
    }
    calls().work = true;
    // Fresh memory is zero here.
    if (value != 0) std::memset(reinterpret_cast<void*>(at), value, bytes);
    return CUDA_SUCCESS;
  };
  d.cuStreamCreate = [](CUstream* stream, unsigned) {
    HEARTH_FAKE_FAILS(cuStreamCreate);
    return calls().make(stream, {.kind = "stream"});
  };
  d.cuStreamDestroy = [](CUstream stream) { return calls().destroy(stream, "stream"); };
  d.cuStreamSynchronize = [](CUstream stream) {
    calls().find(stream, "stream");
    if (calls().capturing) calls().misuse("a stream is waited for while it records");
    calls().work = false;  // also when a step went wrong
    calls().running = nullptr;
    HEARTH_FAKE_FAILS(cuStreamSynchronize);
    return CUDA_SUCCESS;
  };
  d.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
    HEARTH_FAKE_FAILS(cuStreamBeginCapture);
    if (std::exchange(calls().capturing, true)) calls().misuse("a stream records already");
    calls().captured = 0;
    return CUDA_SUCCESS;
  };
  d.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    *graph = nullptr;
    if (!std::exchange(calls().capturing, false)) calls().misuse("a stream does not record");
    HEARTH_FAKE_FAILS(cuStreamEndCapture);
    return calls().make(graph, {.kind = "graph", .kernels = calls().captured});
  };
  d.cuGraphInstantiate = [](CUgraphExec* exec, CUgraph graph, unsigned long long) {
    HEARTH_FAKE_FAILS(cuGraphInstantiate);
    const FakeCalls::Handle* from = calls().find(graph, "graph");
    return calls().make(exec, {.kind = "executable graph", .kernels = from ? from->kernels : 0});
  };
  d.cuGraphDestroy = [](CUgraph graph) { return calls().destroy(graph, "graph"); };
  d.cuGraphExecDestroy = [](CUgraphExec exec) {
    if (calls().running == exec) calls().misuse("a graph is destroyed while it runs");
    return calls().destroy(exec, "executable graph");
  };
  d.cuGraphLaunch = [](CUgraphExec exec, CUstream) {
    HEARTH_FAKE_FAILS(cuGraphLaunch);
    if (const FakeCalls::Handle* graph = calls().find(exec, "executable graph")) {
      calls().fake.kernels_run_ += graph->kernels;
    }
    calls().work = true;
    calls().running = exec;
    return CUDA_SUCCESS;
  };
  d.cuModuleLoadData = [](CUmodule* module, const void* image) {
    HEARTH_FAKE_FAILS(cuModuleLoadData);
    if (image == nullptr) calls().misuse("a module without an image");
    return calls().make(module, {.kind = "module"});
  };
  d.cuModuleUnload = [](CUmodule module) {
    if (calls().work) calls().misuse("kernels are unloaded while work runs");
    return calls().destroy(module, "module");
  };
  d.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char*) {
    HEARTH_FAKE_FAILS(cuModuleGetFunction);
    calls().find(module, "module");
    std::memcpy(function, &module, sizeof module);
    return CUDA_SUCCESS;
  };
  d.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int) {
    HEARTH_FAKE_FAILS(cuFuncSetAttribute);
    return CUDA_SUCCESS;
  };
  d.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    HEARTH_FAKE_FAILS(cuFuncGetAttribute);
    if (attribute != CU_FUNC_ATTRIBUTE_PTX_VERSION) calls().misuse("an attribute of a kernel that the fake lacks");
    *value = calls().fake.compiled_for;
    return CUDA_SUCCESS;
  };
  d.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
    HEARTH_FAKE_FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    *blocks = 2;
    return CUDA_SUCCESS;
  };
  d.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    HEARTH_FAKE_FAILS(cuLaunchKernelEx);
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || config->blockDimX == 0 ||
        config->blockDimX > 1024 || config->gridDimY > 65535 || config->gridDimZ > 65535) {
      calls().misuse("a kernel is started in an impossible shape");
      return CUDA_ERROR_INVALID_VALUE;
    }
    // Kernels declare up to 1 KiB themselves.
    if (config->sharedMemBytes + 1024 >
        static_cast<unsigned>(block_bytes(calls().fake.gpus_[static_cast<size_t>(FakeCalls::current)].capability))) {
      calls().misuse("a block is given more shared memory than the GPU has");
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (config->numAttrs > 0) ++calls().fake.dependent_launches_;
    if (calls().capturing) {
      ++calls().captured;
    } else {
      ++calls().fake.kernels_run_;
      calls().work = true;
    }
    return CUDA_SUCCESS;
  };
  d.cuEventCreate = [](CUevent* event, unsigned) {
    HEARTH_FAKE_FAILS(cuEventCreate);
    return calls().make(event, {.kind = "event"});
  };
  d.cuEventDestroy = [](CUevent event) { return calls().destroy(event, "event"); };
  d.cuEventRecord = [](CUevent event, CUstream) {
    HEARTH_FAKE_FAILS(cuEventRecord);
    calls().find(event, "event");
    return CUDA_SUCCESS;
  };
  d.cuEventSynchronize = [](CUevent event) {
    HEARTH_FAKE_FAILS(cuEventSynchronize);
    calls().find(event, "event");
    return CUDA_SUCCESS;
  };
  d.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    HEARTH_FAKE_FAILS(cuEventElapsedTime);
    *milliseconds = 1;
    return CUDA_SUCCESS;
  };
#undef HEARTH_FAKE_FAILS

  // A function that the backend began to use has its line above.
#define HEARTH_FAKE_IS_THERE(name) HEARTH_CHECK(d.name != nullptr, "the fake driver lacks {}", #name);
  HEARTH_CUDA_DRIVER_FUNCTIONS(HEARTH_FAKE_IS_THERE)
#undef HEARTH_FAKE_IS_THERE
}

FakeDriver::~FakeDriver() { delete std::exchange(FakeCalls::instance(), nullptr); }

void FakeDriver::fail_call(int64_t n, CUresult error) {
  until_failure_ = n;
  error_ = error;
  failed_.clear();
}

size_t FakeDriver::used_bytes() const {
  size_t bytes = 0;
  for (const FakeGpu& gpu : gpus_) bytes += gpu.used_bytes;
  return bytes;
}

}  // namespace hearth::testing
