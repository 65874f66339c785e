#include "cli/generate.h"

#include "base/result.h"

namespace hearth::cli {

Result<Generated> generate(Engine& engine, Request request, Interrupt& interrupt,
                           const std::function<void(std::string_view)>& on_text) {
  bool keep_tokens = request.top_logprobs >= 0;
  bool begun = false;
  Generated result;
  result.usage.prompt_tokens = std::ssize(request.prompt);
  HEARTH_ASSIGN(Generation generation, engine.submit(std::move(request)));
  auto take = [&](std::string_view text) {
    result.text += text;
    if (!text.empty()) on_text(text);
  };
  while (!generation.finished()) {
    if (interrupt.take()) {
      generation.cancel();
      result.reason = FinishReason::kCancelled;
      if (!begun) return result;
    }
    std::optional<Event> event = generation.next_within(0.05);
    if (!event) continue;
    if (auto* token = std::get_if<TokenEvent>(&*event)) {
      begun = true;
      take(token->text);
      result.ids.push_back(token->token);
      if (keep_tokens) result.tokens.push_back(std::move(*token));
    } else if (auto* done = std::get_if<Done>(&*event)) {
      take(done->text);
      result.reason = done->reason;
      result.usage = done->usage;
    } else if (auto* failed = std::get_if<Failed>(&*event)) {
      return std::move(failed->error);
    }
  }
  return result;
}

std::string_view reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEnd:
    case FinishReason::kStopString:
    case FinishReason::kStopToken:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

std::string usage_text(const Usage& usage) {
  std::string text = counted(usage.prompt_tokens, "token") + " in";
  if (usage.cached_tokens > 0) text += fmt::format(" ({} cached)", usage.cached_tokens);
  text += fmt::format(", {} out", usage.generated_tokens);
  double computed = static_cast<double>(usage.prompt_tokens - usage.cached_tokens);
  if (usage.prefill_seconds > 0) {
    text += fmt::format(", first token {:.2f} s ({:.0f} tok/s)", usage.queue_seconds + usage.prefill_seconds,
                        computed / usage.prefill_seconds);
  }
  if (usage.generated_tokens > 1 && usage.decode_seconds > 0) {
    text += fmt::format(", {:.1f} tok/s", static_cast<double>(usage.generated_tokens - 1) / usage.decode_seconds);
  }
  return text;
}

}  // namespace hearth::cli
