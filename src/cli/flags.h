// Flags that several commands share, and what they turn into.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <concepts>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/engine.h"
#include "hearth/model.h"

namespace hearth::cli {

// Numbers that are what they look like: CLI11 by itself takes 010 for 8, and 2^64 for 2^64 - 1.
template <std::integral T>
CLI::Validator whole_number(T least = std::numeric_limits<T>::min(), T most = std::numeric_limits<T>::max()) {
  auto check = [least, most](std::string& text) -> std::string {
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) {
      text = fmt::format("{}", value);
      return "";
    }
    return fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most, text);
  };
  return {check, ""};
}
// A size such as 4GiB, 512MiB or 1.5G (the same), in bytes; a number alone is MiB, as llama.cpp takes it.
CLI::Validator byte_size();
// Finite, in the range of float.
CLI::Validator number();
// One of these.
CLI::Validator one_of(std::vector<std::string_view> names);

struct ModelFlags {
  std::string path;
  ModelOptions model = {.device = "auto"};
  EngineOptions engine;
  std::string chat_template_file;
};
// MODEL (required) and the flags that decide how it is loaded and run.
void add_model_flags(CLI::App& command, ModelFlags& flags);

// Where the model is that ships with Hearth; empty: it was not installed.
std::string path_of_the_box();
// The model that ships with Hearth, for commands that were given none: says on stderr which one it is and how to get a
// bigger one. kNotFound when the box was not installed.
Result<std::string> model_in_the_box();

// The content of --chat-template, "" without one.
Result<std::string> read_chat_template(const std::string& path);
CLI::Option* add_chat_template_flag(CLI::App& command, std::string& path);

// Says so when the context that was asked for is more than a conversation of this model can have.
void note_long_context(const ModelInfo& info);

// Opens the model, with progress on a terminal when it takes long.
Result<std::shared_ptr<Model>> open_model(const ModelFlags& flags);

// Sampling flags; what was not given keeps the model's default.
struct SamplingFlags {
  std::optional<float> temperature, top_p, min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty,
      dry_multiplier, dry_base, xtc_probability, xtc_threshold;
  std::optional<int32_t> top_k, penalty_last_n, dry_allowed_length, dry_last_n;
  std::optional<uint64_t> seed;
  std::vector<std::string> logit_bias;  // "ID=VALUE"
  std::vector<std::string> stop;
  int64_t max_tokens = -1;
};
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

// --think and --no-think; without either the template decides.
void add_thinking_flags(CLI::App& command, std::optional<bool>& thinking);

// The request's sampling, stop strings and length. Without --seed the seed is random for each call.
Result<void> apply(const SamplingFlags& flags, const Model& model, Request& request);

}  // namespace hearth::cli
