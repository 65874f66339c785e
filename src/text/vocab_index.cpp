#include "text/vocab_index.h"

#include <bit>
#include <functional>

#include "base/check.h"

namespace hearth {
namespace {

uint32_t hash_of(std::string_view text) {
  size_t h = std::hash<std::string_view>{}(text);
  return static_cast<uint32_t>(h ^ h >> 32);
}

}  // namespace

VocabIndex::VocabIndex(size_t expected_entries) : slots_(std::bit_ceil(expected_entries * 2 + 2)) {}

size_t VocabIndex::slot_of(std::string_view text, uint32_t hash) const {
  size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id < 0) return i;
    if (slot.hash == hash && std::string_view(bytes_.data() + slot.offset, slot.length) == text) return i;
  }
}

void VocabIndex::insert(std::string_view text, int32_t id) {
  HEARTH_CHECK(id >= 0, "id {}", id);
  uint32_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id >= 0) return;
  slot = {hash, id, bytes_.size(), static_cast<uint32_t>(text.size())};
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  max_bytes_ = std::max(max_bytes_, text.size());
}

int32_t VocabIndex::find(std::string_view text) const {
  if (text.size() > max_bytes_) return -1;
  return slots_[slot_of(text, hash_of(text))].id;
}

}  // namespace hearth
