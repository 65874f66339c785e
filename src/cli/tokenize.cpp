// hearth tokenize: text to token ids and pieces.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::optional<std::string> text, file;
  bool special = false;
  bool no_bos = false;
  bool json = false;
};

Result<void> tokenize(const TokenizeFlags& flags) {
  if (!flags.text && !flags.file && is_terminal(STDIN_FILENO)) {
    return fail(ErrorCode::kUsage, "there is nothing to tokenize: give TEXT, -f FILE or text on stdin");
  }
  std::string text;
  if (flags.text) {
    text = *flags.text;
  } else {
    HEARTH_ASSIGN(text, read_text(flags.file.value_or("-")));
  }
  HEARTH_ASSIGN(std::shared_ptr<const Text> model, open_text(flags.model));
  HEARTH_ASSIGN(std::vector<int32_t> ids, model->tokenize(text, flags.special, !flags.no_bos));
  // Quoted as JSON, so that spaces, newlines and broken UTF-8 can be seen. Token by token: there may be millions.
  auto quoted = [&](int32_t id) {
    return nlohmann::json(model->piece(id, true)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (flags.json) {
    for (size_t i = 0; i < ids.size(); ++i) {
      print("{}{{\"id\":{},\"piece\":{}}}", i == 0 ? "[" : ",", ids[i], quoted(ids[i]));
    }
    print("{}]\n", ids.empty() ? "[" : "");
  } else {
    for (int32_t id : ids) print("{:>7} {}\n", id, quoted(id));
  }
  return {};
}

}  // namespace

void add_tokenize(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command =
      add_command(app, "tokenize", "Show the tokens of a text", chosen, [flags] { return tokenize(*flags); });
  command->add_option("MODEL", flags->model, "A GGUF file")->required();
  CLI::Option* text = command->add_option("TEXT", flags->text, "The text; without it -f or stdin");
  command->add_option("-f,--file", flags->file, "Read the text from a file; -: from stdin")->excludes(text);
  command->add_flag("--special", flags->special, "Markup such as <|im_start|> forms control tokens");
  command->add_flag("--no-bos", flags->no_bos, "Leave out the tokens that the model wants at the start and end");
  command->add_flag("--json", flags->json, "Print a JSON array of ids and pieces");
}

}  // namespace hearth::cli
