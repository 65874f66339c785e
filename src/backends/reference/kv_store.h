// The KV pages of a reference model: f32 storage in which every value has gone through the type of the cache.
// Hostile on purpose: pages lie in a random order, and what was not written, or was written for positions that a
// sequence no longer has, is NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/backend.h"

namespace hearth::reference {

// Bytes of one page of `group` with all its layers, keys and values; f32 whatever the type.
size_t kv_page_bytes(const KvGroup& group);

class KvStore {
 public:
  // kUnsupported when the type cannot hold heads of this size.
  static Result<KvStore> create(const KvGroup& group, KvType type, int64_t pages);

  // Keys or values of the position whose page and place in it are given, all KV heads: [kv_heads, head_dim].
  std::span<const float> key(int64_t layer, int32_t page, int64_t slot) const { return entry(layer, 0, page, slot); }
  std::span<const float> value(int64_t layer, int32_t page, int64_t slot) const { return entry(layer, 1, page, slot); }

  // Writes one position, rounded to the type of the cache. The rest of the page becomes NaN: a sequence appends, so
  // whatever follows in its page is left from a longer past.
  void write(int64_t layer, int32_t page, int64_t slot, std::span<const float> key, std::span<const float> value);

  // A whole page.
  std::span<float> page(int32_t page);

  int64_t pages() const { return static_cast<int64_t>(place_.size()); }

 private:
  KvStore() = default;
  size_t offset(int64_t layer, int which, int32_t page, int64_t slot) const;
  std::span<const float> entry(int64_t layer, int which, int32_t page, int64_t slot) const {
    return {data_.data() + offset(layer, which, page, slot), static_cast<size_t>(width_)};
  }

  KvType type_ = KvType::kF32;
  int64_t layers_ = 0;
  int64_t width_ = 0;           // kv_heads * head_dim
  std::vector<int32_t> place_;  // where a physical page lies
  std::vector<float> data_;     // [place, layer, key or value, slot, width]
};

}  // namespace hearth::reference
