// Byte-level BPE (GPT-2, Llama 3, Qwen and most others), and the merge table it shares with Gemma 4.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_model.h"
#include "text/vocab.h"
#include "text/vocab_index.h"

namespace hearth {

// From a pair of token ids to rank and id of their merge.
class MergeTable {
 public:
  explicit MergeTable(size_t expected_merges);

  // False when the pair has a rank already; the first one stays.
  bool insert(int32_t left, int32_t right, uint32_t rank, int32_t id);

  MergeResult find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].result;
      if (slots_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // the pair (-1, -1)
  struct Slot {
    uint64_t key = kEmpty;
    MergeResult result;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return static_cast<size_t>(key * 0x9E3779B97F4A7C15ull >> shift_); }

  std::vector<Slot> slots_;  // a power of two, at most half full
  int shift_;
};

// Fills a table from merges "left right" whose parts and joined text are tokens of `index`, spelled as in the file.
// Others cannot take part in an encoding and are counted in a warning, as are repeated ones.
MergeTable read_merges(const std::vector<std::string>& merges, const VocabIndex& index,
                       std::vector<std::string>& warnings);

// The bytes behind the characters of a token or merge of a byte-level vocabulary (GPT-2's mapping: printable Latin-1
// for itself, the other 68 bytes as U+0100 and up). A character outside of the mapping stays as it is; `exact`, if
// given, says whether there was none.
std::string bytes_of_mapped(std::string_view text, bool* exact = nullptr);

class BpeModel final : public TokenizerModel {
 public:
  // Appends what is odd about the vocabulary to `warnings`.
  static Result<std::unique_ptr<BpeModel>> create(const Vocab& vocab, std::vector<std::string>& warnings);

  void encode(std::string_view text, bool opens, EncodeScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  BpeModel(const Vocab& vocab, std::unique_ptr<const Pretokenizer> pretokenizer, VocabIndex bytes, MergeTable merges);
  void encode_piece(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const;
  void merge(std::string_view piece, MergeScratch& scratch) const;

  std::unique_ptr<const Pretokenizer> pretokenizer_;
  VocabIndex bytes_;  // raw bytes -> id, of tokens that merging may form
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_;  // -1 = the vocabulary lacks this byte
  WholeTokens whole_;
  int32_t unknown_;
  bool ignore_merges_, nfc_;
};

}  // namespace hearth
