// hearth completions: scripts for shells, made from the commands themselves.
#include "cli/command.h"

namespace hearth::cli {
namespace {

// Words that may follow a command: its flags, long and short.
std::string flag_words(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    for (const std::string& name : option->get_snames()) words += "-" + name + " ";
  }
  return words;
}

std::string command_words(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : app.get_subcommands({})) words += command->get_name() + " ";
  return words;
}

std::string bash_script(const CLI::App& app) {
  std::string text =
      "_hearth() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]}\n"
      "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '" +
      command_words(app) +
      "' -- \"$word\")); return; fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    text += "    " + command->get_name() + ") [[ $word == -* ]] && COMPREPLY=($(compgen -W '" + flag_words(*command) +
            "' -- \"$word\")) ;;\n";
  }
  return text + "  esac\n}\ncomplete -o default -F _hearth hearth\n";
}

std::string zsh_script(const CLI::App& app) {
  return "#compdef hearth\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
}

std::string fish_script(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("complete -c hearth -n __fish_use_subcommand -f -a {} -d '{}'\n", command->get_name(),
                        command->get_description());
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        text +=
            fmt::format("complete -c hearth -n '__fish_seen_subcommand_from {}' -l {}\n", command->get_name(), name);
      }
    }
  }
  return text;
}

}  // namespace

void add_completions(CLI::App& app, Body& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, "completions", "Print a completion script for a shell", chosen, [shell, &app]() -> Result<void> {
        print("{}", *shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
        return {};
      });
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace hearth::cli
