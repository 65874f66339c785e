// The vocabulary of a model file: tokens, their types and the ids with a role, checked and patched, but not yet indexed
// for encoding (that is tokenizer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/metadata.h"

namespace hearth {

// The algorithm, from tokenizer.ggml.model.
enum class VocabKind {
  kBytePair,       // "gpt2": byte-level BPE after a pre-tokenizer
  kGemma4,         // "gemma4": BPE over characters with spaces as U+2581 and <0xXX> byte tokens
  kSentencePiece,  // "llama": greedy merges by score, <0xXX> byte tokens
  kUnigram,        // "t5"
  kWordPiece,      // "bert"
  kRwkv,           // "rwkv"
  kPlamo2,         // "plamo2"
  kNone,           // "none", "no_vocab": ids only
};

// The numbers of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kUndefined = 0,    // encodes like a normal token, prints nothing
  kNormal = 1,       //
  kUnknown = 2,      // like control
  kControl = 3,      // formed in trusted text only, hidden in output
  kUserDefined = 4,  // an added token that is not hidden; its text is stored raw
  kUnused = 5,       // never formed, prints nothing
  kByte = 6,         // "<0xXX>": one raw byte
};

// White space next to a special token that its match takes in (Hugging Face's lstrip and rstrip).
struct TokenStrip {
  bool left = false, right = false;
};

struct Vocab {
  VocabKind kind = VocabKind::kNone;
  std::string model;  // tokenizer.ggml.model
  std::string pre;    // name of a row of pretokenizer.h; empty where there is no pre-tokenizer

  std::vector<std::string> tokens;  // by id, spelled as in the file; never empty strings, each at most 64 KiB
  std::vector<TokenType> types;     // as many as tokens
  std::vector<TokenStrip> strips;   // as many as tokens
  std::vector<float> scores;        // as many as tokens, none of them NaN; or empty
  std::vector<std::string> merges;  // "left right" in order of rank; or empty

  // -1 = the vocabulary has none. Every other value is below size().
  int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, padding = -1, separator = -1, mask = -1;
  int32_t fim_prefix = -1, fim_suffix = -1, fim_middle = -1, fim_padding = -1, fim_repository = -1, fim_file = -1;
  std::vector<int32_t> end_of_generation;  // ascending; the model's turn ends with any of these

  bool add_bos = false, add_eos = false, add_separator = false;
  bool add_space_prefix = false;  // kSentencePiece: a text begins with a space that its source does not have
  bool ignore_merges = false;     // kBytePair: a piece that is a token is that token, whatever the merges say
  bool nfc = false;               // kBytePair: the original tokenizer applies NFC first

  // What a user should hear about this file, one sentence each: a missing pre-tokenizer name, changed token types ...
  std::vector<std::string> warnings;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  bool is_end_of_generation(int32_t id) const;
};

// The space of SentencePiece vocabularies.
inline constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

// The value of "<0xXX>", or -1 when the text is anything else.
int byte_token_value(std::string_view text);

// Reads the keys tokenizer.ggml.*. kInvalidInput: arrays of wrong lengths or types, ids outside of the vocabulary,
// token texts over 64 KiB, malformed byte tokens or merges. kUnsupported: a tokenizer or pre-tokenizer nobody here
// knows; the message lists the known ones. A repeated token text is fine: the first id encodes, every id decodes.
Result<Vocab> read_vocab(const Metadata& metadata);

}  // namespace hearth
