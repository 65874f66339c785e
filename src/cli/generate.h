// Runs one request, handing text to a callback as it comes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/interrupt.h"
#include "hearth/engine.h"

namespace hearth::cli {

struct Generated {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<TokenEvent> tokens;  // with log-probabilities, when the request asked for them
  FinishReason reason = FinishReason::kEnd;
  Usage usage;
};

// Submits and waits for the end. Ctrl-C cancels the generation (reason kCancelled); before the first token it does not
// wait for the step that runs then.
Result<Generated> generate(Engine& engine, Request request, Interrupt& interrupt,
                           const std::function<void(std::string_view)>& on_text);

// "stop", "length", ... as the protocols call it.
std::string_view reason_name(FinishReason reason);

// "31 tokens in, 24 out, first token 0.05 s, 118.2 tok/s"
std::string usage_text(const Usage& usage);

}  // namespace hearth::cli
