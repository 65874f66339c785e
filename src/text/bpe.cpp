#include "text/bpe.h"

#include <bit>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace hearth {
namespace {

// Code point -> byte for U+0000 ... U+0143; -1 where no byte maps.
constexpr std::array<int16_t, 324> kByteOfCodePoint = [] {
  std::array<int16_t, 324> map{};
  map.fill(-1);
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    map[static_cast<size_t>(itself ? b : next++)] = static_cast<int16_t>(b);
  }
  return map;
}();

}  // namespace

std::string bytes_of_mapped(std::string_view text, bool* exact) {
  std::string out;
  if (exact) *exact = true;
  for (size_t pos = 0; pos < text.size();) {
    Utf8Char c = read_utf8(text, pos);
    int16_t byte = c.valid && c.code_point < kByteOfCodePoint.size() ? kByteOfCodePoint[c.code_point] : int16_t{-1};
    if (byte >= 0) {
      out.push_back(static_cast<char>(byte));
    } else {
      out.append(text.substr(pos, c.length));
      if (exact) *exact = false;
    }
    pos += c.length;
  }
  return out;
}

MergeTable::MergeTable(size_t expected_merges)
    : slots_(std::bit_ceil(expected_merges * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

bool MergeTable::insert(int32_t left, int32_t right, uint32_t rank, int32_t id) {
  uint64_t key = key_of(left, right);
  size_t i = slot_of(key);
  while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  if (slots_[i].key == key) return false;
  slots_[i] = {key, {rank, id}};
  return true;
}

MergeTable read_merges(const std::vector<std::string>& merges, const VocabIndex& index,
                       std::vector<std::string>& warnings) {
  MergeTable table(merges.size());
  int64_t unusable = 0, repeated = 0;
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    std::string_view merge = merges[rank];
    size_t space = merge.find(' ', 1);
    HEARTH_CHECK(space != std::string_view::npos, "merge {}", rank);  // read_vocab has seen to it
    std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    int32_t left_id = index.find(left), right_id = index.find(right), id = index.find(joined);
    if (left_id < 0 || right_id < 0 || id < 0) {
      ++unusable;
    } else if (!table.insert(left_id, right_id, static_cast<uint32_t>(rank), id)) {
      ++repeated;
    }
  }
  if (unusable) {
    warnings.push_back(fmt::format("{} of {} merges name texts that are no ordinary tokens; they are ignored", unusable,
                                   merges.size()));
  }
  if (repeated)
    warnings.push_back(fmt::format("{} of {} merges are repeated; the first counts", repeated, merges.size()));
  return table;
}

BpeModel::BpeModel(const Vocab& vocab, std::unique_ptr<const Pretokenizer> pretokenizer, VocabIndex bytes,
                   MergeTable merges)
    : pretokenizer_(std::move(pretokenizer)),
      bytes_(std::move(bytes)),
      merges_(std::move(merges)),
      whole_(vocab.size()),
      unknown_(vocab.unknown),
      ignore_merges_(vocab.ignore_merges),
      nfc_(vocab.nfc) {
  for (size_t b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    byte_ids_[b] = bytes_.find({&c, 1});
  }
}

Result<std::unique_ptr<BpeModel>> BpeModel::create(const Vocab& vocab, std::vector<std::string>& warnings) {
  const PretokenizerInfo* info = find_pretokenizer(vocab.pre);
  if (!info) return fail(ErrorCode::kUnsupported, "pre-tokenizer '{}' is unknown", vocab.pre);
  HEARTH_ASSIGN(auto pretokenizer, Pretokenizer::create(info->steps));
  // Control, user-defined and unused tokens are in neither index, so that no text can merge into one of them.
  VocabIndex spelled(vocab.tokens.size()), bytes(vocab.tokens.size());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    TokenType type = vocab.types[static_cast<size_t>(id)];
    if (type != TokenType::kNormal && type != TokenType::kUndefined) continue;
    const std::string& text = vocab.tokens[static_cast<size_t>(id)];
    bool exact = false;
    std::string raw = bytes_of_mapped(text, &exact);
    if (!exact) continue;
    spelled.insert(text, id);
    bytes.insert(raw, id);
  }
  MergeTable merges = read_merges(vocab.merges, spelled, warnings);
  std::unique_ptr<BpeModel> model(new BpeModel(vocab, std::move(pretokenizer), std::move(bytes), std::move(merges)));
  return model;
}

void BpeModel::encode(std::string_view text, bool, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  if (nfc_) text = to_nfc(text, scratch.normalized);
  pretokenizer_->split(text, scratch.piece_ends);
  size_t start = 0;
  for (uint32_t end : scratch.piece_ends) {
    encode_piece(text.substr(start, end - start), scratch, out);
    start = end;
  }
}

void BpeModel::encode_piece(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  if (int32_t id = bytes_.find(piece); id >= 0) {
    if (ignore_merges_ || whole_.check(id, [&] {
          merge(piece, scratch.merge);
          return scratch.merge.symbols.size() == 1;
        })) {
      out.push_back(id);
      return;
    }
  }
  merge(piece, scratch.merge);
  for (const MergeSymbol& symbol : scratch.merge.symbols) {
    int32_t id = symbol.id >= 0 ? symbol.id : unknown_;
    if (id >= 0) out.push_back(id);
  }
}

void BpeModel::merge(std::string_view piece, MergeScratch& scratch) const {
  scratch.symbols.clear();
  for (size_t i = 0; i < piece.size(); ++i) {
    scratch.symbols.push_back({byte_ids_[static_cast<uint8_t>(piece[i])], static_cast<uint32_t>(i), 1});
  }
  merge_symbols(scratch, [this](const MergeSymbol& l, const MergeSymbol& r) {
    return l.id < 0 || r.id < 0 ? MergeResult{} : merges_.find(l.id, r.id);
  });
}

}  // namespace hearth
