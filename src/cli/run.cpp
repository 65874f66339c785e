// hearth run: one prompt, one answer on stdout.
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <chrono>

#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/flags.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::optional<std::string> prompt, prompt_file;
  std::string system;
  std::optional<bool> thinking;
  bool raw = false;
  bool json = false;
  int32_t logprobs = -1;
};

Result<std::string> prompt_text(const RunFlags& flags) {
  if (flags.prompt) return *flags.prompt;
  if (flags.prompt_file) return read_text(*flags.prompt_file);
  if (!is_terminal(STDIN_FILENO)) return read_text("-");
  return fail(ErrorCode::kUsage,
              "there is no prompt: give -p TEXT, -f FILE or text on stdin; `hearth chat` is for talking");
}

nlohmann::ordered_json token_json(const Text& text, const TokenEvent& event) {
  nlohmann::ordered_json top = nlohmann::ordered_json::array();
  for (const TokenLogprob& entry : event.logprobs) {
    top.push_back({{"id", entry.token}, {"token", text.piece(entry.token, true)}, {"logprob", entry.logprob}});
  }
  nlohmann::ordered_json own = top.empty() ? nlohmann::ordered_json{{"id", event.token}} : top.front();
  if (!top.empty()) top.erase(top.begin());
  own["top"] = std::move(top);
  return own;
}

Result<void> run(RunFlags& flags) {
  HEARTH_ASSIGN(std::string prompt, prompt_text(flags));
  if (prompt.empty()) return fail(ErrorCode::kUsage, "the prompt is empty");
  HEARTH_TRY(check_utf8("the prompt", prompt));
  HEARTH_TRY(check_utf8("--system", flags.system));
  if (flags.model.path.empty()) {
    HEARTH_ASSIGN(flags.model.path, model_in_the_box());
  }
  auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(std::shared_ptr<Model> model, open_model(flags.model));
  note_long_context(model->info());
  HEARTH_ASSIGN(std::unique_ptr<Engine> engine, Engine::create(model, flags.model.engine));
  double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Request request;
  HEARTH_TRY(apply(flags.sampling, *model, request));
  request.top_logprobs = flags.logprobs;
  if (flags.raw) {
    HEARTH_ASSIGN(request.prompt, model->text().tokenize(prompt, /*special=*/true, /*add_special=*/true));
  } else {
    Conversation conversation{.system = flags.system, .messages = {{.role = "user", .content = prompt}}};
    HEARTH_ASSIGN(Prompt rendered, model->text().render(conversation.to_json(), {.thinking = flags.thinking}));
    request.prompt = std::move(rendered.tokens);
  }

  Interrupt interrupt(Signals::kOnce);
  HEARTH_ASSIGN(Generated answer, generate(*engine, std::move(request), interrupt, [&](std::string_view text) {
                  if (flags.json) return;
                  write_out(text);
                  std::fflush(stdout);
                }));
  if (!flags.json) {
    if (!answer.text.ends_with('\n')) std::fputc('\n', stdout);
    if (answer.reason == FinishReason::kContextFull) {
      note("hearth: note: the answer is cut off: the context of {} tokens is full{}\n", model->info().sequence_tokens,
           model->info().sequence_tokens < model->info().trained_context ? "; -c gives more" : "");
    }
    if (is_terminal(STDERR_FILENO)) note("[{}, {}]\n", reason_name(answer.reason), usage_text(answer.usage));
  } else {
    const Usage& u = answer.usage;
    double decoded = static_cast<double>(u.generated_tokens - 1);
    nlohmann::ordered_json document = {
        {"text", answer.text},
        {"finish_reason", reason_name(answer.reason)},
        {"usage",
         {{"prompt_tokens", u.prompt_tokens},
          {"cached_tokens", u.cached_tokens},
          {"completion_tokens", u.generated_tokens}}},
        {"timings",
         {{"load_seconds", load_seconds},
          {"prefill_seconds", u.prefill_seconds},
          {"decode_seconds", u.decode_seconds},
          {"prefill_tokens_per_second",
           u.prefill_seconds > 0 ? static_cast<double>(u.prompt_tokens - u.cached_tokens) / u.prefill_seconds : 0},
          {"decode_tokens_per_second", u.decode_seconds > 0 ? decoded / u.decode_seconds : 0}}}};
    if (flags.logprobs >= 0) {
      document["tokens"] = nlohmann::ordered_json::array();
      for (const TokenEvent& event : answer.tokens) document["tokens"].push_back(token_json(model->text(), event));
    }
    print("{}\n", document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  if (answer.reason == FinishReason::kCancelled) return fail(ErrorCode::kCancelled, "cancelled");
  return {};
}

}  // namespace

void add_run(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = add_command(app, "run", "Answer one prompt", chosen, [flags] { return run(*flags); });
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);
  add_sampling_flags(*command, flags->sampling);
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt, "The prompt");
  command->add_option("-f,--file", flags->prompt_file, "Read the prompt from a file; -: from stdin")->excludes(prompt);
  command->add_option("--system", flags->system, "System prompt");
  add_thinking_flags(*command, flags->thinking);
  command->add_flag("--raw", flags->raw, "Give the prompt to the model as it is, without the chat template")
      ->excludes("--system")
      ->excludes("--think")
      ->excludes("--no-think")
      ->excludes("--chat-template");
  CLI::Option* json = command->add_flag("--json", flags->json, "Print one JSON object with text, usage and timings");
  command->add_option("--logprobs", flags->logprobs, "With --json: log-probabilities of each token and of the N best")
      ->transform(whole_number<int32_t>(0))
      ->needs(json);
}

}  // namespace hearth::cli
