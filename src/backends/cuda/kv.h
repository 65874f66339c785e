// Pages of keys and values in GPU memory: for each KV group one pool, laid out as KvView says.
#pragma once

#include <vector>

#include "backends/backend.h"
#include "backends/cuda/kernels/params.h"
#include "backends/cuda/memory.h"

namespace hearth::cuda {

class KvPools {
 public:
  // Bytes of one page in all layers of a group.
  static size_t page_bytes(const KvGroup& group, KvType type);

  static Result<KvPools> allocate(const Device& device, const std::vector<KvGroup>& groups, KvType type,
                                  const std::vector<int64_t>& pages);

  // Zeros: what a kernel masks must still be finite.
  Result<void> clear(const Device& device) const;

  KvView view(int32_t group, int64_t layer) const;
  int64_t pages(int32_t group) const { return pools_[static_cast<size_t>(group)].pages; }
  // All layers of a page.
  CUdeviceptr page(int32_t group, int32_t page) const;
  size_t page_bytes(int32_t group) const { return pools_[static_cast<size_t>(group)].page_stride_bytes; }

 private:
  struct Pool {
    KvGroup group;
    int64_t pages = 0;
    KvFormat format = KvFormat::kF16;
    size_t v_offset_bytes = 0;
    size_t head_stride_bytes = 0;
    size_t page_stride_bytes = 0;
    DeviceBuffer memory;
  };
  static Pool layout(const KvGroup& group, KvType type);
  std::vector<Pool> pools_;
};

}  // namespace hearth::cuda
