// A hash table from byte strings to token ids, built once and then only read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth {

class VocabIndex {
 public:
  explicit VocabIndex(size_t expected_entries);

  // Keeps the first id of a repeated text. The text is copied; all texts together stay below 4 GiB (read_vocab checks).
  void insert(std::string_view text, int32_t id);

  // -1 when the text is not there.
  int32_t find(std::string_view text) const;

  size_t max_bytes() const { return max_bytes_; }  // of the longest text

 private:
  // 16 bytes, so that a lookup touches one line of the table and one of the texts.
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;  // -1 = empty
    uint32_t offset = 0, length = 0;
  };
  size_t slot_of(std::string_view text, uint32_t hash) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::vector<char> bytes_;
  size_t max_bytes_ = 0;
};

}  // namespace hearth
