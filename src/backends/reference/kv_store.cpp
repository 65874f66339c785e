#include "backends/reference/kv_store.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "base/check.h"
#include "quant/encode.h"
#include "quant/half.h"

namespace hearth::reference {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

int64_t page_floats(const KvGroup& group) { return group.layers * 2 * kPageTokens * group.kv_heads * group.head_dim; }

// What the cache type keeps of `values`.
void round_to(KvType type, std::span<const float> values, float* out) {
  switch (type) {
    case KvType::kF32:
      std::ranges::copy(values, out);
      return;
    case KvType::kF16:
      for (size_t i = 0; i < values.size(); ++i) out[i] = f16_to_f32(f32_to_f16(values[i]));
      return;
    case KvType::kQ8: {
      std::vector<std::byte> blocks(row_bytes(FormatId::kQ8_0, static_cast<int64_t>(values.size())));
      encode_row(FormatId::kQ8_0, values, blocks.data());
      decode_row(FormatId::kQ8_0, blocks.data(), {out, values.size()});
      return;
    }
  }
}

}  // namespace

size_t kv_page_bytes(const KvGroup& group) { return static_cast<size_t>(page_floats(group)) * sizeof(float); }

Result<KvStore> KvStore::create(const KvGroup& group, KvType type, int64_t pages) {
  if (type == KvType::kQ8 && group.head_dim % 32) {
    return fail(ErrorCode::kUnsupported,
                "cannot keep heads of {} entries in a q8 cache: its blocks have 32; --kv-type f16 works",
                group.head_dim);
  }
  KvStore store;
  store.type_ = type;
  store.layers_ = group.layers;
  store.width_ = group.kv_heads * group.head_dim;
  store.place_.resize(static_cast<size_t>(pages));
  std::iota(store.place_.begin(), store.place_.end(), 0);
  std::ranges::shuffle(store.place_, std::mt19937(20));
  store.data_.assign(static_cast<size_t>(pages * page_floats(group)), kNan);
  return store;
}

std::span<float> KvStore::page(int32_t page) {
  const size_t floats = data_.size() / place_.size();
  return std::span(data_).subspan(offset(0, 0, page, 0), floats);
}

size_t KvStore::offset(int64_t layer, int which, int32_t page, int64_t slot) const {
  HEARTH_CHECK(page >= 0 && page < pages() && layer >= 0 && layer < layers_ && slot >= 0 && slot < kPageTokens,
               "layer {} of {}, page {} of {}, slot {}", layer, layers_, page, pages(), slot);
  int64_t place = place_[static_cast<size_t>(page)];
  return static_cast<size_t>((((place * layers_ + layer) * 2 + which) * kPageTokens + slot) * width_);
}

void KvStore::write(int64_t layer, int32_t page, int64_t slot, std::span<const float> key,
                    std::span<const float> value) {
  for (int which : {0, 1}) {
    float* entry = data_.data() + offset(layer, which, page, slot);
    round_to(type_, which == 0 ? key : value, entry);
    std::fill_n(entry + width_, (kPageTokens - 1 - slot) * width_, kNan);
  }
}

}  // namespace hearth::reference
