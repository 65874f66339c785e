// SentencePiece BPE (Llama 1 and 2, Mistral v1 to v3, Phi-3, Gemma 1 to 3): greedy merges by score.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer_model.h"
#include "text/vocab.h"
#include "text/vocab_index.h"

namespace hearth {

class SpmModel final : public TokenizerModel {
 public:
  explicit SpmModel(const Vocab& vocab);

  void encode(std::string_view text, bool opens, EncodeScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  void encode_word(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& out) const;
  void merge(std::string_view word, MergeScratch& scratch) const;
  void resegment(std::string_view text, std::vector<int32_t>& out) const;
  void append_bytes(std::string_view text, std::vector<int32_t>& out) const;

  VocabIndex index_;             // escaped text -> id, of normal and unused tokens
  std::vector<uint32_t> ranks_;  // of each id: the higher the score, the lower
  std::vector<bool> unused_;     // takes part in merges, but is taken apart again in the end
  std::array<int32_t, 256> byte_ids_;
  WholeTokens whole_;
  int32_t unknown_;
  bool add_space_prefix_, independent_words_;
};

}  // namespace hearth
