#include "text/vocab.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>

#include "text/pretokenizer.h"

namespace hearth {
namespace {

constexpr size_t kMaxTokenBytes = 64 << 10;
constexpr size_t kMaxAllTokenBytes = size_t{1} << 30;  // offsets into them are 32 bits wide
constexpr int64_t kMaxTokens = 16 << 20;

struct KindName {
  std::string_view name;
  VocabKind kind;
};
constexpr KindName kKinds[] = {
    {"llama", VocabKind::kSentencePiece}, {"gpt2", VocabKind::kBytePair},  {"gemma4", VocabKind::kGemma4},
    {"t5", VocabKind::kUnigram},          {"bert", VocabKind::kWordPiece}, {"rwkv", VocabKind::kRwkv},
    {"plamo2", VocabKind::kPlamo2},       {"none", VocabKind::kNone},      {"no_vocab", VocabKind::kNone},
};

// The pre-tokenizer of architectures that only ever had one, for files that do not say.
constexpr std::pair<std::string_view, std::string_view> kPreOfArchitecture[] = {
    {"llama4", "llama4"},       {"gpt-oss", "gpt-4o"}, {"qwen2", "qwen2"},         {"qwen2moe", "qwen2"},
    {"qwen2vl", "qwen2"},       {"qwen3", "qwen2"},    {"qwen3moe", "qwen2"},      {"qwen35", "qwen35"},
    {"qwen35moe", "qwen35"},    {"gpt2", "gpt-2"},     {"starcoder", "starcoder"}, {"starcoder2", "starcoder"},
    {"command-r", "command-r"}, {"mpt", "mpt"},        {"olmo", "olmo"},           {"bloom", "bloom"},
};

// Texts that give a token its role when no key does; the order decides between several.
constexpr std::string_view kEndOfTurn[] = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",    "<EOT>",      "_<EOT>",  "[EOT]",         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "<end_of_utterance>",
};
constexpr std::string_view kEndOfMessage[] = {"<|eom_id|>"};
constexpr std::string_view kEndOfGeneration[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
};
constexpr std::string_view kFimPrefix[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",    "<\uFF5Cfim\u2581begin\uFF5C>",
    "<PRE>",          "\u2581<PRE>",  "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kFimSuffix[] = {
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",    "<\uFF5Cfim\u2581hole\uFF5C>",
    "<SUF>",          "\u2581<SUF>",  "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kFimMiddle[] = {
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>",    "<\uFF5Cfim\u2581end\uFF5C>",
    "<MID>",          "\u2581<MID>",  "<|code_middle|>", "<|middle|>"};
constexpr std::string_view kFimPadding[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFimRepository[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFimFile[] = {"<|file_sep|>"};

// The reader's state: the vocabulary so far and where each token text is first.
struct Reader {
  const Metadata& metadata;
  Vocab vocab;
  std::unordered_map<std::string_view, int32_t> first_id = {};

  int32_t find(std::string_view text) const {
    auto it = first_id.find(text);
    return it == first_id.end() ? -1 : it->second;
  }
  TokenType& type(int32_t id) { return vocab.types[static_cast<size_t>(id)]; }
  TokenStrip& strip(int32_t id) { return vocab.strips[static_cast<size_t>(id)]; }
  const std::string& text(int32_t id) const { return vocab.tokens[static_cast<size_t>(id)]; }

  Result<void> read_kind();
  Result<void> read_tokens();
  Result<void> read_types();
  Result<void> read_scores_and_merges();
  Result<void> read_pre();
  Result<void> read_special_ids();
  Result<void> read_flags();
  void patch_harmony();
  void find_roles_by_text();
  void collect_end_of_generation();
  void patch_strips();

  // Reads one id. -1 and its unsigned forms mean "none", as some converters write.
  Result<void> read_id(int32_t& id, std::initializer_list<std::string_view> keys);
  void take_role(int32_t& id, std::span<const std::string_view> texts);
  void make_control(int32_t id);
};

Result<void> Reader::read_kind() {
  HEARTH_ASSIGN(std::string_view model, metadata.string("tokenizer.ggml.model"));
  vocab.model = model;
  for (const KindName& k : kKinds) {
    if (k.name == model) {
      vocab.kind = k.kind;
      return {};
    }
  }
  std::vector<std::string_view> names;
  for (const KindName& k : kKinds) names.push_back(k.name);
  return fail(ErrorCode::kUnsupported, "tokenizer.ggml.model is '{}', which is unknown; known are {}", model,
              fmt::join(names, ", "));
}

Result<void> Reader::read_tokens() {
  HEARTH_ASSIGN(std::span<const std::string> tokens, metadata.strings("tokenizer.ggml.tokens"));
  if (tokens.empty() || tokens.size() > static_cast<size_t>(kMaxTokens)) {
    return fail(ErrorCode::kInvalidInput, "tokenizer.ggml.tokens has {} entries; a vocabulary has 1 to {}",
                tokens.size(), kMaxTokens);
  }
  vocab.tokens.assign(tokens.begin(), tokens.end());
  first_id.reserve(tokens.size());
  size_t total_bytes = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    std::string& text = vocab.tokens[id];
    if (text.size() > kMaxTokenBytes) {
      return fail(ErrorCode::kInvalidInput, "token {} has {} bytes; at most {} are allowed", id, text.size(),
                  kMaxTokenBytes);
    }
    total_bytes += text.size();
    if (text.empty()) text = fmt::format("[EMPTY_{}]", id);
    first_id.try_emplace(text, static_cast<int32_t>(id));
  }
  if (total_bytes > kMaxAllTokenBytes) {
    return fail(ErrorCode::kInvalidInput, "the tokens have {} bytes together; at most {} are allowed", total_bytes,
                kMaxAllTokenBytes);
  }
  return {};
}

Result<void> Reader::read_types() {
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  vocab.strips.assign(vocab.tokens.size(), TokenStrip{});
  if (!metadata.contains("tokenizer.ggml.token_type")) {
    if (vocab.kind == VocabKind::kSentencePiece) {
      for (int32_t id = 0; id < vocab.size(); ++id) {
        if (byte_token_value(text(id)) >= 0) type(id) = TokenType::kByte;
      }
    }
    vocab.warnings.push_back(
        "the file has no tokenizer.ggml.token_type: special tokens are recognized by their text only");
    return {};
  }
  HEARTH_ASSIGN(std::span<const int64_t> types, metadata.integers("tokenizer.ggml.token_type"));
  if (types.size() < vocab.tokens.size()) {
    return fail(ErrorCode::kInvalidInput, "tokenizer.ggml.token_type has {} entries for {} tokens", types.size(),
                vocab.tokens.size());
  }
  for (int32_t id = 0; id < vocab.size(); ++id) {
    int64_t value = types[static_cast<size_t>(id)];
    if (value < 0 || value > static_cast<int64_t>(TokenType::kByte)) {
      return fail(ErrorCode::kInvalidInput, "token {} has type {}; known are 0 to 6", id, value);
    }
    type(id) = static_cast<TokenType>(value);
    if (type(id) == TokenType::kByte && byte_token_value(text(id)) < 0) {
      return fail(ErrorCode::kInvalidInput, "token {} is a byte token with the text '{}'; expected <0x00> to <0xFF>",
                  id, text(id));
    }
    if (type(id) == TokenType::kControl && text(id).find("unused") != std::string::npos) type(id) = TokenType::kUnused;
  }
  return {};
}

Result<void> Reader::read_scores_and_merges() {
  if (metadata.contains("tokenizer.ggml.scores")) {
    HEARTH_ASSIGN(std::span<const float> scores, metadata.reals("tokenizer.ggml.scores"));
    if (scores.size() < vocab.tokens.size()) {
      return fail(ErrorCode::kInvalidInput, "tokenizer.ggml.scores has {} entries for {} tokens", scores.size(),
                  vocab.tokens.size());
    }
    vocab.scores.assign(scores.begin(), scores.begin() + static_cast<ptrdiff_t>(vocab.tokens.size()));
    for (size_t id = 0; id < vocab.scores.size(); ++id) {
      if (std::isnan(vocab.scores[id]))
        return fail(ErrorCode::kInvalidInput, "the score of token {} is not a number", id);
    }
  } else if (vocab.kind == VocabKind::kSentencePiece || vocab.kind == VocabKind::kUnigram) {
    return fail(ErrorCode::kInvalidInput, "a '{}' tokenizer needs tokenizer.ggml.scores, which is missing",
                vocab.model);
  }
  if (vocab.kind != VocabKind::kBytePair && vocab.kind != VocabKind::kGemma4) return {};
  HEARTH_ASSIGN(std::span<const std::string> merges, metadata.strings("tokenizer.ggml.merges"));
  if (merges.size() > static_cast<size_t>(kMaxTokens)) {
    return fail(ErrorCode::kInvalidInput, "tokenizer.ggml.merges has {} entries; at most {} are allowed", merges.size(),
                kMaxTokens);
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    size_t space = merges[rank].find(' ', 1);
    if (space == std::string::npos || space + 1 == merges[rank].size()) {
      return fail(ErrorCode::kInvalidInput, "merge {} is '{}'; expected two parts with a space between them", rank,
                  merges[rank]);
    }
  }
  vocab.merges.assign(merges.begin(), merges.end());
  return {};
}

Result<void> Reader::read_pre() {
  if (vocab.kind != VocabKind::kBytePair) return {};
  HEARTH_ASSIGN(std::string_view pre, metadata.string_or("tokenizer.ggml.pre", ""));
  vocab.pre = pre;
  if (pre.empty() || pre == "default") {
    HEARTH_ASSIGN(std::string_view architecture, metadata.string_or("general.architecture", ""));
    std::string_view found = pre.empty() ? "has no tokenizer.ggml.pre" : "says tokenizer.ggml.pre = default";
    vocab.pre = "default";
    for (auto [name, known] : kPreOfArchitecture) {
      if (name == architecture) vocab.pre = known;
    }
    if (vocab.pre == "default") {
      vocab.warnings.push_back(fmt::format(
          "the file {}: the text is cut by a generic rule, and the model's answers are likely worse; convert "
          "the model again with a current converter",
          found));
    } else {
      vocab.warnings.push_back(
          fmt::format("the file {}: '{}' is taken, as {} models have it", found, vocab.pre, architecture));
    }
  }
  const PretokenizerInfo* info = find_pretokenizer(vocab.pre);
  if (!info) {
    return fail(ErrorCode::kUnsupported, "tokenizer.ggml.pre is '{}', which is unknown; known are {}", vocab.pre,
                fmt::join(pretokenizer_names(), ", "));
  }
  vocab.ignore_merges = info->ignore_merges;
  vocab.add_bos = info->add_bos;
  vocab.nfc = info->nfc;
  return {};
}

Result<void> Reader::read_id(int32_t& id, std::initializer_list<std::string_view> keys) {
  for (std::string_view name : keys) {
    std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    if (!metadata.contains(key)) continue;
    HEARTH_ASSIGN(int64_t value, metadata.integer(key));
    if (value == -1 || value == std::numeric_limits<uint32_t>::max()) {
      id = -1;
    } else if (value >= 0 && value < vocab.size()) {
      id = static_cast<int32_t>(value);
    } else if (&id == &vocab.padding) {
      // Common in converted files, and nothing here depends on it.
      id = -1;
      vocab.warnings.push_back(
          fmt::format("{} is {}, outside of the {} tokens; it is ignored", key, value, vocab.size()));
    } else {
      return fail(ErrorCode::kInvalidInput, "{} is {}, but the vocabulary has {} tokens", key, value, vocab.size());
    }
    return {};
  }
  return {};
}

Result<void> Reader::read_special_ids() {
  auto fallback = [&](int32_t& id, int32_t value) { id = value < vocab.size() ? value : -1; };
  if (vocab.kind == VocabKind::kSentencePiece) {
    fallback(vocab.bos, 1);
    fallback(vocab.eos, 2);
    fallback(vocab.unknown, 0);
  } else if (vocab.kind == VocabKind::kUnigram) {
    fallback(vocab.eos, 1);
    fallback(vocab.unknown, 2);
    fallback(vocab.padding, 0);
  } else if (vocab.kind == VocabKind::kWordPiece) {
    fallback(vocab.bos, 101);
    fallback(vocab.unknown, 100);
    fallback(vocab.separator, 102);
    fallback(vocab.padding, 0);
    fallback(vocab.mask, 103);
  } else if (vocab.kind == VocabKind::kPlamo2) {
    fallback(vocab.bos, 1);
    fallback(vocab.eos, 2);
    fallback(vocab.unknown, 0);
    fallback(vocab.padding, 3);
  }
  HEARTH_TRY(read_id(vocab.bos, {"bos", "cls"}));
  HEARTH_TRY(read_id(vocab.eos, {"eos"}));
  HEARTH_TRY(read_id(vocab.eot, {"eot"}));
  HEARTH_TRY(read_id(vocab.eom, {"eom"}));
  HEARTH_TRY(read_id(vocab.unknown, {"unknown"}));
  HEARTH_TRY(read_id(vocab.padding, {"padding"}));
  HEARTH_TRY(read_id(vocab.separator, {"seperator", "separator"}));  // the first is the real key
  HEARTH_TRY(read_id(vocab.mask, {"mask"}));
  HEARTH_TRY(read_id(vocab.fim_prefix, {"fim_pre", "prefix"}));
  HEARTH_TRY(read_id(vocab.fim_suffix, {"fim_suf", "suffix"}));
  HEARTH_TRY(read_id(vocab.fim_middle, {"fim_mid", "middle"}));
  HEARTH_TRY(read_id(vocab.fim_padding, {"fim_pad"}));
  HEARTH_TRY(read_id(vocab.fim_repository, {"fim_rep"}));
  HEARTH_TRY(read_id(vocab.fim_file, {"fim_sep"}));
  return {};
}

Result<void> Reader::read_flags() {
  switch (vocab.kind) {
    case VocabKind::kSentencePiece:
      vocab.add_bos = vocab.add_space_prefix = true;
      break;
    case VocabKind::kUnigram:
      vocab.add_eos = true;
      break;
    case VocabKind::kWordPiece:
      vocab.add_bos = vocab.add_separator = true;
      break;
    default:
      break;
  }
  HEARTH_ASSIGN(vocab.add_bos, metadata.boolean_or("tokenizer.ggml.add_bos_token", vocab.add_bos));
  HEARTH_ASSIGN(vocab.add_eos, metadata.boolean_or("tokenizer.ggml.add_eos_token", vocab.add_eos));
  HEARTH_ASSIGN(vocab.add_separator, metadata.boolean_or("tokenizer.ggml.add_sep_token", vocab.add_separator));
  HEARTH_ASSIGN(vocab.add_space_prefix, metadata.boolean_or("tokenizer.ggml.add_space_prefix", vocab.add_space_prefix));
  if (vocab.kind == VocabKind::kGemma4) vocab.add_bos = true;
  return {};
}

// The markup of GPT-OSS has to be seen in the output, so it is not hidden as control tokens are.
void Reader::patch_harmony() {
  for (std::string_view mark : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}) {
    if (int32_t id = find(mark); id >= 0) type(id) = TokenType::kUserDefined;
  }
}

void Reader::make_control(int32_t id) {
  if (type(id) == TokenType::kControl) return;
  vocab.warnings.push_back(
      fmt::format("token {} '{}' is not marked as a control token; it is treated as one", id, text(id)));
  type(id) = TokenType::kControl;
}

void Reader::take_role(int32_t& id, std::span<const std::string_view> texts) {
  for (std::string_view candidate : texts) {
    if (id >= 0) return;
    id = find(candidate);
    if (id >= 0) make_control(id);
  }
}

void Reader::find_roles_by_text() {
  take_role(vocab.eot, kEndOfTurn);
  take_role(vocab.eom, kEndOfMessage);
  take_role(vocab.fim_prefix, kFimPrefix);
  take_role(vocab.fim_suffix, kFimSuffix);
  take_role(vocab.fim_middle, kFimMiddle);
  take_role(vocab.fim_padding, kFimPadding);
  take_role(vocab.fim_repository, kFimRepository);
  take_role(vocab.fim_file, kFimFile);
}

void Reader::collect_end_of_generation() {
  std::vector<int32_t>& ids = vocab.end_of_generation;
  for (int32_t id : {vocab.eos, vocab.eot, vocab.eom, vocab.fim_padding, vocab.fim_repository, vocab.fim_file}) {
    if (id >= 0) ids.push_back(id);
  }
  for (std::string_view text : kEndOfGeneration) {
    int32_t id = find(text);
    if (id < 0) continue;
    make_control(id);
    ids.push_back(id);
  }
  auto drop = [&](std::string_view text, TokenType new_type) {
    int32_t id = find(text);
    if (std::erase(ids, id) > 0) type(id) = new_type;
    if (vocab.eot == id) vocab.eot = -1;
  };
  auto has = [&](std::string_view text) { return find(text) >= 0; };
  // <|end|> closes one of several messages of a turn there.
  if ((has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"))) {
    drop("<|end|>", TokenType::kUserDefined);
  }
  if (has("<|tool_response>")) drop("</s>", TokenType::kNormal);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) {
    vocab.warnings.push_back(
        "the vocabulary has no token that ends an answer: generation stops at the token limit only");
  }
}

// GGUF has no field for this.
void Reader::patch_strips() {
  std::string name(metadata.string_or("general.name", "").has_value() ? *metadata.string_or("general.name", "") : "");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos) {
    for (int32_t id = 0; id < vocab.size(); ++id) {
      TokenType t = type(id);
      if (t == TokenType::kControl || t == TokenType::kUserDefined || t == TokenType::kUnknown) strip(id).right = true;
    }
    for (std::string_view text : {"<unk>", "<s>", "<|endoftext|>"}) {
      if (int32_t id = find(text); id >= 0) strip(id).right = false;
    }
  }
  bool jina = vocab.pre == "jina-v2-de" || vocab.pre == "jina-v2-es" || vocab.pre == "jina-v2-code";
  int32_t mask = jina ? find("<mask>") : vocab.pre == "modern-bert" ? find("[MASK]") : -1;
  if (mask >= 0) strip(mask).left = true;
}

}  // namespace

bool Vocab::is_end_of_generation(int32_t id) const {
  return std::binary_search(end_of_generation.begin(), end_of_generation.end(), id);
}

int byte_token_value(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (char c : text.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

Result<Vocab> read_vocab(const Metadata& metadata) {
  Reader reader{metadata, {}};
  HEARTH_TRY(reader.read_kind());
  if (reader.vocab.kind == VocabKind::kNone) return std::move(reader.vocab);
  HEARTH_TRY(reader.read_tokens());
  HEARTH_TRY(reader.read_types());
  HEARTH_TRY(reader.read_scores_and_merges());
  HEARTH_TRY(reader.read_pre());
  HEARTH_TRY(reader.read_special_ids());
  HEARTH_TRY(reader.read_flags());
  reader.patch_harmony();
  reader.find_roles_by_text();
  reader.collect_end_of_generation();
  reader.patch_strips();
  return std::move(reader.vocab);
}

}  // namespace hearth
