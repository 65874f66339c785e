// hearth chat: a conversation in the terminal.
#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstring>

#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/flags.h"
#include "cli/generate.h"
#include "cli/settings.h"
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

// Line editing with history on a terminal, plain lines otherwise.
class LineReader {
 public:
  LineReader() : terminal_(is_terminal(STDIN_FILENO)) {
    if (!terminal_) return;
    std::setlocale(LC_CTYPE, "");
    edit_ = el_init("hearth", stdin, stderr, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(
        edit_, EL_PROMPT, +[](EditLine* edit) {
          void* self = nullptr;
          el_get(edit, EL_CLIENTDATA, &self);
          return static_cast<LineReader*>(self)->prompt_.data();
        });
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_source(edit_, nullptr);
    if (auto folder = user_folder("STATE")) {
      history_path_ = *folder + "/chat_history";
      history(history_, &event, H_LOAD, history_path_.c_str());
    }
  }
  ~LineReader() {
    if (!terminal_) return;
    HistEvent event;
    if (!history_path_.empty()) history(history_, &event, H_SAVE, history_path_.c_str());
    history_end(history_);
    el_end(edit_);
  }

  // The next message, its continued lines joined. False at the end of input.
  bool read(std::string& message) {
    message.clear();
    prompt_ = "> ";
    std::string line;
    while (true) {
      Outcome outcome = read_line(line);
      if (outcome == kEnd) return !message.empty();
      if (outcome == kInterrupted) {
        message.clear();
        prompt_ = "> ";
        continue;
      }
      bool more = line.ends_with('\\');
      if (more) line.pop_back();
      message += line;
      if (!more) break;
      message += '\n';
      prompt_ = ". ";
    }
    if (terminal_ && !message.empty()) {
      HistEvent event;
      history(history_, &event, H_ENTER, message.c_str());
    }
    return true;
  }

 private:
  enum Outcome { kLine, kInterrupted, kEnd };

  Outcome read_line(std::string& line) {
    if (!terminal_) {
      line.clear();
      int c;
      while ((c = std::getchar()) != EOF && c != '\n') line += static_cast<char>(c);
      return c == EOF && line.empty() ? kEnd : kLine;
    }
    // Ctrl-C interrupts the read and drops the line.
    struct sigaction action {
    }, previous{};
    action.sa_handler = [](int) {};
    sigaction(SIGINT, &action, &previous);
    errno = 0;
    int count = 0;
    const char* text = el_gets(edit_, &count);
    int error = errno;
    sigaction(SIGINT, &previous, nullptr);
    if (!text || count <= 0) {
      bool interrupted = error == EINTR;
      std::fputs(interrupted ? "^C\n" : "\n", stderr);
      if (interrupted) el_reset(edit_);
      return interrupted ? kInterrupted : kEnd;
    }
    line.assign(text, static_cast<size_t>(count));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return kLine;
  }

  bool terminal_;
  std::string prompt_ = "> ";
  std::string history_path_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

class Chat {
 public:
  Chat(ChatFlags& flags, std::shared_ptr<Model> model, std::unique_ptr<Engine> engine)
      : flags_(flags), model_(std::move(model)), engine_(std::move(engine)) {
    conversation_.system = flags.system;
  }

  void loop() {
    LineReader reader;
    std::string line;
    while (reader.read(line)) {
      Result<bool> more = true;
      if (line.starts_with('/')) {
        more = command(line);
      } else if (!line.empty()) {
        conversation_.messages.push_back({.role = "user", .content = line});
        if (auto ok = answer(); !ok) more = std::move(ok).error();
      }
      if (!more) fmt::print(stderr, "hearth: {}\n", more.error().message);
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
      fmt::print(stderr, "system: {}\n", conversation_.system.empty() ? "(none)" : conversation_.system);
    } else if (name == "/clear") {
      conversation_.messages.clear();
      last_usage_ = {};
      fmt::print(stderr, "The conversation is empty.\n");
    } else if (name == "/regen") {
      if (!conversation_.messages.empty() && conversation_.messages.back().role == "assistant") {
        conversation_.messages.pop_back();
      }
      if (conversation_.messages.empty()) return fail(ErrorCode::kUsage, "there is nothing to answer again");
      HEARTH_TRY(answer());
    } else if (name == "/save") {
      if (rest.empty()) return fail(ErrorCode::kUsage, "/save needs a file name");
      HEARTH_TRY(write_text(rest, conversation_.to_json() + "\n"));
      fmt::print(stderr, "Saved {} messages to {}.\n", conversation_.messages.size(), rest);
    } else if (name == "/load") {
      if (rest.empty()) return fail(ErrorCode::kUsage, "/load needs a file name");
      HEARTH_ASSIGN(std::string text, read_text(rest));
      HEARTH_ASSIGN(conversation_, Conversation::from_json(text));
      fmt::print(stderr, "Loaded {} messages.\n", conversation_.messages.size());
    } else {
      return fail(ErrorCode::kUsage, "there is no command {}; /help lists them", name);
    }
    return true;
  }

  void stats() const {
    const ModelInfo& info = model_->info();
    fmt::print(stderr, "{} on {}\n", info.name, info.device);
    fmt::print(stderr, "context: {} of {} tokens\n", last_usage_.prompt_tokens + last_usage_.generated_tokens,
               info.sequence_tokens);
    if (last_usage_.prompt_tokens > 0) fmt::print(stderr, "last answer: {}\n", usage_text(last_usage_));
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
          fmt::print(stderr, "[the context of {} tokens is full: forgot the oldest {} messages; -c gives more]\n",
                     context, dropped);
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
    request.prompt = std::move(*prompt);
    Result<Generated> answer = generate(*engine_, std::move(request), [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    });
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (!answer) {
      conversation_.messages.pop_back();
      return std::move(answer).error();
    }
    last_usage_ = answer->usage;
    if (answer->reason == FinishReason::kCancelled) {
      fmt::print(stderr, "[stopped]\n");
    } else if (answer->reason == FinishReason::kContextFull) {
      fmt::print(stderr, "[cut off: the context of {} tokens is full; the oldest turns are forgotten from here on]\n",
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
};

Result<void> chat(ChatFlags& flags) {
  if (flags.model.path.empty()) {
    HEARTH_ASSIGN(flags.model.path, model_in_the_box());
  }
  HEARTH_ASSIGN(std::shared_ptr<Model> model, open_model(flags.model));
  HEARTH_ASSIGN(std::unique_ptr<Engine> engine, Engine::create(model, flags.model.engine));
  if (is_terminal(STDIN_FILENO)) {
    fmt::print(stderr, "{} on {}, context {} tokens. /help lists commands.\n", model->info().name, model->info().device,
               model->info().sequence_tokens);
  }
  Chat(flags, std::move(model), std::move(engine)).loop();
  return {};
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = add_command(app, "chat", "Talk with a model", exit_code, [flags] { return chat(*flags); });
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);
  add_sampling_flags(*command, flags->sampling);
  with_environment(command->add_option("--system", flags->system, "System prompt"));
  add_thinking_flags(*command, flags->thinking);
}

}  // namespace hearth::cli
