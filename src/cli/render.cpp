// hearth render: what a model's chat template makes of a conversation.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/conversation.h"
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
  if (std::string error = json_error(conversation); !error.empty()) {
    return fail(ErrorCode::kInvalidInput, "{} is not JSON: {}",
                flags.conversation == "-" ? "stdin" : flags.conversation, error);
  }
  HEARTH_ASSIGN(std::string chat_template, read_chat_template(flags.chat_template_file));
  HEARTH_ASSIGN(std::shared_ptr<const Text> text, open_text(flags.model, chat_template));
  HEARTH_ASSIGN(Prompt prompt, text->render(conversation, {.add_generation_prompt = !flags.no_generation_prompt,
                                                           .thinking = flags.thinking}));
  if (flags.json) {
    nlohmann::ordered_json document = {{"text", prompt.text}, {"tokens", prompt.tokens}};
    print("{}\n", document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    write_out(prompt.text);
  }
  return {};
}

}  // namespace

void add_render(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<RenderFlags>();
  CLI::App* command = add_command(app, "render", "Show what the chat template makes of a conversation", chosen,
                                  [flags] { return render(*flags); });
  command->add_option("MODEL", flags->model, "A GGUF file")->required();
  command
      ->add_option("CONVERSATION", flags->conversation,
                   "JSON with messages (and tools, or any variable of the template); -: stdin")
      ->required();
  add_chat_template_flag(*command, flags->chat_template_file);
  add_thinking_flags(*command, flags->thinking);
  command->add_flag("--no-generation-prompt", flags->no_generation_prompt, "End after the last message");
  command->add_flag("--json", flags->json, "Print text and token ids as JSON");
}

}  // namespace hearth::cli
