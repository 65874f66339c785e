#include "server/fim.h"

#include <algorithm>
#include <optional>

namespace hearth::server {
namespace {

// Names of the tokens in the order of the prompt: `first` prefix `second` suffix `third`, or with the suffix in front.
struct Markers {
  const char *first, *second, *third;
  bool suffix_first = false;
};
constexpr Markers kMarkers[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen2.5-Coder, Granite 4, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // Code Llama
    {"[SUFFIX]", "[PREFIX]", nullptr, true},                    // Codestral
};
constexpr const char* kFileSeparators[] = {"<|file_sep|>", "<file_sep>", "<|file_separator|>"};

std::optional<int32_t> token_named(const Text& text, const char* name) {
  const auto tokens = text.tokenize(name, /*special=*/true, /*add_special=*/false);
  if (!tokens || tokens->size() != 1) return std::nullopt;
  return tokens->front();
}

struct MarkerTokens {
  std::vector<int32_t> first, second, third;
  bool suffix_first = false;
};

std::optional<MarkerTokens> find_markers(const Text& text) {
  for (const Markers& names : kMarkers) {
    const auto first = token_named(text, names.first), second = token_named(text, names.second);
    if (!first || !second) continue;
    MarkerTokens tokens{.first = {*first}, .second = {*second}, .suffix_first = names.suffix_first};
    if (names.third != nullptr) {
      const auto third = token_named(text, names.third);
      if (!third) continue;
      tokens.third = {*third};
    }
    return tokens;
  }
  return std::nullopt;
}

void append(std::vector<int32_t>& to, const std::vector<int32_t>& tokens) {
  to.insert(to.end(), tokens.begin(), tokens.end());
}

}  // namespace

Answer<std::vector<int32_t>> fim_prompt(const ServedModel& model, const FimRequest& request) {
  const Text& text = model.text();
  const std::optional<MarkerTokens> markers = find_markers(text);
  if (!markers) {
    return invalid("suffix",
                   "suffix: this model has no tokens for filling in the middle; leave it out or serve a model "
                   "that was trained for it");
  }
  HEARTH_ASSIGN(std::vector<int32_t> prefix, text.tokenize(request.prefix, false, false));
  HEARTH_ASSIGN(std::vector<int32_t> suffix, text.tokenize(request.suffix, false, false));
  HEARTH_ASSIGN(std::vector<int32_t> prompt, text.tokenize("", false, /*add_special=*/true));

  const int64_t context = model.model->info().sequence_tokens;
  const int64_t answer = std::clamp<int64_t>(request.max_tokens, 1, std::max<int64_t>(1, context / 4));
  int64_t room = std::max<int64_t>(0, context - answer - std::ssize(prompt) - 4);
  if (std::ssize(prefix) + std::ssize(suffix) > room) {
    // Three quarters are what is before the cursor, as far as both sides need them.
    const int64_t after = std::min(std::ssize(suffix), std::max(room / 4, room - std::ssize(prefix)));
    const int64_t before = std::min(std::ssize(prefix), room - after);
    suffix.resize(static_cast<size_t>(after));
    prefix.erase(prefix.begin(), prefix.end() - before);
  }
  room -= std::ssize(prefix) + std::ssize(suffix);

  std::optional<int32_t> separator;
  for (const char* name : kFileSeparators) {
    if (!separator) separator = token_named(text, name);
  }
  for (const FimRequest::File& file : request.files) {
    if (!separator) break;
    HEARTH_ASSIGN(std::vector<int32_t> tokens, text.tokenize(file.name + "\n" + file.text + "\n", false, false));
    if (std::ssize(tokens) + 1 > room) continue;
    room -= std::ssize(tokens) + 1;
    prompt.push_back(*separator);
    append(prompt, tokens);
  }
  append(prompt, markers->first);
  append(prompt, markers->suffix_first ? suffix : prefix);
  append(prompt, markers->second);
  append(prompt, markers->suffix_first ? prefix : suffix);
  append(prompt, markers->third);
  return prompt;
}

}  // namespace hearth::server
