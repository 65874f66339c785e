// The server with its protocols and the text side of a model, but answers from a script: what clients do with an answer
// must not depend on what a small model happens to say.
//
//   scripted_server MODEL SCRIPT [KEEPALIVE_SECONDS]     says on stderr where it listens; ends when stdin does
//
// The script is a list of rules. The first whose `has` (all) and `lacks` (none) fit the rendered prompt gives the
// answer:
//   {"has": ["weather"], "lacks": ["<tool_response>"], "say": "...", "wait_ms": before it, "token_ms": after each
//   token}
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/generation.h"
#include "server/protocol.h"

namespace hearth::server {
namespace {

struct Rule {
  std::vector<std::string> has, lacks;
  std::string say, fail;
  std::chrono::milliseconds wait{0}, token{0};
};

class ScriptedEngine final : public Engine {
 public:
  // `real` makes embeddings, which nobody would write a script of.
  ScriptedEngine(std::shared_ptr<Model> model, std::unique_ptr<Engine> real, std::vector<Rule> rules)
      : model_(std::move(model)), real_(std::move(real)), rules_(std::move(rules)) {}

  Result<Generation> submit(Request request) override {
    if (request.embedding) return real_->submit(std::move(request));
    const std::string prompt = model_->text().detokenize(request.prompt, true);
    const auto fits = [&](const Rule& rule) {
      const auto in_prompt = [&](const std::string& text) { return prompt.find(text) != std::string::npos; };
      return std::ranges::all_of(rule.has, in_prompt) && std::ranges::none_of(rule.lacks, in_prompt);
    };
    const auto rule = std::ranges::find_if(rules_, fits);
    if (rule == rules_.end()) return fail(ErrorCode::kInternal, "the script has no answer to this");
    // Where the template has it begin with a thought, it thinks.
    const bool think = prompt.ends_with("<think>\n") && rule->say.find("</think>") == std::string::npos;
    std::string say = (think ? "Let me see.\n</think>\n\n" : "") + rule->say;
    auto state = std::make_shared<Generation::State>(std::make_shared<Doorbell>());
    std::lock_guard lock(mutex_);
    threads_.emplace_back(
        [this, state, rule, say, request = std::move(request)] { play(*state, *rule, say, request); });
    return Generation(std::move(state));
  }
  EngineStats stats() const override { return {}; }
  Result<void> clear_cache() override { return {}; }
  Result<int64_t> save_cache(const std::string&) override { return int64_t{0}; }
  Result<int64_t> restore_cache(const std::string&) override { return int64_t{0}; }

 private:
  void play(Generation::State& state, const Rule& rule, std::string say, const Request& request) const {
    const auto prompt = std::ssize(request.prompt);
    Done done{.usage = {.prompt_tokens = prompt,
                        .cached_tokens = prompt / 2,
                        .computed_tokens = prompt - prompt / 2,
                        .prefill_seconds = 0.01}};
    const auto sleep = [&](std::chrono::milliseconds time) {
      const auto end = std::chrono::steady_clock::now() + time;
      while (!state.cancelled() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    };
    constexpr std::chrono::milliseconds kChunk{1000};  // of a prompt that is read slowly
    for (std::chrono::milliseconds waited{0}; waited == waited.zero() || waited < rule.wait; waited += kChunk) {
      const int64_t done_tokens = rule.wait.count() == 0 ? 0 : prompt * waited / rule.wait;
      state.push(PromptProgress{.done = done_tokens, .total = prompt});
      sleep(std::min(kChunk, rule.wait - waited));
    }
    for (size_t i = 0; i < request.stop_strings.size(); ++i) {
      const size_t at = say.find(request.stop_strings[i]);
      if (at == std::string::npos) continue;
      say.resize(at);
      done.reason = FinishReason::kStopString;
      done.stop_index = static_cast<int64_t>(i);
    }
    auto tokens = model_->text().tokenize(say, true, false);
    if (!tokens) return state.push(Failed{std::move(tokens).error()});
    for (int32_t token : *tokens) {
      if (request.max_tokens >= 0 && done.usage.generated_tokens == request.max_tokens) {
        done.reason = FinishReason::kLength;
        break;
      }
      if (state.cancelled()) {
        done.reason = FinishReason::kCancelled;
        break;
      }
      ++done.usage.generated_tokens;
      state.push(TokenEvent{.token = token, .text = model_->text().piece(token, true)});
      sleep(rule.token);
    }
    if (!rule.fail.empty()) return state.push(Failed{Error{ErrorCode::kInternal, rule.fail}});
    state.push(std::move(done));
  }

  std::shared_ptr<Model> model_;
  std::unique_ptr<Engine> real_;
  std::vector<Rule> rules_;
  std::mutex mutex_;
  std::vector<std::jthread> threads_;
};

std::vector<Rule> read_script(const char* path) {
  std::ifstream file(path);
  std::vector<Rule> rules;
  for (const Json& rule : Json::parse(file)) {
    rules.push_back({.has = rule.value("has", std::vector<std::string>()),
                     .lacks = rule.value("lacks", std::vector<std::string>()),
                     .say = rule.at("say"),
                     .fail = rule.value("fail", ""),
                     .wait = std::chrono::milliseconds(rule.value("wait_ms", 0)),
                     .token = std::chrono::milliseconds(rule.value("token_ms", 0))});
  }
  return rules;
}

int main(int count, char** arguments) {
  if (count < 3 || count > 4) return 2;
  Models models({.path = arguments[1], .model = {.threads = 1, .context_tokens = 65536}, .id = "scripted"});
  models.start_loading();
  while (!models.get()) {
    if (auto failure = models.failure()) {
      std::fputs((failure->message + "\n").c_str(), stderr);
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ServedModel& model = **models.get();
  model.engine = std::make_unique<ScriptedEngine>(model.model, std::move(model.engine), read_script(arguments[2]));
  ServerOptions options{.port = 0};
  if (count == 4) options.limits.keepalive_seconds = std::stod(arguments[3]);
  Server server(std::move(options));
  add_protocols(server, models);
  if (auto started = server.start(); !started) return 1;
  std::fputs(fmt::format("Listening on {}\n", server.url()).c_str(), stderr);
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

}  // namespace
}  // namespace hearth::server

int main(int count, char** arguments) { return hearth::server::main(count, arguments); }
