#include "cli/generate.h"

#include <csignal>

#include <atomic>

namespace hearth::cli {
namespace {

std::atomic<bool> interrupted = false;

// While it lives, Ctrl-C sets `interrupted` once; the handler then restores the default.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &previous_);
  }
  ~CatchInterrupt() { sigaction(SIGINT, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

}  // namespace

Result<Generated> generate(Engine& engine, Request request, const std::function<void(std::string_view)>& on_text) {
  CatchInterrupt guard;
  bool keep_tokens = request.top_logprobs >= 0;
  HEARTH_ASSIGN(Generation generation, engine.submit(std::move(request)));
  Generated result;
  auto take = [&](std::string_view text) {
    result.text += text;
    if (!text.empty()) on_text(text);
  };
  while (!generation.finished()) {
    if (interrupted) generation.cancel();
    std::optional<Event> event = generation.next_within(0.05);
    if (!event) continue;
    if (auto* token = std::get_if<TokenEvent>(&*event)) {
      take(token->text);
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
  std::string text = fmt::format("{} tokens in", usage.prompt_tokens);
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
