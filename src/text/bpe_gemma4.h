// BPE as Gemma 4 uses it: over characters of text whose spaces are U+2581, with <0xXX> tokens for what is left over.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "text/bpe.h"
#include "text/tokenizer_model.h"
#include "text/vocab.h"

namespace hearth {

// The tokens <0x00> to <0xFF> of a vocabulary, -1 where it has none.
std::array<int32_t, 256> find_byte_tokens(const Vocab& vocab);

// Appends `text` with every space replaced by U+2581.
void append_escaped_spaces(std::string_view text, std::string& out);

// The end of the word that starts at `start` in escaped text: up to the next U+2581 that follows another character.
size_t escaped_word_end(std::string_view escaped, size_t start);

// True when no ordinary token goes across such a word boundary, so that words can be encoded one by one.
bool words_are_independent(const Vocab& vocab);

class Gemma4Model final : public TokenizerModel {
 public:
  static std::unique_ptr<Gemma4Model> create(const Vocab& vocab, std::vector<std::string>& warnings);

  void encode(std::string_view text, bool opens, EncodeScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  Gemma4Model(const Vocab& vocab, VocabIndex index, MergeTable merges);
  void encode_word(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& out) const;
  void merge(std::string_view word, MergeScratch& scratch) const;

  VocabIndex index_;  // escaped text -> id, of tokens that merging may form
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_;
  WholeTokens whole_;
  int32_t unknown_;
  bool independent_words_;
};

}  // namespace hearth
