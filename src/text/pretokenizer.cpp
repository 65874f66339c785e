#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"

#include <pcre2.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace hearth {
namespace {

// Pieces of patterns. Non-ASCII ranges are written as \x{...} escapes, because tools that normalize source text turn
// some of these characters into others.
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define LLAMA3(digits, spaces) \
  CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|)" spaces
// The two-form word of o200k: capitals then small letters, with letters of neither case on both sides.
#define CASED(upper, lower, contraction, digits, tail)                                                             \
  R"([^\r\n\p{L}\p{N}]?)" upper "*" lower "+" contraction R"(|[^\r\n\p{L}\p{N}]?)" upper "+" lower "*" contraction \
  "|" digits R"(| ?[^\s\p{L}\p{N}]+)" tail "*|" SPACES
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
// The same two classes without Han, as complements: PCRE2 10.42 has no set intersection, and a group with a look-ahead
// for each letter would need memory in proportion to the length of a word.
#define UPPER_NOT_HAN R"([^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
#define LOWER_NOT_HAN R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
#define DEEPSEEK3_WORDS \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES
#define DEEPSEEK_CJK R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"
// Letters with case as deepseek-llm lists them.
#define DEEPSEEK_LETTERS                                                                                              \
  R"([A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"             \
  R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})" \
  R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"               \
  R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"         \
  R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"  \
  R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})" \
  R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"  \
  R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"   \
  R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"           \
  R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"         \
  R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"   \
  R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}])"

const std::vector<PretokenizerInfo>& table() {
  static const std::vector<PretokenizerInfo> kTable = {
      {.names = {"gpt-2", "jais", "trillion", "granite-docling", "phi-2", "jina-es", "jina-de", "jina-v1-en",
                 "jina-v2-es", "jina-v2-de", "jina-v2-code", "gigachat", "roberta-bpe", "a.x-4.0", "mellum"},
       .steps = {{GPT2}}},
      {.names = {"mpt", "olmo", "modern-bert"}, .steps = {{GPT2}}, .nfc = true},  // the tokenizer of GPT-NeoX
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "laguna",
                 "jina-v5-nano"},
       .steps = {{LLAMA3(R"(\p{N}{1,3})", SPACES)}},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"glm4", "chatglm-bpe", "dbrx", "smaug-bpe"}, .steps = {{LLAMA3(R"(\p{N}{1,3})", SPACES)}}},
      {.names = {"qwen2"}, .steps = {{LLAMA3(R"(\p{N})", SPACES)}}, .nfc = true},
      {.names = {"deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "solar-open", "kormo", "openpangu", "f2llmv2",
                 "grok-2"},
       .steps = {{LLAMA3(R"(\p{N})", SPACES)}}},
      // Hugging Face's class for Qwen3.5 normalizes to NFC as for Qwen2; the published test vectors of this row have
      // decomposed text and are not normalized. The vectors decide.
      {.names = {"qwen35"},
       .steps = {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES}}},
      {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       .steps = {{R"(\p{N})"}, {GPT2}}},
      {.names = {"command-r", "cohere2_moe"}, .steps = {{R"(\p{N})"}, {GPT2}}, .nfc = true},
      {.names = {"deepseek-llm"},
       .steps = {{R"([\r\n])"},
                 {R"(\s?)" DEEPSEEK_LETTERS "+"},
                 {R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)"},
                 // \s+$ of the original; the look-behind keeps a long run of spaces inside the text linear.
                 {R"((?<!\s)\s++\z)"},
                 {DEEPSEEK_CJK},
                 {R"(\p{N}+)"}}},
      {.names = {"deepseek-coder"},
       .steps = {{R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {DEEPSEEK_CJK}, {R"(\p{N})"}}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       .steps = {{R"(\p{N}{1,3})"}, {R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"}, {DEEPSEEK3_WORDS}}},
      {.names = {"gpt-4o", "llama4", "kanana2", "minimax-m2"},
       .steps = {{CASED(UPPER, LOWER, CONTRACTION "?", R"(\p{N}{1,3})", R"([\r\n/])")}}},
      {.names = {"tekken"},
       .steps = {{CASED(UPPER, LOWER, "", R"(\p{N})", R"([\r\n/])")}},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"kimi-k2"},
       .steps = {{R"([\p{sc:Han}]+|)" CASED(UPPER_NOT_HAN, LOWER_NOT_HAN, CONTRACTION "?", R"(\p{N}{1,3})",
                                            R"([\r\n])")}}},
      {.names = {"falcon"}, .steps = {{R"([\p{P}$+<=>^~|`]+)"}, {GPT2}, {"[0-9][0-9][0-9]"}}},
      {.names = {"tiny_aya"},
       // \d{1,3}(?=(?:\d{3})*\b) of the original.
       .steps = {{R"((?<!\p{Nd})\p{Nd}++(?![\p{L}\p{M}\p{Nl}\p{Pc}]))", true},
                 {CASED(UPPER, LOWER, CONTRACTION "?", R"(\p{N}{1,3})", R"([\r\n/])")}}},
      // (?=(\d{3})+(?!\d)) of the original.
      {.names = {"superbpe"}, .steps = {{R"(\p{N}+)"}, {R"(\p{Nd}++)", true}}},
      // The look-behind is not in the original. It spares a look for line ends in each of the pieces that a long run of
      // spaces is cut into: the first look has said that there are none.
      {.names = {"jais-2"},
       .steps = {{LLAMA3(
           R"(\p{N}{1,3})",
           R"((?<![^\S\r\n])\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|)"
           R"(\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})")}}},
      {.names = {"afmoe"},
       .steps = {{R"(\p{Nd}++)", true},
                 {R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F})"
                  R"(\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F})"
                  R"(\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)"},
                 {DEEPSEEK3_WORDS}}},
      {.names = {"chameleon"},
       .steps = {{"<sentinel:[0-9]+>"},
                 {"(?:IMGIMG)(?:[A-I]{1,4})Z"},
                 {R"([\t\n]|    |  )"},
                 {R"(\p{N})"},
                 {R"([\p{P}!-/:-@\[-`{-~])"},
                 {GPT2}},
       .add_bos = true},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
       .steps = {{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
                  R"(\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {.names = {"seed-coder"},
       .steps = {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES}}},
      {.names = {"exaone-moe"},
       // Possessive where the original is greedy: the same matches, without memory for every letter.
       .steps = {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)"
                              R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {.names = {"youtu"},
       .steps =
           {{R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|)"
             R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F})"
             R"(\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"},
            {CASED(UPPER, LOWER, CONTRACTION "?", R"(\p{N})", R"([\r\n/])")}},
       .ignore_merges = true},
      {.names = {"poro-chat", "bloom", "gpt3-finnish"},
       .steps = {{R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)"}}},
      {.names = {"viking"},
       .steps = {{R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)"}, {R"(\p{N})"}}},
      {.names = {"default"}, .steps = {{R"([\p{P}$+<=>^~|]+)"}, {GPT2}, {R"(\p{N}+)"}, {"[0-9][0-9][0-9]"}}},
  };
  return kTable;
}

// PCRE2's \s includes U+180E, which is no White_Space any more.
std::string with_white_space(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '\\') {
      out += pattern[i];
    } else if (next == 's' || next == 'S') {
      out += next == 's' ? R"(\p{wspace})" : R"(\P{wspace})";
      ++i;
    } else {
      out.append(pattern.substr(i, 2));
      ++i;
    }
  }
  return out;
}

std::string pcre_message(int code) {
  PCRE2_UCHAR8 buffer[128] = {};
  pcre2_get_error_message(code, buffer, std::size(buffer));
  return reinterpret_cast<const char*>(buffer);
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

// The end offsets of a run of digits of which each character starts at one of `starts`, cut in threes from the right.
void push_threes(std::string_view run, size_t offset, std::vector<uint32_t>& ends) {
  int64_t digits = std::count_if(run.begin(), run.end(), [](char c) { return (c & 0xC0) != 0x80; });
  int64_t seen = 0;
  for (size_t i = 1; i < run.size(); ++i) {
    if ((run[i] & 0xC0) == 0x80) continue;
    ++seen;
    if ((digits - seen) % 3 == 0) ends.push_back(static_cast<uint32_t>(offset + i));
  }
  ends.push_back(static_cast<uint32_t>(offset + run.size()));
}

}  // namespace

const PretokenizerInfo* find_pretokenizer(std::string_view name) {
  for (const PretokenizerInfo& info : table()) {
    if (std::find(info.names.begin(), info.names.end(), name) != info.names.end()) return &info;
  }
  return nullptr;
}

std::vector<std::string_view> pretokenizer_names() {
  std::vector<std::string_view> names;
  for (const PretokenizerInfo& info : table()) names.insert(names.end(), info.names.begin(), info.names.end());
  std::sort(names.begin(), names.end());
  return names;
}

struct Pretokenizer::Step {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool jit = false;
  bool in_threes = false;
};

Pretokenizer::Pretokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}
Pretokenizer::~Pretokenizer() = default;

Result<std::unique_ptr<const Pretokenizer>> Pretokenizer::create(std::span<const PretokenizerStep> steps) {
  std::vector<Step> compiled;
  for (const PretokenizerStep& step : steps) {
    std::string pattern = with_white_space(step.pattern);
    int code = 0;
    PCRE2_SIZE offset = 0;
    Step& out = compiled.emplace_back();
    out.in_threes = step.in_threes;
    out.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &code, &offset, nullptr));
    if (!out.code) {
      return fail(ErrorCode::kInternal, "pre-tokenizer pattern {}: {} at offset {}; this needs PCRE2 10.40 or later",
                  step.pattern, pcre_message(code), offset);
    }
    // Without executable memory (a hardened kernel) there is no JIT; matching then is slower, not different.
    out.jit = pcre2_jit_compile(out.code.get(), PCRE2_JIT_COMPLETE) == 0;
  }
  return std::unique_ptr<const Pretokenizer>(new Pretokenizer(std::move(compiled)));
}

void Pretokenizer::split(std::string_view text, std::vector<uint32_t>& ends) const {
  HEARTH_CHECK(text.size() <= UINT32_MAX, "pre-tokenizer text of {} bytes", text.size());
  ends.clear();
  // Runs of valid UTF-8 and of invalid bytes in turn; only the former go to the patterns.
  std::vector<std::pair<uint32_t, bool>> runs;
  for (size_t pos = 0; pos < text.size();) {
    size_t valid = valid_utf8_prefix(text.substr(pos));
    pos += valid;
    if (valid) runs.emplace_back(static_cast<uint32_t>(pos), true);
    size_t invalid_from = pos;
    for (Utf8Char c; pos < text.size() && !(c = read_utf8(text, pos)).valid;) pos += c.length;
    if (pos > invalid_from) runs.emplace_back(static_cast<uint32_t>(pos), false);
  }
  if (runs.empty()) return;

  std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  HEARTH_CHECK(match != nullptr, "no memory for a match");
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.get());
  std::vector<uint32_t> input;
  size_t run = 0;
  size_t run_start = 0;
  std::vector<uint32_t> run_ends;
  for (; run < runs.size(); run_start = runs[run++].first) {
    if (!runs[run].second) {
      ends.push_back(runs[run].first);
      continue;
    }
    run_ends.assign(1, runs[run].first);
    for (const Step& step : steps_) {
      input.swap(run_ends);
      run_ends.clear();
      size_t start = run_start;
      for (uint32_t end : input) {
        auto subject = reinterpret_cast<PCRE2_SPTR>(text.data() + start);
        size_t length = end - start;
        size_t pos = 0;
        while (pos < length) {
          int rc = step.jit
                       ? pcre2_jit_match(step.code.get(), subject, length, pos, 0, match.get(), nullptr)
                       : pcre2_match(step.code.get(), subject, length, pos, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
          // Besides "no match" only resource limits are possible, which no pattern of the table reaches; the rest of
          // the piece then stays whole, so that the text is still encoded.
          if (rc < 0 || found[1] <= pos) break;
          if (found[0] > pos) run_ends.push_back(static_cast<uint32_t>(start + found[0]));
          if (step.in_threes) {
            push_threes(text.substr(start + found[0], found[1] - found[0]), start + found[0], run_ends);
          } else {
            run_ends.push_back(static_cast<uint32_t>(start + found[1]));
          }
          pos = found[1];
        }
        if (pos < length) run_ends.push_back(end);
        start = end;
      }
    }
    ends.insert(ends.end(), run_ends.begin(), run_ends.end());
  }
}

}  // namespace hearth
