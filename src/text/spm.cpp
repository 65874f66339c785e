#include "text/spm.h"

#include <bit>

#include "text/bpe_gemma4.h"

namespace hearth {
namespace {

// Maps a score (not a NaN) so that a higher one gives a lower number; never MergeResult::kNone.
uint32_t rank_of(float score) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f);             // -0 becomes +0
  uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;  // total order of floats
  return ~ascending;
}

// Length of the character at `pos` by its first byte alone, as SentencePiece has it; clipped to the text.
size_t lead_length(std::string_view text, size_t pos) {
  constexpr uint8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min<size_t>(kLengths[static_cast<uint8_t>(text[pos]) >> 4], text.size() - pos);
}

}  // namespace

SpmModel::SpmModel(const Vocab& vocab)
    : index_(vocab.tokens.size()),
      unused_(vocab.tokens.size(), false),
      byte_ids_(find_byte_tokens(vocab)),
      whole_(vocab.size()),
      unknown_(vocab.unknown),
      add_space_prefix_(vocab.add_space_prefix),
      independent_words_(words_are_independent(vocab)) {
  ranks_.reserve(vocab.tokens.size());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    auto i = static_cast<size_t>(id);
    ranks_.push_back(rank_of(vocab.scores[i]));
    TokenType type = vocab.types[i];
    unused_[i] = type == TokenType::kUnused;
    // Control, user-defined and byte tokens are not in the index, so that no text can merge into one of them.
    if (type == TokenType::kNormal || type == TokenType::kUndefined || unused_[i]) index_.insert(vocab.tokens[i], id);
  }
}

void SpmModel::encode(std::string_view text, bool opens, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  scratch.escaped.clear();
  if (opens && add_space_prefix_) scratch.escaped = kEscapedSpace;
  append_escaped_spaces(text, scratch.escaped);
  std::string_view escaped = scratch.escaped;
  for (size_t start = 0; start < escaped.size();) {
    size_t end = independent_words_ ? escaped_word_end(escaped, start) : escaped.size();
    encode_word(escaped.substr(start, end - start), scratch, out);
    start = end;
  }
}

void SpmModel::encode_word(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  if (int32_t id = index_.find(word); id >= 0 && !unused_[static_cast<size_t>(id)]) {
    if (whole_.check(id, [&] {
          merge(word, scratch.merge);
          return scratch.merge.symbols.size() == 1;
        })) {
      out.push_back(id);
      return;
    }
  }
  merge(word, scratch.merge);
  for (const MergeSymbol& symbol : scratch.merge.symbols) {
    std::string_view text = word.substr(symbol.start, symbol.length);
    int32_t id = symbol.id >= 0 ? symbol.id : index_.find(text);  // a single character has not been looked up yet
    if (id < 0) {
      append_bytes(text, out);
    } else if (unused_[static_cast<size_t>(id)]) {
      resegment(text, out);
    } else {
      out.push_back(id);
    }
  }
}

void SpmModel::merge(std::string_view word, MergeScratch& scratch) const {
  scratch.symbols.clear();
  for (size_t pos = 0; pos < word.size();) {
    size_t length = lead_length(word, pos);
    scratch.symbols.push_back({-1, static_cast<uint32_t>(pos), static_cast<uint32_t>(length)});
    pos += length;
  }
  merge_symbols(scratch, [&](const MergeSymbol& l, const MergeSymbol& r) {
    int32_t id = index_.find(word.substr(l.start, l.length + r.length));
    return id < 0 ? MergeResult{} : MergeResult{ranks_[static_cast<size_t>(id)], id};
  });
}

// An unused token stands for the two symbols it was merged from, and those in turn. They are found by merging its text
// once more with the last merge forbidden. The stack is explicit because such a chain can be as long as the token.
void SpmModel::resegment(std::string_view text, std::vector<int32_t>& out) const {
  MergeScratch scratch;
  std::vector<std::string_view> stack = {text};
  while (!stack.empty()) {
    std::string_view part = stack.back();
    stack.pop_back();
    int32_t id = index_.find(part);
    if (id >= 0 && !unused_[static_cast<size_t>(id)]) {
      out.push_back(id);
      continue;
    }
    scratch.symbols.clear();
    for (size_t pos = 0; pos < part.size(); pos += lead_length(part, pos)) {
      scratch.symbols.push_back({-1, static_cast<uint32_t>(pos), static_cast<uint32_t>(lead_length(part, pos))});
    }
    if (scratch.symbols.size() == 1) {
      append_bytes(part, out);
      continue;
    }
    merge_symbols(scratch, [&](const MergeSymbol& l, const MergeSymbol& r) {
      if (l.length + r.length == part.size()) return MergeResult{};
      int32_t joined = index_.find(part.substr(l.start, l.length + r.length));
      return joined < 0 ? MergeResult{} : MergeResult{ranks_[static_cast<size_t>(joined)], joined};
    });
    for (auto it = scratch.symbols.rbegin(); it != scratch.symbols.rend(); ++it) {
      stack.push_back(part.substr(it->start, it->length));
    }
  }
}

void SpmModel::append_bytes(std::string_view text, std::vector<int32_t>& out) const {
  for (const char& c : text) {
    int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    if (id < 0) id = index_.find({&c, 1});
    if (id < 0) id = unknown_;
    if (id >= 0) out.push_back(id);
  }
}

}  // namespace hearth
