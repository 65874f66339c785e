#include "text/bpe_gemma4.h"

#include "base/utf8.h"

namespace hearth {

std::array<int32_t, 256> find_byte_tokens(const Vocab& vocab) {
  std::array<int32_t, 256> ids;
  ids.fill(-1);
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (vocab.types[static_cast<size_t>(id)] != TokenType::kByte) continue;
    int32_t& slot = ids[static_cast<size_t>(byte_token_value(vocab.tokens[static_cast<size_t>(id)]))];
    if (slot < 0) slot = id;
  }
  return ids;
}

void append_escaped_spaces(std::string_view text, std::string& out) {
  for (size_t pos = 0; pos < text.size();) {
    size_t space = std::min(text.find(' ', pos), text.size());
    out.append(text.substr(pos, space - pos));
    if (space < text.size()) out.append(kEscapedSpace);
    pos = space + 1;
  }
}

size_t escaped_word_end(std::string_view escaped, size_t start) {
  size_t pos = start;
  while (escaped.substr(pos, kEscapedSpace.size()) == kEscapedSpace) pos += kEscapedSpace.size();
  if (pos == escaped.size()) return pos;
  return std::min(escaped.find(kEscapedSpace, pos), escaped.size());
}

bool words_are_independent(const Vocab& vocab) {
  for (int32_t id = 0; id < vocab.size(); ++id) {
    TokenType type = vocab.types[static_cast<size_t>(id)];
    const std::string& text = vocab.tokens[static_cast<size_t>(id)];
    bool ordinary = type == TokenType::kNormal || type == TokenType::kUndefined || type == TokenType::kUnused;
    if (ordinary && escaped_word_end(text, 0) != text.size()) return false;
  }
  return true;
}

Gemma4Model::Gemma4Model(const Vocab& vocab, VocabIndex index, MergeTable merges)
    : index_(std::move(index)),
      merges_(std::move(merges)),
      byte_ids_(find_byte_tokens(vocab)),
      whole_(vocab.size()),
      unknown_(vocab.unknown),
      independent_words_(words_are_independent(vocab)) {}

std::unique_ptr<Gemma4Model> Gemma4Model::create(const Vocab& vocab, std::vector<std::string>& warnings) {
  VocabIndex index(vocab.tokens.size());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    TokenType type = vocab.types[static_cast<size_t>(id)];
    if (type == TokenType::kNormal || type == TokenType::kUndefined)
      index.insert(vocab.tokens[static_cast<size_t>(id)], id);
  }
  MergeTable merges = read_merges(vocab.merges, index, warnings);
  return std::unique_ptr<Gemma4Model>(new Gemma4Model(vocab, std::move(index), std::move(merges)));
}

void Gemma4Model::encode(std::string_view text, bool, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  scratch.escaped.clear();
  append_escaped_spaces(text, scratch.escaped);
  std::string_view escaped = scratch.escaped;
  for (size_t pos = 0; pos < escaped.size();) {
    bool newlines = escaped[pos] == '\n';
    size_t line_end =
        std::min(newlines ? escaped.find_first_not_of('\n', pos) : escaped.find('\n', pos), escaped.size());
    std::string_view line = escaped.substr(pos, line_end - pos);
    pos = line_end;
    if (newlines) {
      if (int32_t id = index_.find(line); id >= 0) {
        out.push_back(id);
        continue;
      }
    }
    for (size_t start = 0; start < line.size();) {
      size_t end = independent_words_ ? escaped_word_end(line, start) : line.size();
      encode_word(line.substr(start, end - start), scratch, out);
      start = end;
    }
  }
}

void Gemma4Model::encode_word(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  if (int32_t id = index_.find(word); id >= 0) {
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
    if (symbol.id >= 0) {
      out.push_back(symbol.id);
      continue;
    }
    for (char c : word.substr(symbol.start, symbol.length)) {
      int32_t id = byte_ids_[static_cast<uint8_t>(c)];
      if (id < 0) id = unknown_;
      if (id >= 0) out.push_back(id);
    }
  }
}

void Gemma4Model::merge(std::string_view word, MergeScratch& scratch) const {
  scratch.symbols.clear();
  for (size_t pos = 0; pos < word.size();) {
    size_t length = read_utf8(word, pos).length;
    scratch.symbols.push_back(
        {index_.find(word.substr(pos, length)), static_cast<uint32_t>(pos), static_cast<uint32_t>(length)});
    pos += length;
  }
  merge_symbols(scratch, [this](const MergeSymbol& l, const MergeSymbol& r) {
    return l.id < 0 || r.id < 0 ? MergeResult{} : merges_.find(l.id, r.id);
  });
}

}  // namespace hearth
