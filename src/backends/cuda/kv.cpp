#include "backends/cuda/kv.h"

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::cuda {

static_assert(kPageRows == kPageTokens);

KvPools::Pool KvPools::layout(const KvGroup& group, KvType type) {
  Pool pool{.group = group};
  const auto dim = static_cast<size_t>(group.head_dim);
  size_t token_bytes = 0;
  switch (type) {
    case KvType::kF32:
      pool.format = KvFormat::kF32, token_bytes = 4 * dim;
      break;
    case KvType::kF16:
      pool.format = KvFormat::kF16, token_bytes = 2 * dim;
      break;
    case KvType::kQ8:
      pool.format = KvFormat::kQ8, token_bytes = dim + 2 * ceil_div<size_t>(dim, kKvBlock);
      break;
  }
  pool.v_offset_bytes = round_up<size_t>(kPageRows * token_bytes, 16);
  pool.head_stride_bytes = 2 * pool.v_offset_bytes;
  pool.page_stride_bytes =
      pool.head_stride_bytes * static_cast<size_t>(group.kv_heads) * static_cast<size_t>(group.layers);
  return pool;
}

size_t KvPools::page_bytes(const KvGroup& group, KvType type) { return layout(group, type).page_stride_bytes; }

Result<KvPools> KvPools::allocate(const Device& device, const std::vector<KvGroup>& groups, KvType type,
                                  const std::vector<int64_t>& pages) {
  HEARTH_CHECK(groups.size() == pages.size(), "{} page counts for {} KV groups", pages.size(), groups.size());
  KvPools pools;
  for (size_t g = 0; g < groups.size(); ++g) {
    Pool& pool = pools.pools_.emplace_back(layout(groups[g], type));
    pool.pages = pages[g];
    HEARTH_ASSIGN(pool.memory, DeviceBuffer::allocate(device, static_cast<size_t>(pages[g]) * pool.page_stride_bytes,
                                                      "keys and values"));
  }
  return pools;
}

Result<void> KvPools::clear(const Device& device) const {
  for (const Pool& pool : pools_) HEARTH_TRY(pool.memory.clear(device));
  return {};
}

KvView KvPools::view(int32_t group, int64_t layer) const {
  const Pool& pool = pools_[static_cast<size_t>(group)];
  return {.base = pool.memory.at<uint8_t>(static_cast<size_t>(layer * pool.group.kv_heads) * pool.head_stride_bytes),
          .page_stride_bytes = pool.page_stride_bytes,
          .head_stride_bytes = static_cast<uint32_t>(pool.head_stride_bytes),
          .v_offset_bytes = static_cast<uint32_t>(pool.v_offset_bytes),
          .kv_heads = static_cast<int32_t>(pool.group.kv_heads),
          .head_dim = static_cast<int32_t>(pool.group.head_dim),
          .window = static_cast<int32_t>(pool.group.window),
          .format = pool.format};
}

CUdeviceptr KvPools::page(int32_t group, int32_t page) const {
  const Pool& pool = pools_[static_cast<size_t>(group)];
  HEARTH_CHECK(page >= 0 && page < pool.pages, "page {} of {}", page, pool.pages);
  return pool.memory.address() + static_cast<size_t>(page) * pool.page_stride_bytes;
}

}  // namespace hearth::cuda
