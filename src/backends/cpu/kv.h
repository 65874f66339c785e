// Pages of keys and values in host memory: for each KV group one pool, [page][layer][kv head][K block, V block]. All
// layers of a page lie together, so that a few tokens take a few huge pages and not one for each layer.
#pragma once

#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/memory.h"

namespace hearth::cpu {

class KvPools {
 public:
  // Bytes of one page in all layers of a group.
  static size_t page_bytes(const KvGroup& group, KvType type);

  static Result<KvPools> allocate(std::vector<KvGroup> groups, KvType type, const std::vector<int64_t>& pages);

  // The pages of a sequence with this page table, as one kv head of one layer sees them.
  KvView view(int32_t group, int64_t layer, int64_t kv_head, const int32_t* pages) const;
  // Most tokens that a sequence can have in this group.
  int64_t capacity_tokens(int32_t group) const { return pools_[static_cast<size_t>(group)].pages * kPageTokens; }
  // All layers of a page.
  std::span<std::byte> page(int32_t group, int32_t page) const;
  const KvGroup& group(int32_t group) const { return pools_[static_cast<size_t>(group)].group; }
  KvFormat format(int32_t group) const { return pools_[static_cast<size_t>(group)].format; }

 private:
  struct Pool {
    KvGroup group;
    int64_t pages = 0;
    KvFormat format = KvFormat::kF16;
    size_t head_bytes = 0;  // K and V block of one kv head
    size_t k_bytes = 0;
    size_t page_bytes = 0;  // in one layer
    Buffer memory;
  };
  static Pool layout(const KvGroup& group, KvType type);
  std::vector<Pool> pools_;
};

}  // namespace hearth::cpu
