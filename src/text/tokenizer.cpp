#include "text/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/bpe_gemma4.h"
#include "text/spm.h"
#include "text/unicode.h"

namespace hearth {
namespace {

// Offsets inside one stretch of ordinary text are 32 bits wide; escaping spaces makes it up to three times as long.
constexpr size_t kMaxStretchBytes = size_t{1} << 30;

void append_piece(const Vocab& vocab, int32_t id, std::string& out) {
  const std::string& text = vocab.tokens[static_cast<size_t>(id)];
  switch (vocab.types[static_cast<size_t>(id)]) {
    case TokenType::kUndefined:
    case TokenType::kUnused:
      return;
    case TokenType::kByte:
      out.push_back(static_cast<char>(byte_token_value(text)));
      return;
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined:
      out.append(text);
      return;
    case TokenType::kNormal:
      break;
  }
  if (vocab.kind == VocabKind::kBytePair) {
    out.append(bytes_of_mapped(text));
    return;
  }
  for (size_t pos = 0; pos < text.size();) {
    size_t space = std::min(text.find(kEscapedSpace, pos), text.size());
    out.append(text, pos, space - pos);
    if (space < text.size()) out.push_back(' ');
    pos = space + kEscapedSpace.size();
  }
}

// The white space that ends at `end` begins here, not before `begin`.
size_t strip_left(std::string_view text, size_t begin, size_t end) {
  while (end > begin) {
    size_t pos = end - 1;
    while (pos > begin && (text[pos] & 0xC0) == 0x80) --pos;
    Utf8Char c = read_utf8(text, pos);
    if (!c.valid || pos + c.length != end || !is_white_space(c.code_point)) break;
    end = pos;
  }
  return end;
}

size_t strip_right(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    Utf8Char c = read_utf8(text, pos);
    if (!c.valid || !is_white_space(c.code_point)) break;
    pos += c.length;
  }
  return pos;
}

}  // namespace

Tokenizer::Tokenizer(Vocab vocab) : vocab_(std::move(vocab)), specials_(vocab_) {
  piece_ends_.reserve(vocab_.tokens.size());
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    append_piece(vocab_, id, piece_bytes_);
    piece_ends_.push_back(piece_bytes_.size());
  }
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create(Vocab vocab) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocab)));
  Vocab& v = tokenizer->vocab_;
  switch (v.kind) {
    case VocabKind::kBytePair: {
      HEARTH_ASSIGN(tokenizer->model_, BpeModel::create(v, v.warnings));
      break;
    }
    case VocabKind::kGemma4:
      tokenizer->model_ = Gemma4Model::create(v, v.warnings);
      break;
    case VocabKind::kSentencePiece:
      tokenizer->model_ = std::make_unique<SpmModel>(v);
      break;
    case VocabKind::kUnigram:
    case VocabKind::kWordPiece:
    case VocabKind::kRwkv:
    case VocabKind::kPlamo2:
      return fail(ErrorCode::kUnsupported,
                  "the model's tokenizer is of type '{}', which is not supported; gpt2, llama and gemma4 are", v.model);
    case VocabKind::kNone:
      return fail(ErrorCode::kUnsupported, "the model file has no tokenizer (type '{}'): it takes token ids only",
                  v.model);
  }
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  LevelRun run{text.size(), options.parse_special ? SpecialLevel::kAll : SpecialLevel::kUserDefined};
  return encode_runs(text, {&run, 1}, options.add_special);
}

std::vector<int32_t> Tokenizer::encode(std::span<const TextSegment> segments, const SegmentOptions& options) const {
  std::string text;
  std::vector<LevelRun> runs;
  for (const TextSegment& segment : segments) {
    if (segment.text.empty()) continue;
    text.append(segment.text);
    SpecialLevel level = segment.trusted  ? SpecialLevel::kAll
                         : options.strict ? SpecialLevel::kHarmless
                                          : SpecialLevel::kUserDefined;
    if (runs.empty() || runs.back().level != level) runs.push_back({0, level});
    runs.back().end = text.size();
  }
  return encode_runs(text, runs, options.add_special);
}

std::vector<int32_t> Tokenizer::encode_runs(std::string_view text, std::span<const LevelRun> runs,
                                            bool add_special) const {
  std::vector<int32_t> out;
  EncodeScratch scratch;
  bool opens = true;  // at the start or right after a special token
  auto encode_ordinary = [&](size_t begin, size_t end) {
    while (begin < end) {
      size_t size = std::min(end - begin, kMaxStretchBytes);
      model_->encode(text.substr(begin, size), opens, scratch, out);
      opens = false;
      begin += size;
    }
  };

  size_t ordinary_begin = 0;
  size_t run = 0;
  for (size_t pos = 0; (pos = specials_.next_candidate(text, pos)) < text.size();) {
    while (runs[run].end <= pos) ++run;
    auto match = specials_.longest_at(text, pos, [&](SpecialLevel needed, size_t length) {
      // All runs that the match touches must allow it.
      for (size_t r = run; runs[r].level >= needed; ++r) {
        if (runs[r].end >= pos + length) return true;
      }
      return false;
    });
    if (match.id < 0) {
      ++pos;
      continue;
    }
    TokenStrip strip = vocab_.strips[static_cast<size_t>(match.id)];
    encode_ordinary(ordinary_begin, strip.left ? strip_left(text, ordinary_begin, pos) : pos);
    out.push_back(match.id);
    opens = true;
    pos += match.length;
    if (strip.right) pos = strip_right(text, pos);
    ordinary_begin = pos;
  }
  encode_ordinary(ordinary_begin, text.size());

  if (add_special) {
    if (vocab_.add_bos && vocab_.bos >= 0 && (out.empty() || out.front() != vocab_.bos)) {
      out.insert(out.begin(), vocab_.bos);
    }
    if (vocab_.add_eos && vocab_.eos >= 0 && (out.size() < 2 || out.back() != vocab_.eos)) out.push_back(vocab_.eos);
  }
  return out;
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= vocab_.size()) return {};
  auto i = static_cast<size_t>(id);
  uint64_t begin = i == 0 ? 0 : piece_ends_[i - 1];
  return std::string_view(piece_bytes_).substr(begin, piece_ends_[i] - begin);
}

bool Tokenizer::is_hidden(int32_t id) const {
  if (id < 0 || id >= vocab_.size()) return true;
  TokenType type = vocab_.types[static_cast<size_t>(id)];
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

bool Tokenizer::is_special(int32_t id) const {
  if (id < 0 || id >= vocab_.size()) return false;
  TokenType type = vocab_.types[static_cast<size_t>(id)];
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         (type == TokenType::kUserDefined && !is_harmless_token(piece(id)));
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  std::string out;
  bool first = true;
  for (int32_t id : ids) {
    if (is_hidden(id) && !options.special) continue;
    std::string_view bytes = piece(id);
    bool ordinary = !bytes.empty() && vocab_.types[static_cast<size_t>(id)] == TokenType::kNormal;
    if (first && options.strip_space_prefix && vocab_.add_space_prefix && ordinary && bytes[0] == ' ') {
      bytes.remove_prefix(1);
    }
    first = false;
    out.append(bytes);
  }
  return out;
}

int32_t Tokenizer::find_special(std::string_view text) const {
  if (text.empty()) return -1;
  auto match = specials_.longest_at(text, 0, [&](SpecialLevel, size_t length) { return length == text.size(); });
  return match.id;
}

}  // namespace hearth
