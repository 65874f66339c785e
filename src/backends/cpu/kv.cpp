#include "backends/cpu/kv.h"

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::cpu {

KvPools::Pool KvPools::layout(const KvGroup& group, KvType type) {
  static_assert(kPageTokens == kLanes);
  Pool pool{.group = group};
  auto head_dim = static_cast<size_t>(group.head_dim), v_stride = round_up<size_t>(head_dim, 16);
  size_t element = 0, scale_bytes = 0;
  switch (type) {
    case KvType::kF32:
      pool.format = KvFormat::kF32, element = 4;
      break;
    case KvType::kF16:
      pool.format = KvFormat::kF16, element = 2;
      break;
    case KvType::kQ8:
      pool.format = KvFormat::kQ8, element = 1;
      scale_bytes = static_cast<size_t>(kv_scale_blocks(group.head_dim)) * kLanes * 2;
      break;
  }
  pool.k_bytes = round_up<size_t>(head_dim * kLanes * element + scale_bytes, 64);
  pool.head_bytes = pool.k_bytes + round_up<size_t>(v_stride * kLanes * element + scale_bytes, 64);
  pool.page_bytes = pool.head_bytes * static_cast<size_t>(group.kv_heads);
  return pool;
}

size_t KvPools::page_bytes(const KvGroup& group, KvType type) {
  return layout(group, type).page_bytes * static_cast<size_t>(group.layers);
}

Result<KvPools> KvPools::allocate(std::vector<KvGroup> groups, KvType type, const std::vector<int64_t>& pages) {
  HEARTH_CHECK(groups.size() == pages.size(), "{} KV groups, {} page counts", groups.size(), pages.size());
  KvPools pools;
  for (size_t i = 0; i < groups.size(); ++i) {
    Pool pool = layout(groups[i], type);
    pool.pages = pages[i];
    size_t bytes = pool.page_bytes * static_cast<size_t>(groups[i].layers) * static_cast<size_t>(pages[i]);
    HEARTH_ASSIGN(pool.memory, Buffer::allocate(bytes, true, "keys and values"));
    pools.pools_.push_back(std::move(pool));
  }
  return pools;
}

std::span<std::byte> KvPools::page(int32_t group, int32_t page) const {
  const Pool& pool = pools_[static_cast<size_t>(group)];
  HEARTH_CHECK(page >= 0 && page < pool.pages, "page {} of {}", page, pool.pages);
  size_t bytes = pool.page_bytes * static_cast<size_t>(pool.group.layers);
  return {pool.memory.data() + bytes * static_cast<size_t>(page), bytes};
}

KvView KvPools::view(int32_t group, int64_t layer, int64_t kv_head, const int32_t* pages) const {
  const Pool& pool = pools_[static_cast<size_t>(group)];
  size_t offset = static_cast<size_t>(layer) * pool.page_bytes + static_cast<size_t>(kv_head) * pool.head_bytes;
  return {.base = reinterpret_cast<uint8_t*>(pool.memory.data() + offset),
          .page_stride_bytes = pool.page_bytes * static_cast<size_t>(pool.group.layers),
          .v_offset_bytes = pool.k_bytes,
          .pages = pages,
          .head_dim = pool.group.head_dim,
          .v_stride = round_up<int64_t>(pool.group.head_dim, 16),
          .format = pool.format};
}

}  // namespace hearth::cpu
