// Fill in the middle: the prompts of models that were trained to write what is between two texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/errors.h"
#include "server/models.h"

namespace hearth::server {

// The room of an answer that says nothing of its length.
inline constexpr int64_t kFimTokens = 256;

struct FimRequest {
  std::string prefix;
  std::string suffix;
  struct File {
    std::string name;
    std::string text;
  };
  std::vector<File> files;  // of the same project, for context
  int64_t max_tokens = 0;   // room that the prompt leaves
};

// kInvalid when the vocabulary has no tokens for it. What is too long for the context is cut: files first, then the
// beginning of the prefix and the end of the suffix.
Answer<std::vector<int32_t>> fim_prompt(const ServedModel& model, const FimRequest& request);

}  // namespace hearth::server
