// hearth tokenize: text to token ids and pieces.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string text;
  std::string file;
  bool special = false;
  bool no_bos = false;
  bool json = false;
};

Result<void> tokenize(const TokenizeFlags& flags) {
  std::string text = flags.text;
  if (text.empty()) {
    if (flags.file.empty() && is_terminal(STDIN_FILENO)) {
      return fail(ErrorCode::kUsage, "there is nothing to tokenize: give TEXT, -f FILE or text on stdin");
    }
    HEARTH_ASSIGN(text, read_text(flags.file.empty() ? "-" : flags.file));
  }
  HEARTH_ASSIGN(std::shared_ptr<const Text> model, open_text(flags.model));
  HEARTH_ASSIGN(std::vector<int32_t> ids, model->tokenize(text, flags.special, !flags.no_bos));
  if (flags.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (int32_t id : ids) list.push_back({{"id", id}, {"piece", model->piece(id, true)}});
    fmt::print("{}\n", list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return {};
  }
  for (int32_t id : ids) {
    // Quoted as JSON, so that spaces, newlines and broken UTF-8 can be seen.
    nlohmann::json piece = model->piece(id, true);
    fmt::print("{:>7} {}\n", id, piece.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return {};
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command =
      add_command(app, "tokenize", "Show the tokens of a text", exit_code, [flags] { return tokenize(*flags); });
  command->add_option("MODEL", flags->model, "A GGUF file")->required();
  command->add_option("TEXT", flags->text, "The text; without it -f or stdin");
  command->add_option("-f,--file", flags->file, "Read the text from a file");
  command->add_flag("--special", flags->special, "Markup such as <|im_start|> forms control tokens");
  command->add_flag("--no-bos", flags->no_bos, "Leave out the tokens that the model wants at the start and end");
  command->add_flag("--json", flags->json, "Print a JSON array of ids and pieces");
}

}  // namespace hearth::cli
