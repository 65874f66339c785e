#include "text/vocab_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace hearth {
namespace {

// Multiply and fold, eight bytes at a time. The table is built from the model file alone, so that a hostile text cannot
// fill it with collisions.
uint32_t hash_of(std::string_view text) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ull;
  uint64_t h = text.size() * kOdd;
  auto mix = [&h](uint64_t word) {
    h = (h ^ word) * kOdd;
    h ^= h >> 29;
  };
  const char* p = text.data();
  size_t left = text.size();
  for (uint64_t word; left >= 8; p += 8, left -= 8) {
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  return static_cast<uint32_t>(h >> 32);
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
  HEARTH_CHECK(bytes_.size() + text.size() <= UINT32_MAX, "{} bytes of texts", bytes_.size());
  slot = {hash, id, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size())};
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  max_bytes_ = std::max(max_bytes_, text.size());
}

int32_t VocabIndex::find(std::string_view text) const {
  if (text.size() > max_bytes_) return -1;
  return slots_[slot_of(text, hash_of(text))].id;
}

}  // namespace hearth
