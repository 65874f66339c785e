// Cuts text into the pieces inside which byte-level BPE merges, by the patterns of the original tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth {

// One step takes the pieces of the step before. Every match of the pattern becomes a piece and every gap between
// matches becomes one too (Split with behaviour Isolated). Each piece is matched as a text of its own: look-around
// does not see its neighbours.
struct PretokenizerStep {
  std::string_view pattern;  // PCRE2; \s and \S mean exactly the property White_Space
  // Cuts each match, a run of digits, into groups of three counted from its right end. The originals write this as a
  // look-ahead over the rest of the run, which takes quadratic time.
  bool in_threes = false;
};

// What a value of tokenizer.ggml.pre stands for.
struct PretokenizerInfo {
  std::vector<std::string_view> names;
  std::vector<PretokenizerStep> steps;
  bool ignore_merges = false;
  bool add_bos = false;  // default where the file does not say
  bool nfc = false;      // the original (Hugging Face) tokenizer normalizes to NFC
};

// nullptr for an unknown name.
const PretokenizerInfo* find_pretokenizer(std::string_view name);

// Every name of the table, sorted.
std::vector<std::string_view> pretokenizer_names();

// Compiled steps. Const use from any number of threads.
class Pretokenizer {
 public:
  static Result<std::unique_ptr<const Pretokenizer>> create(std::span<const PretokenizerStep> steps);
  ~Pretokenizer();

  // Replaces `ends` by the end offset of every piece of `text`, ascending; the last is text.size(). Pieces are never
  // empty. Invalid UTF-8 is allowed: a run of invalid bytes is a piece. The text must be below 4 GiB.
  void split(std::string_view text, std::vector<uint32_t>& ends) const;

 private:
  struct Step;
  explicit Pretokenizer(std::vector<Step> steps);
  std::vector<Step> steps_;
};

}  // namespace hearth
