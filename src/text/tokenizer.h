// Text to token ids and back, for the vocabularies of vocab.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/special_matcher.h"
#include "text/tokenizer_model.h"
#include "text/vocab.h"

namespace hearth {

struct EncodeOptions {
  bool parse_special = false;  // control tokens form where their text stands; for trusted text only
  bool add_special = false;    // add BOS and EOS as the vocabulary asks, unless the ids begin or end with them already
};

// A stretch of a rendered chat template. Template text is trusted: its special tokens form. Text that came from a user,
// a tool or a file is not: whatever it spells stays ordinary text.
struct TextSegment {
  std::string_view text;
  bool trusted = false;
};

struct SegmentOptions {
  bool add_special = false;
  // Untrusted text does not form user-defined tokens such as <tool_call> or <think> either, except those without a
  // meaning in a conversation (white space, single characters, HTML tags). The originals do form them; the ids differ
  // from theirs only where untrusted text spells such a token, and there the model sees text instead of structure.
  bool strict = true;
};

struct DecodeOptions {
  bool special = false;  // print control tokens too
  // Drop the space that encoding put in front (kSentencePiece only). Off for text that continues other text.
  bool strip_space_prefix = true;
};

// Const use from any number of threads.
class Tokenizer {
 public:
  // kUnsupported for vocabularies whose algorithm is not here (unigram, WordPiece, RWKV, PLaMo-2) or that have none.
  static Result<std::unique_ptr<const Tokenizer>> create(Vocab vocab);

  // Ids of one text as Hugging Face gives them, also in that user-defined tokens form wherever their text stands.
  // Invalid UTF-8 is encoded byte by byte where the vocabulary can. Never fails.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Ids of the segments' joined text. Segment borders do not separate: ordinary tokens go across them, as if the text
  // had been one. A special token forms only if every byte of it lies in segments that allow it.
  std::vector<int32_t> encode(std::span<const TextSegment> segments, const SegmentOptions& options = {}) const;

  // The bytes that a token stands for, also for control tokens (their text); part of a character is possible. Empty for
  // ids outside of the vocabulary and for tokens that print nothing.
  std::string_view piece(int32_t id) const;

  // True for tokens that output hides: control and unknown ones.
  bool is_hidden(int32_t id) const;

  // True for tokens that only trusted text forms: control and unknown ones, and user-defined ones with a meaning in a
  // conversation.
  bool is_special(int32_t id) const;

  // The pieces joined: bytes, valid UTF-8 only if the ids are whole characters (stream_decoder.h repairs).
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  bool is_end_of_generation(int32_t id) const { return vocab_.is_end_of_generation(id); }

  // The id of the added token with exactly this text, such as "<think>"; -1 if there is none.
  int32_t find_special(std::string_view text) const;

  const Vocab& vocab() const { return vocab_; }

 private:
  // Text up to `end` may form special tokens up to `level`.
  struct LevelRun {
    size_t end;
    SpecialLevel level;
  };

  explicit Tokenizer(Vocab vocab);
  std::vector<int32_t> encode_runs(std::string_view text, std::span<const LevelRun> runs, bool add_special) const;

  Vocab vocab_;
  SpecialMatcher specials_;
  std::unique_ptr<const TokenizerModel> model_;
  std::string piece_bytes_;           // all pieces in a row
  std::vector<uint64_t> piece_ends_;  // where the piece of each id ends in it
};

}  // namespace hearth
