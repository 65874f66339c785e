// Flags that several commands share, and what they turn into.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/engine.h"
#include "hearth/model.h"

namespace hearth::cli {

struct ModelFlags {
  std::string path;
  ModelOptions model;
  EngineOptions engine;
  std::string chat_template_file;
};
// MODEL (required) and the flags that decide how it is loaded and run.
void add_model_flags(CLI::App& command, ModelFlags& flags);

// The model that ships with Hearth, for commands that were given none: says on stderr which one it is and how to get a
// bigger one. kNotFound when the box was not installed.
Result<std::string> model_in_the_box();

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
