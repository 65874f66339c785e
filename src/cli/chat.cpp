// hearth chat: a conversation in the terminal.
#include <unistd.h>

#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/flags.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

constexpr const char* kHelp =
    "/help             this list\n"
    "/stats            speed and context use of the last answer\n"
    "/system [TEXT]    show or set the system prompt\n"
    "/regen            answer the last message again\n"
    "/clear            forget the conversation, keep the system prompt\n"
    "/save FILE        write the conversation as JSON\n"
    "/load FILE        continue a saved conversation\n"
    "/exit             leave (Ctrl-D too)\n"
    "End a line with \\ to go on in the next one. Ctrl-C stops the answer, not the chat.\n";

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string system;
  std::optional<bool> thinking;
};

class Chat {
 public:
  Chat(ChatFlags& flags, std::shared_ptr<Model> model, std::unique_ptr<Engine> engine)
      : flags_(flags), model_(std::move(model)), engine_(std::move(engine)) {
    conversation_.system = flags.system;
  }

  // Fails with what would make every answer fail: impossible flags, a template that is missing or refuses a message.
  Result<void> check() {
    Request request;
    HEARTH_TRY(apply(flags_.sampling, *model_, request));
    Conversation greeting{.system = flags_.system, .messages = {{.role = "user", .content = "Hello"}}};
    HEARTH_ASSIGN(Prompt prompt, model_->text().render(greeting.to_json(), {.thinking = flags_.thinking}));
    request.prompt.assign(prompt.tokens.begin(),
                          prompt.tokens.begin() + std::min<ptrdiff_t>(1, std::ssize(prompt.tokens)));
    HEARTH_TRY(engine_->submit(std::move(request)));  // checks it; cancelled at once
    return {};
  }

  void loop() {
    LineReader reader;
    std::string line;
    while (reader.read(line)) {
      Result<bool> more = true;
      if (line.starts_with('/')) {
        more = command(line);
      } else if (auto good = check_utf8("the message", line); !good) {
        more = std::move(good).error();
      } else if (!line.empty()) {
        conversation_.messages.push_back({.role = "user", .content = line});
        if (auto ok = answer(); !ok) more = std::move(ok).error();
      }
      if (!more) report(more.error());
      if (more && !*more) return;
    }
  }

 private:
  // Returns false to leave.
  Result<bool> command(const std::string& line) {
    size_t space = line.find(' ');
    std::string name = line.substr(0, space);
    size_t begin = space == std::string::npos ? std::string::npos : line.find_first_not_of(' ', space);
    std::string rest = begin == std::string::npos ? "" : line.substr(begin);
    if (name == "/exit" || name == "/quit") return false;
    if (name == "/help") {
      std::fputs(kHelp, stderr);
    } else if (name == "/stats") {
      stats();
    } else if (name == "/system") {
      if (!rest.empty()) conversation_.system = rest;
      note("system: {}\n", conversation_.system.empty() ? "(none)" : conversation_.system);
    } else if (name == "/clear") {
      conversation_.messages.clear();
      last_usage_ = {};
      note("The conversation is empty.\n");
    } else if (name == "/regen") {
      if (!conversation_.messages.empty() && conversation_.messages.back().role == "assistant") {
        conversation_.messages.pop_back();
      }
      if (conversation_.messages.empty()) return fail(ErrorCode::kUsage, "there is nothing to answer again");
      HEARTH_TRY(answer());
    } else if (name == "/save") {
      if (rest.empty()) return fail(ErrorCode::kUsage, "/save needs a file name");
      HEARTH_TRY(write_text(rest, conversation_.to_json() + "\n"));
      note("Saved {} to {}.\n", counted(std::ssize(conversation_.messages), "message"), rest);
    } else if (name == "/load") {
      if (rest.empty()) return fail(ErrorCode::kUsage, "/load needs a file name");
      HEARTH_ASSIGN(std::string text, read_text(rest));
      Result<Conversation> loaded = Conversation::from_json(text);
      if (!loaded) return std::move(loaded).error().with_context(fmt::format("cannot load {}", rest));
      conversation_ = *std::move(loaded);
      note("Loaded {}.\n", counted(std::ssize(conversation_.messages), "message"));
    } else {
      return fail(ErrorCode::kUsage, "there is no command {}; /help lists them", name);
    }
    return true;
  }

  void stats() const {
    const ModelInfo& info = model_->info();
    note("{} on {}\n", info.name, info.device);
    note("context: {} of {} tokens\n", last_usage_.prompt_tokens + last_usage_.generated_tokens, info.sequence_tokens);
    if (last_usage_.prompt_tokens > 0) note("last answer: {}\n", usage_text(last_usage_));
  }

  // Renders the conversation, forgetting its oldest turns until the prompt leaves room for an answer: a quarter of the
  // context, at most 1024 tokens.
  Result<std::vector<int32_t>> fitting_prompt() {
    int64_t context = model_->info().sequence_tokens;
    int64_t room = std::min<int64_t>(1024, context / 4);
    size_t dropped = 0;
    Conversation shorter = conversation_;  // replaces the conversation only once it fits: a refusal forgets nothing
    while (true) {
      HEARTH_ASSIGN(Prompt prompt, model_->text().render(shorter.to_json(), {.thinking = flags_.thinking}));
      auto tokens = static_cast<int64_t>(prompt.tokens.size());
      if (tokens + room <= context) {
        if (dropped > 0) {
          note("[the context of {} tokens is full: forgot the oldest {}; -c gives more]\n", context,
               dropped == 1 ? "message" : fmt::format("{} messages", dropped));
          conversation_ = std::move(shorter);
        }
        return std::move(prompt.tokens);
      }
      auto& messages = shorter.messages;
      size_t next_user = 1;
      while (next_user < messages.size() && messages[next_user].role != "user") ++next_user;
      if (next_user >= messages.size()) {
        return fail(ErrorCode::kUsage,
                    "the message needs {} tokens and leaves no room for an answer in a context of {}; start with -c {}",
                    tokens, context, tokens + room);
      }
      messages.erase(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(next_user));
      dropped += next_user;
    }
  }

  // Answers the last user message. When it fails the message is taken back, so that the next one starts clean.
  Result<void> answer() {
    Request request;
    HEARTH_TRY(apply(flags_.sampling, *model_, request));
    Result<std::vector<int32_t>> prompt = fitting_prompt();
    if (!prompt) {
      conversation_.messages.pop_back();
      return std::move(prompt).error();
    }
    request.prompt = *prompt;
    Result<Generated> answer = generate(*engine_, std::move(request), interrupt_, [](std::string_view text) {
      write_out(text);
      std::fflush(stdout);
    });
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (!answer) {
      conversation_.messages.pop_back();
      return std::move(answer).error();
    }
    last_usage_ = answer->usage;
    if (!flags_.model.engine.deterministic) {
      prompt->insert(prompt->end(), answer->ids.begin(), answer->ids.end());
      model_->text().remember(*prompt);
    }
    if (answer->reason == FinishReason::kCancelled) {
      note("[stopped]\n");
    } else if (answer->reason == FinishReason::kContextFull) {
      note("[cut off: the context of {} tokens is full; the oldest turns are forgotten from here on]\n",
           model_->info().sequence_tokens);
    }
    conversation_.messages.push_back(assistant_message(answer->text));
    return {};
  }

  ChatFlags& flags_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Engine> engine_;
  Conversation conversation_;
  Usage last_usage_;
  Interrupt interrupt_;  // Ctrl-C never ends a chat
};

Result<void> chat(ChatFlags& flags) {
  HEARTH_TRY(check_utf8("--system", flags.system));
  if (flags.model.path.empty()) {
    HEARTH_ASSIGN(flags.model.path, model_in_the_box());
  }
  HEARTH_ASSIGN(std::shared_ptr<Model> model, open_model(flags.model));
  note_long_context(model->info());
  HEARTH_ASSIGN(std::unique_ptr<Engine> engine, Engine::create(model, flags.model.engine));
  Chat chat(flags, model, std::move(engine));
  HEARTH_TRY(chat.check());
  if (is_terminal(STDIN_FILENO)) {
    note("{} on {}, context {} tokens. /help lists commands.\n", model->info().name, model->info().device,
         model->info().sequence_tokens);
  }
  chat.loop();
  return {};
}

}  // namespace

void add_chat(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = add_command(app, "chat", "Talk with a model", chosen, [flags] { return chat(*flags); });
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);
  add_sampling_flags(*command, flags->sampling);
  command->add_option("--system", flags->system, "System prompt");
  add_thinking_flags(*command, flags->thinking);
}

}  // namespace hearth::cli
