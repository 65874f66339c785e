// hearth render: what a model's chat template makes of a conversation.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/flags.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

struct RenderFlags {
  std::string model;
  std::string conversation;
  std::string chat_template_file;
  std::optional<bool> thinking;
  bool no_generation_prompt = false;
  bool json = false;
};

Result<void> render(const RenderFlags& flags) {
  HEARTH_ASSIGN(std::string conversation, read_text(flags.conversation));
  std::string chat_template;
  if (!flags.chat_template_file.empty()) {
    HEARTH_ASSIGN(chat_template, read_text(flags.chat_template_file));
  }
  HEARTH_ASSIGN(std::shared_ptr<const Text> text, open_text(flags.model, chat_template));
  HEARTH_ASSIGN(Prompt prompt, text->render(conversation, {.add_generation_prompt = !flags.no_generation_prompt,
                                                           .thinking = flags.thinking}));
  if (flags.json) {
    nlohmann::ordered_json document = {{"text", prompt.text}, {"tokens", prompt.tokens}};
    fmt::print("{}\n", document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    std::fwrite(prompt.text.data(), 1, prompt.text.size(), stdout);
  }
  return {};
}

}  // namespace

void add_render(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RenderFlags>();
  CLI::App* command = add_command(app, "render", "Show what the chat template makes of a conversation", exit_code,
                                  [flags] { return render(*flags); });
  command->add_option("MODEL", flags->model, "A GGUF file")->required();
  command
      ->add_option("CONVERSATION", flags->conversation,
                   "JSON with messages (and tools, or any variable of the template); -: stdin")
      ->required();
  command->add_option("--chat-template", flags->chat_template_file, "A Jinja file to use instead of the model's own");
  add_thinking_flags(*command, flags->thinking);
  command->add_flag("--no-generation-prompt", flags->no_generation_prompt, "End after the last message");
  command->add_flag("--json", flags->json, "Print text and token ids as JSON");
}

}  // namespace hearth::cli
